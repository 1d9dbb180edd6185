/* Expressions are a list of nodes whose operands come before them, so a value takes one pass; equal
 * nodes are kept once, which makes the list short and the text form's order unimportant. */
#include "kernel/contract.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "kernel/check.h"

/* ---- expressions ---- */

#define MOST_NODES 4096

/* Nodes of the expression written out as a tree. */
static uint32_t tree_size(const tk_kcontract *contract, const tk_kexpr *node) {
    if (node->kind < TK_KX_ADD) return 1;
    return 1 + contract->exprs.items[node->left].size + contract->exprs.items[node->right].size;
}

tk_status tk_kexpr_add(tk_kernel *kernel, tk_kexpr node, int32_t *out) {
    tk_kcontract *contract = &kernel->contract;
    node.size = tree_size(contract, &node);
    for (size_t i = 0; i < contract->exprs.count; i++) {
        const tk_kexpr *old = &contract->exprs.items[i];
        if (old->kind == node.kind && old->left == node.left && old->right == node.right &&
            old->value == node.value) {
            *out = (int32_t)i;
            return TK_OK;
        }
    }
    if (contract->exprs.count == MOST_NODES || node.size > MOST_NODES)
        return tk_fail(TK_OVERFLOW, "the launch contract has more than %d expressions", MOST_NODES);
    if (!tk_vec_push(&contract->exprs, node))
        return tk_fail(TK_OUT_OF_MEMORY, "no memory for a kernel");
    *out = (int32_t)contract->exprs.count - 1;
    return TK_OK;
}

int64_t tk_kargument_integer(tk_ktype type, tk_kargument argument) {
    int unused = 64 - 8 * tk_ktype_bytes(type);
    if (type.kind != TK_KT_NUMBER || type.scalar > TK_K_I64) return 0;
    if (type.scalar == TK_K_I1) return (int64_t)(argument.bits & 1);
    return (int64_t)(argument.bits << unused) >> unused;
}

static int64_t fact_of(const tk_kdevice *device, int64_t fact) {
    if (!device) return 0;
    return fact == TK_KFACT_SMS       ? device->sms
           : fact == TK_KFACT_THREADS ? device->threads
                                      : device->shared_bytes;
}

/* Rounds down; `b` is at least 1. */
static int64_t floor_divide(int64_t a, int64_t b) { return a / b - (a % b < 0); }

static bool apply(unsigned kind, int64_t a, int64_t b, int64_t *out) {
    switch (kind) {
    case TK_KX_ADD:
        return !__builtin_add_overflow(a, b, out);
    case TK_KX_SUB:
        return !__builtin_sub_overflow(a, b, out);
    case TK_KX_MUL:
        return !__builtin_mul_overflow(a, b, out);
    case TK_KX_MIN:
        return *out = a < b ? a : b, true;
    case TK_KX_MAX:
        return *out = a > b ? a : b, true;
    default:
        break;
    }
    if (b < 1) return false;
    int64_t quotient = floor_divide(a, b), rest = a - quotient * b;
    *out = kind == TK_KX_MOD ? rest : kind == TK_KX_DIV ? quotient : quotient + (rest > 0);
    return true;
}

static tk_status node_value(const tk_kbinding *binding, const tk_kexpr *node, const int64_t *values,
                            int64_t *out) {
    const tk_kparameter *params = binding->kernel->contract.params.items;
    switch (node->kind) {
    case TK_KX_CONST:
        *out = node->value;
        return TK_OK;
    case TK_KX_PARAM:
        *out =
            tk_kargument_integer(params[node->value].value->type, binding->arguments[node->value]);
        return TK_OK;
    case TK_KX_DEVICE:
        *out = fact_of(binding->device, node->value);
        return TK_OK;
    default:
        if (apply(node->kind, values[node->left], values[node->right], out)) return TK_OK;
        return tk_fail(TK_OVERFLOW,
                       "kernel %s: an expression of the launch contract leaves 64 bits or divides "
                       "by less than 1",
                       binding->kernel->name);
    }
}

/* Nodes that the expression does not need are not computed: they might overflow. */
static void mark(const tk_kexpr *nodes, int32_t expr, bool *needed) {
    needed[expr] = true;
    for (int32_t i = expr; i >= 0; i--)
        if (needed[i] && nodes[i].kind >= TK_KX_ADD)
            needed[nodes[i].left] = needed[nodes[i].right] = true;
}

tk_status tk_kexpr_value(const tk_kbinding *binding, int32_t expr, int64_t *out) {
    const tk_kexpr *nodes = binding->kernel->contract.exprs.items;
    if (nodes[expr].kind < TK_KX_ADD) return node_value(binding, &nodes[expr], NULL, out);
    size_t count = (size_t)expr + 1;
    int64_t *values = tk_calloc(count, sizeof *values + sizeof(bool));
    if (!values) return tk_fail(TK_OUT_OF_MEMORY, "no memory for a launch");
    bool *needed = (bool *)(values + count);
    mark(nodes, expr, needed);
    tk_status status = TK_OK;
    for (size_t i = 0; i < count && status == TK_OK; i++)
        if (needed[i]) status = node_value(binding, &nodes[i], values, &values[i]);
    *out = values[expr];
    tk_free(values);
    return status;
}

/* ---- text ---- */

static const char *const relations[] = {"==", "!=", "<", "<=", ">", ">="};
const char *tk_krelation_text(tk_krelation relation) { return relations[relation]; }

const char *tk_kfact_text(int fact) {
    static const char *const facts[] = {"sms", "shared_bytes", "threads"};
    return fact >= 0 && fact < TK_KFACT_COUNT ? facts[fact] : NULL;
}

static int strength(unsigned kind) {
    if (kind == TK_KX_ADD || kind == TK_KX_SUB) return 1;
    return kind == TK_KX_MUL || kind == TK_KX_DIV || kind == TK_KX_MOD ? 2 : 3;
}

static void put(const tk_kernel *kernel, int32_t expr, int least, tk_strbuf *out);

static void put_call(const tk_kernel *kernel, const tk_kexpr *node, tk_strbuf *out) {
    const char *name = node->kind == TK_KX_CEILDIV ? "ceildiv"
                       : node->kind == TK_KX_MIN   ? "min"
                                                   : "max";
    tk_strbuf_printf(out, "%s(", name);
    put(kernel, node->left, 0, out);
    tk_strbuf_puts(out, ", ");
    put(kernel, node->right, 0, out);
    tk_strbuf_putc(out, ')');
}

static void put_leaf(const tk_kernel *kernel, const tk_kexpr *node, tk_strbuf *out) {
    if (node->kind == TK_KX_CONST)
        tk_strbuf_printf(out, "%" PRId64, node->value);
    else if (node->kind == TK_KX_DEVICE)
        tk_strbuf_printf(out, "device.%s", tk_kfact_text((int)node->value));
    else
        tk_strbuf_printf(out, "%%%s", kernel->contract.params.items[node->value].value->name);
}

static void put_infix(const tk_kernel *kernel, const tk_kexpr *node, int least, tk_strbuf *out) {
    static const char *const signs[] = {[TK_KX_ADD] = " + ",
                                        [TK_KX_SUB] = " - ",
                                        [TK_KX_MUL] = " * ",
                                        [TK_KX_DIV] = " / ",
                                        [TK_KX_MOD] = " % "};
    int own = strength(node->kind);
    if (own < least) tk_strbuf_putc(out, '(');
    put(kernel, node->left, own, out);
    tk_strbuf_puts(out, signs[node->kind]);
    put(kernel, node->right, own + 1, out);
    if (own < least) tk_strbuf_putc(out, ')');
}

static void put(const tk_kernel *kernel, int32_t expr, int least, tk_strbuf *out) {
    const tk_kexpr *node = &kernel->contract.exprs.items[expr];
    if (node->kind < TK_KX_ADD)
        put_leaf(kernel, node, out);
    else if (strength(node->kind) == 3)
        put_call(kernel, node, out);
    else
        put_infix(kernel, node, least, out);
}

void tk_kexpr_put(const tk_kernel *kernel, int32_t expr, tk_strbuf *out) {
    put(kernel, expr, 0, out);
}

/* ---- parameters ---- */

int64_t tk_kparam_bytes(const tk_kernel *kernel, int index) {
    const tk_kparameter *param = &kernel->contract.params.items[index];
    return param->map ? 128 : tk_ktype_bytes(param->value->type);
}

int64_t tk_kparam_offset(const tk_kernel *kernel, int index) {
    int64_t offset = 0;
    for (int i = 0;; i++) {
        bool end = i == (int)kernel->contract.params.count;
        int64_t bytes = end ? 1 : tk_kparam_bytes(kernel, i), align = bytes == 128 ? 64 : bytes;
        offset = (offset + align - 1) / align * align;
        if (i == index) return offset;
        offset += bytes;
    }
}

tk_status tk_kernel_param(const tk_kernel *kernel, int index, tk_kparam *out_param) {
    TK_NEED(kernel, out_param);
    if (index < 0 || index >= tk_kernel_params(kernel))
        return tk_fail(TK_INDEX_ERROR, "parameter %d of kernel %s, which has %d", index,
                       kernel->name, tk_kernel_params(kernel));
    const tk_kparameter *param = &kernel->contract.params.items[index];
    *out_param = (tk_kparam){.name = param->value->name,
                             .type = param->value->type,
                             .access = (tk_kaccess)param->access,
                             .align = param->align,
                             .size = param->size};
    return TK_OK;
}

/* ---- checks ---- */

static tk_status check_param(const tk_kernel *kernel, const tk_kparameter *param) {
    tk_ktype type = param->value->type;
    bool pointer = type.kind == TK_KT_POINTER;
    if (param->map) return TK_OK;
    TK_TRY(tk_ktype_check(kernel, type));
    if (type.kind != TK_KT_NUMBER &&
        !(pointer && (type.space == TK_KS_GLOBAL || type.space == TK_KS_CONSTANT)))
        return tk_fail(
            TK_DTYPE_ERROR,
            "parameter %s is %s, expected a number or a pointer to global or constant memory",
            param->value->name, tk_ktype_words(kernel, type).text);
    if (!pointer) return TK_OK;
    if (param->align < tk_kscalar_bytes((tk_kscalar)type.scalar) || param->align > 1024 ||
        (param->align & (param->align - 1)))
        return tk_fail(TK_INVALID_ARGUMENT,
                       "parameter %s has alignment %" PRId64
                       ", expected a power of two from the element's size to 1024",
                       param->value->name, param->align);
    return TK_OK;
}

tk_status tk_kcontract_check(const tk_kernel *kernel) {
    const tk_kcontract *contract = &kernel->contract;
    for (size_t i = 0; i < contract->params.count; i++)
        TK_TRY(check_param(kernel, &contract->params.items[i]));
    int64_t threads = 1;
    for (int i = 0; i < 3; i++) {
        if (contract->block[i] < 1 || contract->block[i] > 1024)
            return tk_fail(TK_INVALID_ARGUMENT,
                           "kernel %s: block extent %" PRId64 ", expected 1 to 1024", kernel->name,
                           contract->block[i]);
        threads *= contract->block[i];
        if (contract->grid[i] < 0)
            return tk_fail(TK_INVALID_ARGUMENT, "kernel %s: the grid is missing", kernel->name);
    }
    if (threads > 1024)
        return tk_fail(TK_INVALID_ARGUMENT, "kernel %s: %" PRId64 " threads a block, at most 1024",
                       kernel->name, threads);
    int64_t bytes = tk_kparam_offset(kernel, (int)contract->params.count);
    if (bytes > 4096)
        return tk_fail(TK_INVALID_ARGUMENT,
                       "kernel %s: %" PRId64 " bytes of parameters, at most 4096", kernel->name,
                       bytes);
    return TK_OK;
}

bool tk_kcontract_cluster(const tk_kcontract *contract, int64_t out[3]) {
    for (int i = 0; i < 3; i++) {
        if (contract->cluster[i] < 0 ||
            contract->exprs.items[contract->cluster[i]].kind != TK_KX_CONST)
            return false;
        out[i] = contract->exprs.items[contract->cluster[i]].value;
    }
    return true;
}

/* ---- launching ---- */

static bool holds(unsigned relation, int64_t a, int64_t b) {
    switch (relation) {
    case TK_KR_EQ:
        return a == b;
    case TK_KR_NE:
        return a != b;
    case TK_KR_LT:
        return a < b;
    case TK_KR_LE:
        return a <= b;
    case TK_KR_GT:
        return a > b;
    default:
        return a >= b;
    }
}

static tk_status fail_condition(const tk_kernel *kernel, const tk_kcondition *condition,
                                int64_t left, int64_t right) {
    tk_strbuf text = {0};
    tk_kexpr_put(kernel, condition->left, &text);
    tk_strbuf_printf(&text, " %s ", relations[condition->relation]);
    tk_kexpr_put(kernel, condition->right, &text);
    tk_status status = tk_fail(TK_INVALID_ARGUMENT,
                               "kernel %s requires %s, but the left side is %" PRId64
                               " and the right side %" PRId64,
                               kernel->name, text.text ? text.text : "?", left, right);
    tk_strbuf_deinit(&text);
    return status;
}

static tk_status check_conditions(const tk_kbinding *binding) {
    const tk_kcontract *contract = &binding->kernel->contract;
    for (size_t i = 0; i < contract->conditions.count; i++) {
        const tk_kcondition *condition = &contract->conditions.items[i];
        int64_t left, right;
        TK_TRY(tk_kexpr_value(binding, condition->left, &left));
        TK_TRY(tk_kexpr_value(binding, condition->right, &right));
        if (!holds(condition->relation, left, right))
            return fail_condition(binding->kernel, condition, left, right);
    }
    return TK_OK;
}

static tk_status check_alignments(const tk_kbinding *binding) {
    const tk_kcontract *contract = &binding->kernel->contract;
    for (size_t i = 0; i < contract->params.count; i++) {
        const tk_kparameter *param = &contract->params.items[i];
        if (param->map || param->value->type.kind != TK_KT_POINTER) continue;
        if (binding->arguments[i].bits % (uint64_t)param->align)
            return tk_fail(TK_INVALID_ARGUMENT,
                           "kernel %s: argument %s is not aligned to %" PRId64 " bytes",
                           binding->kernel->name, param->value->name, param->align);
    }
    return TK_OK;
}

static tk_status value_or(const tk_kbinding *binding, int32_t expr, int64_t otherwise,
                          int64_t *out) {
    *out = otherwise;
    return expr < 0 ? TK_OK : tk_kexpr_value(binding, expr, out);
}

static tk_status check_extents(const tk_kernel *kernel, const tk_klaunch *launch) {
    static const int64_t most_blocks[] = {INT32_MAX, 65535, 65535};
    int64_t cluster = 1;
    for (int i = 0; i < 3; i++) {
        cluster *= launch->cluster[i] >= 1 && launch->cluster[i] <= 16 ? launch->cluster[i] : 17;
        if (launch->grid[i] < 0 || launch->grid[i] > most_blocks[i])
            return tk_fail(TK_INVALID_ARGUMENT,
                           "kernel %s: %" PRId64 " blocks along axis %d, expected 0 to %" PRId64,
                           kernel->name, launch->grid[i], i, most_blocks[i]);
        if (launch->cluster[i] >= 1 && launch->grid[i] % launch->cluster[i])
            return tk_fail(TK_INVALID_ARGUMENT,
                           "kernel %s: %" PRId64
                           " blocks along axis %d are no multiple of the cluster's %" PRId64,
                           kernel->name, launch->grid[i], i, launch->cluster[i]);
    }
    if (cluster > 16)
        return tk_fail(TK_INVALID_ARGUMENT, "kernel %s: a cluster has 1 to 16 blocks",
                       kernel->name);
    if (launch->dynamic_shared < 0)
        return tk_fail(TK_INVALID_ARGUMENT, "kernel %s: %" PRId64 " bytes of shared memory",
                       kernel->name, launch->dynamic_shared);
    return TK_OK;
}

tk_status tk_kernel_launch(const tk_kernel *kernel, const tk_kdevice *device, size_t n_arguments,
                           const tk_kargument *arguments, tk_klaunch *out_launch) {
    TK_NEED(kernel, out_launch);
    const tk_kcontract *contract = &kernel->contract;
    if (n_arguments != contract->params.count)
        return tk_fail(TK_INVALID_ARGUMENT, "kernel %s: %zu arguments, expected %zu", kernel->name,
                       n_arguments, contract->params.count);
    if (n_arguments) TK_NEED(arguments);
    tk_kbinding binding = {kernel, device, arguments};
    tk_klaunch launch = {.cooperative = contract->cooperative,
                         .programmatic = contract->programmatic};
    TK_TRY(check_conditions(&binding));
    TK_TRY(check_alignments(&binding));
    for (int i = 0; i < 3; i++) {
        TK_TRY(tk_kexpr_value(&binding, contract->grid[i], &launch.grid[i]));
        TK_TRY(value_or(&binding, contract->cluster[i], 1, &launch.cluster[i]));
        launch.block[i] = contract->block[i];
    }
    TK_TRY(value_or(&binding, contract->dynamic_shared, 0, &launch.dynamic_shared));
    TK_TRY(check_extents(kernel, &launch));
    *out_launch = launch;
    return TK_OK;
}
