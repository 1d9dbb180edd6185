#include "support/library_run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "tiki/emulator.h"
#include "tiki/target.h"

enum { MOST = 8 };

/* ---- tensors ---- */

lib_tensor lib_make(tk_kscalar element, int rank, const int64_t *shape, int64_t pad, int64_t skip) {
    lib_tensor tensor = {.of = {.element = element, .rank = rank}};
    int64_t step = 1, bytes = tk_kscalar_bytes(element);
    for (int i = rank - 1; i >= 0; i--) {
        tensor.of.shape[i] = shape[i];
        tensor.of.stride[i] = step;
        step *= shape[i] + (i == rank - 1 ? pad : 0);
    }
    tensor.offset = (size_t)(skip * bytes);
    tensor.bytes = (size_t)((skip + step) * bytes);
    tensor.of.align = 16;
    while (tensor.offset % (size_t)tensor.of.align) tensor.of.align /= 2;
    tensor.memory = aligned_alloc(256, (tensor.bytes + 511) / 256 * 256);
    tensor.copy = malloc(tensor.bytes + 1);
    assert_true(tensor.memory && tensor.copy);
    memset(tensor.memory, 0x5a, tensor.bytes);
    for (int64_t i = 0; i < lib_size(&tensor); i++) lib_set(&tensor, i, 0);
    return tensor;
}

void lib_free(lib_tensor *tensor) {
    free(tensor->memory);
    free(tensor->copy);
}

tk_library_tensor lib_permuted(const tk_library_tensor *tensor, const int *order) {
    tk_library_tensor made = *tensor;
    for (int i = 0; i < tensor->rank; i++) {
        made.shape[i] = tensor->shape[order[i]];
        made.stride[i] = tensor->stride[order[i]];
    }
    return made;
}

int64_t lib_size(const lib_tensor *tensor) {
    int64_t size = 1;
    for (int i = 0; i < tensor->of.rank; i++) size *= tensor->of.shape[i];
    return size;
}

static int64_t place(const lib_tensor *tensor, int64_t index) {
    int64_t offset = 0;
    for (int i = tensor->of.rank - 1; i >= 0; i--) {
        offset += index % tensor->of.shape[i] * tensor->of.stride[i];
        index /= tensor->of.shape[i];
    }
    return (int64_t)tensor->offset + offset * tk_kscalar_bytes(tensor->of.element);
}

static double read_element(tk_kscalar element, const void *at) {
    uint16_t half;
    float narrow;
    double wide;
    int64_t integer = 0;
    switch (element) {
    case TK_K_F16:
    case TK_K_BF16:
        memcpy(&half, at, 2);
        return (double)(element == TK_K_F16 ? tk_f16_to_f32(half) : tk_bf16_to_f32(half));
    case TK_K_F32:
        return memcpy(&narrow, at, 4), (double)narrow;
    case TK_K_F64:
        return memcpy(&wide, at, 8), wide;
    default:
        memcpy(&integer, at, (size_t)tk_kscalar_bytes(element));
        return (double)integer;
    }
}

double lib_get(const lib_tensor *tensor, int64_t index) {
    return read_element(tensor->of.element, tensor->memory + place(tensor, index));
}

void lib_set(lib_tensor *tensor, int64_t index, double value) {
    unsigned char *at = tensor->memory + place(tensor, index);
    float narrow = (float)value;
    uint16_t half = tensor->of.element == TK_K_F16 ? tk_f32_to_f16(narrow) : tk_f32_to_bf16(narrow);
    int64_t integer = tensor->of.element <= TK_K_I64 ? (int64_t)value : 0;
    switch (tensor->of.element) {
    case TK_K_F16:
    case TK_K_BF16:
        memcpy(at, &half, 2);
        break;
    case TK_K_F32:
        memcpy(at, &narrow, 4);
        break;
    case TK_K_F64:
        memcpy(at, &value, 8);
        break;
    default:
        memcpy(at, &integer, (size_t)tk_kscalar_bytes(tensor->of.element));
    }
}

/* ---- numbers ---- */

uint64_t lib_random(uint64_t *state) {
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

int64_t lib_between(uint64_t *state, int64_t low, int64_t high) {
    return low + (int64_t)(lib_random(state) % (uint64_t)(high - low + 1));
}

void lib_draw(lib_tensor *tensor, uint64_t seed) {
    uint64_t state = seed;
    for (int64_t i = 0; i < lib_size(tensor); i++) {
        double sum = 0;
        for (int k = 0; k < 3; k++) sum += (double)(lib_random(&state) >> 11) * 0x1p-53;
        lib_set(tensor, i, 2 * sum - 3);
    }
}

double lib_epsilon(tk_kscalar element) {
    return element == TK_K_F16 ? 0x1p-10 : element == TK_K_BF16 ? 0x1p-7 : 0x1p-23;
}

static tk_dtype dtype_of(tk_kscalar element) {
    tk_dtype dtype;
    assert_ok(tk_dtype_parse(tk_kscalar_text(element), &dtype));
    return dtype;
}

tk_array lib_array(tk_context *context, const lib_tensor *tensor) {
    size_t bytes = (size_t)tk_kscalar_bytes(tensor->of.element);
    int64_t size = lib_size(tensor);
    unsigned char *packed = malloc((size_t)size * bytes + 1);
    assert_non_null(packed);
    for (int64_t i = 0; i < size; i++)
        memcpy(packed + (size_t)i * bytes, tensor->memory + place(tensor, i), bytes);
    tk_shape shape = tk_axes_from(tensor->of.rank, tensor->of.shape);
    tk_array array = tk_from_data(context, packed, shape, dtype_of(tensor->of.element));
    free(packed);
    return array;
}

/* ---- plans ---- */

static tk_library_plan *plan_of(tk_library_id id, size_t n_tensors, lib_tensor *const *tensors,
                                size_t n_numbers, const double *numbers, const char *schedule) {
    tk_library_tensor of[MOST];
    tk_library_schedule chosen;
    tk_library_plan *plan = NULL;
    for (size_t i = 0; i < n_tensors; i++)
        of[i] = tensors[i] ? tensors[i]->of : (tk_library_tensor){.rank = -1};
    assert_ok(tk_library_schedule_default(id, n_tensors, of, &chosen));
    if (schedule) assert_ok(tk_library_schedule_read(id, schedule, &chosen));
    assert_ok(tk_library_plan_create(id, n_tensors, of, n_numbers, numbers, &chosen, &plan));
    return plan;
}

/* Gives how many conflicts of shared memory there were. */
static uint64_t launch_one(const tk_library_launch *launch, lib_tensor *const *tensors,
                           unsigned char *const *scratch, const tk_library_plan *plan,
                           uint64_t seed) {
    uint64_t conflicts = 0;
    tk_kargument *arguments = calloc(launch->n_arguments, sizeof *arguments);
    tk_kbuffer *buffers = calloc(launch->n_arguments, sizeof *buffers);
    tk_emulation *emulation = NULL;
    char *text;
    assert_true(arguments && buffers);
    for (size_t i = 0; i < launch->n_arguments; i++) {
        const tk_library_argument *argument = &launch->arguments[i];
        size_t at = argument->index;
        arguments[i].bits = argument->bits;
        if (argument->kind == TK_LIBRARY_TENSOR)
            buffers[i] = (tk_kbuffer){tensors[at]->memory, tensors[at]->bytes, tensors[at]->offset};
        if (argument->kind == TK_LIBRARY_SCRATCH)
            buffers[i] =
                (tk_kbuffer){scratch[at], (size_t)tk_library_plan_scratch_bytes(plan, at), 0};
    }
    tk_kemulate how = {.seed = seed,
                       .n_arguments = launch->n_arguments,
                       .arguments = arguments,
                       .buffers = buffers};
    assert_ok(tk_kernel_emulate(launch->kernel, &how, &emulation));
    assert_ok(tk_emulation_text(emulation, &text));
    assert_string_equal(text, "");
    tk_kernel_text_free(text);
    for (size_t i = 0; i < tk_emulation_counts(emulation); i++) {
        tk_kcount count;
        assert_ok(tk_emulation_count(emulation, i, &count));
        conflicts += count.conflicts;
    }
    tk_emulation_release(emulation);
    free(arguments);
    free(buffers);
    return conflicts;
}

/* Elements are put back from the copy, so what still differs is a guard. */
static void assert_guards(lib_tensor *tensor) {
    size_t bytes = (size_t)tk_kscalar_bytes(tensor->of.element);
    for (int64_t i = 0; i < lib_size(tensor); i++)
        memcpy(tensor->copy + place(tensor, i), tensor->memory + place(tensor, i), bytes);
    assert_memory_equal(tensor->copy, tensor->memory, tensor->bytes);
}

uint64_t lib_run(tk_library_id id, size_t n_tensors, lib_tensor *const *tensors, size_t n_numbers,
                 const double *numbers, const char *schedule, uint64_t seed) {
    uint64_t conflicts = 0;
    tk_library_plan *plan = plan_of(id, n_tensors, tensors, n_numbers, numbers, schedule);
    unsigned char *scratch[MOST] = {0};
    for (size_t i = 0; i < tk_library_plan_scratches(plan); i++) {
        scratch[i] = malloc((size_t)tk_library_plan_scratch_bytes(plan, i) + 1);
        assert_non_null(scratch[i]);
        memset(scratch[i], 0xff, (size_t)tk_library_plan_scratch_bytes(plan, i));
    }
    for (size_t i = 0; i < n_tensors; i++)
        if (tensors[i]) memcpy(tensors[i]->copy, tensors[i]->memory, tensors[i]->bytes);
    for (size_t i = 0; i < tk_library_plan_launches(plan); i++) {
        tk_library_launch launch;
        assert_ok(tk_library_plan_launch(plan, i, &launch));
        conflicts += launch_one(&launch, tensors, scratch, plan, seed);
    }
    for (size_t i = 0; i < n_tensors; i++)
        if (tensors[i]) assert_guards(tensors[i]);
    for (int i = 0; i < MOST; i++) free(scratch[i]);
    tk_library_plan_release(plan);
    return conflicts;
}

static void assert_reads_back(const tk_kernel *kernel) {
    char *text;
    tk_kernel *again = NULL;
    assert_ok(tk_kernel_print(kernel, 0, &text));
    assert_ok(tk_kernel_parse(text, NULL, &again));
    assert_true(tk_kernel_equal(kernel, again));
    tk_kernel_release(again);
    tk_kernel_text_free(text);
}

static bool assemble_one(const tk_kernel *kernel, const char *arch) {
    tk_build how = {.arch = arch, .emit = TK_EMIT_BINARY};
    tk_artifact *artifact = NULL;
    tk_report report;
    tk_status status = tk_kernel_build_ptx(kernel, &how, &artifact);
    if (status == TK_UNSUPPORTED && strstr(tk_error_message(), "no ptxas")) return false;
    assert_ok(status);
    assert_ok(tk_artifact_report(artifact, &report));
    assert_int_equal(report.spill_stores, 0);
    assert_true(report.blocks_of_an_sm > 0);
    tk_artifact_release(artifact);
    return true;
}

/* The CuTe target's binary has the launch contract too, which the build compares. */
static void compile_by_cute(const tk_kernel *kernel) {
    tk_artifact *artifact = NULL;
    tk_build how = {.emit = TK_EMIT_BINARY};
    assert_ok(tk_kernel_build_cute(kernel, &how, &artifact));
    tk_artifact_release(artifact);
}

bool lib_assemble(tk_library_id id, size_t n_tensors, lib_tensor *const *tensors, size_t n_numbers,
                  const double *numbers, const char *schedule) {
    tk_library_plan *plan = plan_of(id, n_tensors, tensors, n_numbers, numbers, schedule);
    bool assembled = true;
    for (size_t i = 0; i < tk_library_plan_launches(plan) && assembled; i++) {
        tk_library_launch launch;
        assert_ok(tk_library_plan_launch(plan, i, &launch));
        assert_reads_back(launch.kernel);
        assembled = (id == TK_LIBRARY_HOPPER_GEMM || assemble_one(launch.kernel, "sm_80")) &&
                    assemble_one(launch.kernel, "sm_90a");
        if (getenv("TIKI_CUTE_PYTHON")) compile_by_cute(launch.kernel);
    }
    tk_library_plan_release(plan);
    return assembled;
}

void lib_assert_near(const lib_tensor *tensor, tk_array expected, double relative,
                     double absolute) {
    int64_t size = lib_size(tensor);
    size_t bytes = (size_t)tk_kscalar_bytes(tensor->of.element);
    unsigned char *values = malloc((size_t)size * bytes + 1);
    assert_non_null(values);
    assert_ok(tk_copy_out(expected, values, (size_t)size * bytes));
    for (int64_t i = 0; i < size; i++) {
        double want = read_element(tensor->of.element, values + (size_t)i * bytes),
               have = lib_get(tensor, i);
        bool same = want == have || (isnan(want) && isnan(have));
        if (!same && !(fabs(have - want) <= absolute + relative * fabs(want)))
            fail_msg("element %lld of %lld is %.9g, expected %.9g", (long long)i, (long long)size,
                     have, want);
    }
    free(values);
}
