/* See plans.h. A plan is found by the bytes of its call, in a table, then for a GPU on disk; when
 * the table is full it is emptied, since a plan costs milliseconds at most. */
#include "compile/plans.h"

#include <pthread.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/thread.h"
#include "compile/plan_record.h"
#include "compile/run_cuda.h"
#include "runtime/artifact_cache.h"
#include "runtime/buffer.h"
#include "runtime/cuda_device.h"
#include "target/artifact.h"

#define MOST_PLANS 512
#define MOST_ALIGN 16 /* no access is wider */

/* ---- views as the library sees them ---- */

tk_kscalar tk_kernel_scalar_of(tk_dtype dtype) {
    switch (dtype) {
    case TK_FLOAT16:
        return TK_K_F16;
    case TK_BFLOAT16:
        return TK_K_BF16;
    case TK_FLOAT32:
        return TK_K_F32;
    case TK_FLOAT64:
        return TK_K_F64;
    default:
        break;
    }
    size_t bytes = tk_dtype_size(dtype);
    return bytes == 1 ? TK_K_I8 : bytes == 2 ? TK_K_I16 : bytes == 4 ? TK_K_I32 : TK_K_I64;
}

/* The address is known when a call runs, so its alignment is part of the plan. */
static int64_t alignment_of(const void *data) {
    int64_t align = 1;
    while (align < MOST_ALIGN && (uintptr_t)data % (uint64_t)(2 * align) == 0) align *= 2;
    return align;
}

void tk_library_tensor_of(const tk_strided *view, tk_library_tensor *out) {
    memset(out, 0, sizeof *out);
    out->rank = view->rank;
    if (view->rank < 0) return;
    out->element = tk_kernel_scalar_of(view->dtype);
    for (int i = 0; i < view->rank; i++) {
        out->shape[i] = view->shape[i];
        out->stride[i] = view->strides[i];
    }
    out->align = alignment_of(view->data);
}

void tk_extent_of(const tk_strided *view, size_t *out_before, size_t *out_bytes) {
    int64_t low = 0, high = 0, size = (int64_t)tk_dtype_size(view->dtype);
    *out_before = *out_bytes = 0;
    if (view->size == 0) return;
    for (int i = 0; i < view->rank; i++) {
        int64_t span = (view->shape[i] - 1) * view->strides[i];
        *(span < 0 ? &low : &high) += span;
    }
    *out_before = (size_t)(-low * size);
    *out_bytes = (size_t)((high - low + 1) * size);
}

/* ---- the table ---- */

typedef struct plan_entry {
    uint64_t hash;
    tk_plan_key *key;
    tk_kept_plan *kept; /* NULL: the place is free */
} plan_entry;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static plan_entry entries[2 * MOST_PLANS];
static size_t n_entries;

static bool has_no_clusters(tk_device *device) {
    const tk_cuda *cuda = device ? tk_cuda_of(device) : NULL;
    return cuda && !cuda->info.clusters;
}

static tk_status make_key(tk_device *device, const tk_library_call *call, size_t n_tensors,
                          size_t n_numbers, tk_plan_key *key) {
    memset(key, 0, sizeof *key);
    if (n_tensors > TK_PLAN_TENSORS || n_numbers > TK_PLAN_NUMBERS)
        return tk_fail(TK_INTERNAL, "a library call of %zu tensors and %zu numbers", n_tensors,
                       n_numbers);
    key->id = (uint32_t)call->id;
    key->n_tensors = n_tensors;
    key->n_numbers = n_numbers;
    memcpy(key->tensors, call->tensors, n_tensors * sizeof *call->tensors);
    if (n_numbers) memcpy(key->numbers, call->numbers, n_numbers * sizeof *call->numbers);
    key->has_schedule = call->schedule != NULL;
    key->no_clusters = has_no_clusters(device);
    if (call->schedule) key->schedule = *call->schedule;
    return TK_OK;
}

static plan_entry *place_of(const tk_plan_key *key, uint64_t hash) {
    size_t mask = 2 * MOST_PLANS - 1, at = (size_t)hash & mask;
    while (entries[at].kept &&
           (entries[at].hash != hash || memcmp(entries[at].key, key, sizeof *key)))
        at = (at + 1) & mask;
    return &entries[at];
}

static void forget_all(void) {
    for (size_t i = 0; i < 2 * MOST_PLANS; i++) {
        tk_kept_plan_release(entries[i].kept);
        tk_free(entries[i].key);
    }
    memset(entries, 0, sizeof entries);
    n_entries = 0;
}

/* In place of one whose kernels have no bodies: whole ones serve everybody. */
static void keep(const tk_plan_key *key, uint64_t hash, tk_kept_plan *kept) {
    if (n_entries == MOST_PLANS) forget_all();
    plan_entry *place = place_of(key, hash);
    if (place->kept && !place->kept->facts) return; /* another thread was first */
    if (place->kept) {
        tk_kept_plan_release(place->kept);
        place->kept = tk_kept_plan_retain(kept);
        return;
    }
    tk_plan_key *copy = tk_malloc(sizeof *copy);
    if (!copy) return;
    *copy = *key;
    *place = (plan_entry){hash, copy, tk_kept_plan_retain(kept)};
    n_entries++;
}

/* The schedule, or the default one; where there are no clusters that reads long rows again, and
 * there are no bulk copies either. */
static tk_status make_plan(const tk_plan_key *key, tk_library_plan **out) {
    double numbers[TK_PLAN_NUMBERS];
    tk_library_id id = (tk_library_id)key->id;
    tk_library_schedule schedule = key->schedule;
    memcpy(numbers, key->numbers, sizeof numbers);
    if (!key->has_schedule) {
        TK_TRY(tk_library_schedule_default(id, key->n_tensors, key->tensors, &schedule));
        if (key->no_clusters) schedule.prefetch = schedule.late = 0;
        if (key->no_clusters && schedule.cluster > 1) {
            schedule.cluster = 1;
            schedule.held = 0;
            schedule.threads_per_row = 1024;
        }
    }
    return tk_library_plan_create(id, key->n_tensors, key->tensors, key->n_numbers, numbers,
                                  &schedule, out);
}

static tk_kept_plan *look_up(const tk_plan_key *key, uint64_t hash, bool whole) {
    pthread_mutex_lock(&lock);
    tk_kept_plan *kept = place_of(key, hash)->kept;
    bool serves = kept && (!whole || !kept->facts);
    if (serves) tk_kept_plan_retain(kept);
    pthread_mutex_unlock(&lock);
    return serves ? kept : NULL;
}

static tk_status make_whole(const tk_plan_key *key, tk_kept_plan **out) {
    tk_library_plan *plan;
    TK_TRY(make_plan(key, &plan));
    *out = tk_kept_plan_create(plan, NULL);
    return *out ? TK_OK : tk_fail(TK_OUT_OF_MEMORY, "no memory for a plan");
}

/* With a reference for the caller. `whole`: recalled plans do not serve. */
static tk_status find_plan(const tk_plan_key *key, bool whole, tk_kept_plan **out) {
    uint64_t hash = tk_hash_bytes(1, key, sizeof *key);
    *out = look_up(key, hash, whole);
    if (*out) return TK_OK;
    if (!whole) *out = tk_plan_recall(key);
    if (!*out) TK_TRY(make_whole(key, out));
    pthread_mutex_lock(&lock);
    keep(key, hash, *out);
    pthread_mutex_unlock(&lock);
    return TK_OK;
}

static bool takes_recalled(tk_device *device) { return device && tk_cuda_of(device); }

tk_status tk_library_check_call(tk_device *device, const tk_library_call *call, size_t n_tensors) {
    tk_plan_key key;
    tk_kept_plan *kept;
    TK_TRY(make_key(device, call, n_tensors, tk_library_numbers(call->id), &key));
    TK_TRY(find_plan(&key, !takes_recalled(device), &kept));
    tk_kept_plan_release(kept);
    return TK_OK;
}

/* ---- running ---- */

typedef struct plan_run {
    const tk_body_call *call;
    const tk_library_run *run;
    const tk_library_plan *plan;
    const tk_body_facts *facts; /* by launch, or NULL */
    tk_buffer *scratches[TK_PLAN_TENSORS];
    size_t n_scratches;
} plan_run;

static tk_status take_scratches(plan_run *r) {
    size_t count = tk_library_plan_scratches(r->plan);
    if (count > TK_PLAN_TENSORS) return tk_fail(TK_INTERNAL, "a plan with %zu scratches", count);
    for (size_t i = 0; i < count; i++) {
        size_t bytes = (size_t)tk_library_plan_scratch_bytes(r->plan, i);
        TK_TRY(tk_buffer_new_on(r->call->device, r->call->queue, bytes, &r->scratches[i]));
        r->n_scratches++;
    }
    return TK_OK;
}

static tk_run_argument argument_of(const plan_run *r, const tk_library_argument *from) {
    tk_run_argument argument = {.bits = from->bits};
    if (from->kind == TK_LIBRARY_SCRATCH) {
        argument.data = r->scratches[from->index]->data;
        argument.bytes = (size_t)tk_library_plan_scratch_bytes(r->plan, from->index);
    }
    if (from->kind == TK_LIBRARY_TENSOR) {
        const tk_strided *view = &r->run->tensors[from->index];
        argument.data = view->data;
        tk_extent_of(view, &argument.before, &argument.bytes);
    }
    return argument;
}

static bool is_empty(const tk_kernel *kernel, size_t count, const tk_run_argument *arguments) {
    tk_kargument bits[32] = {{0}};
    tk_klaunch shape;
    static const tk_kdevice device = {.sms = 132, .shared_bytes = 227 * 1024, .threads = 2048};
    for (size_t i = 0; i < count; i++)
        bits[i].bits =
            arguments[i].data ? (uint64_t)(uintptr_t)arguments[i].data : arguments[i].bits;
    if (tk_kernel_launch(kernel, &device, count, bits, &shape) != TK_OK) return false;
    return !shape.grid[0] || !shape.grid[1] || !shape.grid[2];
}

static tk_status run_launch(const plan_run *r, size_t index) {
    tk_library_launch launch;
    tk_run_argument arguments[32];
    TK_TRY(tk_library_plan_launch(r->plan, index, &launch));
    if (launch.n_arguments > 32)
        return tk_fail(TK_INTERNAL, "a launch with %zu arguments", launch.n_arguments);
    for (size_t i = 0; i < launch.n_arguments; i++)
        arguments[i] = argument_of(r, &launch.arguments[i]);
    if (is_empty(launch.kernel, launch.n_arguments, arguments)) return TK_OK;
    tk_run run = {launch.kernel, NULL,           launch.n_arguments,
                  arguments,     r->run->target, r->facts ? &r->facts[index] : NULL};
    return tk_run_kernel(r->call->device, r->call->queue, &run);
}

static tk_status run_plan(plan_run *r) {
    tk_status status = take_scratches(r);
    for (size_t i = 0; status == TK_OK && i < tk_library_plan_launches(r->plan); i++)
        status = run_launch(r, i);
    for (size_t i = 0; i < r->n_scratches; i++) tk_buffer_release(r->scratches[i]);
    return status;
}

/* ---- assembling side by side ---- */

typedef struct ahead {
    tk_device *device;
    const tk_kernel *kernel;
    tk_target target;
    pthread_t thread;
    bool started;
} ahead;

static void *build_ahead(void *arg) {
    const ahead *a = arg;
    tk_run_build_ahead(a->device, a->kernel, a->target);
    return NULL;
}

/* The kernels of a plan that was just made, all at once, where the cache hands them on to the
 * launches: assembling takes tens of milliseconds each. */
static void build_together(const tk_body_call *call, const tk_library_run *run,
                           const tk_library_plan *plan) {
    size_t count = tk_library_plan_launches(plan);
    tk_cache *cache = tk_artifact_cache();
    ahead all[TK_PLAN_TENSORS] = {{0}};
    bool keeps = cache && tk_cache_folder(cache)[0] && !tk_cache_is_read_only(cache);
    if (count < 2 || count > TK_PLAN_TENSORS || !keeps) return;
    for (size_t i = 0; i < count; i++) {
        tk_library_launch launch;
        if (tk_library_plan_launch(plan, i, &launch) != TK_OK) continue;
        all[i] = (ahead){.device = call->device, .kernel = launch.kernel, .target = run->target};
        all[i].started =
            i > 0 && tk_thread_start(&all[i].thread, "tiki build", build_ahead, &all[i]);
    }
    build_ahead(&all[0]);
    for (size_t i = 1; i < count; i++)
        if (all[i].started) (void)pthread_join(all[i].thread, NULL);
}

static tk_status run_kept(const tk_body_call *call, const tk_library_run *run,
                          const tk_kept_plan *kept) {
    plan_run r = {.call = call, .run = run, .plan = kept->plan, .facts = kept->facts};
    return run_plan(&r);
}

/* A binary that a recalled plan names may be gone: then the plan is made. */
static tk_status run_or_make(const tk_body_call *call, const tk_library_run *run,
                             const tk_plan_key *key, tk_kept_plan **kept) {
    tk_status status = run_kept(call, run, *kept);
    if (status != TK_NOT_FOUND || !(*kept)->facts) return status;
    tk_kept_plan *whole;
    TK_TRY(find_plan(key, true, &whole));
    tk_kept_plan_release(*kept);
    *kept = whole;
    return run_kept(call, run, whole);
}

tk_status tk_run_library(const tk_body_call *call, const tk_library_run *run) {
    tk_library_tensor tensors[TK_PLAN_TENSORS];
    tk_library_call asked = {run->id, NULL, tensors, run->numbers, run->schedule};
    tk_plan_key key;
    tk_kept_plan *kept;
    for (size_t i = 0; i < run->n_tensors && i < TK_PLAN_TENSORS; i++)
        tk_library_tensor_of(&run->tensors[i], &tensors[i]);
    TK_TRY(make_key(call->device, &asked, run->n_tensors, run->n_numbers, &key));
    TK_TRY(find_plan(&key, !takes_recalled(call->device), &kept));
    if (takes_recalled(call->device) && !kept->facts && !atomic_load(&kept->noted))
        build_together(call, run, kept->plan);
    tk_status status = run_or_make(call, run, &key, &kept);
    bool made = status == TK_OK && takes_recalled(call->device) && !kept->facts;
    if (made && !atomic_exchange(&kept->noted, true)) tk_plan_note(&key, kept->plan);
    tk_kept_plan_release(kept);
    return status;
}
