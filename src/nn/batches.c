/* The order of the data as a function of numbers: an epoch's order is a bijection of window numbers
 * that can be asked anywhere, so nothing is shuffled in memory and resuming needs only the step.
 *
 * The bijection is a Feistel network on the smallest even number of bits that holds the count,
 * walked until it lands inside (Black and Rogaway 2002, "cycle walking"). Four rounds, enough for
 * many windows, favour some orders of a handful of them; eight do not. */
#include <stdlib.h>

#include "nn/need.h"
#include "tiki/train.h"

#define ROUNDS 8

static uint64_t mix(uint64_t z) {
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static uint64_t key_of(uint64_t seed, uint64_t epoch, uint64_t purpose) {
    return mix(mix(seed + 0x9e3779b97f4a7c15u) + mix(epoch * 0xd1342543de82ef95u + purpose));
}

static uint64_t feistel(uint64_t key, uint64_t value, int half_bits) {
    uint64_t mask = ((uint64_t)1 << half_bits) - 1, left = value >> half_bits, right = value & mask;
    for (uint64_t round = 0; round < ROUNDS; round++) {
        uint64_t next = left ^ (mix(key + right * 0x9e3779b97f4a7c15u + round) & mask);
        left = right;
        right = next;
    }
    return left << half_bits | right;
}

static int64_t permuted(uint64_t key, int64_t index, int64_t count) {
    int half_bits = 1;
    while (((uint64_t)1 << (2 * half_bits)) < (uint64_t)count) half_bits++;
    uint64_t value = (uint64_t)index;
    do value = feistel(key, value, half_bits);
    while (value >= (uint64_t)count);
    return (int64_t)value;
}

/* Windows of an epoch: as many as fit wherever below `length` the first one begins. */
static int64_t window_count(const tk_batches *b) {
    int64_t count = (b->size - b->length) / b->length;
    return count > 0 ? count : 1;
}

tk_status tk_batches_check(const tk_batches *b) {
    if (!b || !b->bytes) return nn_fail_null(b ? "batches->bytes" : "batches");
    if (b->length < 1 || b->batch < 1)
        return tk_error_set(TK_INVALID_ARGUMENT,
                            "batches of %lld sequences of %lld, expected 1 or more",
                            (long long)b->batch, (long long)b->length);
    if (b->size > b->length) return TK_OK;
    return tk_error_set(TK_INVALID_ARGUMENT,
                        "%lld bytes of data, expected more than the %lld positions of a sequence",
                        (long long)b->size, (long long)b->length);
}

int64_t tk_batches_start(const tk_batches *b, int64_t sequence) {
    if (!b) return 0;
    int64_t count = window_count(b), epoch = sequence / count;
    int64_t window = permuted(key_of(b->seed, (uint64_t)epoch, 0), sequence % count, count);
    int64_t room = b->size - 1 - count * b->length + 1;
    if (room > b->length) room = b->length;
    int64_t first = (int64_t)(key_of(b->seed, (uint64_t)epoch, 1) % (uint64_t)room);
    return first + window * b->length;
}

tk_array tk_batches_get(tk_context *context, const tk_batches *b, int64_t index) {
    tk_status status = tk_batches_check(b);
    if (status != TK_OK) return tk_error_array(context, status);
    int64_t width = b->length + 1;
    int32_t *tokens = malloc((size_t)(b->batch * width) * sizeof *tokens);
    if (!tokens)
        return tk_error_array(context,
                              tk_error_set(TK_OUT_OF_MEMORY, "no memory for a batch of %lld tokens",
                                           (long long)(b->batch * width)));
    for (int64_t row = 0; row < b->batch; row++) {
        const unsigned char *from = b->bytes + tk_batches_start(b, index * b->batch + row);
        for (int64_t i = 0; i < width; i++) tokens[row * width + i] = from[i];
    }
    tk_array array = tk_from_data(context, tokens, TK_SHAPE(b->batch, width), TK_INT32);
    free(tokens);
    return array;
}
