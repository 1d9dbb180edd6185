/* A kernel as a stream of words, hashed as it is written: a twentieth of what printing costs, which
 * matters because it is what finding a built kernel costs.
 *
 * Everything is written that kernels can differ in, counts before lists, so no two streams of
 * different kernels are equal. Values, layouts and texts are numbered in the order in which they
 * are met, so it does not matter in which order passes made them.
 *
 * Rejected: the digest of the printed text (a microsecond an operation); tk_hash_bytes, which is
 * not made to be trusted across processes. */
#include "kernel/digest.h"

#include <string.h>

#include "base/alloc.h"
#include "base/error.h"

#define WORDS 512

enum { MISSING, CONSTANT, NUMBERED }; /* the two lowest bits of an operand's word */

typedef struct stream {
    const tk_kernel *kernel;
    bool lines, failed;
    tk_sha256 hash;
    uint64_t words[WORDS];
    size_t count;
    uint32_t *numbers; /* by value id */
    uint32_t n_numbers;
    uint32_t *layouts; /* by number of the kernel's layout */
    uint32_t n_layouts;
} stream;

static void put(stream *s, uint64_t word) {
    if (s->count == WORDS) {
        tk_sha256_put(&s->hash, s->words, sizeof s->words);
        s->count = 0;
    }
    s->words[s->count++] = word;
}

static void put_text(stream *s, const char *text) {
    size_t length = text ? strlen(text) : 0;
    put(s, length);
    for (size_t at = 0; at < length; at += 8) {
        uint64_t word = 0;
        memcpy(&word, text + at, length - at < 8 ? length - at : 8);
        put(s, word);
    }
}

/* ---- types and values ---- */

/* Its number; behind a new one what it is. */
static void put_layout(stream *s, uint32_t layout) {
    if (!layout || s->layouts[layout]) {
        put(s, layout ? s->layouts[layout] : 0);
        return;
    }
    put(s, s->layouts[layout] = ++s->n_layouts);
    tk_strbuf text = {0};
    tk_ktype_put(s->kernel, (tk_ktype){.kind = TK_KT_LAYOUT, .layout = layout}, &text);
    s->failed |= text.failed;
    put_text(s, text.text);
    tk_strbuf_deinit(&text);
}

static void put_type(stream *s, tk_ktype type) {
    put(s, (uint64_t)type.kind | (uint64_t)type.scalar << 8 | (uint64_t)type.lanes << 16 |
               (uint64_t)type.space << 24 | (uint64_t)(type.layout != 0) << 32 |
               (uint64_t)(type.tv != 0) << 33);
    if (type.layout) put_layout(s, type.layout);
    if (type.tv) put_layout(s, type.tv);
}

static void define(stream *s, const tk_kvalue *value) {
    s->numbers[value->id] = s->n_numbers++;
    put_type(s, value->type);
}

static void put_value(stream *s, const tk_kvalue *value) {
    if (!value) {
        put(s, MISSING);
    } else if (value->kind == TK_KV_CONST) {
        put(s, CONSTANT | (uint64_t)value->type.scalar << 8 | (uint64_t)value->type.lanes << 16);
        put(s, value->bits);
    } else {
        put(s, NUMBERED | (uint64_t)s->numbers[value->id] << 2);
    }
}

/* ---- operations ---- */

static void put_block(stream *s, const tk_kblock *block);

static void put_attrs(stream *s, const tk_kop *op) {
    const uint8_t *ids = tk_kop_row_of(op->code)->attrs;
    for (int i = 0; ids[i]; i++) {
        if (tk_kattr_row_of(ids[i] - 1u)->kind == TK_KAK_TEXT)
            put_text(s, s->kernel->strings.items[op->attrs[i]]);
        else
            put(s, (uint64_t)op->attrs[i]);
    }
}

static void put_line(stream *s, tk_kloc loc) {
    uint32_t file = loc.file ? loc.file : 1;
    put(s, loc.line);
    put_text(s, file < s->kernel->strings.count ? s->kernel->strings.items[file] : "");
}

static void put_op(stream *s, const tk_kop *op) {
    put(s, (uint64_t)op->code | (uint64_t)op->n_results << 16 | (uint64_t)op->n_regions << 32);
    put(s, op->n_operands);
    for (uint32_t i = 0; i < op->n_operands; i++) put_value(s, op->operands[i]);
    put_attrs(s, op);
    if (s->lines) put_line(s, op->loc);
    for (int i = 0; i < op->n_results; i++) define(s, op->results[i]);
    for (int i = 0; i < op->n_regions; i++) put_block(s, op->regions[i]);
}

#define END_OF_BLOCK UINT64_MAX

static void put_block(stream *s, const tk_kblock *block) {
    put(s, block->n_args);
    for (uint32_t i = 0; i < block->n_args; i++) define(s, block->args[i]);
    for (const tk_kop *op = block->first; op; op = op->next) put_op(s, op);
    put(s, END_OF_BLOCK);
}

/* ---- the contract ---- */

static void put_map(stream *s, const tk_kmap *map) {
    put(s, map != NULL);
    if (!map) return;
    put_value(s, map->base);
    put(s, (uint64_t)map->element);
    put(s, (uint64_t)map->rank);
    for (int i = 0; i < map->rank; i++) {
        put(s, (uint64_t)map->extent[i]);
        if (i + 1 < map->rank) put(s, (uint64_t)map->stride[i]);
        put(s, (uint64_t)map->box[i]);
        put(s, (uint64_t)map->element_stride[i]);
    }
    put(s, (uint64_t)map->swizzle);
    put(s, map->fill_nan);
    put(s, (uint64_t)map->l2_bytes);
}

static void put_params(stream *s, const tk_kcontract *contract) {
    put(s, contract->params.count);
    for (size_t i = 0; i < contract->params.count; i++) {
        const tk_kparameter *param = &contract->params.items[i];
        put_text(s, param->value->name);
        define(s, param->value);
        bool pointer = param->value->type.kind == TK_KT_POINTER;
        put(s, pointer ? param->access : 0);
        put(s, pointer ? (uint64_t)param->align : 0);
        put(s, (uint64_t)param->size);
        put_map(s, param->map);
    }
}

static void put_expressions(stream *s, const tk_kcontract *contract) {
    put(s, contract->exprs.count);
    for (size_t i = 0; i < contract->exprs.count; i++) {
        const tk_kexpr *expr = &contract->exprs.items[i];
        put(s, (uint64_t)expr->kind);
        put(s, (uint64_t)expr->left);
        put(s, (uint64_t)expr->right);
        put(s, (uint64_t)expr->value);
    }
    put(s, contract->conditions.count);
    for (size_t i = 0; i < contract->conditions.count; i++) {
        const tk_kcondition *condition = &contract->conditions.items[i];
        put(s, (uint64_t)condition->left);
        put(s, (uint64_t)condition->right);
        put(s, condition->relation);
    }
}

static void put_contract(stream *s, const tk_kcontract *contract) {
    put_params(s, contract);
    put_expressions(s, contract);
    for (int i = 0; i < 3; i++) {
        put(s, (uint64_t)contract->grid[i]);
        put(s, (uint64_t)contract->cluster[i]);
        put(s, (uint64_t)contract->block[i]);
    }
    put(s, (uint64_t)contract->dynamic_shared);
    put(s, (uint64_t)contract->min_blocks);
    put(s, (uint64_t)contract->cooperative | (uint64_t)contract->programmatic << 1);
}

/* ---- the digest ---- */

static void put_kernel(stream *s) {
    tk_sha256_begin(&s->hash);
    put_text(s, s->kernel->name);
    put(s, (uint64_t)s->kernel->form | (uint64_t)s->lines << 8);
    put_contract(s, &s->kernel->contract);
    put_block(s, &s->kernel->body);
    tk_sha256_put(&s->hash, s->words, s->count * sizeof *s->words);
}

tk_status tk_kernel_digest(const tk_kernel *kernel, bool lines,
                           unsigned char out[TK_SHA256_BYTES]) {
    stream s = {.kernel = kernel, .lines = lines};
    s.numbers = tk_calloc(kernel->n_values + 1, sizeof *s.numbers);
    s.layouts = tk_calloc(kernel->layouts.count + 1, sizeof *s.layouts);
    if (s.numbers && s.layouts) put_kernel(&s);
    bool failed = s.failed || !s.numbers || !s.layouts;
    tk_free(s.numbers);
    tk_free(s.layouts);
    if (failed) return tk_fail(TK_OUT_OF_MEMORY, "no memory for a kernel's digest");
    tk_sha256_end(&s.hash, out);
    return TK_OK;
}
