/* From a kernel to the emulator's program: every value gets registers, structured control flow
 * becomes jumps.
 *
 * A region's arguments, and the values that a region operation gives, have registers of their own;
 * the yield of a region copies into them. Results of a loop share the registers of what is carried,
 * so a loop that ends copies nothing. Copies that would overwrite what is still to be read go
 * through spare registers. */
#include "base/error.h"
#include "kernel/check.h"
#include "kernel/emu.h"
#include "kernel/verify.h"

typedef struct decoder {
    tk_emu_program *program;
    const tk_kernel *kernel;
    tk_status status; /* the first error */
} decoder;

static const struct {
    tk_emu_pick (*pick)(const tk_kop *op);
    bool flow;
} columns[] = {
#define EMU(name)                                                                                  \
    { tk_emu_pick_##name, false }
#define NO_EMU                                                                                     \
    { NULL, false }
#define EMU_FLOW                                                                                   \
    { NULL, true }
#define TK_KOP(name, forms, effects, operands, results, attrs, check, emulator, ptx, doc)          \
    [TK_KOP_##name] = emulator,
#include "tiki/kernel_ops.def"
#undef TK_KOP
#undef EMU_FLOW
#undef NO_EMU
#undef EMU
};

tk_emu_pick tk_emu_pick_of(const tk_kop *op) {
    return columns[op->code].pick ? columns[op->code].pick(op) : (tk_emu_pick){0};
}

static bool ok(const decoder *d) { return d->status == TK_OK; }

static void fail(decoder *d, tk_status status) {
    if (ok(d)) d->status = status;
}

static void *take(decoder *d, size_t bytes) {
    void *memory = ok(d) ? tk_arena_alloc(&d->program->arena, bytes) : NULL;
    if (!memory && ok(d)) fail(d, tk_fail(TK_OUT_OF_MEMORY, "no memory for an emulation"));
    return memory;
}

/* ---- registers ---- */

#define MOST_REGISTER_BYTES ((int64_t)64 << 20)

static uint32_t reserve(decoder *d, int64_t bytes) {
    int64_t at = d->program->register_bytes, end = at + (bytes + 63) / 64 * 64;
    if (end > MOST_REGISTER_BYTES)
        fail(d, tk_fail(TK_UNSUPPORTED, "kernel %s: more than 64 MiB of registers a warp",
                        d->kernel->name));
    if (!ok(d)) return 0;
    d->program->register_bytes = (uint32_t)end;
    return (uint32_t)at;
}

static int64_t bytes_of(const tk_kernel *kernel, tk_ktype type) {
    if (type.kind == TK_KT_REGISTERS)
        return (int64_t)sizeof(tk_emu_tensor) +
               tk_kregs_size(kernel, type) *
                   ((int64_t)sizeof(tk_emu_slot) +
                    TK_EMU_LANES * tk_kscalar_bytes((tk_kscalar)type.scalar));
    return (int64_t)TK_EMU_LANES * tk_ktype_bytes(type);
}

static uint32_t register_of(decoder *d, const tk_kvalue *value) {
    uint32_t *at = &d->program->registers[value->id];
    if (*at == TK_EMU_NONE) *at = reserve(d, bytes_of(d->kernel, value->type));
    return *at;
}

static const uint32_t *operands_of(decoder *d, const tk_kop *op) {
    uint32_t *from = take(d, (op->n_operands + 1) * sizeof *from);
    for (uint32_t i = 0; i < op->n_operands && from; i++)
        from[i] = op->operands[i] ? register_of(d, op->operands[i]) : TK_EMU_NONE;
    return from;
}

/* ---- instructions ---- */

static uint16_t number_of(decoder *d, const tk_kop *op) {
    size_t count = d->program->ops.count;
    if (count && d->program->ops.items[count - 1] == op) return (uint16_t)(count - 1);
    if (count == UINT16_MAX)
        fail(d, tk_fail(TK_UNSUPPORTED, "kernel %s: more than 65535 operations", d->kernel->name));
    if (ok(d) && !tk_vec_push(&d->program->ops, op))
        fail(d, tk_fail(TK_OUT_OF_MEMORY, "no memory for an emulation"));
    return (uint16_t)count;
}

static uint32_t emit(decoder *d, tk_emu_insn insn) {
    if (ok(d) && !tk_vec_push(&d->program->code, insn))
        fail(d, tk_fail(TK_OUT_OF_MEMORY, "no memory for an emulation"));
    return (uint32_t)d->program->code.count - 1;
}

static uint32_t here(const decoder *d) { return (uint32_t)d->program->code.count; }

static void aim(decoder *d, uint32_t insn, uint32_t target) {
    if (ok(d)) d->program->code.items[insn].target = target;
}

static void copy_value(tk_emu_warp *warp, const tk_emu_insn *insn, uint32_t mask) {
    size_t bytes = insn->wide;
    unsigned char *to = tk_emu_to(warp, insn);
    const unsigned char *from = tk_emu_from(warp, insn, 0);
    for (size_t e = 0; e < insn->count;
         e++, to += TK_EMU_LANES * bytes, from += TK_EMU_LANES * bytes) {
        if (mask == TK_EMU_ALL)
            memcpy(to, from, TK_EMU_LANES * bytes);
        else
            TK_EMU_EACH(mask, memcpy(to + (size_t)l * bytes, from + (size_t)l * bytes, bytes));
    }
}

/* Elements and bytes of one, for copies. */
static void set_shape(tk_emu_insn *insn, tk_ktype type) {
    bool number = type.kind == TK_KT_NUMBER;
    insn->count = number ? type.lanes : 1;
    insn->wide =
        (uint8_t)(number ? tk_kscalar_bytes((tk_kscalar)type.scalar) : tk_ktype_bytes(type));
}

static void emit_copy(decoder *d, const tk_kop *op, uint32_t to, uint32_t from, tk_ktype type) {
    uint32_t *operand = take(d, sizeof *operand);
    if (!operand || to == from) return;
    *operand = from;
    tk_emu_insn insn = {
        .body = copy_value, .op = op, .from = operand, .to = to, .number = number_of(d, op)};
    set_shape(&insn, type);
    emit(d, insn);
}

tk_emu_pick tk_emu_pick_copy(const tk_kop *op) {
    (void)op;
    return (tk_emu_pick){.body = copy_value};
}

/* All at once: what a later copy reads and an earlier one writes is saved first. */
static void emit_copies(decoder *d, const tk_kop *op, uint32_t count, tk_kvalue *const *from,
                        tk_kvalue *const *to) {
    uint32_t *sources = take(d, (count + 1) * sizeof *sources);
    for (uint32_t i = 0; i < count && ok(d); i++) {
        sources[i] = register_of(d, from[i]);
        for (uint32_t j = 0; j < i; j++) {
            if (sources[i] != register_of(d, to[j])) continue;
            uint32_t spare = reserve(d, bytes_of(d->kernel, from[i]->type));
            emit_copy(d, op, spare, sources[i], from[i]->type);
            sources[i] = spare;
            break;
        }
    }
    for (uint32_t i = 0; i < count && ok(d); i++)
        emit_copy(d, op, register_of(d, to[i]), sources[i], from[i]->type);
}

/* ---- plain operations ---- */

static uint8_t flops_of(const tk_kop *op) {
    tk_kclass float_class = TK_KC_FLOAT;
    if (op->n_results != 1 || !tk_kclass_has(float_class, op->results[0]->type)) return 0;
    unsigned lanes = op->results[0]->type.lanes;
    if (op->code == TK_KOP_fma || op->code == TK_KOP_fma_unit) return (uint8_t)(2 * lanes);
    bool counted = op->code == TK_KOP_add || op->code == TK_KOP_sub || op->code == TK_KOP_mul ||
                   (op->code >= TK_KOP_div && op->code <= TK_KOP_max_num) ||
                   (op->code >= TK_KOP_exp2_approx && op->code <= TK_KOP_div_approx);
    return (uint8_t)(counted ? lanes : 0);
}

static uint8_t mask_operand(const tk_kop *op) {
    const tk_kop_row *row = tk_kop_row_of(op->code);
    for (uint8_t i = 0; i < TK_KOP_MOST_SLOTS && row->slots[i].class; i++)
        if (!strcmp(row->slots[i].name, "mask")) return op->operands[i] ? i : 255;
    return 255;
}

static bool is_aligned(const tk_kop *op) {
    return (tk_kop_row_of(op->code)->effects & (TK_KE_WARP | TK_KE_WARPGROUP | TK_KE_BLOCK)) != 0;
}

static tk_status refuse(const tk_kernel *kernel, const tk_kop *op) {
    const char *name = tk_kop_row_of(op->code)->name;
    const tk_kvalue *first = op->n_operands ? op->operands[0] : NULL;
    if (op->code == TK_KOP_raw)
        return tk_fail(TK_UNSUPPORTED, "the emulator has no body for a raw instruction: \"%.80s\"",
                       tk_kop_text(kernel, op, TK_KA_text));
    return tk_fail(TK_UNSUPPORTED, "the emulator has no %s of %s", name,
                   tk_ktype_words(kernel, first ? first->type : (tk_ktype){0}).text);
}

static void decode_plain(decoder *d, const tk_kop *op) {
    tk_emu_pick pick = tk_emu_pick_of(op);
    if (!pick.body && !pick.wait) {
        fail(d, tk_kop_fail_at(d->kernel, op, refuse(d->kernel, op)));
        return;
    }
    tk_emu_insn insn = {
        .op = op, .from = operands_of(d, op), .number = number_of(d, op), .flops = flops_of(op)};
    insn.aligned = is_aligned(op);
    insn.mask = mask_operand(op);
    insn.index = (uint32_t)tk_kop_attr(op, TK_KA_index);
    insn.flow = pick.wait ? TK_EMU_WAIT : TK_EMU_PLAIN;
    if (pick.wait)
        insn.wait = pick.wait;
    else
        insn.body = pick.body;
    insn.to = op->n_results ? register_of(d, op->results[0]) : TK_EMU_NONE;
    if (op->n_results)
        set_shape(&insn, op->results[0]->type);
    else if (op->n_operands && op->operands[0])
        set_shape(&insn, op->operands[0]->type);
    emit(d, insn);
}

/* ---- regions ---- */

static void decode_block(decoder *d, const tk_kblock *block);

/* A value that lives in the registers of another. */
static void share(decoder *d, const tk_kvalue *value, const tk_kvalue *with) {
    d->program->registers[value->id] = register_of(d, with);
}

static uint32_t emit_flow(decoder *d, const tk_kop *op, tk_emu_flow flow, uint32_t target,
                          const uint32_t *from) {
    return emit(d, (tk_emu_insn){.op = op,
                                 .flow = (uint8_t)flow,
                                 .target = target,
                                 .from = from,
                                 .number = number_of(d, op)});
}

static const uint32_t *list_of(decoder *d, uint32_t a, uint32_t b) {
    uint32_t *list = take(d, 2 * sizeof *list);
    if (list) list[0] = a, list[1] = b;
    return list;
}

/* An index that would pass the largest integer stays there, where no end is above it. */
static void step_i32(tk_emu_warp *warp, const tk_emu_insn *insn, uint32_t mask) {
    int32_t *index = tk_emu_to(warp, insn);
    const int32_t *step = tk_emu_from(warp, insn, 0);
    TK_EMU_EACH(mask,
                if (__builtin_add_overflow(index[l], step[l], &index[l])) index[l] = INT32_MAX);
}

static void step_i64(tk_emu_warp *warp, const tk_emu_insn *insn, uint32_t mask) {
    int64_t *index = tk_emu_to(warp, insn);
    const int64_t *step = tk_emu_from(warp, insn, 0);
    TK_EMU_EACH(mask,
                if (__builtin_add_overflow(index[l], step[l], &index[l])) index[l] = INT64_MAX);
}

static void decode_for(decoder *d, const tk_kop *op) {
    enum { BOUNDS = 3 };
    const tk_kblock *body = op->regions[0];
    uint32_t carried = op->n_operands - BOUNDS;
    bool wide = op->operands[0]->type.scalar == TK_K_I64;
    for (int i = 0; i < op->n_results; i++) share(d, op->results[i], body->args[1 + i]);
    emit_copies(d, op, carried, op->operands + BOUNDS, body->args + 1);
    uint32_t index = register_of(d, body->args[0]), end = register_of(d, op->operands[1]),
             step = register_of(d, op->operands[2]);
    emit_copy(d, op, index, register_of(d, op->operands[0]), op->operands[0]->type);
    uint32_t loop = emit_flow(d, op, TK_EMU_LOOP, 0, list_of(d, index, end));
    if (ok(d)) d->program->code.items[loop].wide = wide;
    decode_block(d, body);
    emit_copies(d, body->last, carried, body->last->operands, body->args + 1);
    emit(d, (tk_emu_insn){.body = wide ? step_i64 : step_i32,
                          .op = op,
                          .from = list_of(d, step, 0),
                          .to = index,
                          .number = number_of(d, op)});
    emit_flow(d, op, TK_EMU_JUMP, loop, NULL);
    aim(d, loop, here(d));
}

static void decode_while(decoder *d, const tk_kop *op) {
    const tk_kblock *first = op->regions[0], *second = op->regions[1];
    const tk_kop *condition = first->last;
    for (int i = 0; i < op->n_results; i++) share(d, op->results[i], second->args[i]);
    emit_copies(d, op, op->n_operands, op->operands, first->args);
    uint32_t loop = here(d);
    decode_block(d, first);
    emit_copies(d, condition, condition->n_operands - 1, condition->operands + 1, second->args);
    uint32_t leave = emit_flow(d, condition, TK_EMU_BRANCH, 0,
                               list_of(d, register_of(d, condition->operands[0]), 0));
    decode_block(d, second);
    emit_copies(d, second->last, op->n_operands, second->last->operands, first->args);
    emit_flow(d, op, TK_EMU_JUMP, loop, NULL);
    aim(d, leave, here(d));
}

static void decode_if(decoder *d, const tk_kop *op) {
    const tk_kblock *yes = op->regions[0], *no = op->regions[1];
    bool both = no->first != no->last || op->n_results;
    uint32_t branch =
        emit_flow(d, op, TK_EMU_BRANCH, 0, list_of(d, register_of(d, op->operands[0]), 0));
    decode_block(d, yes);
    emit_copies(d, yes->last, op->n_results, yes->last->operands, op->results);
    uint32_t jump = both ? emit_flow(d, op, TK_EMU_JUMP, 0, NULL) : 0;
    aim(d, branch, here(d));
    if (!both) return;
    decode_block(d, no);
    emit_copies(d, no->last, op->n_results, no->last->operands, op->results);
    aim(d, jump, here(d));
}

static void unset(tk_emu_warp *warp, const tk_emu_insn *insn, uint32_t mask) {
    tk_emu_tensor *tensor = tk_emu_to(warp, insn);
    tensor->size = insn->size;
    for (uint32_t i = 0; i < insn->size; i++) tensor->slots[i].set &= ~mask;
}

static void decode_registers(decoder *d, const tk_kop *op) {
    emit(d, (tk_emu_insn){.body = unset,
                          .op = op,
                          .to = register_of(d, op->results[0]),
                          .number = number_of(d, op),
                          .size = (uint32_t)tk_kregs_size(d->kernel, op->results[0]->type)});
}

static void decode_op(decoder *d, const tk_kop *op) {
    if (op->code == TK_KOP_for)
        decode_for(d, op);
    else if (op->code == TK_KOP_while)
        decode_while(d, op);
    else if (op->code == TK_KOP_if)
        decode_if(d, op);
    else if (op->code == TK_KOP_registers)
        decode_registers(d, op);
    else if (!columns[op->code].flow)
        decode_plain(d, op);
}

static void decode_block(decoder *d, const tk_kblock *block) {
    for (const tk_kop *op = block->first; op && ok(d); op = op->next) decode_op(d, op);
}

/* ---- cells ---- */

/* Bytes that an operation touches at least and at a multiple of which it begins, 0 for none. */
static uint32_t unit_of(const tk_kop *op, const tk_kvalue *pointer) {
    switch (op->code) {
    case TK_KOP_address:
    case TK_KOP_offset:
    case TK_KOP_pointer_cast:
    case TK_KOP_pointer_bits:
    case TK_KOP_peer:
    case TK_KOP_assume:
    case TK_KOP_select:
        return 0;
    case TK_KOP_load:
        return (uint32_t)tk_ktype_bytes(op->results[0]->type);
    case TK_KOP_store:
        return (uint32_t)tk_ktype_bytes(op->operands[1]->type);
    case TK_KOP_cp_async:
        return (uint32_t)tk_kop_attr(op, TK_KA_bytes);
    case TK_KOP_bulk_load:
    case TK_KOP_bulk_store:
    case TK_KOP_bulk_send:
    case TK_KOP_tma_load:
    case TK_KOP_tma_store:
    case TK_KOP_tma_reduce:
    case TK_KOP_map_replace:
    case TK_KOP_map_publish:
    case TK_KOP_load_matrix:
    case TK_KOP_store_matrix:
    case TK_KOP_matrix_descriptor:
        return 16;
    default:
        return (uint32_t)tk_kscalar_bytes((tk_kscalar)pointer->type.scalar);
    }
}

static void note_units(tk_emu_program *program, const tk_kop *op) {
    for (uint32_t i = 0; i < op->n_operands; i++) {
        if (!op->operands[i] || op->operands[i]->type.kind != TK_KT_POINTER) continue;
        tk_ktype type = op->operands[i]->type;
        bool shared = type.space == TK_KS_SHARED || type.space == TK_KS_CLUSTER;
        uint32_t bytes = unit_of(op, op->operands[i]),
                 *unit = shared ? &program->shared_unit : &program->global_unit;
        if (type.scalar < TK_K_MBAR && bytes && bytes < *unit) *unit = bytes;
    }
}

/* Boxes of tensor maps begin and end at any element. */
static void note_maps(tk_emu_program *program) {
    const tk_kcontract *contract = &program->kernel->contract;
    for (size_t i = 0; i < contract->params.count; i++) {
        const tk_kmap *map = contract->params.items[i].map;
        uint32_t bytes = map ? (uint32_t)tk_kscalar_bytes(map->element) : 16;
        if (bytes < program->global_unit) program->global_unit = bytes;
    }
}

static void need_kinds(tk_emu_program *program, uint32_t kinds) {
    if (program->n_kinds < kinds) program->n_kinds = kinds;
}

/* What of the emulator's bookkeeping a kernel needs. */
static void note_needs(tk_emu_program *program, const tk_kop *op) {
    switch (op->code) {
    case TK_KOP_cp_async:
        need_kinds(program, TK_EMU_COPY + 1);
        break;
    case TK_KOP_bulk_store:
    case TK_KOP_bulk_reduce:
    case TK_KOP_tma_store:
    case TK_KOP_tma_reduce:
        need_kinds(program, TK_EMU_KINDS);
        program->proxies = true;
        break;
    case TK_KOP_wgmma:
        program->has_wgmma = true;
        program->proxies = true;
        break;
    case TK_KOP_bulk_load:
    case TK_KOP_bulk_send:
    case TK_KOP_store_async:
    case TK_KOP_tma_load:
        program->proxies = true;
        break;
    case TK_KOP_mbarrier_test:
        program->polls = true;
        break;
    default:
        break;
    }
}

static tk_status note_op(void *arg, tk_kop *op) {
    note_units(arg, op);
    note_needs(arg, op);
    return TK_OK;
}

/* ---- ordered accesses ---- */

/* Scope of an ordered access as the attribute has it, 0 for a weak one. Reductions of the async
 * proxy are relaxed, for the device. */
static uint8_t strength_of(const tk_kop *op) {
    enum { GPU = 3 };
    switch (op->code) {
    case TK_KOP_load:
        return tk_kop_attr(op, TK_KA_order) ? (uint8_t)tk_kop_attr(op, TK_KA_scope) : 0;
    case TK_KOP_store:
        return tk_kop_attr(op, TK_KA_order)
                   ? (uint8_t)(tk_kop_attr(op, TK_KA_scope) | TK_EMU_STRONG_WRITE)
                   : 0;
    case TK_KOP_atomic:
    case TK_KOP_reduce:
        return (uint8_t)(tk_kop_attr(op, TK_KA_scope) | TK_EMU_STRONG_WRITE);
    case TK_KOP_bulk_reduce:
    case TK_KOP_tma_reduce:
        return GPU | TK_EMU_STRONG_WRITE;
    default:
        return 0;
    }
}

/* Blocks may wait for each other through global memory. */
static bool joins_blocks(const tk_kop *op, uint8_t strength) {
    enum { GPU = 3 };
    if (op->code == TK_KOP_bulk_reduce || op->code == TK_KOP_tma_reduce) return true;
    return (strength & TK_EMU_SCOPE) >= GPU && op->operands[0]->type.space == TK_KS_GLOBAL;
}

static tk_status set_strength(decoder *d) {
    tk_emu_program *program = d->program;
    program->strength = take(d, program->ops.count + 1);
    for (size_t i = 0; i < program->ops.count && program->strength; i++) {
        const tk_kop *op = program->ops.items[i];
        program->strength[i] = op ? strength_of(op) : 0;
        if (!program->strength[i]) continue;
        program->strong = program->polls = true;
        program->joined |= joins_blocks(op, program->strength[i]);
    }
    return d->status;
}

/* ---- the whole ---- */

static tk_status decode_all(decoder *d) {
    tk_emu_program *program = d->program;
    program->registers = take(d, (d->kernel->n_values + 1) * sizeof *program->registers);
    TK_TRY(d->status);
    memset(program->registers, 0xff, d->kernel->n_values * sizeof *program->registers);
    program->shared_at = take(d, (d->kernel->n_values + 1) * sizeof *program->shared_at);
    TK_TRY(d->status);
    TK_TRY(tk_kshared_place(d->kernel, program->shared_at, &program->shared));
    TK_TRY(tk_kblock_walk(&d->kernel->body, note_op, program));
    note_maps(program);
    for (size_t i = 0; i < d->kernel->contract.params.count; i++)
        register_of(d, d->kernel->contract.params.items[i].value);
    for (size_t i = 0; i < d->kernel->constants.count; i++)
        register_of(d, d->kernel->constants.items[i]);
    program->given_bytes = program->register_bytes;
    decode_block(d, &d->kernel->body);
    emit(d, (tk_emu_insn){.flow = TK_EMU_END});
    return ok(d) ? set_strength(d) : d->status;
}

tk_status tk_emu_decode(const tk_kernel *kernel, tk_emu_program *out) {
    *out = (tk_emu_program){.kernel = kernel, .shared_unit = 16, .global_unit = 16, .n_kinds = 1};
    if (kernel->form != TK_KFORM_THREAD)
        return tk_fail(TK_UNSUPPORTED,
                       "kernel %s is not in the thread form, which is what the emulator runs",
                       kernel->name);
    decoder d = {.program = out, .kernel = kernel};
    return decode_all(&d);
}

void tk_emu_program_deinit(tk_emu_program *program) {
    tk_vec_deinit(&program->code);
    tk_vec_deinit(&program->ops);
    tk_arena_deinit(&program->arena);
}
