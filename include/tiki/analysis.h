/* What can be known of a kernel before it runs.
 *
 * An analysis is counted by nobody: it belongs to who made it, never changes, and may be read from
 * any thread. Texts belong to it. Any form can be analysed; memory is seen in the thread form. */
#ifndef TIKI_ANALYSIS_H
#define TIKI_ANALYSIS_H

#include "tiki/kernel.h"

TK_BEGIN_DECLS

typedef struct tk_kanalysis tk_kanalysis;

TK_API tk_status tk_kernel_analyse(const tk_kernel *kernel, tk_kanalysis **out);
TK_API void tk_kanalysis_release(tk_kanalysis *analysis);

/* Over which threads a value is the same, each level including those before it. */
typedef enum tk_kuniform {
    TK_KU_THREAD,
    TK_KU_WARP,
    TK_KU_WARPGROUP,
    TK_KU_BLOCK,
    TK_KU_GRID
} tk_kuniform;

TK_API const char *tk_kuniform_text(tk_kuniform level);

/* Proves that every aligned operation, and in the tensor form all work of a group (of some warps:
 * each of them), is reached by all of its warp, warpgroup or block together: the conditions around
 * it are uniform, or said to be by `assume_uniform`. TK_INVALID_ARGUMENT names the operation, the
 * condition and what is known of it. Targets ask this, and lowering for the work of groups; the
 * emulator does not, since it judges what happens. */
TK_API tk_status tk_kernel_prove_uniform(const tk_kernel *kernel);

/* Facts about a value by its name in the text. Integers: low <= value <= high, a multiple of
 * `divisor` (0: it is 0). Pointers: the address is a multiple of `divisor`. TK_NOT_FOUND. */
typedef struct tk_kfacts {
    int64_t low, high;
    uint64_t divisor;
    tk_kuniform uniform;
} tk_kfacts;
TK_API tk_status tk_kanalysis_value(const tk_kanalysis *analysis, const char *name, tk_kfacts *out);

/* Registers of 32 bits that values of a thread need at once, and the line where (0: unknown). An
 * assembler may need more, for addresses, or fewer, since it computes again. */
TK_API int64_t tk_kanalysis_registers(const tk_kanalysis *analysis, uint32_t *out_line);

/* Shared buffers in the order of their declaration. */
typedef struct tk_kplace {
    const char *name; /* "" without one */
    uint32_t line;
    int64_t offset, bytes;
} tk_kplace;
TK_API size_t tk_kanalysis_places(const tk_kanalysis *analysis);
TK_API tk_status tk_kanalysis_place(const tk_kanalysis *analysis, size_t index, tk_kplace *out);

/* What barriers order: an access before one and an access behind it, of the same memory, one of
 * them a write. A barrier without any orders nothing. */
typedef struct tk_korder {
    const char *barrier, *before, *after, *memory; /* operations, and a buffer or parameter */
    uint32_t barrier_line, before_line, after_line;
} tk_korder;
TK_API size_t tk_kanalysis_orders(const tk_kanalysis *analysis);
TK_API tk_status tk_kanalysis_order(const tk_kanalysis *analysis, size_t index, tk_korder *out);

/* What one thread does, branches taken and loops with unknown bounds run once. `exact`: there are
 * none of either around what counts. */
typedef struct tk_kwork {
    uint64_t flops, read_bytes, written_bytes; /* of global memory; fma counts two */
    bool exact;
} tk_kwork;
TK_API tk_kwork tk_kanalysis_work(const tk_kanalysis *analysis);

/* Where a warp of block 0 goes at an access, in the first trip of the loops around it: bytes from
 * the start of a parameter or of shared memory. Lanes whose address depends on memory, or that a
 * condition keeps away, are not in `lanes`. */
typedef struct tk_kpattern {
    const char *operation, *memory; /* a parameter, "shared memory", or "" when it is not known */
    uint32_t line, lanes;           /* a bit for each lane */
    tk_kspace space;
    int bytes; /* of a lane */
    int64_t address[32];
    int sectors, passes; /* 32-byte sectors touched; passes over the banks of shared memory */
} tk_kpattern;

/* Patterns of all loads and stores of a kernel in thread form, in the order of the text, for a
 * launch with these arguments (those of pointers are not looked at). Free the list with
 * tk_kernel_patterns_free; its texts belong to the kernel. */
TK_API tk_status tk_kernel_patterns(const tk_kernel *kernel, size_t n_arguments,
                                    const tk_kargument *arguments, int warp,
                                    tk_kpattern **out_patterns, size_t *out_count);
TK_API void tk_kernel_patterns_free(tk_kpattern *patterns);

/* The same as a picture (SVG): for each access its lanes over sectors, or over banks. Free with
 * tk_kernel_text_free. */
TK_API tk_status tk_kernel_draw(const tk_kernel *kernel, size_t n_arguments,
                                const tk_kargument *arguments, int warp, char **out_svg);

TK_END_DECLS

#endif
