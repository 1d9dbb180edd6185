/* See reduce.h. Few elements to reduce: a thread for each result. Many: a block of 128 threads,
 * each taking every 128th element, and a tree in shared memory, whose barriers order one step
 * before the next. Sums of halves are f32 sums, rounded once. */
#include "compile/reduce.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "compile/axes.h"
#include "compile/kernel_text.h"
#include "compile/kernels_made.h"
#include "compile/run.h"

#define THREADS 128
#define MANY 256 /* elements from which on a block takes a result */
#define MOST_INPUTS 2

/* ---- the problem ---- */

/* Axes of the results, and those that are reduced. */
typedef struct problem {
    int n_inputs;
    tk_view_axes kept, reduced;
} problem;

static problem problem_of(int n_inputs) {
    tk_view_axes none = {.n_views = n_inputs, .size = 1};
    return (problem){n_inputs, none, none};
}

/* ---- the text ---- */

typedef struct signature {
    tk_op op;
    tk_dtype dtype;
    int n_inputs, n_kept, n_reduced;
    int block; /* no bool, so that bytes can be compared */
} signature;

/* Truth values are combined as i32. */
static const char *value_type(tk_dtype dtype) {
    return dtype == TK_BOOL ? "i32" : tk_text_value(dtype);
}

static const char *combine_word(const signature *s) {
    bool is_float = tk_dtype_is_float(s->dtype);
    bool is_unsigned = tk_dtype_kind(s->dtype) == TK_KIND_UNSIGNED;
    if (s->op == TK_OP_reduce_max) return is_float ? "max" : is_unsigned ? "umax" : "smax";
    if (s->op == TK_OP_reduce_min) return is_float ? "min" : is_unsigned ? "umin" : "smin";
    if (s->op == TK_OP_reduce_prod) return "mul";
    if (s->op == TK_OP_reduce_any) return "or";
    if (s->op == TK_OP_reduce_all) return "and";
    return "add";
}

/* What combines with everything without changing it. */
static const char *neutral(const signature *s) {
    bool wide = tk_dtype_size(s->dtype) == 8, is_max = s->op == TK_OP_reduce_max;
    if (s->op == TK_OP_reduce_prod || s->op == TK_OP_reduce_all)
        return tk_dtype_is_float(s->dtype) ? "1.0" : "1";
    if (s->op != TK_OP_reduce_max && s->op != TK_OP_reduce_min)
        return tk_dtype_is_float(s->dtype) ? "0.0" : "0";
    if (tk_dtype_is_float(s->dtype)) return is_max ? "0xff800000" : "0x7f800000";
    if (tk_dtype_kind(s->dtype) == TK_KIND_UNSIGNED) return is_max ? "0" : "-1";
    if (wide) return is_max ? "-9223372036854775808" : "9223372036854775807";
    return is_max ? "-2147483648" : "2147483647";
}

static void put_params(const signature *s, tk_strbuf *out) {
    const char *memory = tk_text_memory(s->dtype);
    size_t bytes = tk_dtype_size(s->dtype);
    for (int v = 0; v < s->n_inputs; v++)
        tk_strbuf_printf(out, "  %%x%d: ptr<%s, global> read align %zu,\n", v, memory, bytes);
    tk_strbuf_printf(out, "  %%y: ptr<%s, global> write align %zu,\n  %%n: i64,\n  %%m: i64",
                     memory, bytes);
    for (int i = 1; i < s->n_kept; i++) tk_strbuf_printf(out, ",\n  %%klength%d: i64", i);
    for (int i = 1; i < s->n_reduced; i++) tk_strbuf_printf(out, ",\n  %%rlength%d: i64", i);
    for (int v = 0; v < s->n_inputs; v++) {
        for (int i = 0; i < s->n_kept; i++) tk_strbuf_printf(out, ",\n  %%k%d_%d: i64", v, i);
        for (int i = 0; i < s->n_reduced; i++) tk_strbuf_printf(out, ",\n  %%r%d_%d: i64", v, i);
    }
}

/* %LETTERoV = sum of coordinates times strides of input V, from `first` on ("" : nothing). */
static void put_offset(char letter, int v, int rank, const char *first, tk_strbuf *out) {
    for (int i = 0; i < rank; i++) {
        tk_strbuf_printf(out, "    %%%ct%d_%d = mul %%%cc%d, %%%c%d_%d : i64\n", letter, v, i,
                         letter, i, letter, v, i);
        if (i == 0 && !*first)
            tk_strbuf_printf(out, "    %%%cs%d_0 = or %%%ct%d_0, i64(0) : i64\n", letter, v, letter,
                             v);
        else if (i == 0)
            tk_strbuf_printf(out, "    %%%cs%d_0 = add %s%d, %%%ct%d_0 : i64\n", letter, v, first,
                             v, letter, v);
        else
            tk_strbuf_printf(out, "    %%%cs%d_%d = add %%%cs%d_%d, %%%ct%d_%d : i64\n", letter, v,
                             i, letter, v, i - 1, letter, v, i);
    }
    tk_strbuf_printf(out, "    %%%co%d = or %%%cs%d_%d, i64(0) : i64\n", letter, v, letter, v,
                     rank - 1);
}

/* %aV is the element of input V, as it is combined. */
static void put_load(const signature *s, int v, tk_strbuf *out) {
    const char *memory = tk_text_memory(s->dtype);
    tk_dtype dtype = s->dtype;
    bool whole = dtype == TK_BOOL || tk_text_is_small(dtype);
    const char *loaded = whole || tk_text_is_half(dtype) ? "l" : "a";
    tk_strbuf_printf(out,
                     "    %%p%d = offset %%x%d, %%ro%d : ptr<%s, global>\n"
                     "    %%%s%d = load %%p%d : %s\n",
                     v, v, v, memory, loaded, v, v, memory);
    if (whole)
        tk_strbuf_printf(out, "    %%a%d = extend_%s %%l%d : i32\n", v,
                         tk_dtype_kind(dtype) == TK_KIND_SIGNED ? "signed" : "unsigned", v);
    else if (tk_text_is_half(dtype))
        tk_strbuf_printf(out, "    %%a%d = convert %%l%d : f32\n", v, v);
}

static void put_loop(const signature *s, const char *first, const char *step, tk_strbuf *out) {
    const char *type = value_type(s->dtype);
    tk_strbuf_printf(out, "    %%own = for %%j = %s to %%m step i64(%s) carry (%%sum = %s(%s)) {\n",
                     first, step, type, neutral(s));
    tk_text_put_coordinates('r', "j", s->n_reduced, out);
    for (int v = 0; v < s->n_inputs; v++) {
        put_offset('r', v, s->n_reduced, "%ko", out);
        put_load(s, v, out);
    }
    const char *term = "a0";
    if (s->n_inputs == 2) {
        tk_strbuf_printf(out, "    %%term = mul %%a0, %%a1 : %s\n", type);
        term = "term";
    }
    tk_strbuf_printf(out, "    %%more = %s %%sum, %%%s : %s\n    yield %%more\n    }\n",
                     combine_word(s), term, type);
}

/* Stores the value `name` as result %i. */
static void put_store(const signature *s, const char *name, tk_strbuf *out) {
    const char *memory = tk_text_memory(s->dtype);
    bool whole = s->dtype == TK_BOOL || tk_text_is_small(s->dtype);
    tk_strbuf_printf(out, "    %%py = offset %%y, %%i : ptr<%s, global>\n", memory);
    if (whole || tk_text_is_half(s->dtype)) {
        tk_strbuf_printf(out, "    %%stored = %s %%%s : %s\n", whole ? "truncate" : "convert", name,
                         memory);
        name = "stored";
    }
    tk_strbuf_printf(out, "    store %%py, %%%s\n", name);
}

static void put_by_threads(const signature *s, tk_strbuf *out) {
    tk_text_put_elements(THREADS, out);
    tk_text_put_coordinates('k', "i", s->n_kept, out);
    for (int v = 0; v < s->n_inputs; v++) put_offset('k', v, s->n_kept, "", out);
    put_loop(s, "i64(0)", "1", out);
    put_store(s, "own", out);
    tk_strbuf_printf(out, "  }\n}\n");
}

static void put_tree(const signature *s, tk_strbuf *out) {
    const char *type = value_type(s->dtype);
    for (int half = THREADS / 2; half > 0; half /= 2)
        tk_strbuf_printf(out,
                         "  barrier\n  %%in%d = icmp.slt %%thread, i32(%d) : i1\n  if %%in%d {\n"
                         "    %%b%d = offset %%slot, i32(%d) : ptr<%s, shared>\n"
                         "    %%u%d = load %%slot : %s\n    %%w%d = load %%b%d : %s\n"
                         "    %%z%d = %s %%u%d, %%w%d : %s\n    store %%slot, %%z%d\n  }\n",
                         half, half, half, half, half, type, half, type, half, half, type, half,
                         combine_word(s), half, half, type, half);
}

static void put_by_blocks(const signature *s, tk_strbuf *out) {
    const char *type = value_type(s->dtype);
    tk_strbuf_printf(out,
                     "grid (%%n, 1, 1)\nblock (%d, 1, 1)\n{\n"
                     "  %%partial = shared [align = 16] : shared<%s, \"%d:1\">\n"
                     "  %%slots = address %%partial : ptr<%s, shared>\n"
                     "  %%thread = thread_index.x : i32\n  %%block = block_index.x : i32\n"
                     "  %%tw = extend_signed %%thread : i64\n  %%i = extend_signed %%block : i64\n"
                     "  %%slot = offset %%slots, %%thread : ptr<%s, shared>\n",
                     THREADS, type, THREADS, type, type);
    tk_text_put_coordinates('k', "i", s->n_kept, out);
    for (int v = 0; v < s->n_inputs; v++) put_offset('k', v, s->n_kept, "", out);
    char step[16];
    snprintf(step, sizeof step, "%d", THREADS);
    put_loop(s, "%tw", step, out);
    tk_strbuf_printf(out, "  store %%slot, %%own\n");
    put_tree(s, out);
    tk_strbuf_printf(out,
                     "  %%leads = icmp.eq %%thread, i32(0) : i1\n  if %%leads {\n"
                     "    %%all = load %%slot : %s\n",
                     type);
    put_store(s, "all", out);
    tk_strbuf_printf(out, "  }\n}\n");
}

static void put_kernel(const void *key, tk_strbuf *out) {
    const signature *s = key;
    tk_strbuf_printf(out, "tiki kernel 1\n\nkernel %s_%s_%d_%d%s(\n", tk_op_name(s->op),
                     tk_dtype_name(s->dtype), s->n_kept, s->n_reduced, s->block ? "_block" : "");
    put_params(s, out);
    tk_strbuf_printf(out, ")\nform thread\nrequire %%n >= 0\nrequire %%m >= 0\n");
    if (s->block)
        put_by_blocks(s, out);
    else
        put_by_threads(s, out);
}

/* ---- kernels by signature ---- */

static tk_kernels_made kernels = {
    PTHREAD_MUTEX_INITIALIZER, "reduce", sizeof(signature), put_kernel, {0}};

/* ---- running ---- */

enum { MOST_ARGUMENTS = 5 + 2 * TK_AXES_MAX + 2 * MOST_INPUTS * TK_AXES_MAX };

static void put_number(tk_run_argument *out, size_t *count, int64_t value) {
    out[(*count)++] = (tk_run_argument){.bits = (uint64_t)value};
}

static size_t fill_arguments(const problem *p, const tk_strided *inputs, const tk_strided *output,
                             tk_run_argument *out) {
    size_t count = 0;
    for (int v = 0; v <= p->n_inputs; v++) {
        const tk_strided *view = v < p->n_inputs ? &inputs[v] : output;
        out[count] = (tk_run_argument){.data = view->data};
        tk_extent_of(view, &out[count].before, &out[count].bytes);
        count++;
    }
    put_number(out, &count, p->kept.size);
    put_number(out, &count, p->reduced.size);
    for (int i = 1; i < p->kept.rank; i++) put_number(out, &count, p->kept.items[i].length);
    for (int i = 1; i < p->reduced.rank; i++) put_number(out, &count, p->reduced.items[i].length);
    for (int v = 0; v < p->n_inputs; v++) {
        for (int i = 0; i < p->kept.rank; i++) put_number(out, &count, p->kept.items[i].stride[v]);
        for (int i = 0; i < p->reduced.rank; i++)
            put_number(out, &count, p->reduced.items[i].stride[v]);
    }
    return count;
}

static tk_status run(const tk_body_call *call, tk_op op, problem *p) {
    const tk_strided *output = &call->outputs[0];
    tk_run_argument arguments[MOST_ARGUMENTS];
    signature key;
    tk_kernel *kernel = NULL;
    if (output->size == 0) return TK_OK;
    tk_view_axes_close(&p->kept);
    tk_view_axes_close(&p->reduced);
    memset(&key, 0, sizeof key);
    key.op = op;
    key.dtype = output->dtype;
    key.n_inputs = p->n_inputs;
    key.n_kept = p->kept.rank;
    key.n_reduced = p->reduced.rank;
    key.block = p->reduced.size >= MANY && p->kept.size < INT32_MAX;
    TK_TRY(tk_kernels_find(&kernels, &key, &kernel));
    size_t count = fill_arguments(p, call->inputs, output, arguments);
    tk_run launch = {kernel, NULL, count, arguments, TK_TARGET_PTX, NULL};
    return tk_run_kernel(call->device, call->queue, &launch);
}

tk_status tk_reduce_check(tk_op op, tk_dtype dtype) {
    bool extreme = op == TK_OP_reduce_max || op == TK_OP_reduce_min;
    if (!tk_dtype_is_complex(dtype) && !(extreme && dtype == TK_FLOAT64)) return TK_OK;
    return tk_fail(TK_UNSUPPORTED, "%s of %s has no kernel on devices: move it to the cpu",
                   tk_op_title(op), tk_dtype_name(dtype));
}

tk_status tk_body_reduce_on_device(const tk_body_call *call) {
    const tk_attrs_reduce *attrs = call->attrs;
    const tk_strided *in = &call->inputs[0];
    problem p = problem_of(1);
    uint32_t reduced = 0;
    for (int64_t i = 0; i < attrs->axes.count; i++) reduced |= 1u << attrs->axes.items[i];
    for (int i = 0; i < in->rank; i++) {
        tk_view_axis next = {in->shape[i], {in->strides[i], 0}};
        tk_view_axes_add(reduced >> i & 1 ? &p.reduced : &p.kept, &next);
    }
    return run(call, call->op, &p);
}

/* Whether the library's product reads the operand as it lies. */
static bool is_plain(const tk_strided *view) {
    return view->rank == 2 && view->strides[0] >= 1 && view->strides[1] >= 1 &&
           (view->strides[0] == 1 || view->strides[1] == 1);
}

static tk_status run_library_product(const tk_body_call *call) {
    tk_strided tensors[] = {call->inputs[0], call->inputs[1], call->outputs[0]};
    tk_library_run product = {.id = TK_LIBRARY_GEMM, .n_tensors = 3, .tensors = tensors};
    return tk_run_library(call, &product);
}

tk_status tk_body_product_on_device(const tk_body_call *call) {
    const tk_strided *a = &call->inputs[0], *b = &call->inputs[1];
    int last = a->rank - 1;
    problem p = problem_of(2);
    if (tk_text_is_half(a->dtype) && is_plain(a) && is_plain(b) && a->size && b->size)
        return run_library_product(call);
    for (int i = 0; i < last - 1; i++) {
        tk_view_axis batch = {a->shape[i], {a->strides[i], b->strides[i]}};
        tk_view_axes_add(&p.kept, &batch);
    }
    tk_view_axis rows = {a->shape[last - 1], {a->strides[last - 1], 0}};
    tk_view_axis columns = {b->shape[last], {0, b->strides[last]}};
    tk_view_axis depth = {a->shape[last], {a->strides[last], b->strides[last - 1]}};
    tk_view_axes_add(&p.kept, &rows);
    tk_view_axes_add(&p.kept, &columns);
    tk_view_axes_add(&p.reduced, &depth);
    return run(call, TK_OP_product, &p);
}
