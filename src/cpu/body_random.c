/* Random bits: each key of a batch has its own stream, of the bytes that its slice of the output
 * takes. Streams are cut into chunks for the pool; which word lies where depends on key and length
 * only. */
#include "base/pool.h"
#include "cpu/body.h"
#include "cpu/random_bits.h"

#define RANDOM_CHUNK 65536 /* bytes; a multiple of 4 */

typedef struct random_job {
    const tk_strided *keys; /* [..., 2] */
    char *out;
    int64_t bytes_a_key, chunks_a_key;
} random_job;

static tk_threefry_key key_at(const tk_strided *keys, int64_t index) {
    const uint32_t *at = keys->data;
    for (int i = keys->rank - 2; i >= 0; i--) {
        at += index % keys->shape[i] * keys->strides[i];
        index /= keys->shape[i];
    }
    return (tk_threefry_key){{at[0], at[keys->strides[keys->rank - 1]]}};
}

static void random_part(void *arg, int64_t begin, int64_t end, int worker) {
    (void)worker;
    const random_job *job = arg;
    for (int64_t task = begin; task < end; task++) {
        int64_t key = task / job->chunks_a_key, first = task % job->chunks_a_key * RANDOM_CHUNK;
        int64_t left = job->bytes_a_key - first;
        tk_threefry_bytes(key_at(job->keys, key), (uint64_t)job->bytes_a_key, (uint64_t)first,
                          (uint64_t)(left < RANDOM_CHUNK ? left : RANDOM_CHUNK),
                          job->out + key * job->bytes_a_key + first);
    }
}

tk_status tk_body_random_bits(const tk_body_call *call) {
    const tk_strided *keys = &call->inputs[0], *out = &call->outputs[0];
    if (out->size == 0) return TK_OK;
    int64_t n_keys = keys->size / 2;
    int64_t bytes = out->size / n_keys * (int64_t)tk_dtype_size(out->dtype);
    random_job job = {keys, out->data, bytes, tk_chunk_count(bytes, RANDOM_CHUNK)};
    int64_t grain = 1 + RANDOM_CHUNK / bytes;
    tk_parallel_for(n_keys * job.chunks_a_key, grain, random_part, &job);
    return TK_OK;
}
