/* Inside the emulator.
 *
 * A kernel is decoded once into a list of instructions over registers (program). A launch runs
 * groups of blocks: those that may synchronise with each other, whose warps take turns drawn from
 * the seed; a warp executes one instruction for all lanes of a strand at once. A group is one
 * block, the blocks of a cluster, or, for a kernel that orders blocks through global memory, all
 * resident blocks. Groups run on the pool's threads, in waves.
 *
 * A strand is a set of lanes of one warp that stand at the same instruction. A branch that lanes
 * take differently splits a strand; strands that meet at an instruction become one. Of those that
 * can go on, the one furthest behind runs first, so lanes meet again after structured control flow;
 * but a turn may go to any of them, and one that waits hinders no other: nothing is in lockstep.
 *
 * Registers: an element of a value is an array of 32 lanes of the element's type (i1: a byte).
 * Bodies work on whole arrays when all lanes are active, else lane by lane, and never touch other
 * lanes.
 *
 * Memory: shared memory is the block's; buffers that the contract says are only read are read in
 * place; all other global memory is seen through pages private to the group, which are merged in
 * the order of groups when the wave ends (emu_global.c). So groups run on any number of threads
 * with one result.
 *
 * Asynchronous work is done when it is issued; that it is not known to be done before a wait is
 * what the order of accesses says (emu_order.c): it has an id of its own there. */
#ifndef KERNEL_EMU_H
#define KERNEL_EMU_H

#include <string.h>

#include "kernel/emu_find.h"
#include "kernel/emu_pool.h"
#include "kernel/ir.h"
#include "kernel/shared.h"
#include "tiki/emulator.h"

#define TK_EMU_LANES 32
#define TK_EMU_ALL 0xffffffffu
#define TK_EMU_NONE UINT32_MAX

typedef struct tk_emu_program tk_emu_program;
typedef struct tk_emu_launch tk_emu_launch;
typedef struct tk_emu_group tk_emu_group;
typedef struct tk_emu_block tk_emu_block;
typedef struct tk_emu_warp tk_emu_warp;
typedef struct tk_emu_strand tk_emu_strand;
typedef struct tk_emu_insn tk_emu_insn;
typedef struct tk_emu_page tk_emu_page;
typedef struct tk_emu_row tk_emu_row;

/* Executes an instruction for the lanes of `mask`, of which there is one. */
typedef void (*tk_emu_body)(tk_emu_warp *warp, const tk_emu_insn *insn, uint32_t mask);

/* An instruction that may wait. Called with the strand at it; true: done, go on. False: the strand
 * waits; whoever fulfils the wait sets strand->state back to TK_EMU_READY, and the instruction
 * after this one is the next (`again` in the strand set: this one once more). */
typedef bool (*tk_emu_wait)(tk_emu_warp *warp, const tk_emu_insn *insn, tk_emu_strand *strand);

typedef enum tk_emu_flow {
    TK_EMU_PLAIN,
    TK_EMU_WAIT,
    TK_EMU_JUMP,   /* to `target` */
    TK_EMU_BRANCH, /* lanes whose operand 0 is false go to `target` */
    TK_EMU_LOOP,   /* lanes whose operand 0 is not below operand 1 (with sign) go to `target` */
    TK_EMU_END
} tk_emu_flow;

struct tk_emu_insn {
    union {
        tk_emu_body body;
        tk_emu_wait wait;
    };
    const tk_kop *op;     /* that it comes from */
    const uint32_t *from; /* registers of the operands, TK_EMU_NONE for one that is missing */
    uint32_t to;          /* register of the result */
    uint32_t target;
    uint32_t index;  /* the attribute, 0 without one */
    uint32_t size;   /* elements of the result, if it is a register tensor */
    uint16_t count;  /* elements of the result, or of operand 0 without one */
    uint16_t number; /* of the operation, for shadow and counters */
    uint8_t flow;    /* a tk_emu_flow */
    bool aligned;    /* all lanes (of the mask that operand `mask` is) run it together */
    uint8_t mask;    /* that operand, 255: there is none */
    uint8_t wide;    /* of LOOP: the index is an i64 */
    uint8_t flops;   /* a lane */
};

/* What the table's EMU(x) names: the body for the operation's types, or NULL for types without one.
 */
typedef struct tk_emu_pick {
    tk_emu_body body;
    tk_emu_wait wait; /* instead of a body */
} tk_emu_pick;

#define EMU(name) tk_emu_pick tk_emu_pick_##name(const tk_kop *op);
#define NO_EMU
#define EMU_FLOW
#define TK_KOP(name, forms, effects, operands, results, attrs, check, emulator, ptx, doc) emulator
#include "tiki/kernel_ops.def"
#undef TK_KOP
#undef EMU_FLOW
#undef NO_EMU
#undef EMU

/* The table's pick for an operation; without body and wait when the emulator has none. */
tk_emu_pick tk_emu_pick_of(const tk_kop *op);

/* ---- the program ---- */

struct tk_emu_program {
    const tk_kernel *kernel;
    tk_arena arena;
    TK_VEC(tk_emu_insn) code;
    TK_VEC(const tk_kop *) ops; /* by number */
    uint32_t *registers;        /* by value id: offset in bytes, TK_EMU_NONE */
    uint32_t register_bytes;    /* of a warp */
    uint32_t given_bytes;       /* of them, parameters and constants, which come first */
    int64_t *shared_at;         /* by value id: where a buffer lies */
    tk_kshared_map shared;
    uint32_t shared_unit, global_unit; /* bytes of a cell: what the smallest access touches */
    bool has_wgmma;
    uint8_t *strength; /* by number: scope and TK_EMU_STRONG_WRITE; 0: weak */
    uint32_t n_kinds;  /* of asynchronous work of a lane, itself included */
    bool strong;       /* there are ordered accesses */
    bool polls;        /* there is what a loop may wait with */
    bool proxies;      /* there is work of the async proxy */
    bool joined;       /* blocks order each other through global memory */
};

/* Of an ordered access or atomic operation: its scope, and whether it writes. */
enum { TK_EMU_SCOPE = 7, TK_EMU_STRONG_WRITE = 8 };

tk_status tk_emu_decode(const tk_kernel *kernel, tk_emu_program *out);
void tk_emu_program_deinit(tk_emu_program *program);

/* ---- a launch ---- */

/* Address of the first byte of shared memory: not 0, so that 0 is no address. */
#define TK_EMU_SHARED_BASE 1024u

/* A buffer has the addresses from (number + 1) << 40. */
#define TK_EMU_BUFFER_SHIFT 40

/* In `access`: another argument has the same memory, so reads go through pages too. */
#define TK_EMU_JOINED 4

typedef struct tk_emu_buffer {
    unsigned char *data;
    uint64_t bytes;
    uint8_t access;  /* a tk_kaccess, TK_EMU_JOINED */
    uint32_t number; /* of the buffer whose pages hold it: itself, or another that it overlaps */
    bool unset;      /* new memory */
} tk_emu_buffer;

/* A tensor map with values. It has the size of the hardware's, so a kernel can move it. */
typedef struct tk_emu_map {
    uint32_t mark; /* TK_EMU_MAP: it is one */
    uint8_t rank, scalar, swizzle, fill_nan;
    uint64_t base;
    uint32_t extent[5];
    uint32_t box[5];
    uint64_t stride[5]; /* bytes; of the first mode: an element */
    uint8_t step[5];
    uint8_t unused[27];
} tk_emu_map;

#define TK_EMU_MAP 0x50414d54u

typedef struct tk_emu_counter {
    uint64_t warps, lanes, sectors, conflicts;
} tk_emu_counter;

struct tk_emu_launch {
    const tk_emu_program *program;
    tk_klaunch shape;
    uint64_t seed;
    int64_t resident;
    uint32_t n_threads;   /* of a block */
    uint32_t wgmma_agent; /* of the matrix operations of a group's first warp */
    uint32_t n_warps;     /* of a block */
    uint32_t cluster;     /* blocks of a cluster */
    uint32_t slots;       /* blocks of a group */
    int64_t shared_bytes; /* of a block, dynamic ones included */
    uint32_t n_buffers;
    tk_emu_buffer *buffers;
    tk_emu_map *maps;     /* as many, in memory that a kernel may read */
    unsigned char *image; /* a warp's first registers at its start: constants and parameters */
    struct tk_emu_global *global;
    tk_emu_pool *pool;
    tk_emu_findings findings;
    tk_emu_counter *counters; /* by operation */
    tk_ktotals totals;
};

/* ---- running ---- */

/* GATHERING: at an aligned operation, until the other lanes of the warp that it needs are there. */
typedef enum tk_emu_state {
    TK_EMU_READY,
    TK_EMU_GATHERING,
    TK_EMU_WAITING,
    TK_EMU_DONE
} tk_emu_state;

struct tk_emu_strand {
    uint32_t pc, mask;
    uint8_t state;     /* a tk_emu_state */
    bool again;        /* the waiting instruction is to be tried again */
    bool forced;       /* the aligned operation runs with the lanes that are there */
    uint32_t polls;    /* times that it looked for a change since the group's last progress */
    uint32_t progress; /* that this was */
    const tk_emu_insn *poll;
};

/* The wgmma of a warp, by number from 1 on, and the operations of its warpgroup that it came to. */
typedef struct tk_emu_wgmma {
    uint32_t issued, retired; /* the last one, and the last that a wait has retired */
    uint32_t fences;
    uint32_t commits, committed[8]; /* what the last groups end with */
    uint32_t steps;
    bool astray; /* it came to another operation than the warpgroup */
    const tk_emu_insn *last;
} tk_emu_wgmma;

/* Operations that a warpgroup came to, by number. */
typedef TK_VEC(uint16_t) tk_emu_steps;

/* Kinds of work of a lane, each with a clock of its own: itself, its cp.async, and what its bulk
 * stores read and write. */
enum { TK_EMU_SELF, TK_EMU_COPY, TK_EMU_BULK_READ, TK_EMU_BULK_WRITE, TK_EMU_KINDS };

/* Of so many groups of asynchronous work of a lane the clocks are kept: a wait leaves at most seven
 * unfinished. */
#define TK_EMU_MOST_COMMITTED 8

/* Asynchronous work of the lanes of a warp, by kind: the clock of what is issued from now on, of
 * what the lane has waited for, of what its proxy fence covers; the clock of the last operation
 * (0: there was none) and that operation; how many groups were closed, and the clocks of the last
 * ones. */
typedef struct tk_emu_own {
    uint32_t clock[TK_EMU_KINDS][TK_EMU_LANES];
    uint32_t known[TK_EMU_KINDS][TK_EMU_LANES];
    uint32_t fenced[TK_EMU_LANES];
    uint32_t issued[TK_EMU_KINDS][TK_EMU_LANES];
    const tk_emu_insn *last[TK_EMU_KINDS][TK_EMU_LANES];
    uint32_t committed[TK_EMU_KINDS][TK_EMU_LANES];
    uint32_t group[TK_EMU_KINDS][TK_EMU_LANES][TK_EMU_MOST_COMMITTED];
} tk_emu_own;

/* What relaxed reads of a lane leave for its fences, and fences for its relaxed writes. */
typedef struct tk_emu_fences {
    tk_emu_row *seen[TK_EMU_LANES];  /* by relaxed reads: an acquiring fence gives it to the lane */
    tk_emu_row *known[TK_EMU_LANES]; /* when the last fence was */
    uint32_t clock[TK_EMU_LANES];    /* the lane's at that fence; 0: none was */
    uint8_t scope[TK_EMU_LANES];     /* of it */
} tk_emu_fences;

struct tk_emu_warp {
    tk_emu_block *block;
    unsigned char *registers;
    uint32_t number; /* in the block */
    uint32_t lanes;  /* that exist */
    uint32_t ended;  /* that have come to their end */
    uint32_t n_strands;
    tk_emu_strand strands[TK_EMU_LANES];
    uint32_t first_id;             /* of lane 0, in the group */
    uint32_t clock[TK_EMU_LANES];  /* of each lane: of its accesses from now on */
    uint32_t fenced[TK_EMU_LANES]; /* up to which clock its writes are for the async proxy to see */
    tk_emu_row *row[TK_EMU_LANES]; /* what each lane knows of the others; NULL: nothing */
    tk_emu_wgmma wgmma;
    uint32_t born[TK_EMU_LANES]; /* its first clock: lower ones are of an earlier block */
    tk_emu_own *own;             /* NULL: the kernel has no asynchronous work of lanes */
    tk_emu_fences *fences;       /* NULL: the kernel orders nothing by accesses */
};

/* One of the barriers of a block. */
typedef struct tk_emu_barrier {
    uint32_t arrived, expected;
    tk_emu_row *joined; /* what those who arrived know, themselves included */
    uint32_t last_expected;
    tk_emu_row *last; /* the same of when it was last met */
} tk_emu_barrier;

#define TK_EMU_BARRIERS 16

/* What was last done to one unit of memory. Epochs: thread or agent << 17 | clock; 0: nothing; the
 * top bit of `read`: number of a list of readers. */
typedef struct tk_emu_cell {
    uint32_t write, read;
    uint16_t write_op, read_op;
} tk_emu_cell;

#define TK_EMU_CLOCK_BITS 17
#define TK_EMU_CLOCK_MASK ((1u << TK_EMU_CLOCK_BITS) - 1)
#define TK_EMU_LIST 0x80000000u

static inline uint32_t tk_emu_epoch_id(uint32_t epoch) {
    return (epoch & ~TK_EMU_LIST) >> TK_EMU_CLOCK_BITS;
}
static inline uint32_t tk_emu_epoch_clock(uint32_t epoch) { return epoch & TK_EMU_CLOCK_MASK; }
static inline bool tk_emu_is_list(uint32_t read) { return (read & TK_EMU_LIST) != 0; }
static inline uint32_t tk_emu_list_of(uint32_t read) { return read & ~TK_EMU_LIST; }

typedef struct tk_emu_reader {
    uint32_t next, mask, clock;
    uint16_t warp, op;
} tk_emu_reader;

/* A read of shared memory that nobody wrote yet. */
typedef struct tk_emu_unset {
    const tk_emu_cell *cell; /* NULL: it turned out to be a race */
    tk_emu_warp *warp;
    const tk_emu_insn *insn;
    int lane;
    uint64_t address;
} tk_emu_unset;

#define TK_EMU_MOST_UNSET 1024

/* What performs asynchronous operations (see tk_emu_row). */
typedef struct tk_emu_agent {
    TK_VEC(uint64_t) begun; /* of each number: thread << 32 | its clock when it began the first */
} tk_emu_agent;

struct tk_emu_block {
    tk_emu_launch *launch;
    tk_emu_group *group;
    uint32_t slot; /* in the group */
    uint32_t rank; /* in the cluster */
    bool live;     /* the slot holds a block that runs */
    int64_t number, index[3];
    uint32_t n_warps;
    tk_emu_warp *warps;
    unsigned char *shared;
    int64_t shared_bytes;
    tk_emu_cell *shared_cells;
    TK_VEC(tk_emu_unset) unset;
    tk_emu_barrier barriers[TK_EMU_BARRIERS];
    struct tk_emu_mbarriers *mbarriers; /* emu_mbarrier.c; NULL: none yet */
    struct tk_emu_cluster *cluster;     /* emu_cluster.c; of its first block */
    tk_emu_steps steps[8];              /* by warpgroup */
    tk_emu_counter *counters;
    tk_ktotals totals;
};

struct tk_emu_group {
    tk_emu_launch *launch;
    int64_t number;
    uint64_t random;
    uint32_t n_slots;
    tk_emu_block *blocks; /* by slot */
    int64_t next, end;    /* the cluster that starts when slots are free, and where they end */
    uint32_t n_lanes;     /* ids of threads, those of missing lanes included */
    uint32_t n_fixed;     /* ids of threads and their kinds; other agents have the ones behind */
    uint32_t n_ids;
    TK_VEC(tk_emu_agent) agents; /* by id less n_lanes */
    struct tk_emu_pages *pages;
    TK_VEC(tk_emu_reader) readers;
    uint32_t free_reader;
    struct tk_emu_places *places; /* emu_atomic.c: where threads order each other */
    tk_emu_findings findings;
    tk_emu_counter *counters; /* of blocks that ended */
    tk_ktotals totals;
    uint32_t *last_clock; /* by fixed id: of the thread that had it last */
    uint32_t mbarriers;   /* that are initialised */
    uint32_t progress;    /* counts what may end a wait */
    uint64_t steps;       /* instructions since a thread last waited or ended */
    tk_status status;     /* memory ran out, or a limit of the emulator; the group then stops */
    bool stopped;         /* a trap */
};

/* Runs the group's blocks to their end. */
void tk_emu_run_group(tk_emu_group *group);

/* Where a block lies in the grid. Blocks are numbered cluster by cluster. */
void tk_emu_block_index(const tk_emu_launch *launch, int64_t number, int64_t *out);

/* A number from 0 to limit - 1, from the group's seed. */
uint32_t tk_emu_random(tk_emu_group *group, uint32_t limit);

/* Lanes looked for a change that is not there yet: when all do so for long, it is a deadlock. What
 * may end such a wait counts as progress. */
void tk_emu_poll(tk_emu_warp *warp, const tk_emu_insn *insn, uint32_t mask);
static inline void tk_emu_progress(const tk_emu_warp *warp) { warp->block->group->progress++; }

/* ---- for bodies ---- */

static inline void *tk_emu_reg(const tk_emu_warp *warp, uint32_t at) {
    return warp->registers + at;
}
static inline void *tk_emu_to(const tk_emu_warp *warp, const tk_emu_insn *insn) {
    return warp->registers + insn->to;
}
static inline void *tk_emu_from(const tk_emu_warp *warp, const tk_emu_insn *insn, int index) {
    return warp->registers + insn->from[index];
}
static inline bool tk_emu_given(const tk_emu_insn *insn, int index) {
    return insn->from[index] != TK_EMU_NONE;
}

/* Runs `statement` for each active lane `l`; all lanes at once where it can. */
#define TK_EMU_EACH(mask, ...)                                                                     \
    do {                                                                                           \
        if ((mask) == TK_EMU_ALL) {                                                                \
            for (int l = 0; l < TK_EMU_LANES; l++) {                                               \
                __VA_ARGS__;                                                                       \
            }                                                                                      \
        } else {                                                                                   \
            for (uint32_t tk_left = (mask); tk_left; tk_left &= tk_left - 1) {                     \
                int l = __builtin_ctz(tk_left);                                                    \
                __VA_ARGS__;                                                                       \
            }                                                                                      \
        }                                                                                          \
    } while (0)

/* The lanes of `mask` whose byte is true. */
uint32_t tk_emu_true_lanes(const unsigned char *truth, uint32_t mask);

static inline uint32_t tk_emu_thread(const tk_emu_warp *warp, int lane) {
    return warp->number * TK_EMU_LANES + (uint32_t)lane;
}

/* A finding about a lane; the message says what was met. */
void tk_emu_report(tk_emu_warp *warp, const tk_emu_insn *insn, int lane, tk_kfinding_kind kind,
                   const char *format, ...) TK_PRINTF(5, 6);

/* ---- register tensors (emu_tensor.c) ---- */

/* What is known of an element of a register tensor, for one warp. */
typedef struct tk_emu_slot {
    uint32_t set;     /* lanes that set it */
    uint32_t touched; /* wgmma fences before its last access, plus one; 0: none was */
    uint32_t busy;    /* number of the last wgmma that uses it; 0: none did */
    uint16_t busy_op; /* that operation */
    bool busy_writes; /* as its accumulator */
} tk_emu_slot;

/* At the register of a tensor; its elements, 32 lanes each, are behind the slots. */
typedef struct tk_emu_tensor {
    uint32_t size; /* elements */
    uint32_t unused[15];
    tk_emu_slot slots[];
} tk_emu_tensor;

static inline tk_emu_tensor *tk_emu_tensor_of(const tk_emu_warp *warp, const tk_emu_insn *insn,
                                              int operand) {
    return tk_emu_from(warp, insn, operand);
}
static inline unsigned char *tk_emu_elements(tk_emu_tensor *tensor, size_t index, size_t bytes) {
    return (unsigned char *)(tensor->slots + tensor->size) + index * TK_EMU_LANES * bytes;
}

/* Notes that lanes read or write elements, and reports what they may not: elements that a wgmma
 * still uses, and reads of those never set. */
void tk_emu_tensor_read(tk_emu_warp *warp, const tk_emu_insn *insn, uint32_t mask,
                        tk_emu_tensor *tensor, size_t index, size_t count);
void tk_emu_tensor_write(tk_emu_warp *warp, const tk_emu_insn *insn, uint32_t mask,
                         tk_emu_tensor *tensor, size_t index, size_t count);

/* The same for a read of some that a wgmma makes of its accumulator. */
void tk_emu_tensor_need(tk_emu_warp *warp, const tk_emu_insn *insn, uint32_t mask,
                        tk_emu_tensor *tensor, size_t index, size_t count);

/* The wgmma that was issued last uses elements until a wait retires it: as its A fragment, or as
 * its accumulator. */
void tk_emu_tensor_lend(tk_emu_warp *warp, const tk_emu_insn *insn, uint32_t mask,
                        tk_emu_tensor *tensor, size_t index, size_t count, bool writes);

/* When the block has ended: products that nothing waits for, warps that missed operations of their
 * warpgroup. */
void tk_emu_end_wgmma(tk_emu_block *block);

/* ---- order (emu_order.c) ---- */

/* Knowledge: the clock of each thread and agent up to which its accesses come before, then, as far
 * again, up to which they are visible to the async proxy (in a kernel that has work of it). Shared
 * and counted.
 *
 * An agent is what performs asynchronous accesses: a clock behind those of the threads, which
 * counts operations, or groups of them, in the order in which they are known to end. An access of
 * operation n has the epoch (agent, n); whoever waits for the operation acquires a row in which the
 * agent's clock is n. So "does the write come after the wait" is a race like any other, and is
 * reported as IN_FLIGHT where the wait is what lacks.
 */
struct tk_emu_row {
    uint32_t references;
    uint32_t count; /* of ids; those above are 0 */
    uint32_t clock[];
};

tk_emu_row *tk_emu_row_keep(tk_emu_row *row);
void tk_emu_row_drop(tk_emu_row *row);

/* Joins what lanes know, themselves included, into *row (made when NULL), and starts their next
 * clock: the release side. */
void tk_emu_release(tk_emu_warp *warp, uint32_t mask, tk_emu_row **row);

/* Lanes know what the row says from now on: the acquire side. */
void tk_emu_acquire(tk_emu_warp *warp, uint32_t mask, const tk_emu_row *row);

/* The lanes' writes so far are for the async proxy to see, once something orders them. */
void tk_emu_fence_proxy(tk_emu_warp *warp, uint32_t mask);

/* A new agent; 0 when ids ran out (the status says so). */
uint32_t tk_emu_new_agent(tk_emu_group *group);

/* The agent of the warp's matrix operations. */
static inline uint32_t tk_emu_wgmma_agent(const tk_emu_warp *warp) {
    return warp->block->launch->wgmma_agent + warp->first_id / TK_EMU_LANES;
}

/* The number of an operation that a lane begins by an agent; and one that belongs to what has
 * number `clock`. */
uint32_t tk_emu_begin(tk_emu_warp *warp, int lane, uint32_t agent);
void tk_emu_begin_in(tk_emu_warp *warp, int lane, uint32_t agent, uint32_t clock);

/* Lanes know that an agent's operations up to `clock` are over. */
void tk_emu_acquire_agent(tk_emu_warp *warp, uint32_t mask, uint32_t agent, uint32_t clock);

/* Whether what the lane knows covers a row already, but for one id (TK_EMU_NONE: for none). */
bool tk_emu_covers(const tk_emu_warp *warp, int lane, const tk_emu_row *row, uint32_t except);

/* Puts what a lane knew when it had a row and a clock into another row; no clock ticks. */
void tk_emu_put(tk_emu_warp *warp, int lane, const tk_emu_row *known, uint32_t clock,
                tk_emu_row **row);

/* Starts the lane's next clock. */
void tk_emu_tick(tk_emu_warp *warp, int lane);

/* *to knows what `from` says (NULL: nothing). */
void tk_emu_join(tk_emu_group *group, tk_emu_row **to, const tk_emu_row *from);

/* A row knows the work of an id up to a clock. */
void tk_emu_join_id(tk_emu_group *group, tk_emu_row **to, uint32_t id, uint32_t clock);

/* Whether the lane comes after what an id did at a clock; and whether that is fenced for the async
 * proxy. */
bool tk_emu_knows(const tk_emu_warp *warp, int lane, uint32_t id, uint32_t clock);
bool tk_emu_knows_fenced(const tk_emu_warp *warp, int lane, uint32_t id, uint32_t clock);

/* Up to which clock the lane knows an id, and whether a row does. */
uint32_t tk_emu_known_clock(const tk_emu_warp *warp, int lane, uint32_t id);
static inline bool tk_emu_row_knows(const tk_emu_row *row, uint32_t id, uint32_t clock) {
    return clock == 0 || (row && id < row->count && clock <= row->clock[id]);
}

/* Thread and block of an epoch's id, for findings. */
int32_t tk_emu_whose(const tk_emu_group *group, uint32_t id, uint32_t clock, int64_t *out_block);

/* An access of `bytes` at cell `cells[first]`: checks it against what was done there and notes it.
 * The lanes of `mask` all access this place. Reports races as `kind`. */
typedef struct tk_emu_access {
    tk_emu_warp *warp;
    const tk_emu_insn *insn;
    tk_emu_cell *cells;
    uint32_t count; /* cells */
    tk_kfinding_kind race;
    const char *where; /* for messages: "shared memory" */
    uint64_t address;
    const struct tk_emu_agent_access *by; /* NULL: the lane itself */
} tk_emu_access;

/* A finding about a lane and an earlier access by an id. */
void tk_emu_report_pair(const tk_emu_access *access, int lane, tk_kfinding_kind kind,
                        uint16_t other_op, uint32_t other_epoch, const char *words);

/* Notes a read of a cell that nobody wrote; those that no unordered write turns up for are reported
 * when the block ends. */
void tk_emu_note_unset(const tk_emu_access *access, int lane, const tk_emu_cell *cell);
void tk_emu_report_unset(tk_emu_block *block);

void tk_emu_note_read(const tk_emu_access *access, uint32_t mask);
void tk_emu_note_write(const tk_emu_access *access, int lane);

/* An ordered access, which may be unordered to others of its strength. */
void tk_emu_note_strong(const tk_emu_access *access, int lane);

/* An access of operation `clock` of an agent, as tk_emu_begin gave it to a lane. Through the async
 * proxy, what the generic proxy wrote there must be fenced. */
typedef struct tk_emu_agent_access {
    uint32_t agent, clock;
    int lane;
    bool async_proxy;
} tk_emu_agent_access;
void tk_emu_note_agent_read(const tk_emu_access *access, const tk_emu_agent_access *by);
void tk_emu_note_agent_write(const tk_emu_access *access, const tk_emu_agent_access *by);

/* The same for lanes with one cell each, of `unit` bytes, by addresses in shared memory of the
 * block, whose first cell is that of the access. Reads of cells that nobody wrote are noted too. */
void tk_emu_note_read_lanes(const tk_emu_access *access, uint32_t mask, const uint64_t *address,
                            uint32_t unit);
void tk_emu_note_write_lanes(const tk_emu_access *access, uint32_t mask, const uint64_t *address,
                             uint32_t unit);

/* The same for the lanes from `first` up to `end`, whose cells follow each other. */
void tk_emu_note_read_run(const tk_emu_access *access, int first, int end);
void tk_emu_note_write_run(const tk_emu_access *access, int first, int end);

/* ---- global memory (emu_global.c) ---- */

tk_status tk_emu_global_create(tk_emu_launch *launch);
void tk_emu_global_release(tk_emu_launch *launch);

/* The buffers get what they held when the launch began; called again, what it left. */
void tk_emu_global_exchange(tk_emu_launch *launch);

/* The group's own page around an offset of a buffer, NULL when memory ran out. A page is no shorter
 * than a run of all lanes. */
#define TK_EMU_PAGE_BYTES 512u
struct tk_emu_page {
    uint64_t key;
    unsigned char data[TK_EMU_PAGE_BYTES];
    uint64_t written[TK_EMU_PAGE_BYTES / 64]; /* a bit for each byte */
    tk_emu_cell cells[];
};
tk_emu_page *tk_emu_page_of(tk_emu_group *group, uint32_t buffer, uint64_t offset);

/* Whether one of `count` units of a page is new memory that neither the group nor one before it
 * wrote. */
bool tk_emu_page_is_unset(const tk_emu_launch *launch, const tk_emu_page *page, size_t first,
                          size_t count);

/* Writes the group's pages to the buffers and checks them against those of other groups; frees
 * them. Groups come in order, one at a time. */
void tk_emu_commit(tk_emu_group *group);

#endif
