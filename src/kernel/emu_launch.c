/* A launch: buffers get addresses, blocks run in waves on the pool's threads, and their pages and
 * findings are merged in the order of blocks. */
#include "base/error.h"
#include "base/pool.h"
#include "kernel/contract.h"
#include "kernel/emu.h"
#include "kernel/emulation.h"

static tk_status no_memory(void) { return tk_fail(TK_OUT_OF_MEMORY, "no memory for an emulation"); }

/* ---- blocks ---- */

static void release_warp(tk_emu_warp *warp) {
    for (int l = 0; l < TK_EMU_LANES; l++) tk_emu_row_drop(warp->row[l]);
    tk_free(warp->registers);
}

static void release_block(tk_emu_block *block) {
    for (uint32_t w = 0; w < block->n_warps && block->warps; w++) release_warp(&block->warps[w]);
    for (int i = 0; i < TK_EMU_BARRIERS; i++) {
        tk_emu_row_drop(block->barriers[i].joined);
        tk_emu_row_drop(block->barriers[i].last);
    }
    for (uint32_t i = 0; i < block->launch->n_clocks - block->launch->n_threads && block->agents;
         i++)
        tk_vec_deinit(&block->agents[i].begun);
    tk_free(block->agents);
    for (size_t i = 0; i < sizeof block->steps / sizeof *block->steps; i++)
        tk_vec_deinit(&block->steps[i]);
    tk_free(block->warps);
    tk_free(block->shared);
    tk_free(block->shared_cells);
    tk_free(block->counters);
    tk_vec_deinit(&block->readers);
    tk_vec_deinit(&block->unset);
    tk_emu_findings_deinit(&block->findings);
}

static bool start_warp(tk_emu_block *block, uint32_t number) {
    const tk_emu_launch *launch = block->launch;
    tk_emu_warp *warp = &block->warps[number];
    uint32_t lanes = launch->n_threads - number * TK_EMU_LANES;
    *warp = (tk_emu_warp){.block = block,
                          .number = number,
                          .lanes = lanes >= TK_EMU_LANES ? TK_EMU_ALL : (1u << lanes) - 1,
                          .n_strands = 1};
    warp->strands[0].mask = warp->lanes;
    warp->registers = tk_malloc(launch->program->register_bytes + 64);
    for (int l = 0; l < TK_EMU_LANES; l++) warp->clock[l] = 1;
    if (warp->registers) memcpy(warp->registers, launch->image, launch->program->register_bytes);
    return warp->registers != NULL;
}

/* Odd multipliers from SplitMix64 keep neighbouring blocks apart. */
static uint64_t seed_of(uint64_t seed, int64_t number) {
    uint64_t z = seed + 0x9e3779b97f4a7c15u * ((uint64_t)number + 1);
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (z ^ z >> 31) | 1;
}

static bool start_block(tk_emu_launch *launch, int64_t number, tk_emu_block *block) {
    const int64_t *grid = launch->shape.grid;
    const tk_emu_program *program = launch->program;
    *block = (tk_emu_block){
        .launch = launch,
        .number = number,
        .random = seed_of(launch->seed, number),
        .index = {number % grid[0], number / grid[0] % grid[1], number / grid[0] / grid[1]}};
    block->n_warps = (launch->n_threads + TK_EMU_LANES - 1) / TK_EMU_LANES;
    block->shared_bytes = launch->shared_bytes;
    block->warps = tk_calloc(block->n_warps, sizeof *block->warps);
    block->shared = tk_calloc(1, (size_t)block->shared_bytes + 16);
    block->shared_cells = tk_calloc((size_t)block->shared_bytes / program->shared_unit + 1,
                                    sizeof *block->shared_cells);
    block->counters = tk_calloc(program->ops.count + 1, sizeof *block->counters);
    block->agents = tk_calloc(launch->n_clocks - launch->n_threads + 1, sizeof *block->agents);
    if (!block->warps || !block->shared || !block->shared_cells || !block->counters ||
        !block->agents)
        return false;
    for (uint32_t w = 0; w < block->n_warps; w++)
        if (!start_warp(block, w)) return false;
    return true;
}

/* ---- waves ---- */

typedef struct wave {
    tk_emu_launch *launch;
    tk_emu_block *blocks;
    int64_t first;
} wave;

static void run_blocks(void *arg, int64_t begin, int64_t end, int worker) {
    wave *w = arg;
    (void)worker;
    for (int64_t i = begin; i < end; i++) {
        if (start_block(w->launch, w->first + i, &w->blocks[i]))
            tk_emu_run_block(&w->blocks[i]);
        else
            w->blocks[i].status = TK_OUT_OF_MEMORY;
    }
}

static void add_counts(tk_emu_launch *launch, const tk_emu_block *block) {
    for (size_t i = 0; i < launch->program->ops.count && block->counters; i++) {
        launch->counters[i].warps += block->counters[i].warps;
        launch->counters[i].lanes += block->counters[i].lanes;
        launch->counters[i].sectors += block->counters[i].sectors;
        launch->counters[i].conflicts += block->counters[i].conflicts;
    }
    launch->totals.lane_operations += block->totals.lane_operations;
    launch->totals.flops += block->totals.flops;
    launch->totals.read_bytes += block->totals.read_bytes;
    launch->totals.written_bytes += block->totals.written_bytes;
}

static tk_status status_of(const tk_emu_block *block) {
    if (block->status == TK_OUT_OF_MEMORY) return no_memory();
    if (block->status == TK_OK) return TK_OK;
    return tk_fail(
        TK_UNSUPPORTED,
        "the emulator counts 131071 synchronisations a thread, and block %lld makes more",
        (long long)block->number);
}

/* In the order of blocks. */
static tk_status finish_block(tk_emu_launch *launch, tk_emu_block *block) {
    tk_emu_commit(block);
    add_counts(launch, block);
    tk_emu_find_all(&launch->findings, &block->findings);
    tk_status status = status_of(block);
    release_block(block);
    return status;
}

static tk_status run_wave(tk_emu_launch *launch, tk_emu_block *blocks, int64_t first,
                          int64_t count) {
    wave w = {.launch = launch, .blocks = blocks, .first = first};
    tk_status status = TK_OK;
    tk_parallel_for(count, 1, run_blocks, &w);
    for (int64_t i = 0; i < count; i++) {
        tk_status of_block = finish_block(launch, &blocks[i]);
        if (status == TK_OK) status = of_block;
    }
    return status;
}

static tk_status run_grid(tk_emu_launch *launch) {
    const int64_t *grid = launch->shape.grid;
    int64_t total = grid[0] * grid[1] * grid[2];
    tk_emu_block *blocks = tk_calloc((size_t)launch->resident, sizeof *blocks);
    if (!blocks) return no_memory();
    tk_status status = TK_OK;
    for (int64_t first = 0; first < total && status == TK_OK; first += launch->resident) {
        int64_t count = total - first < launch->resident ? total - first : launch->resident;
        status = run_wave(launch, blocks, first, count);
    }
    tk_free(blocks);
    return status;
}

/* ---- preparing ---- */

static void spread(unsigned char *to, uint64_t bits, int bytes) {
    for (int l = 0; l < TK_EMU_LANES; l++) memcpy(to + l * bytes, &bits, (size_t)bytes);
}

static uint64_t address_of(const tk_kemulate *how, size_t index) {
    return ((uint64_t)index + 1) << TK_EMU_BUFFER_SHIFT | how->buffers[index].offset;
}

static tk_status make_image(tk_emu_launch *launch, const tk_kemulate *how) {
    const tk_emu_program *program = launch->program;
    const tk_kernel *kernel = program->kernel;
    launch->image = tk_calloc(1, program->register_bytes + 64);
    if (!launch->image) return no_memory();
    for (size_t i = 0; i < kernel->constants.count; i++) {
        const tk_kvalue *value = kernel->constants.items[i];
        spread(launch->image + program->registers[value->id], value->bits,
               tk_ktype_bytes(value->type));
    }
    for (size_t i = 0; i < kernel->contract.params.count; i++) {
        const tk_kvalue *value = kernel->contract.params.items[i].value;
        bool pointer = value->type.kind == TK_KT_POINTER;
        spread(launch->image + program->registers[value->id],
               pointer ? address_of(how, i) : how->arguments[i].bits, tk_ktype_bytes(value->type));
    }
    return TK_OK;
}

static bool overlap(const tk_emu_buffer *a, const tk_emu_buffer *b) {
    return a->bytes && b->bytes && a->data < b->data + b->bytes && b->data < a->data + a->bytes;
}

/* Buffers that share memory must see each other's writes: all are then seen through the pages of
 * one that holds them, or the launch is refused. */
static tk_status join_overlapping(tk_emu_launch *launch, const tk_kernel *kernel) {
    for (uint32_t i = 0; i < launch->n_buffers; i++) launch->buffers[i].number = i;
    for (uint32_t i = 0; i < launch->n_buffers; i++)
        for (uint32_t j = 0; j < i; j++) {
            tk_emu_buffer *a = &launch->buffers[j], *b = &launch->buffers[i];
            if (!overlap(a, b) || (a->access | b->access) == TK_KACCESS_READ) continue;
            if (a->data != b->data || a->bytes != b->bytes)
                return tk_fail(TK_UNSUPPORTED,
                               "kernel %s: the buffers of arguments %u and %u overlap in part",
                               kernel->name, j, i);
            a->access |= TK_EMU_JOINED, b->access |= TK_EMU_JOINED;
            b->number = a->number;
        }
    return TK_OK;
}

static tk_status set_buffers(tk_emu_launch *launch, const tk_kernel *kernel,
                             const tk_kemulate *how) {
    launch->n_buffers = (uint32_t)kernel->contract.params.count;
    launch->buffers = tk_calloc(launch->n_buffers + 1, sizeof *launch->buffers);
    if (!launch->buffers) return no_memory();
    for (uint32_t i = 0; i < launch->n_buffers; i++) {
        const tk_kparameter *param = &kernel->contract.params.items[i];
        if (param->map)
            return tk_fail(TK_UNSUPPORTED, "the emulator has no tensor maps yet: parameter %s",
                           param->value->name);
        if (param->value->type.kind != TK_KT_POINTER) continue;
        const tk_kbuffer *buffer = &how->buffers[i];
        if (buffer->offset > buffer->bytes || (!buffer->data && buffer->bytes) ||
            buffer->bytes >> (TK_EMU_BUFFER_SHIFT - 1))
            return tk_fail(
                TK_INVALID_ARGUMENT,
                "kernel %s: the buffer of argument %s has %zu bytes and its pointer is at %zu",
                kernel->name, param->value->name, buffer->bytes, buffer->offset);
        launch->buffers[i] =
            (tk_emu_buffer){.data = buffer->data, .bytes = buffer->bytes, .access = param->access};
    }
    return join_overlapping(launch, kernel);
}

/* What the contract says, with the emulator's addresses for pointers. */
static tk_status compute_shape(tk_emu_launch *launch, const tk_kernel *kernel,
                               const tk_kemulate *how) {
    static const tk_kdevice h200 = {.sms = 132, .shared_bytes = 227 * 1024, .threads = 2048};
    const tk_kdevice *device = how->device ? how->device : &h200;
    tk_kargument *arguments = tk_calloc(how->n_arguments + 1, sizeof *arguments);
    if (!arguments) return no_memory();
    for (size_t i = 0; i < how->n_arguments && i < kernel->contract.params.count; i++) {
        bool pointer = kernel->contract.params.items[i].value->type.kind == TK_KT_POINTER;
        arguments[i].bits = pointer ? address_of(how, i) : how->arguments[i].bits;
    }
    tk_status status =
        tk_kernel_launch(kernel, device, how->n_arguments, arguments, &launch->shape);
    tk_free(arguments);
    if (status == TK_OK && how->launch.block[0]) launch->shape = how->launch;
    return status;
}

static tk_status check_shape(const tk_emu_launch *launch, const tk_kernel *kernel) {
    const tk_klaunch *shape = &launch->shape;
    int64_t blocks = shape->grid[0] * shape->grid[1] * shape->grid[2];
    if (shape->cluster[0] * shape->cluster[1] * shape->cluster[2] != 1)
        return tk_fail(TK_UNSUPPORTED, "kernel %s: the emulator has no clusters yet", kernel->name);
    if (blocks >= INT32_MAX)
        return tk_fail(TK_UNSUPPORTED, "kernel %s: %lld blocks are more than the emulator runs",
                       kernel->name, (long long)blocks);
    if (launch->shared_bytes > 227 * 1024)
        return tk_fail(TK_INVALID_ARGUMENT,
                       "kernel %s: %lld bytes of shared memory, a block has at most 232448",
                       kernel->name, (long long)launch->shared_bytes);
    return TK_OK;
}

/* Clocks behind those of the threads. */
static void set_agents(tk_emu_launch *launch) {
    launch->n_clocks = launch->n_threads;
    launch->wgmma_agent = launch->n_clocks;
    if (launch->program->has_wgmma)
        launch->n_clocks += (launch->n_threads + TK_EMU_LANES - 1) / TK_EMU_LANES;
}

static tk_status prepare(tk_emu_launch *launch, const tk_kernel *kernel, const tk_kemulate *how) {
    launch->seed = how->seed;
    launch->resident = how->resident > 0 ? how->resident : 64;
    TK_TRY(set_buffers(launch, kernel, how));
    TK_TRY(compute_shape(launch, kernel, how));
    launch->n_threads =
        (uint32_t)(launch->shape.block[0] * launch->shape.block[1] * launch->shape.block[2]);
    set_agents(launch);
    launch->shared_bytes = tk_kshared_total(&launch->program->shared, launch->shape.dynamic_shared);
    TK_TRY(check_shape(launch, kernel));
    TK_TRY(make_image(launch, how));
    launch->counters = tk_calloc(launch->program->ops.count + 1, sizeof *launch->counters);
    return launch->counters ? tk_emu_global_create(launch) : no_memory();
}

static tk_status check_how(const tk_kernel *kernel, const tk_kemulate *how) {
    if (how->n_arguments != kernel->contract.params.count)
        return tk_fail(TK_INVALID_ARGUMENT, "kernel %s: %zu arguments, expected %zu", kernel->name,
                       how->n_arguments, kernel->contract.params.count);
    if (!how->n_arguments) return TK_OK;
    if (!how->arguments || !how->buffers)
        return tk_fail_null(how->arguments ? "buffers" : "arguments");
    return TK_OK;
}

tk_status tk_kernel_emulate(const tk_kernel *kernel, const tk_kemulate *how, tk_emulation **out) {
    TK_NEED(kernel, how, out);
    TK_TRY(check_how(kernel, how));
    tk_emulation *emulation = tk_calloc(1, sizeof *emulation);
    if (!emulation) return no_memory();
    emulation->kernel = tk_kernel_retain((tk_kernel *)(uintptr_t)kernel);
    emulation->launch.program = &emulation->program;
    tk_status status = tk_emu_decode(kernel, &emulation->program);
    if (status == TK_OK) status = prepare(&emulation->launch, kernel, how);
    if (status == TK_OK) status = run_grid(&emulation->launch);
    if (status == TK_OK)
        *out = emulation;
    else
        tk_emulation_release(emulation);
    return status;
}
