/* Plans: the table of kernels, the checks of a call that all kernels share, and the binding of
 * arguments.
 *
 * One entry point for all kernels, with tensors as a list, so that who makes ops of them needs no
 * code for each; a function a kernel was rejected for that. */
#include "library/plan.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "kernel/ir.h"
#include "library/schedule.h"
#include "tiki/passes.h"

typedef struct row {
    const char *name, *tensors, *numbers, *doc;
    tk_status (*make)(const tk_library_call *call, tk_library_plan *plan);
    void (*choose)(const tk_library_tensor *tensors, tk_library_schedule *out);
} row;

static const row rows[] = {
#define TK_LIBRARY(id, name, tensors, numbers, fields, doc)                                        \
    {#name, tensors, numbers, doc, tk_library_make_##name, tk_library_choose_##name},
#include "tiki/library.def"
};

static bool is_known(tk_library_id id) { return (unsigned)id < TK_LIBRARY_COUNT; }

static size_t count_words(const char *list) {
    size_t count = *list != 0;
    for (; *list; list++) count += *list == ' ';
    return count;
}

const char *tk_library_name(tk_library_id id) { return is_known(id) ? rows[id].name : "?"; }
const char *tk_library_doc(tk_library_id id) { return is_known(id) ? rows[id].doc : "?"; }
size_t tk_library_tensors(tk_library_id id) {
    return is_known(id) ? count_words(rows[id].tensors) : 0;
}
size_t tk_library_numbers(tk_library_id id) {
    return is_known(id) ? count_words(rows[id].numbers) : 0;
}

tk_status tk_library_find(const char *name, tk_library_id *out) {
    TK_NEED(name, out);
    for (int i = 0; i < TK_LIBRARY_COUNT; i++)
        if (!strcmp(rows[i].name, name)) {
            *out = (tk_library_id)i;
            return TK_OK;
        }
    return tk_fail(TK_NOT_FOUND, "the library has no kernel \"%.40s\"", name);
}

/* ---- checks of a call ---- */

tk_status tk_library_fail(const tk_library_call *call, tk_status code, const char *format, ...) {
    char text[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return tk_fail(code, "library kernel %s: %s", call->name, text);
}

static bool is_float(tk_kscalar element) {
    return element == TK_K_F32 || element == TK_K_F16 || element == TK_K_BF16;
}

tk_status tk_library_need_float(const tk_library_call *call, size_t index, const char *role) {
    tk_kscalar element = call->tensors[index].element;
    if (is_float(element)) return TK_OK;
    return tk_library_fail(call, TK_DTYPE_ERROR, "%s has elements %s, expected f32, f16 or bf16",
                           role, tk_kscalar_text(element));
}

tk_status tk_library_need_same(const tk_library_call *call, size_t a, const char *role_a, size_t b,
                               const char *role_b) {
    const tk_library_tensor *x = &call->tensors[a], *y = &call->tensors[b];
    if (x->rank != y->rank)
        return tk_library_fail(call, TK_SHAPE_ERROR, "%s has %d axes, %s has %d", role_a, x->rank,
                               role_b, y->rank);
    for (int i = 0; i < x->rank; i++)
        if (x->shape[i] != y->shape[i])
            return tk_library_fail(call, TK_SHAPE_ERROR,
                                   "axis %d has length %lld in %s, %lld in %s", i,
                                   (long long)x->shape[i], role_a, (long long)y->shape[i], role_b);
    return TK_OK;
}

/* Every extent is from 0 and every offset fits, so that later arithmetic cannot overflow. */
static bool fits(const tk_library_tensor *tensor) {
    int64_t count = 1, reach = tk_kscalar_bytes(tensor->element);
    for (int i = 0; i < tensor->rank; i++) {
        int64_t step, length = tensor->shape[i], stride = tensor->stride[i];
        if (length < 0 || __builtin_mul_overflow(count, length ? length : 1, &count)) return false;
        if (__builtin_mul_overflow(length, stride < 0 ? -stride : stride, &step)) return false;
        if (__builtin_mul_overflow(step, tk_kscalar_bytes(tensor->element), &step)) return false;
        if (__builtin_add_overflow(reach, step, &reach)) return false;
    }
    return true;
}

static tk_status check_tensor(const tk_library_call *call, size_t index, const char *role,
                              size_t length) {
    const tk_library_tensor *tensor = &call->tensors[index];
    bool optional = role[length - 1] == '?';
    if (tensor->rank == -1 && optional) return TK_OK;
    if (tensor->rank < 0 || tensor->rank > TK_LIBRARY_MOST_AXES)
        return tk_library_fail(call, TK_SHAPE_ERROR, "%.*s has %d axes, expected 0 to %d",
                               (int)length - optional, role, tensor->rank, TK_LIBRARY_MOST_AXES);
    TK_TRY(tk_check_enum("element", (int)tensor->element, TK_KSCALAR_COUNT, "tk_kscalar"));
    if (tensor->element >= TK_K_MBAR || tensor->element == TK_K_I1)
        return tk_library_fail(call, TK_DTYPE_ERROR, "%.*s has elements %s", (int)length - optional,
                               role, tk_kscalar_text(tensor->element));
    if (!fits(tensor))
        return tk_library_fail(call, TK_OVERFLOW,
                               "%.*s has a negative extent or reaches beyond 64 bits",
                               (int)length - optional, role);
    int64_t align = tk_library_align(tensor);
    if (align < tk_kscalar_bytes(tensor->element) || (align & (align - 1)))
        return tk_library_fail(call, TK_INVALID_ARGUMENT,
                               "%.*s is aligned to %lld, expected a power of two from the "
                               "element's size",
                               (int)length - optional, role, (long long)align);
    return TK_OK;
}

static tk_status check_call(const tk_library_call *call, size_t n_tensors, size_t n_numbers) {
    const row *r = &rows[call->id];
    if (n_tensors != count_words(r->tensors) || n_numbers != count_words(r->numbers))
        return tk_library_fail(call, TK_INVALID_ARGUMENT,
                               "%zu tensors and %zu numbers, expected \"%s\" and \"%s\"", n_tensors,
                               n_numbers, r->tensors, r->numbers);
    const char *role = r->tensors;
    for (size_t i = 0; i < n_tensors; i++) {
        size_t length = strcspn(role, " ");
        TK_TRY(check_tensor(call, i, role, length));
        role += length + (role[length] == ' ');
    }
    return TK_OK;
}

/* ---- facts about tensors ---- */

int64_t tk_library_size(const tk_library_tensor *tensor) {
    int64_t size = 1;
    for (int i = 0; i < tensor->rank; i++) size *= tensor->shape[i];
    return size;
}

bool tk_library_is_contiguous(const tk_library_tensor *tensor) {
    int64_t step = 1;
    for (int i = tensor->rank - 1; i >= 0; i--) {
        if (tensor->shape[i] != 1 && tensor->stride[i] != step) return false;
        step *= tensor->shape[i];
    }
    return true;
}

int64_t tk_library_align(const tk_library_tensor *tensor) {
    return tensor->align > 0 ? tensor->align : tk_kscalar_bytes(tensor->element);
}

int64_t tk_library_divisor(int64_t most, size_t count, const int64_t *values) {
    for (size_t i = 0; i < count; i++)
        while (most > 1 && values[i] % most) most /= 2;
    return most;
}

/* ---- schedules ---- */

tk_status tk_library_schedule_default(tk_library_id id, size_t n_tensors,
                                      const tk_library_tensor *tensors, tk_library_schedule *out) {
    TK_NEED(tensors, out);
    TK_TRY(tk_check_enum("id", (int)id, TK_LIBRARY_COUNT, "tk_library_id"));
    tk_library_call call = {.id = id, .name = rows[id].name, .tensors = tensors};
    TK_TRY(check_call(&call, n_tensors, count_words(rows[id].numbers)));
    tk_library_schedule_lowest(out);
    rows[id].choose(tensors, out);
    return TK_OK;
}

/* ---- plans ---- */

static tk_status make(const tk_library_call *call, tk_library_plan *plan) {
    TK_TRY(tk_library_schedule_check(call->id, call->schedule));
    return rows[call->id].make(call, plan);
}

tk_status tk_library_plan_create(tk_library_id id, size_t n_tensors,
                                 const tk_library_tensor *tensors, size_t n_numbers,
                                 const double *numbers, const tk_library_schedule *schedule,
                                 tk_library_plan **out) {
    tk_library_schedule chosen;
    TK_NEED(tensors, out);
    TK_TRY(tk_check_enum("id", (int)id, TK_LIBRARY_COUNT, "tk_library_id"));
    if (n_numbers && !numbers) return tk_fail_null("numbers");
    tk_library_call call = {id, rows[id].name, tensors, numbers, schedule ? schedule : &chosen};
    TK_TRY(check_call(&call, n_tensors, n_numbers));
    if (!schedule) TK_TRY(tk_library_schedule_default(id, n_tensors, tensors, &chosen));
    tk_library_plan *plan = tk_calloc(1, sizeof *plan);
    if (!plan) return tk_fail(TK_OUT_OF_MEMORY, "no memory for a plan");
    plan->references = 1;
    tk_status status = make(&call, plan);
    if (status == TK_OK)
        *out = plan;
    else
        tk_library_plan_release(plan);
    return status;
}

tk_library_plan *tk_library_plan_retain(tk_library_plan *plan) {
    if (plan) __atomic_add_fetch(&plan->references, 1, __ATOMIC_RELAXED);
    return plan;
}

void tk_library_plan_release(tk_library_plan *plan) {
    if (!plan || __atomic_sub_fetch(&plan->references, 1, __ATOMIC_ACQ_REL)) return;
    for (size_t i = 0; i < plan->steps.count; i++) {
        tk_kernel_release(plan->steps.items[i].kernel);
        tk_vec_deinit(&plan->steps.items[i].arguments);
    }
    tk_vec_deinit(&plan->steps);
    tk_vec_deinit(&plan->scratches);
    tk_free(plan);
}

size_t tk_library_plan_launches(const tk_library_plan *plan) {
    return plan ? plan->steps.count : 0;
}

tk_status tk_library_plan_launch(const tk_library_plan *plan, size_t index,
                                 tk_library_launch *out) {
    TK_NEED(plan, out);
    if (index >= plan->steps.count)
        return tk_fail(TK_INDEX_ERROR, "launch %zu of %zu", index, plan->steps.count);
    const tk_library_step *step = &plan->steps.items[index];
    *out = (tk_library_launch){step->kernel, step->arguments.count, step->arguments.items};
    return TK_OK;
}

size_t tk_library_plan_scratches(const tk_library_plan *plan) {
    return plan ? plan->scratches.count : 0;
}

int64_t tk_library_plan_scratch_bytes(const tk_library_plan *plan, size_t index) {
    return plan && index < plan->scratches.count ? plan->scratches.items[index] : 0;
}

/* ---- making ---- */

tk_status tk_library_add_scratch(tk_library_plan *plan, int64_t bytes, size_t *out_index) {
    *out_index = plan->scratches.count;
    if (tk_vec_push(&plan->scratches, bytes)) return TK_OK;
    return tk_fail(TK_OUT_OF_MEMORY, "no memory for a plan");
}

tk_status tk_library_open(tk_library_plan *plan, const char *name, tk_library_kernel *out) {
    *out = (tk_library_kernel){.b = tk_kernel_builder_create(name, TK_KFORM_THREAD), .plan = plan};
    return out->b ? TK_OK : tk_fail(TK_OUT_OF_MEMORY, "no memory for a kernel");
}

static tk_status finish(tk_library_kernel *k) {
    tk_kernel *raw = NULL;
    TK_TRY(tk_kernel_builder_finish(k->b, &raw));
    tk_kernel *expanded = NULL;
    tk_status status = tk_kernel_pass(raw, TK_KPASS_expand, &expanded);
    if (status == TK_OK) status = tk_kernel_pass(expanded, TK_KPASS_unroll, &k->step.kernel);
    tk_kernel_release(raw);
    tk_kernel_release(expanded);
    return status;
}

tk_status tk_library_close(tk_library_kernel *k) {
    tk_status status = finish(k);
    tk_kernel_builder_release(k->b);
    if (status == TK_OK && (k->out_of_memory || !tk_vec_push(&k->plan->steps, k->step)))
        status = tk_fail(TK_OUT_OF_MEMORY, "no memory for a plan");
    if (status == TK_OK) return TK_OK;
    tk_kernel_release(k->step.kernel);
    tk_vec_deinit(&k->step.arguments);
    return status;
}

static tk_kvalue *bind(tk_library_kernel *k, const tk_kparam *param, tk_library_argument argument) {
    if (!tk_vec_push(&k->step.arguments, argument)) k->out_of_memory = true;
    return tk_kernel_add_param(k->b, param);
}

static tk_kvalue *bind_pointer(tk_library_kernel *k, const char *name, tk_kscalar element,
                               tk_kaccess access, int64_t align, tk_library_argument argument) {
    tk_kparam param = {.name = name,
                       .type = tk_ktype_pointer(element, TK_KS_GLOBAL),
                       .access = access,
                       .align = align,
                       .size = -1};
    return bind(k, &param, argument);
}

tk_kvalue *tk_library_bind_tensor(tk_library_kernel *k, const char *name, size_t index,
                                  tk_kscalar element, tk_kaccess access, int64_t align) {
    return bind_pointer(k, name, element, access, align,
                        (tk_library_argument){TK_LIBRARY_TENSOR, index, 0});
}

tk_kvalue *tk_library_bind_map(tk_library_kernel *k, const tk_kmap *map) {
    if (!tk_vec_push(&k->step.arguments, ((tk_library_argument){TK_LIBRARY_NUMBER, 0, 0})))
        k->out_of_memory = true;
    return tk_kernel_add_map(k->b, map);
}

tk_kvalue *tk_library_bind_rows(tk_library_kernel *k, const char *name, size_t index,
                                const tk_library_tensor *tensors, tk_kaccess access, int lanes) {
    tk_kscalar element = tensors[index].element;
    return tk_library_bind_tensor(k, name, index, element, access,
                                  lanes * tk_kscalar_bytes(element));
}

tk_kvalue *tk_library_bind_scratch(tk_library_kernel *k, const char *name, size_t index,
                                   tk_kscalar element, tk_kaccess access) {
    return bind_pointer(k, name, element, access, 16,
                        (tk_library_argument){TK_LIBRARY_SCRATCH, index, 0});
}

tk_kvalue *tk_library_bind_int(tk_library_kernel *k, const char *name, tk_kscalar type,
                               int64_t value) {
    tk_kparam param = {.name = name, .type = tk_ktype_scalar(type), .size = -1};
    return bind(k, &param, (tk_library_argument){TK_LIBRARY_NUMBER, 0, (uint64_t)value});
}

/* Towards zero and within the range; NaN is 0. */
static uint64_t integer_bits(double value) {
    if (value != value) return 0;
    if (value >= 0x1p63) return INT64_MAX;
    return (uint64_t)(value <= -0x1p63 ? INT64_MIN : (int64_t)value);
}

tk_kvalue *tk_library_bind_bits(tk_library_kernel *k, const char *name, tk_kscalar type,
                                double value) {
    tk_kparam param = {.name = name, .type = tk_ktype_scalar(type), .size = -1};
    uint64_t bits = type <= TK_K_I64 ? integer_bits(value) : tk_kscalar_bits(type, value);
    return bind(k, &param, (tk_library_argument){TK_LIBRARY_NUMBER, 0, bits});
}

tk_kvalue *tk_library_bind_f32(tk_library_kernel *k, const char *name, double value) {
    return tk_library_bind_bits(k, name, TK_K_F32, value);
}
