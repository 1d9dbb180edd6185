/* Every public function that takes a value of an enum, or flags, refuses one that is none: with an
 * error that names argument and value where it gives a status, else with what its header says. The
 * values are those beside the range, far away, and those that a byte would cut to a good one. */
#include "support/kernel_files.h"
#include "tiki/analysis.h"
#include "tiki/bench.h"
#include "tiki/devices.h"
#include "tiki/emulator.h"
#include "tiki/kernel_op.h"
#include "tiki/layout_call.h"
#include "tiki/library_op.h"
#include "tiki/nn.h"
#include "tiki/optim.h"
#include "tiki/passes.h"
#include "tiki/train.h"

typedef struct world {
    tk_context *context;
    tk_kernel *kernel; /* in thread form */
} world;

/* ---- arrays ---- */

#define OF_ARRAY(name, call)                                                                       \
    static tk_status name(const world *w, int bad) {                                               \
        tk_array a = tk_ones(w->context, TK_SHAPE(4), TK_FLOAT32),                                 \
                 i = tk_zeros(w->context, TK_SHAPE(4), TK_INT32);                                  \
        (void)a, (void)i, (void)bad;                                                               \
        return tk_array_status(call);                                                              \
    }

#define CONTEXT w->context
#define SHAPE4 TK_SHAPE(4)
#define DTYPE (tk_dtype) bad
#define NO TK_NO_ARRAY

OF_ARRAY(from_data, tk_from_data(CONTEXT, (float[4]){0}, SHAPE4, DTYPE))
OF_ARRAY(from_memory, tk_from_memory(CONTEXT, (float[4]){0}, 16, SHAPE4, NULL, DTYPE, NULL, NULL))
OF_ARRAY(from_memory_on, tk_from_memory_on(CONTEXT, TK_DEFAULT_STREAM, (float[4]){0}, 16, SHAPE4,
                                           NULL, DTYPE, NULL, NULL))
OF_ARRAY(error_array, tk_error_array(CONTEXT, (tk_status)bad))
OF_ARRAY(zeros, tk_zeros(CONTEXT, SHAPE4, DTYPE))
OF_ARRAY(ones, tk_ones(CONTEXT, SHAPE4, DTYPE))
OF_ARRAY(full, tk_full(a, SHAPE4, DTYPE))
OF_ARRAY(arange, tk_arange(CONTEXT, 0, 4, 1, DTYPE))
OF_ARRAY(linspace, tk_linspace(CONTEXT, 0, 4, 4, true, DTYPE))
OF_ARRAY(eye, tk_eye(CONTEXT, 4, 4, 0, DTYPE))
OF_ARRAY(tri, tk_tri(CONTEXT, 4, 4, 0, DTYPE))
OF_ARRAY(astype, tk_astype(a, DTYPE))
OF_ARRAY(view, tk_view(a, DTYPE))
OF_ARRAY(from_fp8, tk_from_fp8(tk_to_fp8(a), DTYPE))
OF_ARRAY(dequantize, tk_dequantize(i, a, NO, 0, 0, "affine", NO, DTYPE))
OF_ARRAY(uniform, tk_random_uniform(CONTEXT, 0, 1, SHAPE4, DTYPE, NO))
OF_ARRAY(normal, tk_random_normal(CONTEXT, SHAPE4, DTYPE, 0, 1, NO))
OF_ARRAY(truncated_normal, tk_random_truncated_normal(CONTEXT, 0, 1, SHAPE4, DTYPE, NO))
OF_ARRAY(randint, tk_random_randint(CONTEXT, 0, 9, SHAPE4, DTYPE, NO))
OF_ARRAY(gumbel, tk_random_gumbel(CONTEXT, SHAPE4, DTYPE, NO))
OF_ARRAY(laplace, tk_random_laplace(CONTEXT, SHAPE4, DTYPE, 0, 1, NO))
OF_ARRAY(multivariate_normal,
         tk_random_multivariate_normal(a, tk_eye(CONTEXT, 4, 4, 0, TK_FLOAT32), SHAPE4, DTYPE, NO))
OF_ARRAY(slice_update, tk_slice_update(a, a, TK_AXES(0), TK_AXES(4), TK_AXES(1), (tk_mode)bad))
OF_ARRAY(scatter_nd,
         tk_scatter_nd(a, tk_expand_dims(a, TK_AXES(1)), &i, 1, TK_AXES(0), (tk_mode)bad))
OF_ARRAY(init_normal, tk_init_normal(CONTEXT, SHAPE4, DTYPE, 0, 1, NO))
OF_ARRAY(init_uniform, tk_init_uniform(CONTEXT, SHAPE4, DTYPE, 0, 1, NO))
OF_ARRAY(init_glorot_normal, tk_init_glorot_normal(CONTEXT, TK_SHAPE(2, 2), DTYPE, 1, NO))
OF_ARRAY(init_glorot_uniform, tk_init_glorot_uniform(CONTEXT, TK_SHAPE(2, 2), DTYPE, 1, NO))
OF_ARRAY(init_he_normal, tk_init_he_normal(CONTEXT, TK_SHAPE(2, 2), DTYPE, false, 1, NO))
OF_ARRAY(init_he_uniform, tk_init_he_uniform(CONTEXT, TK_SHAPE(2, 2), DTYPE, false, 1, NO))

#define REDUCTION (tk_reduction) bad
OF_ARRAY(cross_entropy, tk_loss_cross_entropy(tk_ones(CONTEXT, TK_SHAPE(4, 3), TK_FLOAT32), i, NO,
                                              -1, 0, REDUCTION))
OF_ARRAY(binary_cross_entropy, tk_loss_binary_cross_entropy(a, a, NO, true, REDUCTION))
OF_ARRAY(l1, tk_loss_l1(a, a, REDUCTION))
OF_ARRAY(mse, tk_loss_mse(a, a, REDUCTION))
OF_ARRAY(smooth_l1, tk_loss_smooth_l1(a, a, 1, REDUCTION))
OF_ARRAY(huber, tk_loss_huber(a, a, 1, REDUCTION))
OF_ARRAY(log_cosh, tk_loss_log_cosh(a, a, REDUCTION))
OF_ARRAY(nll, tk_loss_nll(tk_ones(CONTEXT, TK_SHAPE(4, 3), TK_FLOAT32), i, -1, REDUCTION))
OF_ARRAY(kl_div, tk_loss_kl_div(a, a, -1, REDUCTION))
OF_ARRAY(gaussian_nll, tk_loss_gaussian_nll(a, a, a, true, 1e-6, REDUCTION))
OF_ARRAY(hinge, tk_loss_hinge(a, a, REDUCTION))
OF_ARRAY(cosine_similarity, tk_loss_cosine_similarity(a, a, -1, 1e-8, REDUCTION))
OF_ARRAY(margin_ranking, tk_loss_margin_ranking(a, a, a, 0, REDUCTION))
OF_ARRAY(triplet, tk_loss_triplet(a, a, a, -1, 2, 1, 1e-6, REDUCTION))

/* ---- errors, models, training ---- */

static tk_status error_set(const world *w, int bad) {
    (void)w;
    return tk_error_set((tk_status)bad, "never seen");
}

static tk_status optimizer(const world *w, int bad) {
    tk_optimizer_options options = tk_optimizer_defaults(TK_OPTIMIZER_ADAMW);
    tk_optimizer *made = NULL;
    options.kind = (tk_optimizer_kind)bad;
    return tk_optimizer_create(w->context, &options, &made);
}

static tk_status model(const world *w, int bad) {
    (void)w;
    tk_model_config config = tk_model_config_make((tk_model_family)bad, 1, 1, 8, 8);
    return tk_model_config_check(&config);
}

static tk_status trainer(const world *w, tk_decay decay, tk_dtype dtype) {
    unsigned char bytes[64] = {0};
    tk_model_config config = tk_model_config_make(TK_MODEL_GPT2, 1, 1, 8, 8);
    tk_train_options options = tk_train_defaults(&config);
    tk_trainer *made = NULL;
    options.decay = decay;
    options.dtype = dtype;
    options.decay_steps = 1;
    tk_status status = tk_trainer_create(w->context, &options, bytes, sizeof bytes, &made);
    tk_trainer_free(made);
    return status;
}
static tk_status decay(const world *w, int bad) { return trainer(w, (tk_decay)bad, TK_FLOAT32); }
static tk_status train_dtype(const world *w, int bad) {
    return trainer(w, TK_DECAY_COSINE, (tk_dtype)bad);
}

static tk_status run_dtype(const world *w, int bad) {
    tk_model_config config = tk_model_config_make(TK_MODEL_GPT2, 1, 1, 8, 8);
    tk_model_run run = {.cast = true, .dtype = (tk_dtype)bad};
    tk_tree *parameters = tk_tree_new();
    assert_ok(tk_model_init(w->context, &config, 0, parameters));
    tk_array tokens = tk_zeros(w->context, TK_SHAPE(1, 4), TK_INT32);
    tk_status status = tk_array_status(tk_model_forward(&config, parameters, tokens, &run));
    tk_tree_free(parameters);
    return status;
}

/* ---- kernels ---- */

static tk_status finish(tk_kernel_builder *b) {
    tk_status status = tk_kernel_builder_status(b);
    tk_kernel_builder_release(b);
    return status;
}

#define OF_BUILDER(name, statement)                                                                \
    static tk_status name(const world *w, int bad) {                                               \
        (void)w;                                                                                   \
        tk_kernel_builder *b = tk_kernel_builder_create("k", TK_KFORM_THREAD);                     \
        statement;                                                                                 \
        return finish(b);                                                                          \
    }

static tk_kvalue *pointer(tk_kernel_builder *b, int access) {
    return tk_kernel_add_param(
        b, &(tk_kparam){"x", tk_ktype_pointer(TK_K_F32, TK_KS_GLOBAL), (tk_kaccess)access, 16, -1});
}

static void add_map(tk_kernel_builder *b, int element, int swizzle, int lines) {
    int32_t extent = tk_kexpr_const(b, 64);
    tk_kmap map = {.name = "m",
                   .base = pointer(b, TK_KACCESS_READ),
                   .element = (tk_kscalar)element,
                   .rank = 1,
                   .extent = {extent},
                   .box = {64},
                   .element_stride = {1},
                   .swizzle = swizzle,
                   .l2_bytes = lines};
    tk_kernel_add_map(b, &map);
}

static tk_status builder(const world *w, int bad) {
    (void)w;
    return finish(tk_kernel_builder_create("k", (tk_kform)bad));
}
OF_BUILDER(builder_fail, tk_kernel_builder_fail(b, (tk_status)bad, "never seen"))
OF_BUILDER(device_fact, tk_kexpr_device(b, (tk_kfact)bad))
OF_BUILDER(expression,
           tk_kexpr_binary(b, (tk_kexpr_kind)bad, tk_kexpr_const(b, 1), tk_kexpr_const(b, 2)))
OF_BUILDER(access_of, pointer(b, bad))
OF_BUILDER(relation,
           tk_kernel_require(b, tk_kexpr_const(b, 1), (tk_krelation)bad, tk_kexpr_const(b, 2)))
OF_BUILDER(map_element, add_map(b, bad, 0, 0))
OF_BUILDER(map_swizzle, add_map(b, TK_K_F32, bad, 0))
OF_BUILDER(map_lines, add_map(b, TK_K_F32, 0, bad))
OF_BUILDER(view_element, tk_ktype_of_view(b, (tk_kscalar)bad, TK_KS_GLOBAL, "4:1"))
OF_BUILDER(view_space, tk_ktype_of_view(b, TK_K_F32, (tk_kspace)bad, "4:1"))
OF_BUILDER(shared_element, tk_ktype_of_shared(b, (tk_kscalar)bad, "4:1"))
OF_BUILDER(registers_element, tk_ktype_of_registers(b, (tk_kscalar)bad, "4:1", NULL))
OF_BUILDER(integer, tk_kernel_int(b, (tk_kscalar)bad, 1))
OF_BUILDER(real, tk_kernel_float(b, (tk_kscalar)bad, 1))
OF_BUILDER(opcode, tk_kernel_op(b, (tk_kopcode)bad, 0, NULL, 0, NULL, (tk_ktype){0}))
OF_BUILDER(attribute, tk_kernel_op(b, TK_KOP_thread_index, 0, NULL, 1,
                                   &(tk_kattr){(tk_kattr_id)bad, 0, NULL}, (tk_ktype){0}))
OF_BUILDER(scalar_type,
           tk_kernel_add_param(b, &(tk_kparam){"n", tk_ktype_scalar((tk_kscalar)bad), 0, 0, -1}))
OF_BUILDER(lanes,
           tk_kernel_add_param(b, &(tk_kparam){"n", tk_ktype_vector(TK_K_F32, bad), 0, 0, -1}))
OF_BUILDER(pointer_element,
           tk_kernel_add_param(b, &(tk_kparam){"n", tk_ktype_pointer((tk_kscalar)bad, TK_KS_GLOBAL),
                                               TK_KACCESS_READ, 16, -1}))
OF_BUILDER(pointer_space,
           tk_kernel_add_param(b, &(tk_kparam){"n", tk_ktype_pointer(TK_K_F32, (tk_kspace)bad),
                                               TK_KACCESS_READ, 16, -1}))

static tk_status lower_form(const world *w, int bad) {
    tk_kernel *out = NULL;
    return tk_kernel_lower(w->kernel, (tk_kform)bad, 0, &out);
}
static tk_status lower_flags(const world *w, int bad) {
    tk_kernel *out = NULL;
    return tk_kernel_lower(w->kernel, TK_KFORM_THREAD, bad, &out);
}
static tk_status pass(const world *w, int bad) {
    tk_kernel *out = NULL;
    return tk_kernel_pass(w->kernel, (tk_kpass)bad, &out);
}
static tk_status print_flags(const world *w, int bad) {
    char *text = NULL;
    return tk_kernel_print(w->kernel, bad, &text);
}

#define OF_BUILD(name, field, call)                                                                \
    static tk_status name(const world *w, int bad) {                                               \
        tk_artifact *artifact = NULL;                                                              \
        char *text = NULL;                                                                         \
        tk_build how = {0};                                                                        \
        how.field = bad;                                                                           \
        (void)artifact, (void)text;                                                                \
        return call;                                                                               \
    }
OF_BUILD(build_target, target, tk_kernel_build(w->kernel, &how, &artifact))
OF_BUILD(build_emit, emit, tk_kernel_build(w->kernel, &how, &artifact))
OF_BUILD(ptx_emit, emit, tk_kernel_build_ptx(w->kernel, &how, &artifact))
OF_BUILD(cute_emit, emit, tk_kernel_build_cute(w->kernel, &how, &artifact))
OF_BUILD(cached_target, target, tk_kernel_build_cached(w->kernel, &how, NULL, &artifact, NULL))
OF_BUILD(cached_emit, emit, tk_kernel_build_cached(w->kernel, &how, NULL, &artifact, NULL))
OF_BUILD(explain_target, target, tk_kernel_cache_explain(w->kernel, &how, NULL, &text))
OF_BUILD(explain_emit, emit, tk_kernel_cache_explain(w->kernel, &how, NULL, &text))

/* ---- launches and the library ---- */

static tk_status launch(const world *w, tk_bind_kind kind, tk_dtype dtype) {
    tk_array x = tk_ones(w->context, TK_SHAPE(4), TK_FLOAT32), inputs[] = {x, x};
    tk_bind binds[] = {tk_bind_input(0), tk_bind_input(1), tk_bind_output(0), tk_bind_integer(4)};
    const tk_launch_output output = {dtype, TK_SHAPE(4), 0};
    tk_arrays out = {0};
    binds[3].kind = kind;
    tk_launch_spec spec = {sizeof spec, w->kernel, 4, binds, 1, &output, NULL};
    tk_status status = tk_launch(w->context, &spec, inputs, 2, &out);
    tk_arrays_clear(&out);
    return status;
}
static tk_status bind_kind(const world *w, int bad) {
    return launch(w, (tk_bind_kind)bad, TK_FLOAT32);
}
static tk_status output_dtype(const world *w, int bad) {
    return launch(w, TK_BIND_INTEGER, (tk_dtype)bad);
}

static tk_status same(void *self, const tk_array *args, size_t n_args, tk_arrays *results) {
    (void)self, (void)n_args;
    return tk_arrays_push(results, args[0]);
}
static tk_status batching(const world *w, int bad) {
    tk_array x = tk_ones(w->context, TK_SHAPE(4), TK_FLOAT32);
    tk_kernel_rules rules = {.size = sizeof rules, .forward = same, .batching = (tk_batching)bad};
    tk_arrays out = {0};
    return tk_kernel_call(w->context, &rules, &x, 1, &out);
}

static tk_library_tensor square(int element) {
    return (tk_library_tensor){
        .element = (tk_kscalar)element, .rank = 2, .shape = {64, 64}, .stride = {64, 1}};
}
static tk_status plan(tk_library_id id, int element) {
    tk_library_tensor tensors[] = {square(element), square(element)};
    tk_library_plan *made = NULL;
    return tk_library_plan_create(id, 2, tensors, 0, NULL, NULL, &made);
}
static tk_status plan_id(const world *w, int bad) {
    (void)w;
    return plan((tk_library_id)bad, TK_K_F32);
}
static tk_status plan_element(const world *w, int bad) {
    (void)w;
    return plan(TK_LIBRARY_TRANSPOSE, bad);
}
static tk_status schedule_default(const world *w, int bad) {
    (void)w;
    tk_library_tensor tensors[] = {square(TK_K_F32), square(TK_K_F32)};
    tk_library_schedule schedule;
    return tk_library_schedule_default((tk_library_id)bad, 2, tensors, &schedule);
}
static tk_status schedule_print(const world *w, int bad) {
    (void)w;
    char *text = NULL;
    return tk_library_schedule_print((tk_library_id)bad, &(tk_library_schedule){0}, &text);
}
static tk_status schedule_read(const world *w, int bad) {
    (void)w;
    return tk_library_schedule_read((tk_library_id)bad, "", &(tk_library_schedule){0});
}
static tk_status schedule_for(const world *w, int bad) {
    tk_array x = tk_ones(w->context, TK_SHAPE(4, 4), TK_FLOAT32);
    tk_library_schedule schedule;
    return tk_library_schedule_for((tk_library_id)bad, &x, 1, &schedule);
}

static tk_status bench(int id, int element) {
    tk_bench_spec spec = {.size = sizeof spec,
                          .id = (tk_library_id)id,
                          .element = (tk_kscalar)element,
                          .rank = 2,
                          .shape = {64, 64}};
    tk_bench_result result;
    return tk_bench_kernel(&spec, &result);
}
static tk_status bench_id(const world *w, int bad) { return (void)w, bench(bad, TK_K_F32); }
static tk_status bench_element(const world *w, int bad) {
    return (void)w, bench(TK_LIBRARY_TRANSPOSE, bad);
}

static tk_status layout_kind(const world *w, int bad) {
    tk_layout_value value = {.kind = (tk_value_kind)bad}, out;
    return (void)w, tk_layout_call("size", &value, 1, &out);
}

/* ---- the table ---- */

typedef struct row {
    const char *function;
    tk_status (*call)(const world *w, int bad);
    int count;            /* values from 0, the first that is none */
    tk_status code;       /* what it gives */
    const char *argument; /* in its message */
} row;

#define BAD TK_INVALID_ARGUMENT
#define OF_DTYPE(name)                                                                             \
    { #name, name, TK_DTYPE_COUNT, TK_DTYPE_ERROR, "`dtype`" }
/* TK_DTYPE_COUNT itself stands for none. */
#define OR_NONE(name)                                                                              \
    { #name, name, TK_DTYPE_COUNT + 1, TK_DTYPE_ERROR, "`dtype`" }
#define OF_LOSS(name)                                                                              \
    { #name, name, TK_REDUCE_SUM + 1, BAD, "`reduction`" }
#define TYPE_OF(name, count, word)                                                                 \
    { #name, name, count, TK_DTYPE_ERROR, word }

static const row rows[] = {
    OF_DTYPE(from_data),
    OF_DTYPE(from_memory),
    OF_DTYPE(from_memory_on),
    OF_DTYPE(zeros),
    OF_DTYPE(ones),
    OR_NONE(full),
    OF_DTYPE(arange),
    OF_DTYPE(linspace),
    OF_DTYPE(eye),
    OF_DTYPE(tri),
    OF_DTYPE(astype),
    OF_DTYPE(view),
    OF_DTYPE(from_fp8),
    OR_NONE(dequantize),
    OF_DTYPE(uniform),
    OF_DTYPE(normal),
    OF_DTYPE(truncated_normal),
    OF_DTYPE(randint),
    OF_DTYPE(gumbel),
    OF_DTYPE(laplace),
    OF_DTYPE(multivariate_normal),
    OF_DTYPE(init_normal),
    OF_DTYPE(init_uniform),
    OF_DTYPE(init_glorot_normal),
    OF_DTYPE(init_glorot_uniform),
    OF_DTYPE(init_he_normal),
    OF_DTYPE(init_he_uniform),
    OF_DTYPE(train_dtype),
    OF_DTYPE(run_dtype),
    OF_DTYPE(output_dtype),
    {"slice_update", slice_update, TK_MODE_COUNT, BAD, "`mode`"},
    {"scatter_nd", scatter_nd, TK_MODE_COUNT, BAD, "`mode`"},
    OF_LOSS(cross_entropy),
    OF_LOSS(binary_cross_entropy),
    OF_LOSS(l1),
    OF_LOSS(mse),
    OF_LOSS(smooth_l1),
    OF_LOSS(huber),
    OF_LOSS(log_cosh),
    OF_LOSS(nll),
    OF_LOSS(kl_div),
    OF_LOSS(gaussian_nll),
    OF_LOSS(hinge),
    OF_LOSS(cosine_similarity),
    OF_LOSS(margin_ranking),
    OF_LOSS(triplet),
    {"error_array", error_array, 1000, BAD, "`code`"},
    {"error_set", error_set, 1000, BAD, "`code`"},
    {"optimizer", optimizer, TK_OPTIMIZER_COUNT, BAD, "`kind`"},
    {"model", model, TK_MODEL_LLAMA + 1, BAD, "`family`"},
    {"decay", decay, TK_DECAY_LINEAR + 1, BAD, "`decay`"},
    {"builder", builder, TK_KFORM_THREAD + 1, BAD, "`form`"},
    {"builder_fail", builder_fail, 1000, BAD, "`code`"},
    {"device_fact", device_fact, TK_KFACT_COUNT, BAD, "`fact`"},
    {"expression", expression, TK_KX_COUNT, BAD, "`kind`"},
    {"access_of", access_of, TK_KACCESS_READ_WRITE + 1, BAD, "`access`"},
    {"relation", relation, TK_KR_COUNT, BAD, "`relation`"},
    {"map_element", map_element, TK_KSCALAR_COUNT, BAD, "`element`"},
    {"map_swizzle", map_swizzle, 129, BAD, "swizzle"},
    {"map_lines", map_lines, 257, BAD, "l2_bytes"},
    TYPE_OF(view_element, TK_KSCALAR_COUNT, "scalar"),
    TYPE_OF(view_space, TK_KSPACE_COUNT, "space"),
    TYPE_OF(shared_element, TK_KSCALAR_COUNT, "scalar"),
    TYPE_OF(registers_element, TK_KSCALAR_COUNT, "scalar"),
    TYPE_OF(scalar_type, TK_KSCALAR_COUNT, "scalar"),
    TYPE_OF(lanes, 17, "f32"),
    TYPE_OF(pointer_element, TK_KSCALAR_COUNT, "scalar"),
    TYPE_OF(pointer_space, TK_KSPACE_COUNT, "space"),
    {"integer", integer, TK_KSCALAR_COUNT, BAD, "`scalar`"},
    {"real", real, TK_KSCALAR_COUNT, BAD, "`scalar`"},
    {"opcode", opcode, TK_KOP_COUNT, BAD, "`code`"},
    {"attribute", attribute, TK_KATTR_COUNT, BAD, "`id`"},
    {"lower_form", lower_form, TK_KFORM_THREAD + 1, BAD, "`form`"},
    {"lower_flags", lower_flags, (TK_KLOWER_OPTIMISE | TK_KLOWER_FUSE) + 1, BAD, "`flags`"},
    {"pass", pass, TK_KPASS_COUNT, BAD, "`pass`"},
    {"print_flags", print_flags, TK_KERNEL_LINES + 1, BAD, "`flags`"},
    {"build_target", build_target, TK_TARGET_COUNT, BAD, "`target`"},
    {"build_emit", build_emit, TK_EMIT_BINARY + 1, BAD, "`emit`"},
    {"ptx_emit", ptx_emit, TK_EMIT_BINARY + 1, BAD, "`emit`"},
    {"cute_emit", cute_emit, TK_EMIT_BINARY + 1, BAD, "`emit`"},
    {"cached_target", cached_target, TK_TARGET_COUNT, BAD, "`target`"},
    {"cached_emit", cached_emit, TK_EMIT_BINARY + 1, BAD, "`emit`"},
    {"explain_target", explain_target, TK_TARGET_COUNT, BAD, "`target`"},
    {"explain_emit", explain_emit, TK_EMIT_BINARY + 1, BAD, "`emit`"},
    {"bind_kind", bind_kind, TK_BIND_FLOAT + 1, BAD, "`kind`"},
    {"batching", batching, TK_BATCHING_LEADING + 1, BAD, "`batching`"},
    {"plan_id", plan_id, TK_LIBRARY_COUNT, BAD, "`id`"},
    {"plan_element", plan_element, TK_KSCALAR_COUNT, BAD, "`element`"},
    {"schedule_default", schedule_default, TK_LIBRARY_COUNT, BAD, "`id`"},
    {"schedule_print", schedule_print, TK_LIBRARY_COUNT, BAD, "`id`"},
    {"schedule_read", schedule_read, TK_LIBRARY_COUNT, BAD, "`id`"},
    {"schedule_for", schedule_for, TK_LIBRARY_COUNT, BAD, "`id`"},
    {"layout_kind", layout_kind, TK_VALUE_TILE_AND_LAYOUT + 1, BAD, "`kind`"},
    {"bench_id", bench_id, TK_LIBRARY_COUNT, BAD, "`id`"},
    {"bench_element", bench_element, TK_KSCALAR_COUNT, BAD, "`element`"},
};

static void check_row(const world *w, const row *r, int bad) {
    char value[24];
    tk_scope scope = tk_scope_open(w->context);
    tk_status status = r->call(w, bad);
    snprintf(value, sizeof value, strstr(r->argument, "flags") ? "0x%x" : "%d", bad);
    if (status != r->code || !strstr(tk_error_message(), r->argument))
        fail_msg("%s of %d: %s (%s), expected %s about %s", r->function, bad,
                 tk_status_name(status), status == TK_OK ? "" : tk_error_message(),
                 tk_status_name(r->code), r->argument);
    if (r->argument[0] == '`' && !strstr(tk_error_message(), value))
        fail_msg("%s of %d does not name it: %s", r->function, bad, tk_error_message());
    tk_scope_close(scope);
}

static void values_that_are_none(void **state) {
    (void)state;
    world w = {make_context(), parse_file("examples/kernels/vector_add.tk")};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const int bad[] = {rows[i].count, -1, -256, 1 << 12, INT32_MAX, INT32_MIN};
        for (size_t j = 0; j < sizeof bad / sizeof *bad; j++) check_row(&w, &rows[i], bad[j]);
    }
    tk_kernel_release(w.kernel);
    tk_context_release(w.context);
}

/* Functions that give no status say so by what they give. */
static void words_of_values_that_are_none(void **state) {
    (void)state;
    tk_kernel *kernel = parse_file("examples/kernels/vector_add.tk");
    tk_artifact *artifact;
    assert_ok(tk_kernel_build(kernel, NULL, &artifact));
    const int bad[] = {-1, -256, 1 << 12, INT32_MAX, INT32_MIN};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        int b = bad[i];
        const char *texts[] = {tk_kuniform_text((tk_kuniform)b),
                               tk_dtype_name((tk_dtype)b),
                               tk_dtype_text((tk_dtype)b),
                               tk_kfinding_name((tk_kfinding_kind)b),
                               tk_kfinding_meaning((tk_kfinding_kind)b),
                               tk_kscalar_text((tk_kscalar)b),
                               tk_kspace_text((tk_kspace)b),
                               tk_kopcode_name((tk_kopcode)b),
                               tk_kopcode_doc((tk_kopcode)b),
                               tk_library_name((tk_library_id)b),
                               tk_library_doc((tk_library_id)b),
                               tk_kpass_name((tk_kpass)b),
                               tk_kpass_doc((tk_kpass)b),
                               tk_target_name((tk_target)b)};
        for (size_t t = 0; t < sizeof texts / sizeof *texts; t++)
            assert_string_equal(texts[t], "?");
        assert_string_equal(tk_status_name((tk_status)b), "unknown status");
        assert_null(tk_optimizer_name((tk_optimizer_kind)b));
        assert_null(tk_artifact_stage(artifact, (tk_stage)b));
        assert_null(tk_kopcode_operand((tk_kopcode)b, 0, NULL));
        assert_null(tk_kopcode_attr((tk_kopcode)b, 0, NULL));
        assert_int_equal(tk_kopcode_operands((tk_kopcode)b), -1);
        assert_int_equal(tk_kopcode_attrs((tk_kopcode)b), -1);
        assert_false(tk_kopcode_is_variadic((tk_kopcode)b));
        assert_false(tk_kopcode_states_type((tk_kopcode)b));
        assert_int_equal(tk_kscalar_bytes((tk_kscalar)b), 0);
        assert_int_equal(tk_dtype_size((tk_dtype)b), 0);
        assert_int_equal(tk_library_tensors((tk_library_id)b), 0);
        assert_int_equal(tk_library_numbers((tk_library_id)b), 0);
        assert_int_equal(tk_target_use((tk_target)b), TK_TARGET_PTX);
        /* these have no answer, but no fault either */
        (void)tk_dtype_kind((tk_dtype)b);
        (void)tk_dtype_promote((tk_dtype)b, TK_FLOAT32);
        (void)tk_dtype_promote(TK_FLOAT32, (tk_dtype)b);
    }
    tk_artifact_release(artifact);
    tk_kernel_release(kernel);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_that_are_none),
        cmocka_unit_test(words_of_values_that_are_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
