/* Kernels of the library: from tensors and a schedule to built kernels and their launches.
 *
 * A plan is what a call needs on any target: one or more kernels in thread form, to be launched in
 * order, each with its arguments: the call's tensors, scratch memory of the plan, and numbers. Grid
 * and block follow from the arguments by the kernel's launch contract (tk_kernel_launch); a launch
 * whose grid has an extent of 0 has nothing to do and is left out. Shapes and strides are
 * arguments: plans of one kernel, types, alignments and schedule share their text, so the cache of
 * artifacts finds them.
 *
 *     tk_library_tensor x = {TK_K_F16, 2, {rows, columns}, {pitch, 1}, 16}, ...;
 *     tk_library_schedule schedule;
 *     tk_library_schedule_default(TK_LIBRARY_RMS_NORM, 4, tensors, &schedule);
 *     schedule.threads_per_row = 64;
 *     tk_library_plan_create(TK_LIBRARY_RMS_NORM, 4, tensors, 1, &eps, &schedule, &plan);
 *
 * Which kernels there are: tiki/library.def. Every one works for every shape, empty ones included,
 * and gives the same bits in every run. Plans are counted, never change and may be used from any
 * thread. */
#ifndef TIKI_LIBRARY_H
#define TIKI_LIBRARY_H

#include "tiki/kernel.h"

TK_BEGIN_DECLS

typedef enum tk_library_id {
#define TK_LIBRARY(id, name, tensors, numbers, fields, doc) TK_LIBRARY_##id,
#include "tiki/library.def"
    TK_LIBRARY_COUNT
} tk_library_id;

#define TK_LIBRARY_MOST_AXES 16

/* A tensor of a call. `stride` in elements; the first element lies at a multiple of `align` bytes
 * (0: of an element). Rank -1: the tensor is missing. */
typedef struct tk_library_tensor {
    tk_kscalar element;
    int rank;
    int64_t shape[TK_LIBRARY_MOST_AXES], stride[TK_LIBRARY_MOST_AXES];
    int64_t align;
} tk_library_tensor;

/* Every decision of a kernel; each kernel looks at some of the fields. */
typedef struct tk_library_schedule {
#define TK_LIBRARY_FIELD(name, low, high, power, doc) int64_t name;
#include "tiki/library.def"
} tk_library_schedule;

/* "rms_norm", and the line of documentation; "?" for a value that is no kernel. */
TK_API const char *tk_library_name(tk_library_id id);
TK_API const char *tk_library_doc(tk_library_id id);
/* Finds a kernel by its name. TK_NOT_FOUND. */
TK_API tk_status tk_library_find(const char *name, tk_library_id *out);

/* How many tensors and numbers a call has. */
TK_API size_t tk_library_tensors(tk_library_id id);
TK_API size_t tk_library_numbers(tk_library_id id);

/* The schedule that is right for these tensors when nobody measured another. Fields that the kernel
 * does not look at get their lowest value. */
TK_API tk_status tk_library_schedule_default(tk_library_id id, size_t n_tensors,
                                             const tk_library_tensor *tensors,
                                             tk_library_schedule *out);

/* The fields that the kernel looks at, as "threads = 256, vector = 16"; freed with
 * tk_kernel_text_free. */
TK_API tk_status tk_library_schedule_print(tk_library_id id, const tk_library_schedule *schedule,
                                           char **out_text);

/* Sets the fields that a text of this form names; the others stay. TK_FORMAT_ERROR, TK_NOT_FOUND
 * for a field that the kernel does not look at, TK_INVALID_ARGUMENT for a value out of range; the
 * schedule is then unchanged. */
TK_API tk_status tk_library_schedule_read(tk_library_id id, const char *text,
                                          tk_library_schedule *schedule);

typedef struct tk_library_plan tk_library_plan;

/* `schedule` NULL: the default. Errors name kernel, tensor and what was expected: TK_SHAPE_ERROR,
 * TK_DTYPE_ERROR, TK_INVALID_ARGUMENT for a schedule that cannot be. */
TK_API tk_status tk_library_plan_create(tk_library_id id, size_t n_tensors,
                                        const tk_library_tensor *tensors, size_t n_numbers,
                                        const double *numbers, const tk_library_schedule *schedule,
                                        tk_library_plan **out);

TK_API tk_library_plan *tk_library_plan_retain(tk_library_plan *plan);
TK_API void tk_library_plan_release(tk_library_plan *plan);

/* Scratch memory: bytes of each piece, needed from the first launch to the last, aligned to 256
 * bytes. */
TK_API size_t tk_library_plan_scratches(const tk_library_plan *plan);
TK_API int64_t tk_library_plan_scratch_bytes(const tk_library_plan *plan, size_t index);

typedef enum tk_library_argument_kind {
    TK_LIBRARY_TENSOR,  /* the address of the first element of tensor `index` of the call */
    TK_LIBRARY_SCRATCH, /* the address of scratch memory `index` */
    TK_LIBRARY_NUMBER   /* `bits` */
} tk_library_argument_kind;

typedef struct tk_library_argument {
    tk_library_argument_kind kind;
    size_t index;
    uint64_t bits;
} tk_library_argument;

/* A launch: borrowed from the plan. */
typedef struct tk_library_launch {
    const tk_kernel *kernel;
    size_t n_arguments;
    const tk_library_argument *arguments;
} tk_library_launch;

TK_API size_t tk_library_plan_launches(const tk_library_plan *plan);
TK_API tk_status tk_library_plan_launch(const tk_library_plan *plan, size_t index,
                                        tk_library_launch *out);

TK_END_DECLS

#endif
