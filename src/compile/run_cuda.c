/* See run.h: the GPU's side. Kernels that a device has loaded are found by their address, then by
 * their digest, so that equal kernels made anew each time (by a plan, by a script) are built and
 * loaded once.
 *
 * Known addresses are bounded: beyond MOST_KNOWN all are forgotten, and the next launch of each
 * kernel pays for its digest once more. */
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "compile/run.h"
#include "compile/run_cuda.h"
#include "kernel/contract.h"
#include "runtime/cuda_module.h"
#include "target/artifact.h"

#define MOST_KNOWN 4096

/* A kernel as one device has it. */
typedef struct loaded {
    struct loaded *next;
    unsigned char digest[TK_SHA256_BYTES];
    tk_target target;
    tk_kernel *kernel; /* without its body, if it was recalled */
    tk_cuda_module *module;
    tk_cuda_function *function;
    tk_cuda_packing packing;
    tk_kshared_map shared;     /* of declared buffers: for the driver all of it is dynamic */
    pthread_mutex_t lock;      /* guards what follows */
    tk_cuda_prepared prepared; /* for the shape of the latest launch */
    tk_klaunch shape;
    const char *site;
    bool is_prepared;
    tk_cuda_tensor_binding *maps; /* by parameter; NULL: the kernel has none */
} loaded;

typedef struct known {
    tk_kernel *kernel; /* held; NULL: the place is free */
    loaded *found;
} known;

typedef struct table {
    pthread_mutex_t lock;
    loaded *first;
    known *places; /* 2 MOST_KNOWN of them */
    size_t n_known;
    TK_VEC(char *) sites; /* kept as long as the device: errors name them */
} table;

/* ---- the table of a device ---- */

static void free_loaded(loaded *at) {
    tk_kernel_release(at->kernel);
    pthread_mutex_destroy(&at->lock);
    tk_free(at->maps);
    tk_free(at);
}

static void forget_known(table *t) {
    for (size_t i = 0; i < 2 * MOST_KNOWN; i++) tk_kernel_release(t->places[i].kernel);
    memset(t->places, 0, 2 * MOST_KNOWN * sizeof *t->places);
    t->n_known = 0;
}

static void end_table(void *attached) {
    table *t = attached;
    forget_known(t);
    while (t->first) {
        loaded *at = t->first;
        t->first = at->next;
        free_loaded(at);
    }
    for (size_t i = 0; i < t->sites.count; i++) tk_free(t->sites.items[i]);
    tk_vec_deinit(&t->sites);
    tk_free(t->places);
    pthread_mutex_destroy(&t->lock);
    tk_free(t);
}

static table *new_table(void) {
    table *t = tk_calloc(1, sizeof *t);
    if (t) t->places = tk_calloc(2 * MOST_KNOWN, sizeof *t->places);
    if (t && t->places) {
        pthread_mutex_init(&t->lock, NULL);
        return t;
    }
    tk_free(t);
    return NULL;
}

static table *table_of(tk_cuda *cuda) {
    pthread_mutex_lock(&cuda->lock);
    if (!cuda->attached) {
        cuda->attached = new_table();
        cuda->detach = end_table;
    }
    table *t = cuda->attached;
    pthread_mutex_unlock(&cuda->lock);
    return t;
}

static known *place_of(table *t, const tk_kernel *kernel, tk_target target) {
    size_t mask = 2 * MOST_KNOWN - 1;
    size_t at = (size_t)tk_hash_mix((uint64_t)(uintptr_t)kernel, (uint64_t)target) & mask;
    while (t->places[at].kernel &&
           (t->places[at].kernel != kernel || t->places[at].found->target != target))
        at = (at + 1) & mask;
    return &t->places[at];
}

static void remember(table *t, const tk_kernel *kernel, loaded *found) {
    if (t->n_known == MOST_KNOWN) forget_known(t);
    known *place = place_of(t, kernel, found->target);
    if (place->kernel) return;
    *place = (known){tk_kernel_retain((tk_kernel *)(uintptr_t)kernel), found};
    t->n_known++;
}

static const char *keep_site(table *t, const char *site) {
    if (!site || !site[0]) return NULL;
    for (size_t i = 0; i < t->sites.count; i++)
        if (!strcmp(t->sites.items[i], site)) return t->sites.items[i];
    char *copy = tk_strdup(site);
    if (copy && tk_vec_push(&t->sites, copy)) return copy;
    tk_free(copy);
    return NULL;
}

/* ---- loading ---- */

static tk_status arch_of(const tk_cuda *cuda, const char **out_arch) {
    *out_arch = cuda->info.major == 9 ? "sm_90a" : "sm_80";
    if (cuda->info.major == 8 || cuda->info.major == 9) return TK_OK;
    return tk_fail(TK_UNSUPPORTED,
                   "%s has compute capability %d.%d, kernels are built for 8.0 to 9.0",
                   cuda->info.name, cuda->info.major, cuda->info.minor);
}

static tk_status load(tk_cuda *cuda, loaded *at, bool recalled) {
    tk_build how = {.target = at->target, .emit = TK_EMIT_BINARY};
    tk_artifact *artifact;
    TK_TRY(arch_of(cuda, &how.arch));
    TK_TRY(recalled ? tk_kernel_recall(at->kernel, at->digest, &how, &artifact)
                    : tk_kernel_build_cached(at->kernel, &how, NULL, &artifact, NULL));
    size_t bytes;
    const void *image = tk_artifact_binary(artifact, &bytes);
    const char *name = tk_kernel_name(at->kernel);
    tk_status status = tk_cuda_module_load(cuda, image, bytes, name, &at->module);
    tk_artifact_release(artifact);
    if (status != TK_OK) return status;
    status = tk_cuda_module_function(at->module, name, &at->function);
    if (status != TK_OK) tk_cuda_module_release(at->module);
    return status;
}

void tk_run_build_ahead(tk_device *device, const tk_kernel *kernel, tk_target target) {
    tk_build how = {.target = target, .emit = TK_EMIT_BINARY};
    tk_artifact *artifact;
    if (arch_of(tk_cuda_of(device), &how.arch) == TK_OK &&
        tk_kernel_build_cached(kernel, &how, NULL, &artifact, NULL) == TK_OK)
        tk_artifact_release(artifact);
}

static tk_status describe_parameters(loaded *at) {
    bool has_maps = false;
    size_t count = at->kernel->contract.params.count;
    for (size_t i = 0; i < count; i++) {
        bool map = at->kernel->contract.params.items[i].map != NULL;
        size_t bytes = (size_t)tk_kparam_bytes(at->kernel, (int)i);
        TK_TRY(tk_cuda_packing_add(&at->packing, bytes, map ? 64 : bytes));
        has_maps |= map;
    }
    if (has_maps) at->maps = tk_calloc(count, sizeof *at->maps);
    return has_maps && !at->maps ? tk_fail(TK_OUT_OF_MEMORY, "no memory for tensor maps") : TK_OK;
}

static tk_status new_loaded(tk_cuda *cuda, const tk_run *run, const unsigned char *digest,
                            loaded **out) {
    const tk_kernel *kernel = run->kernel;
    loaded *at = tk_calloc(1, sizeof *at);
    if (!at) return tk_fail(TK_OUT_OF_MEMORY, "no memory for a kernel");
    memcpy(at->digest, digest, sizeof at->digest);
    at->target = run->target;
    at->kernel = tk_kernel_retain((tk_kernel *)(uintptr_t)kernel);
    pthread_mutex_init(&at->lock, NULL);
    tk_status status = describe_parameters(at);
    if (run->facts) at->shared = run->facts->shared;
    if (status == TK_OK && !run->facts) status = tk_kshared_place(kernel, NULL, &at->shared);
    if (status == TK_OK) status = load(cuda, at, run->facts != NULL);
    if (status == TK_OK)
        *out = at;
    else
        free_loaded(at);
    return status;
}

/* With the table's lock, building included: a kernel that many threads ask for is built once. */
static tk_status find_by_digest(tk_cuda *cuda, table *t, const tk_run *run, loaded **out) {
    const tk_kernel *kernel = run->kernel;
    unsigned char digest[TK_SHA256_BYTES];
    if (run->facts)
        memcpy(digest, run->facts->digest, sizeof digest);
    else
        TK_TRY(tk_kernel_digest(kernel, false, digest));
    loaded *at = t->first;
    while (at && (at->target != run->target || memcmp(at->digest, digest, sizeof digest)))
        at = at->next;
    if (!at) {
        TK_TRY(new_loaded(cuda, run, digest, &at));
        at->next = t->first;
        t->first = at;
    }
    remember(t, kernel, at);
    *out = at;
    return TK_OK;
}

static tk_status find(tk_cuda *cuda, const tk_run *run, loaded **out, const char **out_site) {
    table *t = table_of(cuda);
    if (!t) return tk_fail(TK_OUT_OF_MEMORY, "no memory for the kernels of a device");
    tk_status status = TK_OK;
    pthread_mutex_lock(&t->lock);
    known *place = place_of(t, run->kernel, run->target);
    if (place->kernel)
        *out = place->found;
    else
        status = find_by_digest(cuda, t, run, out);
    *out_site = keep_site(t, run->site);
    pthread_mutex_unlock(&t->lock);
    return status;
}

/* ---- launching ---- */

static const int map_types[TK_KSCALAR_COUNT] = {
    [TK_K_I8] = 0,  [TK_K_E4M3] = 0, [TK_K_E5M2] = 0, [TK_K_I16] = 1,
    [TK_K_I32] = 3, [TK_K_I64] = 5,  [TK_K_F16] = 6,  [TK_K_F32] = 7,
    [TK_K_F64] = 8, [TK_K_BF16] = 9, [TK_K_TF32] = 11};

static int log2_of(int32_t bytes, int32_t first) {
    int steps = 0;
    for (int32_t at = first; at <= bytes; at *= 2) steps++;
    return steps;
}

tk_status tk_run_tensor_rule(const tk_kbinding *binding, const tk_kmap *map,
                             tk_cuda_tensor_rule *rule) {
    rule->type = map_types[map->element];
    rule->rank = map->rank;
    rule->base = binding->arguments[map->base->index].bits;
    for (int i = 0; i < map->rank; i++) {
        int64_t extent, stride = 0;
        TK_TRY(tk_kexpr_value(binding, map->extent[i], &extent));
        if (i + 1 < map->rank) TK_TRY(tk_kexpr_value(binding, map->stride[i], &stride));
        rule->dims[i] = (uint64_t)extent;
        if (i + 1 < map->rank) rule->strides[i] = (uint64_t)stride;
        rule->box[i] = (uint32_t)map->box[i];
        rule->element_strides[i] = map->element_stride[i] ? (uint32_t)map->element_stride[i] : 1;
    }
    rule->swizzle = log2_of(map->swizzle, 32);
    rule->promotion = log2_of(map->l2_bytes, 64);
    rule->fill = map->fill_nan;
    return TK_OK;
}

/* Writes the parameters; tensor maps that are bound as they were last are not encoded again. */
static tk_status pack(tk_cuda *cuda, loaded *at, const tk_kbinding *binding, unsigned char *out) {
    for (int i = 0; i < at->packing.count; i++) {
        const tk_kmap *map = at->kernel->contract.params.items[i].map;
        unsigned char *to = out + at->packing.params[i].offset;
        if (!map) {
            memcpy(to, &binding->arguments[i].bits, at->packing.params[i].bytes);
            continue;
        }
        tk_cuda_tensor_rule rule = {0};
        TK_TRY(tk_run_tensor_rule(binding, map, &rule));
        TK_TRY(tk_cuda_tensor_bind(cuda, &rule, &at->maps[i]));
        memcpy(to, &at->maps[i].map, sizeof at->maps[i].map);
    }
    return TK_OK;
}

static void narrow(const int64_t from[3], uint32_t to[3]) {
    for (int i = 0; i < 3; i++) to[i] = (uint32_t)from[i];
}

static bool same_shape(const tk_klaunch *a, const tk_klaunch *b) {
    return a->dynamic_shared == b->dynamic_shared &&
           !memcmp(a->cluster, b->cluster, sizeof a->cluster);
}

static tk_status prepare(loaded *at, const tk_klaunch *shape, const char *site) {
    if (at->is_prepared && at->site == site && same_shape(&at->shape, shape)) return TK_OK;
    tk_cuda_launch launch = {.function = at->function,
                             .dynamic_shared =
                                 (size_t)tk_kshared_total(&at->shared, shape->dynamic_shared),
                             .packing = &at->packing,
                             .cooperative = shape->cooperative,
                             .programmatic = shape->programmatic,
                             .site = site};
    int64_t blocks = shape->cluster[0] * shape->cluster[1] * shape->cluster[2];
    if (blocks > 1) narrow(shape->cluster, launch.cluster);
    narrow(shape->block, launch.block);
    at->is_prepared = false;
    TK_TRY(tk_cuda_launch_prepare(&launch, &at->prepared));
    at->shape = *shape;
    at->site = site;
    at->is_prepared = true;
    return TK_OK;
}

static tk_status check_grid(const tk_run *run, const tk_klaunch *shape) {
    char what[200];
    for (int i = 0; i < 3; i++)
        if (shape->grid[i] > (i ? 65535 : INT32_MAX))
            return tk_fail(TK_UNSUPPORTED, "%s: a grid of %lld blocks along axis %d, at most %d",
                           tk_run_text(run, what, sizeof what), (long long)shape->grid[i], i,
                           i ? 65535 : INT32_MAX);
    return TK_OK;
}

static tk_status launch(tk_cuda *cuda, tk_queue *queue, loaded *at, const tk_run *run,
                        const char *site) {
    tk_kargument arguments[TK_CUDA_MAX_PARAMS] = {{0}};
    _Alignas(64) unsigned char packed[TK_CUDA_MAX_PARAM_BYTES];
    tk_kdevice device = {
        .sms = cuda->info.multiprocessors, .shared_bytes = cuda->info.max_shared, .threads = 2048};
    tk_klaunch shape;
    uint32_t grid[3];
    for (size_t i = 0; i < run->n_arguments; i++) {
        const tk_run_argument *from = &run->arguments[i];
        arguments[i].bits = from->data ? (uint64_t)(uintptr_t)from->data : from->bits;
    }
    TK_TRY(tk_kernel_launch(at->kernel, &device, run->n_arguments, arguments, &shape));
    TK_TRY(check_grid(run, &shape));
    narrow(shape.grid, grid);
    tk_kbinding binding = {at->kernel, &device, arguments};
    pthread_mutex_lock(&at->lock);
    tk_status status = prepare(at, &shape, site);
    if (status == TK_OK) status = pack(cuda, at, &binding, packed);
    tk_cuda_prepared prepared = at->prepared;
    pthread_mutex_unlock(&at->lock);
    return status == TK_OK ? tk_cuda_launch_run(&prepared, queue, grid, packed) : status;
}

tk_status tk_run_on_cuda(tk_device *device, tk_queue *queue, const tk_run *run) {
    tk_cuda *cuda = tk_cuda_of(device);
    loaded *at = NULL;
    const char *site = NULL;
    TK_TRY(tk_cuda_enter(cuda));
    TK_TRY(find(cuda, run, &at, &site));
    return launch(cuda, queue, at, run, site);
}
