/* Preparing and running launches, packing parameters, encoding tensor maps. */
#include <stdio.h>
#include <string.h>

#include "runtime/cuda_module.h"

#define LARGEST_CLUSTER 16
#define PORTABLE_CLUSTER 8
#define MOST_BLOCKS_X 0x7fffffffu
#define MOST_BLOCKS_YZ 65535u

/* ---- preparing --------------------------------------------------------------------------------
 */

static bool all_zero(const uint32_t shape[3]) { return !shape[0] && !shape[1] && !shape[2]; }

static uint64_t product(const uint32_t shape[3]) {
    return (uint64_t)shape[0] * shape[1] * shape[2];
}

static tk_status check_block(const tk_cuda_launch *launch) {
    const tk_cuda_function *function = launch->function;
    const uint32_t *block = launch->block;
    if (product(block) == 0 || block[0] > 1024 || block[1] > 1024 || block[2] > 64)
        return tk_fail(TK_INVALID_ARGUMENT,
                       "kernel %s: a block of %u x %u x %u threads, expected 1 to 1024, 1024, 64",
                       function->name, block[0], block[1], block[2]);
    if (product(block) > (uint64_t)function->max_threads)
        return tk_fail(TK_UNSUPPORTED,
                       "kernel %s: %llu threads a block, it can have %d with its %d registers",
                       function->name, (unsigned long long)product(block), function->max_threads,
                       function->registers);
    return TK_OK;
}

static tk_status check_cluster(const tk_cuda_launch *launch) {
    const tk_cuda_function *function = launch->function;
    const uint32_t *cluster = launch->cluster;
    if (all_zero(cluster)) return TK_OK;
    if (!function->cuda->info.clusters)
        return tk_fail(TK_UNSUPPORTED, "kernel %s: %s has no clusters", function->name,
                       function->cuda->info.name);
    if (product(cluster) == 0 || product(cluster) > LARGEST_CLUSTER)
        return tk_fail(TK_INVALID_ARGUMENT,
                       "kernel %s: a cluster of %u x %u x %u blocks, expected 1 to %d",
                       function->name, cluster[0], cluster[1], cluster[2], LARGEST_CLUSTER);
    return TK_OK;
}

static tk_status check_grid(const tk_cuda_function *function, const uint32_t grid[3],
                            const uint32_t cluster[3]) {
    if (grid[0] > MOST_BLOCKS_X || grid[1] > MOST_BLOCKS_YZ || grid[2] > MOST_BLOCKS_YZ)
        return tk_fail(TK_INVALID_ARGUMENT,
                       "kernel %s: a grid of %u x %u x %u blocks, at most %u, %u, %u",
                       function->name, grid[0], grid[1], grid[2], MOST_BLOCKS_X, MOST_BLOCKS_YZ,
                       MOST_BLOCKS_YZ);
    if (all_zero(cluster)) return TK_OK;
    for (int i = 0; i < 3; i++)
        if (grid[i] % cluster[i])
            return tk_fail(TK_INVALID_ARGUMENT,
                           "kernel %s: a grid of %u blocks along axis %d is no multiple of its "
                           "cluster's %u",
                           function->name, grid[i], i, cluster[i]);
    return TK_OK;
}

static tk_status check_shared(const tk_cuda_launch *launch) {
    const tk_cuda_function *function = launch->function;
    size_t limit = (size_t)function->cuda->info.max_shared, fixed = (size_t)function->shared_bytes;
    if (fixed <= limit && launch->dynamic_shared <= limit - fixed) return TK_OK;
    return tk_fail(
        TK_UNSUPPORTED,
        "kernel %s: %zu bytes of shared memory a block (%zu static, %zu dynamic), %s has "
        "%zu",
        function->name, fixed + launch->dynamic_shared, fixed, launch->dynamic_shared,
        function->cuda->info.name, limit);
}

static tk_status check_cooperative(const tk_cuda_launch *launch) {
    if (!launch->cooperative || launch->function->cuda->info.cooperative) return TK_OK;
    return tk_fail(TK_UNSUPPORTED, "kernel %s: %s has no cooperative launches",
                   launch->function->name, launch->function->cuda->info.name);
}

/* Whatever the driver wants to know about a function before it is launched so. The opted-in amount
 * only grows; two threads may both raise it, each to enough for itself. */
static tk_status opt_in(const tk_cuda_launch *launch) {
    tk_cuda_function *function = launch->function;
    tk_cuda *cuda = function->cuda;
    int bytes = (int)launch->dynamic_shared;
    pthread_mutex_lock(&cuda->lock);
    CUresult result = CUDA_SUCCESS;
    if (bytes > atomic_load(&function->dynamic_shared)) {
        result =
            cuda->api->function_set(function->handle, CU_FUNC_MAX_DYNAMIC_SHARED_SIZE_BYTES, bytes);
        if (result == CUDA_SUCCESS) atomic_store(&function->dynamic_shared, bytes);
    }
    if (result == CUDA_SUCCESS && product(launch->cluster) > PORTABLE_CLUSTER)
        result =
            cuda->api->function_set(function->handle, CU_FUNC_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1);
    pthread_mutex_unlock(&cuda->lock);
    if (result == CUDA_SUCCESS) return TK_OK;
    return tk_cuda_fail(cuda, result, "kernel %s: %d bytes of dynamic shared memory",
                        function->name, bytes);
}

static void add_attribute(tk_cuda_prepared *prepared, CUlaunchAttribute attribute) {
    prepared->attrs[prepared->config.n_attrs++] = attribute;
}

static void fill_config(const tk_cuda_launch *launch, tk_cuda_prepared *out) {
    const uint32_t *grid = launch->grid, *block = launch->block, *cluster = launch->cluster;
    out->function = launch->function;
    out->site = launch->site;
    memcpy(out->cluster, cluster, sizeof out->cluster);
    out->n_params = launch->packing ? launch->packing->count : 0;
    for (int i = 0; i < out->n_params; i++) out->offsets[i] = launch->packing->params[i].offset;
    out->config = (CUlaunchConfig){
        grid[0], grid[1], grid[2], block[0], block[1], block[2], (unsigned)launch->dynamic_shared,
        NULL,    NULL,    0};
    if (!all_zero(cluster))
        add_attribute(out,
                      (CUlaunchAttribute){.id = CU_LAUNCH_CLUSTER_DIMENSION,
                                          .value.cluster = {cluster[0], cluster[1], cluster[2]}});
    if (launch->cooperative)
        add_attribute(out,
                      (CUlaunchAttribute){.id = CU_LAUNCH_COOPERATIVE, .value.cooperative = 1});
    if (launch->programmatic && launch->function->cuda->info.clusters)
        add_attribute(out, (CUlaunchAttribute){.id = CU_LAUNCH_PROGRAMMATIC_STREAM_SERIALIZATION,
                                               .value.programmatic = 1});
}

tk_status tk_cuda_launch_prepare(const tk_cuda_launch *launch, tk_cuda_prepared *out_prepared) {
    *out_prepared = (tk_cuda_prepared){0};
    TK_TRY(check_block(launch));
    TK_TRY(check_cluster(launch));
    TK_TRY(check_grid(launch->function, launch->grid, launch->cluster));
    TK_TRY(check_shared(launch));
    TK_TRY(check_cooperative(launch));
    TK_TRY(tk_cuda_enter(launch->function->cuda));
    TK_TRY(opt_in(launch));
    fill_config(launch, out_prepared);
    return TK_OK;
}

/* ---- running ----------------------------------------------------------------------------------
 */

static tk_status fail_launch(const tk_cuda_prepared *prepared, CUresult result, const char *when) {
    const tk_cuda_function *function = prepared->function;
    return tk_cuda_fail(function->cuda, result, "kernel %s launched at %s%s", function->name,
                        prepared->site ? prepared->site : "an unnamed place", when);
}

static tk_status check_ended(const tk_cuda_prepared *prepared, tk_queue *queue) {
    if (atomic_load(&queue->capturing)) return TK_OK;
    CUresult result = queue->cuda->api->stream_synchronize(queue->handle);
    return result == CUDA_SUCCESS ? TK_OK : fail_launch(prepared, result, ", while it ran");
}

tk_status tk_cuda_launch_run(const tk_cuda_prepared *prepared, tk_queue *queue,
                             const uint32_t grid[3], const void *params) {
    tk_cuda *cuda = queue->cuda;
    CUlaunchConfig config = prepared->config;
    if (grid) {
        TK_TRY(check_grid(prepared->function, grid, prepared->cluster));
        config.grid_x = grid[0];
        config.grid_y = grid[1];
        config.grid_z = grid[2];
    }
    TK_TRY(tk_cuda_enter(cuda));
    if (!config.grid_x || !config.grid_y || !config.grid_z) return TK_OK;
    config.stream = queue->handle;
    config.attrs = (CUlaunchAttribute *)prepared->attrs;
    void *values[TK_CUDA_MAX_PARAMS];
    for (int i = 0; i < prepared->n_params; i++) values[i] = (char *)params + prepared->offsets[i];
    CUresult result = cuda->api->launch(&config, prepared->function->handle, values, NULL);
    if (result != CUDA_SUCCESS) return fail_launch(prepared, result, "");
    uint64_t ticket = tk_cuda_queue_submitted(queue);
    if (atomic_load_explicit(&cuda->debug, memory_order_relaxed))
        return check_ended(prepared, queue);
    tk_cuda_queue_launched(queue, ticket, prepared->function->name, prepared->site);
    return TK_OK;
}

/* ---- parameters -------------------------------------------------------------------------------
 */

tk_status tk_cuda_packing_add(tk_cuda_packing *packing, size_t bytes, size_t alignment) {
    size_t offset = (packing->bytes + alignment - 1) / alignment * alignment;
    if (packing->count == TK_CUDA_MAX_PARAMS || bytes > TK_CUDA_MAX_PARAM_BYTES ||
        offset > TK_CUDA_MAX_PARAM_BYTES - bytes)
        return tk_fail(TK_UNSUPPORTED,
                       "parameter %d of %zu bytes: a kernel takes at most %d parameters and %d "
                       "bytes in all",
                       packing->count, bytes, TK_CUDA_MAX_PARAMS, TK_CUDA_MAX_PARAM_BYTES);
    packing->params[packing->count].offset = (uint16_t)offset;
    packing->params[packing->count].bytes = (uint16_t)bytes;
    packing->count++;
    packing->bytes = offset + bytes;
    return TK_OK;
}

void tk_cuda_pack(const tk_cuda_packing *packing, const void *const *values, void *out) {
    char *to = out;
    for (int i = 0; i < packing->count; i++)
        memcpy(to + packing->params[i].offset, values[i], packing->params[i].bytes);
}

/* ---- tensor maps ------------------------------------------------------------------------------
 */

static tk_status check_axis(const tk_cuda_tensor_rule *rule, int axis) {
    uint64_t dim = rule->dims[axis];
    if (dim == 0 || dim > (uint64_t)1 << 32)
        return tk_fail(TK_INVALID_ARGUMENT,
                       "tensor map: axis %d has length %llu, expected 1 to 2^32", axis,
                       (unsigned long long)dim);
    if (rule->box[axis] == 0 || rule->box[axis] > 256)
        return tk_fail(TK_INVALID_ARGUMENT,
                       "tensor map: axis %d has a box of %u, expected 1 to 256", axis,
                       rule->box[axis]);
    if (rule->element_strides[axis] == 0 || rule->element_strides[axis] > 8)
        return tk_fail(TK_INVALID_ARGUMENT,
                       "tensor map: axis %d has an element stride of %u, expected 1 to 8", axis,
                       rule->element_strides[axis]);
    if (axis > 0 && (rule->strides[axis - 1] % 16 || rule->strides[axis - 1] >> 40))
        return tk_fail(TK_INVALID_ARGUMENT,
                       "tensor map: axis %d has a stride of %llu bytes, expected a multiple of 16 "
                       "below 2^40",
                       axis, (unsigned long long)rule->strides[axis - 1]);
    return TK_OK;
}

static tk_status check_rule(const tk_cuda_tensor_rule *rule) {
    if (rule->rank < 1 || rule->rank > 5)
        return tk_fail(TK_INVALID_ARGUMENT, "tensor map: rank %d, expected 1 to 5", rule->rank);
    if (rule->base % 16)
        return tk_fail(TK_INVALID_ARGUMENT, "tensor map: address %#llx is no multiple of 16",
                       (unsigned long long)rule->base);
    for (int axis = 0; axis < rule->rank; axis++) TK_TRY(check_axis(rule, axis));
    return TK_OK;
}

tk_status tk_cuda_tensor_bind(tk_cuda *cuda, const tk_cuda_tensor_rule *rule,
                              tk_cuda_tensor_binding *binding) {
    if (binding->encoded && memcmp(&binding->rule, rule, sizeof *rule) == 0) return TK_OK;
    binding->encoded = false;
    TK_TRY(check_rule(rule));
    TK_TRY(tk_cuda_enter(cuda));
    TK_CUDA_TRY(cuda,
                cuda->api->tensor_map(&binding->map, rule->type, (unsigned)rule->rank,
                                      (void *)(uintptr_t)rule->base, rule->dims, rule->strides,
                                      rule->box, rule->element_strides, rule->interleave,
                                      rule->swizzle, rule->promotion, rule->fill),
                "encoding a tensor map of rank %d", rule->rank);
    memcpy(&binding->rule, rule, sizeof *rule);
    binding->encoded = true;
    return TK_OK;
}
