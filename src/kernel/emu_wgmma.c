/* wgmma: products of a warpgroup, and who may touch what meanwhile.
 *
 * A warp computes its 16 rows when it comes to the operation; that nobody may rely on them before
 * the wait is judged, not simulated (emu_tensor.c for registers; shared memory is read by an agent
 * of the warp, whose clock is the number of the wgmma, see emu_order.c). The warps of a warpgroup
 * do not wait for each other, but must come to the same operations in the same order: each
 * warpgroup keeps the list of those that one of its warps came to.
 *
 * A descriptor is that of the hardware: bits 0-13 address / 16, 16-29 leading offset / 16, 32-45
 * stride offset / 16, 49-51 base offset, 62-63 swizzle (1: 128 bytes, 2: 64, 3: 32). The canonical
 * layouts, in chunks of 16 bytes:
 *
 *   K-major    row r of 8 that are `width` apart, then stride; 2 chunks along k, `lead` apart
 *              without a swizzle
 *   MN-major   width / 16 chunks along mn, then lead; k of 8 that are `width` apart, then stride
 *              (without a swizzle lead and stride change places)
 *
 * with a width of 16, 32, 64 or 128 bytes; address bits 4-6 are exchanged with bits 7-9 of the
 * address as the swizzle says. */
#include "kernel/emu_fragment.h"
#include "kernel/emu_shared.h"

#define BODY(function)                                                                             \
    static void function(tk_emu_warp *warp, const tk_emu_insn *insn, uint32_t mask)

enum { CHUNK = 16, WARPS = 4 };

/* ---- the warpgroup ---- */

/* Which of two warps came first is chance, so the operation that stands later in the text is named
 * first. */
static void report_astray(tk_emu_warp *warp, uint16_t here, uint16_t there, uint32_t mask) {
    tk_emu_block *block = warp->block;
    const tk_kop *const *ops = block->launch->program->ops.items;
    uint16_t late = here > there ? here : there, early = here > there ? there : here;
    tk_emu_found found = {.kind = TK_KF_DIVERGENT,
                          .op = ops[late],
                          .other_op = ops[early],
                          .message = "warps of a warpgroup come to different operations of it",
                          .thread = (int32_t)tk_emu_thread(warp, __builtin_ctz(mask)),
                          .other_thread = -1,
                          .count = 1};
    memcpy(found.block, block->index, sizeof found.block);
    memcpy(found.other_block, block->index, sizeof found.other_block);
    tk_emu_find(&block->group->findings, &found);
}

/* Each warp's n-th operation of the warpgroup must be the same. */
static void step(tk_emu_warp *warp, const tk_emu_insn *insn, uint32_t mask) {
    tk_emu_steps *steps = &warp->block->steps[warp->number / WARPS];
    uint32_t place = warp->wgmma.steps++;
    if (warp->wgmma.astray) return;
    if (place == steps->count) {
        if (!tk_vec_push(steps, insn->number)) warp->block->group->status = TK_OUT_OF_MEMORY;
    } else if (steps->items[place] != insn->number) {
        warp->wgmma.astray = true;
        report_astray(warp, insn->number, steps->items[place], mask);
    }
}

static const tk_emu_insn *insn_of(const tk_emu_block *block, uint16_t number) {
    const tk_emu_program *program = block->launch->program;
    for (size_t i = 0; i < program->code.count; i++)
        if (program->code.items[i].number == number && program->code.items[i].aligned)
            return &program->code.items[i];
    return NULL;
}

/* What a warp that has ended left: operations that others came to, and products without a wait. */
static void end_warp(tk_emu_warp *warp) {
    const tk_emu_steps *steps = &warp->block->steps[warp->number / WARPS];
    uint32_t done = warp->wgmma.steps;
    if (!warp->lanes) return;
    if (done < steps->count && !warp->wgmma.astray) {
        const tk_emu_insn *insn = insn_of(warp->block, steps->items[done]);
        if (insn)
            tk_emu_report(warp, insn, __builtin_ctz(warp->lanes), TK_KF_DIVERGENT,
                          "a warp of the warpgroup never comes here");
    }
    if (warp->wgmma.issued > warp->wgmma.retired)
        tk_emu_report(warp, warp->wgmma.last, __builtin_ctz(warp->lanes), TK_KF_UNFINISHED,
                      "the thread ends before a wait has retired it");
}

void tk_emu_end_wgmma(tk_emu_block *block) {
    for (uint32_t w = 0; w < block->n_warps; w++) end_warp(&block->warps[w]);
}

BODY(fence) {
    step(warp, insn, mask);
    warp->wgmma.fences++;
}

BODY(commit) {
    step(warp, insn, mask);
    warp->wgmma.committed[++warp->wgmma.commits % 8] = warp->wgmma.issued;
}

static uint32_t agent_of(const tk_emu_warp *warp) { return tk_emu_wgmma_agent(warp); }

BODY(wait) {
    tk_emu_wgmma *state = &warp->wgmma;
    uint32_t left = (uint32_t)tk_kop_attr(insn->op, TK_KA_groups);
    step(warp, insn, mask);
    if (state->commits <= left || state->committed[(state->commits - left) % 8] <= state->retired)
        return;
    state->retired = state->committed[(state->commits - left) % 8];
    tk_emu_acquire_agent(warp, mask, agent_of(warp), state->retired);
}

BODY(reallocate) { step(warp, insn, mask); }

#define PICK(name, function)                                                                       \
    tk_emu_pick tk_emu_pick_##name(const tk_kop *op) {                                             \
        (void)op;                                                                                  \
        return (tk_emu_pick){.body = function};                                                    \
    }
PICK(wgmma_fence, fence)
PICK(wgmma_commit, commit)
PICK(wgmma_wait, wait)
PICK(registers_grow, reallocate)
PICK(registers_shrink, reallocate)

/* ---- descriptors ---- */

/* By place in the words of `swizzle`: the mode's number in a descriptor. */
static const uint64_t modes[] = {0, 3, 2, 1};

BODY(describe) {
    const uint32_t *from = tk_emu_from(warp, insn, 0);
    uint64_t *to = tk_emu_to(warp, insn);
    uint64_t rest = ((uint64_t)tk_kop_attr(insn->op, TK_KA_lead) & 0x3ffff) >> 4 << 16 |
                    ((uint64_t)tk_kop_attr(insn->op, TK_KA_stride) & 0x3ffff) >> 4 << 32 |
                    ((uint64_t)tk_kop_attr(insn->op, TK_KA_base) & 7) << 49 |
                    modes[tk_kop_attr(insn->op, TK_KA_swizzle)] << 62;
    TK_EMU_EACH(mask, to[l] = rest | (from[l] & 0x3ffff) >> 4);
}
PICK(matrix_descriptor, describe)

typedef struct descriptor {
    uint32_t address, lead, stride, base, width;
    uint32_t swizzle; /* of address bits 4 on */
} descriptor;

static descriptor decode(uint64_t bits) {
    static const uint32_t widths[] = {16, 128, 64, 32};
    descriptor d = {.address = (uint32_t)(bits & 0x3fff) << 4,
                    .lead = (uint32_t)(bits >> 16 & 0x3fff) << 4,
                    .stride = (uint32_t)(bits >> 32 & 0x3fff) << 4,
                    .base = (uint32_t)(bits >> 49 & 7),
                    .width = widths[bits >> 62]};
    d.swizzle = d.width / CHUNK - 1;
    return d;
}

static uint32_t swizzled(const descriptor *d, uint32_t address) {
    return address ^ (((address >> 7) - d->base) & d->swizzle) << 4;
}

/* The chunk at row mn, k chunk `chunk`; and with mn chunk `chunk`, row k. */
static uint32_t k_major(const descriptor *d, uint32_t mn, uint32_t chunk) {
    uint32_t along = d->width == CHUNK ? d->lead : CHUNK;
    return swizzled(d, d->address + mn % 8 * d->width + mn / 8 * d->stride + chunk * along);
}
static uint32_t mn_major(const descriptor *d, uint32_t k, uint32_t chunk) {
    uint32_t across = d->width / CHUNK, plain = d->width == CHUNK,
             next_mn = plain ? d->stride : d->lead, next_k = plain ? d->lead : d->stride;
    return swizzled(d, d->address + k % 8 * d->width + k / 8 * next_k + chunk % across * CHUNK +
                           chunk / across * next_mn);
}

/* ---- operands ---- */

/* By place in the words of a_type and b_type. */
enum { UNSIGNED = 6 };
static const tk_kscalar operand_scalars[] = {TK_K_F16,  TK_K_BF16, TK_K_TF32, TK_K_E4M3,
                                             TK_K_E5M2, TK_K_I8,   TK_K_I8};

typedef struct reading {
    tk_emu_warp *warp;
    const tk_emu_insn *insn;
    tk_emu_agent_access by;
    int64_t type;
    bool mn, negative;
} reading;

/* Numbers of a chunk, or zeros behind an address that is wrong. */
static void read_chunk(const reading *r, uint32_t address, float *out, uint32_t count) {
    const unsigned char *at = tk_emu_shared_at(r->warp, r->insn, r->by.lane, address, CHUNK, CHUNK);
    if (!at) {
        memset(out, 0, count * sizeof *out);
        return;
    }
    tk_emu_shared_agent_read(r->warp, r->insn, &r->by, address, CHUNK);
    tk_emu_widen(operand_scalars[r->type], at, out, count);
    for (uint32_t i = 0; i < count && (r->negative || r->type == UNSIGNED); i++) {
        if (r->type == UNSIGNED && out[i] < 0) out[i] += 256;
        if (r->negative) out[i] = -out[i];
    }
}

static uint32_t per_chunk(const reading *r) {
    return CHUNK / (uint32_t)tk_kscalar_bytes(operand_scalars[r->type]);
}

static void read_a(const reading *r, const descriptor *d, float a[16][TK_EMU_MOST_K]) {
    uint32_t per = per_chunk(r), first = r->warp->number % WARPS * 16;
    float numbers[CHUNK];
    for (uint32_t row = 0; row < 16 && !r->mn; row++)
        for (uint32_t chunk = 0; chunk < 2; chunk++)
            read_chunk(r, k_major(d, first + row, chunk), &a[row][chunk * per], per);
    for (uint32_t k = 0; k < 2 * per && r->mn; k++)
        for (uint32_t chunk = 0; chunk < 16 / per; chunk++) {
            read_chunk(r, mn_major(d, k, first / per + chunk), numbers, per);
            for (uint32_t i = 0; i < per; i++) a[chunk * per + i][k] = numbers[i];
        }
}

static void read_b(const reading *r, const descriptor *d, uint32_t n, float (*b)[TK_EMU_MOST_N]) {
    uint32_t per = per_chunk(r);
    float numbers[CHUNK];
    for (uint32_t column = 0; column < n && !r->mn; column++)
        for (uint32_t chunk = 0; chunk < 2; chunk++) {
            read_chunk(r, k_major(d, column, chunk), numbers, per);
            for (uint32_t i = 0; i < per; i++) b[chunk * per + i][column] = numbers[i];
        }
    for (uint32_t k = 0; k < 2 * per && r->mn; k++)
        for (uint32_t chunk = 0; chunk < n / per; chunk++)
            read_chunk(r, mn_major(d, k, chunk), &b[k][chunk * per], per);
}

/* ---- wgmma ---- */

enum { D, A, B, ACCUMULATE };

/* A value that all lanes of the warp must have. */
static uint64_t uniform(tk_emu_warp *warp, const tk_emu_insn *insn, uint32_t mask, int operand) {
    const uint64_t *from = tk_emu_from(warp, insn, operand);
    uint64_t first = from[__builtin_ctz(mask)], apart = 0;
    TK_EMU_EACH(mask, apart |= from[l] ^ first);
    if (apart)
        tk_emu_report(warp, insn, __builtin_ctz(mask), TK_KF_DIVERGENT,
                      "the lanes give different descriptors");
    return first;
}

static bool accumulates(tk_emu_warp *warp, const tk_emu_insn *insn, uint32_t mask) {
    if (!tk_emu_given(insn, ACCUMULATE)) return false;
    uint32_t yes = tk_emu_true_lanes(tk_emu_from(warp, insn, ACCUMULATE), mask);
    if (yes && yes != mask)
        tk_emu_report(warp, insn, __builtin_ctz(mask), TK_KF_DIVERGENT,
                      "some lanes accumulate, others do not");
    return yes != 0;
}

static void take_a(reading *r, uint32_t mask, int k, float a[16][TK_EMU_MOST_K]) {
    const tk_emu_insn *insn = r->insn;
    r->type = tk_kop_attr(insn->op, TK_KA_a_type);
    r->mn = tk_kop_attr(insn->op, TK_KA_a_mn);
    r->negative = tk_kop_attr(insn->op, TK_KA_neg_a);
    if (insn->op->operands[A]->type.kind != TK_KT_REGISTERS) {
        descriptor d = decode(uniform(r->warp, insn, mask, A));
        read_a(r, &d, a);
        return;
    }
    tk_emu_tensor *tensor = tk_emu_tensor_of(r->warp, insn, A);
    size_t index = (size_t)tk_kop_attr(insn->op, TK_KA_a_index);
    tk_kscalar scalar = operand_scalars[r->type];
    tk_emu_tensor_lend(r->warp, insn, mask, tensor, index, (size_t)k / 2, false);
    tk_emu_unpack_a(scalar, tk_emu_elements(tensor, index, (size_t)tk_kscalar_bytes(scalar)), k, a);
    for (int row = 0; row < 16; row++)
        for (int i = 0; i < k; i++) {
            if (r->type == UNSIGNED && a[row][i] < 0) a[row][i] += 256;
            if (r->negative) a[row][i] = -a[row][i];
        }
}

/* The sums of 32 products of bytes are whole numbers that f32 holds. */
static void add_integers(unsigned char *elements, uint32_t mask, int columns,
                         float (*d)[TK_EMU_MOST_N], bool accumulate) {
    for (int e = 0; e < columns / 2; e++, elements += TK_EMU_LANES * sizeof(uint32_t)) {
        int row = 8 * (e / 2 % 2), column = e % 2 + 8 * (e / 4);
        uint32_t *sum = (uint32_t *)elements;
        TK_EMU_EACH(mask, {
            uint32_t product = (uint32_t)(int32_t)d[row + l / 4][column + 2 * (l % 4)];
            sum[l] = product + (accumulate ? sum[l] : 0);
        });
    }
}

static void multiply(tk_emu_warp *warp, const tk_emu_insn *insn, uint32_t mask, reading *r) {
    float a[16][TK_EMU_MOST_K], b[TK_EMU_MOST_K][TK_EMU_MOST_N], d[16][TK_EMU_MOST_N];
    int n = (int)tk_kop_attr(insn->op, TK_KA_n), k = (int)tk_kop_attr(insn->op, TK_KA_k);
    tk_kscalar scalar = (tk_kscalar)insn->op->operands[D]->type.scalar;
    bool accumulate = accumulates(warp, insn, mask), whole = scalar == TK_K_I32;
    tk_emu_tensor *tensor = tk_emu_tensor_of(warp, insn, D);
    size_t index = (size_t)tk_kop_attr(insn->op, TK_KA_d_index), count = (size_t)n / 2;
    unsigned char *elements = tk_emu_elements(tensor, index, (size_t)tk_kscalar_bytes(scalar));
    take_a(r, mask, k, a);
    r->type = tk_kop_attr(insn->op, TK_KA_b_type);
    r->mn = tk_kop_attr(insn->op, TK_KA_b_mn);
    r->negative = tk_kop_attr(insn->op, TK_KA_neg_b);
    descriptor of_b = decode(uniform(warp, insn, mask, B));
    read_b(r, &of_b, (uint32_t)n, b);
    if (accumulate) tk_emu_tensor_need(warp, insn, mask, tensor, index, count);
    tk_emu_tensor_lend(warp, insn, mask, tensor, index, count, true);
    if (accumulate && !whole)
        tk_emu_unpack_d(scalar, elements, n, d);
    else
        memset(d, 0, sizeof d);
    tk_emu_multiply(a, b, d, k, n);
    if (whole)
        add_integers(elements, mask, n, d, accumulate);
    else
        tk_emu_pack_d(scalar, elements, mask, n, d);
    warp->block->totals.flops += 2 * 16 * (uint64_t)n * (uint64_t)k;
}

BODY(issue) {
    int lane = __builtin_ctz(mask);
    uint32_t number = tk_emu_begin(warp, lane, agent_of(warp));
    reading r = {
        .warp = warp,
        .insn = insn,
        .by = {.agent = agent_of(warp), .clock = number, .lane = lane, .async_proxy = true}};
    step(warp, insn, mask);
    if (warp->block->group->status != TK_OK) return;
    warp->wgmma.issued = number;
    warp->wgmma.last = insn;
    multiply(warp, insn, mask, &r);
}
PICK(wgmma, issue)
