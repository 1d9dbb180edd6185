/* Access patterns: the addresses that a warp makes, computed lane by lane from what is known before
 * the launch: constants, arguments, thread numbers, loops at their first trip. What depends on
 * memory is unknown.
 *
 * Values are computed when an access asks for them, and kept for the lane. */
#include <string.h>

#include "base/error.h"
#include "kernel/pass.h"
#include "kernel/shared.h"
#include "tiki/analysis.h"

typedef struct known {
    uint64_t bits;
    bool is_known, is_done;
} known;

typedef struct finder {
    const tk_kernel *kernel;
    const tk_kargument *arguments;
    size_t n_arguments;
    int64_t *offsets; /* of shared buffers */
    known *values;    /* of the lane, by id */
    int64_t thread;
    TK_VEC(tk_kpattern) patterns;
} finder;

/* ---- values of a lane ---- */

static known value_of(finder *f, const tk_kvalue *value);

static known exactly(uint64_t bits) { return (known){bits, true, true}; }
static known nothing(void) { return (known){0, false, true}; }

static known of_param(const finder *f, const tk_kvalue *value) {
    if (value->type.kind == TK_KT_POINTER) return exactly(0);
    return value->index < f->n_arguments ? exactly(f->arguments[value->index].bits) : nothing();
}

/* What a loop begins with. */
static known of_argument(finder *f, const tk_kvalue *value) {
    const tk_kop *op = value->block->parent;
    if (op->code == TK_KOP_for)
        return value_of(f, op->operands[value->index ? 2 + value->index : 0]);
    if (value->block == op->regions[0]) return value_of(f, op->operands[value->index]);
    return value_of(f, op->regions[0]->last->operands[1 + value->index]);
}

static known of_thread(const finder *f, const tk_kop *op) {
    const int64_t *block = f->kernel->contract.block;
    int64_t axis = tk_kop_attr(op, TK_KA_axis), below = 1;
    for (int64_t i = 0; i < axis; i++) below *= block[i];
    return exactly((uint64_t)(f->thread / below % block[axis]));
}

static int64_t signed_bits(uint64_t bits, tk_ktype type) {
    int unused = 64 - 8 * tk_ktype_bytes(type);
    return (int64_t)(bits << unused) >> unused;
}

static known of_offset(finder *f, const tk_kop *op) {
    known base = value_of(f, op->operands[0]), index = value_of(f, op->operands[1]);
    if (!base.is_known || !index.is_known) return nothing();
    int64_t bytes = tk_kscalar_bytes((tk_kscalar)op->results[0]->type.scalar);
    int64_t by = signed_bits(index.bits, op->operands[1]->type) * bytes;
    return exactly(base.bits + (uint64_t)by);
}

static known of_computed(finder *f, const tk_kop *op) {
    uint64_t bits[4], found;
    int64_t divisor;
    bool divides = op->code >= TK_KOP_sdiv && op->code <= TK_KOP_urem;
    if (tk_kop_row_of(op->code)->effects || op->n_operands == 0 || op->n_operands > 4)
        return nothing();
    for (uint32_t i = 0; i < op->n_operands; i++) {
        known operand = op->operands[i] ? value_of(f, op->operands[i]) : nothing();
        if (!operand.is_known || op->operands[i]->type.lanes > 1) return nothing();
        bits[i] = operand.bits;
    }
    if (op->results[0]->type.kind != TK_KT_NUMBER || op->results[0]->type.lanes > 1)
        return nothing();
    divisor = divides ? signed_bits(bits[1], op->operands[1]->type) : 1;
    return divisor && tk_kpass_compute(op, bits, &found) ? exactly(found) : nothing();
}

static known of_result(finder *f, const tk_kvalue *value) {
    const tk_kop *op = value->op;
    switch (op->code) {
    case TK_KOP_thread_index:
        return of_thread(f, op);
    case TK_KOP_block_index:
        return exactly(0);
    case TK_KOP_block_size:
        return exactly((uint64_t)f->kernel->contract.block[tk_kop_attr(op, TK_KA_axis)]);
    case TK_KOP_address:
        return exactly((uint64_t)f->offsets[op->operands[0]->id]);
    case TK_KOP_offset:
        return of_offset(f, op);
    case TK_KOP_assume:
    case TK_KOP_assume_uniform:
    case TK_KOP_pointer_cast:
        return value_of(f, op->operands[0]);
    default:
        return op->n_regions || op->n_results != 1 ? nothing() : of_computed(f, op);
    }
}

static known value_of(finder *f, const tk_kvalue *value) {
    if (value->kind == TK_KV_CONST) return exactly(value->bits);
    known *kept = &f->values[value->id];
    if (kept->is_done) return *kept;
    *kept = value->kind == TK_KV_PARAM      ? of_param(f, value)
            : value->kind == TK_KV_ARGUMENT ? of_argument(f, value)
                                            : of_result(f, value);
    return *kept;
}

/* ---- patterns ---- */

static const char *memory_of(const tk_kvalue *pointer) {
    while (pointer->kind == TK_KV_RESULT && pointer->op->n_operands &&
           (pointer->op->code == TK_KOP_offset || pointer->op->code == TK_KOP_pointer_cast ||
            pointer->op->code == TK_KOP_assume))
        pointer = pointer->op->operands[0];
    if (pointer->kind == TK_KV_PARAM) return pointer->name;
    return pointer->type.space == TK_KS_SHARED ? "shared memory" : "";
}

/* Whether the lane comes here: conditions that are not known let it pass. */
static bool comes(finder *f, const tk_kop *op) {
    for (const tk_kop *at = op; at->block->parent; at = at->block->parent) {
        const tk_kop *around = at->block->parent;
        if (around->code != TK_KOP_if) continue;
        known condition = value_of(f, around->operands[0]);
        bool yes = at->block == around->regions[0];
        if (condition.is_known && (condition.bits & 1) != yes) return false;
    }
    const tk_kvalue *guard = op->operands[op->code == TK_KOP_load ? 1 : 2];
    known condition = guard ? value_of(f, guard) : exactly(1);
    return !condition.is_known || (condition.bits & 1);
}

static int count_sectors(const tk_kpattern *p) {
    int64_t sectors[32 * 2];
    int count = 0;
    for (int l = 0; l < 32; l++) {
        if (!(p->lanes >> l & 1)) continue;
        for (int64_t s = p->address[l] / 32; s <= (p->address[l] + p->bytes - 1) / 32; s++) {
            int i = 0;
            while (i < count && sectors[i] != s) i++;
            if (i == count && count < 64) sectors[count++] = s;
        }
    }
    return count;
}

/* Words of a bank that the lanes from `first` on ask for; 8 bytes go by half warps, 16 by quarters.
 */
static int passes_of(const tk_kpattern *p, int first, int count) {
    int64_t words[32][32];
    int used[32] = {0}, most = 0;
    for (int l = first; l < first + count; l++) {
        if (!(p->lanes >> l & 1)) continue;
        for (int64_t w = p->address[l] / 4; w <= (p->address[l] + p->bytes - 1) / 4; w++) {
            int bank = (int)(w & 31), i = 0;
            while (i < used[bank] && words[bank][i] != w) i++;
            if (i == used[bank] && i < 32) words[bank][used[bank]++] = w;
            if (used[bank] > most) most = used[bank];
        }
    }
    return most;
}

static int count_passes(const tk_kpattern *p) {
    int each = p->bytes <= 4 ? 32 : p->bytes == 8 ? 16 : 8, passes = 0;
    for (int first = 0; first < 32; first += each) passes += passes_of(p, first, each);
    return passes;
}

static tk_status visit(void *arg, tk_kop *op) {
    finder *f = arg;
    if (op->code != TK_KOP_load && op->code != TK_KOP_store) return TK_OK;
    const tk_kvalue *pointer = op->operands[0],
                    *value = op->code == TK_KOP_load ? op->results[0] : op->operands[1];
    tk_kpattern p = {.operation = tk_kop_row_of(op->code)->name,
                     .memory = memory_of(pointer),
                     .line = op->loc.line,
                     .space = (tk_kspace)pointer->type.space,
                     .bytes = tk_ktype_bytes(value->type)};
    int64_t threads = f->kernel->contract.block[0] * f->kernel->contract.block[1] *
                      f->kernel->contract.block[2],
            first = f->thread;
    for (int l = 0; l < 32 && first + l < threads; l++) {
        f->thread = first + l;
        memset(f->values, 0, (size_t)f->kernel->n_values * sizeof *f->values);
        known address = value_of(f, pointer);
        if (!address.is_known || (int64_t)address.bits < 0 || !comes(f, op)) continue;
        p.lanes |= 1u << l;
        p.address[l] = (int64_t)address.bits;
    }
    f->thread = first;
    p.sectors = count_sectors(&p);
    p.passes = p.space == TK_KS_SHARED || p.space == TK_KS_CLUSTER ? count_passes(&p) : 0;
    if (tk_vec_push(&f->patterns, p)) return TK_OK;
    return tk_fail(TK_OUT_OF_MEMORY, "no memory for an analysis");
}

tk_status tk_kernel_patterns(const tk_kernel *kernel, size_t n_arguments,
                             const tk_kargument *arguments, int warp, tk_kpattern **out_patterns,
                             size_t *out_count) {
    TK_NEED(kernel, out_patterns, out_count);
    if (n_arguments && !arguments) return tk_fail_null("arguments");
    if (kernel->form != TK_KFORM_THREAD)
        return tk_fail(TK_UNSUPPORTED, "kernel %s is not in the thread form", kernel->name);
    if (warp < 0 || warp > 31) return tk_fail(TK_INVALID_ARGUMENT, "warp %d of a block", warp);
    finder f = {kernel, arguments, n_arguments, NULL, NULL, 32 * (int64_t)warp, {0}};
    tk_kshared_map map;
    f.values = tk_calloc((size_t)kernel->n_values + 1, sizeof *f.values);
    f.offsets = tk_calloc((size_t)kernel->n_values + 1, sizeof *f.offsets);
    tk_status status = f.values && f.offsets ? tk_kshared_place(kernel, f.offsets, &map)
                                             : tk_fail(TK_OUT_OF_MEMORY, "no memory");
    if (status == TK_OK) status = tk_kblock_walk(&kernel->body, visit, &f);
    tk_free(f.values);
    tk_free(f.offsets);
    *out_patterns = status == TK_OK ? f.patterns.items : NULL;
    *out_count = status == TK_OK ? f.patterns.count : 0;
    if (status != TK_OK) tk_vec_deinit(&f.patterns);
    return status;
}

void tk_kernel_patterns_free(tk_kpattern *patterns) { tk_free(patterns); }

/* ---- pictures ---- */

enum { CELL = 18, LEFT = 150, ROW = 4 * CELL };

/* Lane l at column x of row y: a hue for each quarter of the warp. */
static void put_cell(tk_strbuf *out, int x, int y, int lane) {
    tk_strbuf_printf(
        out,
        "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"hsl(%d,65%%,%d%%)\" "
        "stroke=\"#fff\"/><text x=\"%d\" y=\"%d\">%d</text>\n",
        x, y, CELL, CELL, lane / 8 * 90, 80 - lane % 8 * 4, x + CELL / 2, y + CELL - 5, lane);
}

/* Global memory: lanes in the order of addresses, a column for each sector, at most 4 lanes high;
 * shared memory: a column for each bank. */
static void draw_pattern(tk_strbuf *out, const tk_kpattern *p, int top) {
    bool shared = p->passes > 0;
    int height[64] = {0}, n_sectors = 0;
    int64_t sectors[64];
    tk_strbuf_printf(out, "<text class=\"name\" x=\"4\" y=\"%d\">%s line %u, %s</text>\n", top + 14,
                     p->operation, p->line, p->memory);
    tk_strbuf_printf(out, "<text class=\"name\" x=\"4\" y=\"%d\">%d bytes a lane, %d %s</text>\n",
                     top + 30, p->bytes, shared ? p->passes : p->sectors,
                     shared ? "passes" : "sectors");
    for (int l = 0; l < 32; l++) {
        if (!(p->lanes >> l & 1)) continue;
        int column = (int)(p->address[l] / 4 & 31);
        if (!shared) {
            column = 0;
            while (column < n_sectors && sectors[column] != p->address[l] / 32) column++;
            if (column == n_sectors) sectors[n_sectors++] = p->address[l] / 32;
        }
        int line = height[column]++;
        if (line < ROW / CELL) put_cell(out, LEFT + column * CELL, top + line * CELL, l);
    }
}

tk_status tk_kernel_draw(const tk_kernel *kernel, size_t n_arguments, const tk_kargument *arguments,
                         int warp, char **out_svg) {
    tk_kpattern *patterns;
    size_t count;
    tk_strbuf out = {0};
    TK_NEED(kernel, out_svg);
    TK_TRY(tk_kernel_patterns(kernel, n_arguments, arguments, warp, &patterns, &count));
    tk_strbuf_printf(&out,
                     "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
                     "font-family=\"monospace\" font-size=\"9\" text-anchor=\"middle\">\n"
                     "<style>.name{text-anchor:start;font-size:10px}</style>\n",
                     LEFT + 34 * CELL, (int)count * (ROW + CELL) + CELL);
    for (size_t i = 0; i < count; i++)
        draw_pattern(&out, &patterns[i], CELL / 2 + (int)i * (ROW + CELL));
    tk_strbuf_puts(&out, "</svg>\n");
    tk_kernel_patterns_free(patterns);
    *out_svg = tk_strbuf_take(&out);
    return *out_svg ? TK_OK : tk_fail(TK_OUT_OF_MEMORY, "no memory for a picture");
}
