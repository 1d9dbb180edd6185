/* The emulator: runs a kernel on the CPU and judges it.
 *
 * It reports what a card would not: races, reads of memory that nobody wrote, addresses out of
 * bounds, barriers that not all reach, deadlocks, and more (TK_KFINDINGS). The memory model is that
 * of docs/kernel-ir.md: a verdict follows from what the program orders, not from the interleaving
 * that happened to run. The interleaving follows from the seed: one seed gives one result on any
 * number of cores; the list of findings is the same for all seeds (a run that has some is repeated
 * with one seed for the list), unless what the kernel does hangs on the order of its atomics. */
#ifndef TIKI_EMULATOR_H
#define TIKI_EMULATOR_H

#include "tiki/kernel.h"

TK_BEGIN_DECLS

/* Kind, name, what it means. */
#define TK_KFINDINGS(X)                                                                            \
    X(RACE_SHARED, "shared race", "two unordered accesses to shared memory, one of them a write")  \
    X(RACE_GLOBAL, "global race", "two unordered accesses to global memory, one of them a write")  \
    X(UNSET_SHARED, "unset shared memory", "a read of shared memory that nobody wrote")            \
    X(UNSET_GLOBAL, "unset global memory", "a read of new memory that the launch has not written") \
    X(UNSET_REGISTER, "unset register", "a read of an element of a register tensor never written") \
    X(OUT_OF_BOUNDS, "out of bounds", "an access beyond its buffer")                               \
    X(MISALIGNED, "misaligned", "an address that is no multiple of the access's size")             \
    X(DIVERGENT, "divergent",                                                                      \
      "an aligned operation that not all lanes of the warp reach together")                        \
    X(MISSING_BARRIER, "missing barrier", "threads end while others wait at a barrier for them")   \
    X(BARRIER_COUNT, "barrier count", "more or other threads at a barrier than it was made for")   \
    X(DEADLOCK, "deadlock", "no thread can go on")                                                 \
    X(MBARRIER_USE, "mbarrier use",                                                                \
      "an mbarrier that is not initialised, or whose memory is used")                              \
    X(MBARRIER_COUNT, "mbarrier count", "more arrivals or bytes than a phase expects")             \
    X(MBARRIER_PHASE, "mbarrier phase", "a wait for a phase that is gone or far ahead")            \
    X(PROXY_FENCE, "missing proxy fence",                                                          \
      "the async proxy may not see what was written before it")                                    \
    X(IN_FLIGHT, "in flight", "memory or registers that an asynchronous operation still uses")     \
    X(UNFINISHED, "unfinished",                                                                    \
      "a block ends with copies that nothing waits for, or while another uses its memory")         \
    X(WGMMA_FENCE, "missing wgmma fence",                                                          \
      "registers were written before a wgmma without its fence")                                   \
    X(EFFECT, "undeclared effect", "a write to what the launch contract says is only read")        \
    X(DIVISION, "division by zero", "an integer divided by zero")                                  \
    X(ASSUMPTION, "false assumption", "a value is not what assume says")                           \
    X(ASSERTION, "assertion", "an assert that does not hold, or a trap")                           \
    X(BAD_LANE, "bad lane", "a shuffle from a lane that does not take part, or a bad mask")

typedef enum tk_kfinding_kind {
#define TK_KFINDING_ENUM(id, name, meaning) TK_KF_##id,
    TK_KFINDINGS(TK_KFINDING_ENUM)
#undef TK_KFINDING_ENUM
        TK_KFINDING_COUNT
} tk_kfinding_kind;

TK_API const char *tk_kfinding_name(tk_kfinding_kind kind);
TK_API const char *tk_kfinding_meaning(tk_kfinding_kind kind);

/* One fault: the first time that it was met, and how often in all. Kind, operation and other
 * operation together are met once in a list. Texts belong to the emulation. */
typedef struct tk_kfinding {
    tk_kfinding_kind kind;
    const char *message;   /* what was met: addresses, sizes */
    const char *operation; /* its word */
    const char *file;
    uint32_t line; /* 0: unknown */
    int64_t block[3];
    int32_t thread;              /* in the block, x fastest */
    const char *other_operation; /* of a race: the earlier access; NULL else */
    uint32_t other_line;
    int64_t other_block[3];
    int32_t other_thread;
    uint64_t count;
} tk_kfinding;

/* What was done, by operation of the text. */
typedef struct tk_kcount {
    const char *operation;
    uint32_t line;
    uint64_t warps;     /* times that a warp, or part of one, executed it */
    uint64_t lanes;     /* active lanes, summed */
    uint64_t sectors;   /* 32-byte sectors of global memory */
    uint64_t conflicts; /* passes over shared memory beyond those needed */
} tk_kcount;

typedef struct tk_ktotals {
    uint64_t lane_operations;
    uint64_t read_bytes, written_bytes; /* of global memory, as the lanes ask for them */
    uint64_t flops;                     /* fma counts two */
} tk_ktotals;

/* Memory behind a pointer argument. */
typedef struct tk_kbuffer {
    void *data;
    size_t bytes;
    size_t
        offset; /* where the pointer points; the address is aligned as `data` were to 256 bytes */
} tk_kbuffer;

typedef struct tk_kemulate {
    uint64_t seed;
    int64_t resident;         /* blocks alive at once; 0: 64 */
    const tk_kdevice *device; /* NULL: an H200 */
    size_t n_arguments;
    const tk_kargument *arguments; /* scalars; not looked at for pointers */
    const tk_kbuffer *buffers;     /* one for each argument; not looked at for scalars */
    const bool *unset; /* one for each argument: new memory, of which the launch may read only what
                          it wrote; NULL: none is */
    tk_klaunch launch; /* with a block extent of 0: what the contract says */
} tk_kemulate;

typedef struct tk_emulation tk_emulation;

/* Runs a kernel in thread form. Findings are results, not errors: TK_OK with or without any.
 * Errors: what tk_kernel_launch says; TK_UNSUPPORTED for another form or an operation that the
 * emulator does not have (named with its line). Buffers are written only as far as the kernel does;
 * those of two arguments may overlap. Uses the pool's threads; any thread may call. */
TK_API tk_status tk_kernel_emulate(const tk_kernel *kernel, const tk_kemulate *how,
                                   tk_emulation **out);

TK_API void tk_emulation_release(tk_emulation *emulation);
TK_API size_t tk_emulation_findings(const tk_emulation *emulation);
TK_API tk_status tk_emulation_finding(const tk_emulation *emulation, size_t index,
                                      tk_kfinding *out);
TK_API size_t tk_emulation_counts(const tk_emulation *emulation);
TK_API tk_status tk_emulation_count(const tk_emulation *emulation, size_t index, tk_kcount *out);
TK_API tk_ktotals tk_emulation_totals(const tk_emulation *emulation);

/* All findings as lines, or as a JSON list; "" and "[]" when there are none. Free with
 * tk_kernel_text_free. */
TK_API tk_status tk_emulation_text(const tk_emulation *emulation, char **out_text);
TK_API tk_status tk_emulation_json(const tk_emulation *emulation, char **out_text);

TK_END_DECLS

#endif
