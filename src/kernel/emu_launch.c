/* A launch: buffers get addresses, groups of blocks run in waves on the pool's threads, and their
 * pages and findings are merged in the order of groups. */
#include "base/error.h"
#include "base/pool.h"
#include "kernel/contract.h"
#include "kernel/emu_group.h"
#include "kernel/emu_tma.h"
#include "kernel/emulation.h"

static tk_status no_memory(void) { return tk_fail(TK_OUT_OF_MEMORY, "no memory for an emulation"); }

/* ---- waves ---- */

typedef struct wave {
    tk_emu_launch *launch;
    tk_emu_group *groups;
    int64_t first;
    int64_t clusters; /* of a group */
} wave;

static void run_groups(void *arg, int64_t begin, int64_t end, int worker) {
    wave *w = arg;
    (void)worker;
    for (int64_t i = begin; i < end; i++) {
        int64_t number = w->first + i, first = number * w->clusters;
        if (tk_emu_group_init(w->launch, number, first, first + w->clusters, &w->groups[i]))
            tk_emu_run_group(&w->groups[i]);
    }
}

static void add_counts(tk_emu_launch *launch, const tk_emu_group *group) {
    for (size_t i = 0; i < launch->program->ops.count && group->counters; i++) {
        launch->counters[i].warps += group->counters[i].warps;
        launch->counters[i].lanes += group->counters[i].lanes;
        launch->counters[i].sectors += group->counters[i].sectors;
        launch->counters[i].conflicts += group->counters[i].conflicts;
    }
    launch->totals.lane_operations += group->totals.lane_operations;
    launch->totals.flops += group->totals.flops;
    launch->totals.read_bytes += group->totals.read_bytes;
    launch->totals.written_bytes += group->totals.written_bytes;
}

static tk_status status_of(const tk_emu_group *group) {
    if (group->status == TK_OUT_OF_MEMORY) return no_memory();
    if (group->status == TK_OK) return TK_OK;
    if (group->status == TK_INDEX_ERROR)
        return tk_fail(TK_UNSUPPORTED,
                       "the emulator tells 16384 threads, mbarriers and their asynchronous work "
                       "apart, and the blocks around block %lld have more",
                       (long long)(group->number * group->launch->slots));
    return tk_fail(
        TK_UNSUPPORTED,
        "the emulator counts 131071 synchronisations a thread, and block %lld makes more",
        (long long)(group->number * group->launch->slots));
}

/* In the order of groups. */
static tk_status finish_group(tk_emu_launch *launch, tk_emu_group *group) {
    tk_emu_commit(group);
    add_counts(launch, group);
    tk_emu_find_all(&launch->findings, &group->findings);
    tk_status status = status_of(group);
    tk_emu_group_deinit(group);
    return status;
}

static tk_status run_wave(const wave *of, int64_t first, int64_t count) {
    wave w = *of;
    tk_status status = TK_OK;
    w.first = first;
    tk_parallel_for(count, 1, run_groups, &w);
    for (int64_t i = 0; i < count; i++) {
        tk_status of_group = finish_group(w.launch, &w.groups[i]);
        if (status == TK_OK) status = of_group;
    }
    return status;
}

/* One group of all clusters when they may wait for each other, else a group for each. */
static tk_status run_grid(tk_emu_launch *launch) {
    const int64_t *grid = launch->shape.grid;
    int64_t clusters = grid[0] * grid[1] * grid[2] / launch->cluster;
    bool joined = launch->program->joined;
    int64_t groups = joined ? clusters > 0 : clusters, at_once = launch->resident / launch->cluster;
    if (at_once < 1 || joined) at_once = 1;
    wave w = {.launch = launch, .clusters = joined ? clusters : 1};
    w.groups = tk_calloc((size_t)at_once, sizeof *w.groups);
    if (!w.groups) return no_memory();
    tk_status status = TK_OK;
    for (int64_t first = 0; first < groups && status == TK_OK; first += at_once)
        status = run_wave(&w, first, groups - first < at_once ? groups - first : at_once);
    tk_free(w.groups);
    return status;
}

/* ---- one list of findings for all seeds ---- */

/* Of which pair of three unordered accesses a run tells depends on its interleaving, and so do the
 * threads that are named. So the list is that of one interleaving: when a run has findings, it is
 * repeated with this seed, for the findings alone. Its own are kept where the repetition has none:
 * what a kernel does may hang on the order of its atomic operations. */
enum { JUDGE_SEED = 0 };

static tk_status judge_again(tk_emu_launch *launch) {
    tk_emu_launch again = *launch;
    again.seed = JUDGE_SEED;
    again.totals = (tk_ktotals){0};
    again.findings = (tk_emu_findings){0};
    again.global = NULL;
    again.counters = tk_calloc(launch->program->ops.count + 1, sizeof *again.counters);
    if (!again.counters) return no_memory();
    tk_emu_global_exchange(launch);
    tk_status status = tk_emu_global_create(&again);
    if (status == TK_OK) status = run_grid(&again);
    if (again.global) tk_emu_global_exchange(&again);
    tk_emu_global_exchange(launch);
    if (again.findings.list.count) {
        tk_emu_findings own = launch->findings;
        launch->findings = again.findings;
        again.findings = own;
    }
    tk_emu_findings_deinit(&again.findings);
    tk_emu_global_release(&again);
    tk_free(again.counters);
    return status;
}

static tk_status run_and_judge(tk_emu_launch *launch) {
    TK_TRY(run_grid(launch));
    if (!launch->findings.list.count || launch->seed == JUDGE_SEED) return TK_OK;
    return judge_again(launch);
}

/* ---- preparing ---- */

static void spread(unsigned char *to, uint64_t bits, int bytes) {
    for (int l = 0; l < TK_EMU_LANES; l++) memcpy(to + l * bytes, &bits, (size_t)bytes);
}

static uint64_t address_of(const tk_kemulate *how, size_t index) {
    return ((uint64_t)index + 1) << TK_EMU_BUFFER_SHIFT | how->buffers[index].offset;
}

/* Of a tensor map: its number, where buffers have theirs. */
static uint64_t map_address(size_t index) { return ((uint64_t)index + 1) << TK_EMU_BUFFER_SHIFT; }

static tk_status make_image(tk_emu_launch *launch, const tk_kemulate *how) {
    const tk_emu_program *program = launch->program;
    const tk_kernel *kernel = program->kernel;
    launch->image = tk_calloc(1, program->given_bytes + 64);
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
               !pointer                               ? how->arguments[i].bits
               : kernel->contract.params.items[i].map ? map_address(i)
                                                      : address_of(how, i),
               tk_ktype_bytes(value->type));
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
            launch->buffers[a->number].unset &= b->unset;
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
        if (param->map || param->value->type.kind != TK_KT_POINTER) continue;
        const tk_kbuffer *buffer = &how->buffers[i];
        if (buffer->offset > buffer->bytes || (!buffer->data && buffer->bytes) ||
            buffer->bytes >> (TK_EMU_BUFFER_SHIFT - 1))
            return tk_fail(
                TK_INVALID_ARGUMENT,
                "kernel %s: the buffer of argument %s has %zu bytes and its pointer is at %zu",
                kernel->name, param->value->name, buffer->bytes, buffer->offset);
        launch->buffers[i] = (tk_emu_buffer){.data = buffer->data,
                                             .bytes = buffer->bytes,
                                             .access = param->access,
                                             .unset = how->unset && how->unset[i]};
    }
    return join_overlapping(launch, kernel);
}

static int param_of(const tk_kernel *kernel, const tk_kvalue *value) {
    for (size_t i = 0; i < kernel->contract.params.count; i++)
        if (kernel->contract.params.items[i].value == value) return (int)i;
    return -1;
}

/* Rules of tensor maps get their values. */
static tk_status bind_maps(tk_emu_launch *launch, const tk_kernel *kernel,
                           const tk_kbinding *binding, const tk_kemulate *how) {
    launch->maps = tk_calloc(launch->n_buffers + 1, sizeof *launch->maps);
    if (!launch->maps) return no_memory();
    for (uint32_t i = 0; i < launch->n_buffers; i++) {
        const tk_kmap *map = kernel->contract.params.items[i].map;
        if (!map) continue;
        uint64_t base = address_of(how, (size_t)param_of(kernel, map->base));
        TK_TRY(tk_emu_map_bind(kernel, binding, (int)i, base, &launch->maps[i]));
        launch->buffers[i] = (tk_emu_buffer){.data = (unsigned char *)&launch->maps[i],
                                             .bytes = sizeof *launch->maps,
                                             .access = TK_KACCESS_READ,
                                             .number = i};
    }
    return TK_OK;
}

/* A shape that is given instead of the contract's; clusters of 0 blocks are of one. */
static tk_status take_shape(const tk_kernel *kernel, const tk_klaunch *given, tk_klaunch *out) {
    static const int64_t most_blocks[] = {INT32_MAX, 65535, 65535};
    int64_t threads = 1, cluster = 1;
    *out = *given;
    for (int i = 0; i < 3; i++) {
        if (!out->cluster[i]) out->cluster[i] = 1;
        bool good = out->block[i] >= 1 && out->block[i] <= 1024 && out->grid[i] >= 0 &&
                    out->grid[i] <= most_blocks[i] && out->cluster[i] >= 1 &&
                    out->cluster[i] <= 16 && out->grid[i] % out->cluster[i] == 0;
        threads *= good ? out->block[i] : 1025;
        cluster *= good ? out->cluster[i] : 17;
        if (!good || threads > 1024 || cluster > 16)
            return tk_fail(TK_INVALID_ARGUMENT,
                           "kernel %s: the launch has %lld blocks in clusters of %lld and %lld "
                           "threads along axis %d",
                           kernel->name, (long long)out->grid[i], (long long)out->cluster[i],
                           (long long)out->block[i], i);
    }
    if (out->dynamic_shared >= 0) return TK_OK;
    return tk_fail(TK_INVALID_ARGUMENT, "kernel %s: %lld bytes of shared memory", kernel->name,
                   (long long)out->dynamic_shared);
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
    tk_kbinding binding = {kernel, device, arguments};
    tk_status status =
        tk_kernel_launch(kernel, device, how->n_arguments, arguments, &launch->shape);
    if (status == TK_OK) status = bind_maps(launch, kernel, &binding, how);
    tk_free(arguments);
    if (status == TK_OK && how->launch.block[0])
        status = take_shape(kernel, &how->launch, &launch->shape);
    return status;
}

static tk_status check_shape(const tk_emu_launch *launch, const tk_kernel *kernel) {
    const tk_klaunch *shape = &launch->shape;
    int64_t blocks = shape->grid[0] * shape->grid[1] * shape->grid[2];
    if (blocks >= INT32_MAX)
        return tk_fail(TK_UNSUPPORTED, "kernel %s: %lld blocks are more than the emulator runs",
                       kernel->name, (long long)blocks);
    if (launch->shared_bytes > 227 * 1024)
        return tk_fail(TK_INVALID_ARGUMENT,
                       "kernel %s: %lld bytes of shared memory, a block has at most 232448",
                       kernel->name, (long long)launch->shared_bytes);
    return TK_OK;
}

/* Blocks that live at once in one group: those of a cluster, or all resident ones as far as their
 * threads can be told apart. */
static void set_slots(tk_emu_launch *launch) {
    enum { MOST_LANES = 8192 };
    const int64_t *grid = launch->shape.grid, *cluster = launch->shape.cluster;
    int64_t blocks = grid[0] * grid[1] * grid[2], lanes;
    launch->n_warps = (launch->n_threads + TK_EMU_LANES - 1) / TK_EMU_LANES;
    launch->cluster = (uint32_t)(cluster[0] * cluster[1] * cluster[2]);
    launch->slots = launch->cluster;
    lanes = (int64_t)launch->n_warps * TK_EMU_LANES * launch->program->n_kinds;
    while (launch->program->joined && launch->slots + launch->cluster <= launch->resident &&
           launch->slots + launch->cluster <= blocks &&
           (launch->slots + launch->cluster) * lanes <= MOST_LANES)
        launch->slots += launch->cluster;
    launch->wgmma_agent = (uint32_t)(launch->slots * lanes);
}

static tk_status check_ids(const tk_emu_launch *launch, const tk_kernel *kernel) {
    enum { MOST = 16384 - 1024 };
    if (launch->wgmma_agent <= MOST) return TK_OK;
    return tk_fail(TK_UNSUPPORTED,
                   "kernel %s: clusters of %u blocks of %u threads are more than the emulator runs",
                   kernel->name, launch->cluster, launch->n_threads);
}

static tk_status prepare(tk_emu_launch *launch, const tk_kernel *kernel, const tk_kemulate *how) {
    launch->seed = how->seed;
    launch->resident = how->resident > 0 ? how->resident : 64;
    TK_TRY(set_buffers(launch, kernel, how));
    TK_TRY(compute_shape(launch, kernel, how));
    launch->n_threads =
        (uint32_t)(launch->shape.block[0] * launch->shape.block[1] * launch->shape.block[2]);
    set_slots(launch);
    TK_TRY(check_ids(launch, kernel));
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
    tk_emu_pool pool;
    tk_emu_pool_init(&pool);
    emulation->launch.pool = &pool;
    tk_status status = tk_emu_decode(kernel, &emulation->program);
    if (status == TK_OK) status = prepare(&emulation->launch, kernel, how);
    if (status == TK_OK) status = run_and_judge(&emulation->launch);
    tk_emu_pool_deinit(&pool);
    emulation->launch.pool = NULL;
    if (status == TK_OK)
        *out = emulation;
    else
        tk_emulation_release(emulation);
    return status;
}
