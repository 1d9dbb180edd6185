/* How kernels of the library are made: a call checked against its row, a plan under construction,
 * and the row's function, which builds kernels and binds their arguments. */
#ifndef LIBRARY_PLAN_H
#define LIBRARY_PLAN_H

#include "base/error.h"
#include "base/vec.h"
#include "tiki/library.h"

typedef struct tk_library_call {
    tk_library_id id;
    const char *name;
    const tk_library_tensor *tensors;
    const double *numbers;
    const tk_library_schedule *schedule;
} tk_library_call;

typedef struct tk_library_step {
    tk_kernel *kernel;
    TK_VEC(tk_library_argument) arguments;
} tk_library_step;

struct tk_library_plan {
    int references; /* atomic */
    TK_VEC(tk_library_step) steps;
    TK_VEC(int64_t) scratches;
};

/* ---- for the functions of rows ---- */

/* A kernel under construction: its builder, and the arguments that are bound as parameters are
 * added. Errors stick in the builder. */
typedef struct tk_library_kernel {
    tk_kernel_builder *b;
    tk_library_plan *plan;
    tk_library_step step;
    bool out_of_memory;
} tk_library_kernel;

tk_status tk_library_open(tk_library_plan *plan, const char *name, tk_library_kernel *out);

/* Verifies, expands and adds the kernel to the plan; releases the builder in any case. */
tk_status tk_library_close(tk_library_kernel *k);

/* Parameters, bound to their arguments. `align` in bytes. */
tk_kvalue *tk_library_bind_tensor(tk_library_kernel *k, const char *name, size_t index,
                                  tk_kscalar element, tk_kaccess access, int64_t align);
/* The same for tensor `index` of the call's, read or written in vectors of `lanes`. */
tk_kvalue *tk_library_bind_rows(tk_library_kernel *k, const char *name, size_t index,
                                const tk_library_tensor *tensors, tk_kaccess access, int lanes);
/* A tensor map: it follows from the other arguments, its own is 0. */
tk_kvalue *tk_library_bind_map(tk_library_kernel *k, const tk_kmap *map);
tk_kvalue *tk_library_bind_scratch(tk_library_kernel *k, const char *name, size_t index,
                                   tk_kscalar element, tk_kaccess access);
tk_kvalue *tk_library_bind_int(tk_library_kernel *k, const char *name, tk_kscalar type,
                               int64_t value);
/* Of the element type: a number of the call as it rounds to that type. */
tk_kvalue *tk_library_bind_bits(tk_library_kernel *k, const char *name, tk_kscalar type,
                                double value);
tk_kvalue *tk_library_bind_f32(tk_library_kernel *k, const char *name, double value);

/* Adds scratch memory; *out_index is for tk_library_bind_scratch. */
tk_status tk_library_add_scratch(tk_library_plan *plan, int64_t bytes, size_t *out_index);

/* The error of a call: "library kernel add: ...". */
tk_status tk_library_fail(const tk_library_call *call, tk_status code, const char *format, ...)
    TK_PRINTF(3, 4);

/* TK_DTYPE_ERROR unless the tensor's element type is f32, f16 or bf16. */
tk_status tk_library_need_float(const tk_library_call *call, size_t index, const char *role);

/* TK_SHAPE_ERROR unless both tensors have the same shape. */
tk_status tk_library_need_same(const tk_library_call *call, size_t a, const char *role_a, size_t b,
                               const char *role_b);

static inline bool tk_library_is_missing(const tk_library_tensor *tensor) {
    return tensor->rank < 0;
}

/* Elements; the shape was checked to fit. */
int64_t tk_library_size(const tk_library_tensor *tensor);

/* Whether elements lie one after another in row-major order. */
bool tk_library_is_contiguous(const tk_library_tensor *tensor);

/* What is known of the tensor's address, in bytes. */
int64_t tk_library_align(const tk_library_tensor *tensor);

/* The largest power of two up to `most` that divides all of these; 0 is divided by all. */
int64_t tk_library_divisor(int64_t most, size_t count, const int64_t *values);

/* ---- rows ---- */

#define TK_LIBRARY(id, name, tensors, numbers, fields, doc)                                        \
    tk_status tk_library_make_##name(const tk_library_call *call, tk_library_plan *plan);          \
    void tk_library_choose_##name(const tk_library_tensor *tensors_, tk_library_schedule *out);
#include "tiki/library.def"

#endif
