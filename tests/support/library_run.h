/* Kernels of the library in tests: strided tensors with guarded memory, plans run in the emulator,
 * reference values of the CPU evaluator. */
#ifndef SUPPORT_LIBRARY_RUN_H
#define SUPPORT_LIBRARY_RUN_H

#include "support/arrays.h"
#include "tiki/library.h"

/* A tensor with its memory. Bytes that no element covers are guards: they must not change. */
typedef struct lib_tensor {
    tk_library_tensor of;
    unsigned char *memory, *copy; /* what it was before the run */
    size_t bytes, offset;         /* of the first element */
} lib_tensor;

/* Row-major with `pad` elements behind each row of the last axis and `skip` elements before the
 * first; alignment is what that allows. Elements are zero. */
lib_tensor lib_make(tk_kscalar element, int rank, const int64_t *shape, int64_t pad, int64_t skip);
void lib_free(lib_tensor *tensor);

/* The axes of a tensor in another order, over the same memory. */
tk_library_tensor lib_permuted(const tk_library_tensor *tensor, const int *order);

int64_t lib_size(const lib_tensor *tensor);

/* Element by its number in row-major order. */
double lib_get(const lib_tensor *tensor, int64_t index);
void lib_set(lib_tensor *tensor, int64_t index, double value);

/* Numbers that follow from the seed, normal-like in -3..3. */
void lib_draw(lib_tensor *tensor, uint64_t seed);
uint64_t lib_random(uint64_t *state);
int64_t lib_between(uint64_t *state, int64_t low, int64_t high);

/* The tensor as an array of the CPU evaluator. */
tk_array lib_array(tk_context *context, const lib_tensor *tensor);

/* Plans, runs every launch in the emulator and asserts that nothing is found and no guard is
 * touched. `schedule` as tk_library_schedule_read takes it, NULL: the default. Gives how many
 * conflicts of shared memory there were. */
uint64_t lib_run(tk_library_id id, size_t n_tensors, lib_tensor *const *tensors, size_t n_numbers,
                 const double *numbers, const char *schedule, uint64_t seed);

/* Plans, and assembles every kernel for sm_80 (where it can) and sm_90a; false when there is no
 * ptxas. The text form is read back too. */
bool lib_assemble(tk_library_id id, size_t n_tensors, lib_tensor *const *tensors, size_t n_numbers,
                  const double *numbers, const char *schedule);

/* Asserts |a - b| <= absolute + relative |b| element by element, NaN equal to NaN. */
void lib_assert_near(const lib_tensor *tensor, tk_array expected, double relative, double absolute);

/* Spacing of 1 in the type: 2^-23, 2^-10, 2^-7. */
double lib_epsilon(tk_kscalar element);

#endif
