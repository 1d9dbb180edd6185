/* The launch contract as JSON, for those who launch a binary without this library: what lies beside
 * a cubin. Expressions are texts in the words of the kernel language, so that nothing is said in
 * two ways. */
#include <inttypes.h>

#include "base/error.h"
#include "kernel/contract.h"
#include "kernel/shared.h"

static void put_expr(const tk_kernel *kernel, int32_t expr, tk_strbuf *out) {
    tk_strbuf_putc(out, '"');
    tk_kexpr_put(kernel, expr, out);
    tk_strbuf_putc(out, '"');
}

static void put_exprs(const tk_kernel *kernel, const char *key, const int32_t *exprs, int count,
                      tk_strbuf *out) {
    tk_strbuf_printf(out, "\"%s\": [", key);
    for (int i = 0; i < count; i++) {
        if (i) tk_strbuf_puts(out, ", ");
        put_expr(kernel, exprs[i], out);
    }
    tk_strbuf_putc(out, ']');
}

static void put_numbers(const char *key, const int32_t *numbers, int count, tk_strbuf *out) {
    tk_strbuf_printf(out, "\"%s\": [", key);
    for (int i = 0; i < count; i++) tk_strbuf_printf(out, "%s%" PRId32, i ? ", " : "", numbers[i]);
    tk_strbuf_putc(out, ']');
}

/* ---- parameters ---- */

static void put_map(const tk_kernel *kernel, const tk_kmap *map, tk_strbuf *out) {
    tk_strbuf_printf(out, ", \"role\": \"tensor_map\", \"of\": \"%s\", \"element\": \"%s\", ",
                     map->base->name, tk_kscalar_text(map->element));
    put_exprs(kernel, "extent", map->extent, map->rank, out);
    tk_strbuf_puts(out, ", ");
    put_exprs(kernel, "stride_bytes", map->stride, map->rank - 1, out);
    tk_strbuf_puts(out, ", ");
    put_numbers("box", map->box, map->rank, out);
    tk_strbuf_puts(out, ", ");
    put_numbers("element_stride", map->element_stride, map->rank, out);
    tk_strbuf_printf(
        out, ", \"swizzle_bytes\": %" PRId32 ", \"l2_bytes\": %" PRId32 ", \"fill\": \"%s\"",
        map->swizzle, map->l2_bytes, map->fill_nan ? "nan" : "zero");
}

static void put_pointer(const tk_kernel *kernel, const tk_kparameter *param, tk_strbuf *out) {
    static const char *const access[] = {[TK_KACCESS_READ] = "read",
                                         [TK_KACCESS_WRITE] = "write",
                                         [TK_KACCESS_READ_WRITE] = "read_write"};
    tk_strbuf_printf(out, ", \"role\": \"pointer\", \"access\": \"%s\", \"align\": %" PRId64,
                     access[param->access], param->align);
    if (param->size < 0) return;
    tk_strbuf_puts(out, ", \"elements\": ");
    put_expr(kernel, param->size, out);
}

static void put_param(const tk_kernel *kernel, int index, tk_strbuf *out) {
    const tk_kparameter *param = &kernel->contract.params.items[index];
    tk_strbuf_printf(out, "    {\"name\": \"%s\", \"type\": \"", param->value->name);
    tk_ktype_put(kernel, param->value->type, out);
    tk_strbuf_printf(out, "\", \"offset\": %" PRId64 ", \"bytes\": %" PRId64,
                     tk_kparam_offset(kernel, index), tk_kparam_bytes(kernel, index));
    if (param->map)
        put_map(kernel, param->map, out);
    else if (param->value->type.kind == TK_KT_POINTER)
        put_pointer(kernel, param, out);
    else
        tk_strbuf_puts(out, ", \"role\": \"number\"");
    tk_strbuf_putc(out, '}');
}

static void put_params(const tk_kernel *kernel, tk_strbuf *out) {
    int count = (int)kernel->contract.params.count;
    tk_strbuf_puts(out, "  \"parameters\": [");
    for (int i = 0; i < count; i++) {
        tk_strbuf_puts(out, i ? ",\n" : "\n");
        put_param(kernel, i, out);
    }
    tk_strbuf_printf(out, "%s],\n  \"parameter_bytes\": %" PRId64 ",\n", count ? "\n  " : "",
                     tk_kparam_offset(kernel, count));
}

/* ---- the launch ---- */

static void put_conditions(const tk_kernel *kernel, tk_strbuf *out) {
    const tk_kcontract *contract = &kernel->contract;
    tk_strbuf_puts(out, "  \"require\": [");
    for (size_t i = 0; i < contract->conditions.count; i++) {
        const tk_kcondition *condition = &contract->conditions.items[i];
        tk_strbuf_printf(out, "%s\"", i ? ", " : "");
        tk_kexpr_put(kernel, condition->left, out);
        tk_strbuf_printf(out, " %s ", tk_krelation_text((tk_krelation)condition->relation));
        tk_kexpr_put(kernel, condition->right, out);
        tk_strbuf_putc(out, '"');
    }
    tk_strbuf_puts(out, "],\n");
}

static void put_launch(const tk_kernel *kernel, int64_t shared_bytes, tk_strbuf *out) {
    const tk_kcontract *contract = &kernel->contract;
    tk_strbuf_puts(out, "  ");
    put_exprs(kernel, "grid", contract->grid, 3, out);
    if (contract->cluster[0] >= 0) {
        tk_strbuf_puts(out, ",\n  ");
        put_exprs(kernel, "cluster", contract->cluster, 3, out);
    }
    tk_strbuf_printf(out,
                     ",\n  \"block\": [%" PRId64 ", %" PRId64 ", %" PRId64
                     "],\n  \"shared_bytes\": %" PRId64,
                     contract->block[0], contract->block[1], contract->block[2], shared_bytes);
    if (contract->dynamic_shared >= 0) {
        tk_strbuf_puts(out, ",\n  \"more_shared_bytes\": ");
        put_expr(kernel, contract->dynamic_shared, out);
    }
    if (contract->min_blocks)
        tk_strbuf_printf(out, ",\n  \"min_blocks\": %" PRId64, contract->min_blocks);
    tk_strbuf_printf(out, ",\n  \"cooperative\": %s,\n  \"programmatic\": %s\n",
                     contract->cooperative ? "true" : "false",
                     contract->programmatic ? "true" : "false");
}

tk_status tk_kernel_contract_json(const tk_kernel *kernel, char **out_text) {
    tk_strbuf out = {0};
    tk_kshared_map map;
    TK_NEED(kernel, out_text);
    TK_TRY(tk_kshared_place(kernel, NULL, &map));
    tk_strbuf_printf(&out, "{\n  \"tiki_contract\": 1,\n  \"kernel\": \"%s\",\n", kernel->name);
    put_params(kernel, &out);
    put_conditions(kernel, &out);
    put_launch(kernel, map.bytes, &out);
    tk_strbuf_puts(&out, "}\n");
    *out_text = tk_strbuf_take(&out);
    return *out_text ? TK_OK : tk_fail(TK_OUT_OF_MEMORY, "no memory for a launch contract");
}
