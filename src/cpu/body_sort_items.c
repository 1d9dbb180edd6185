/* Keys, sorting and selection of items; see body_sort.h.
 *
 * Short rows are merged from insertion-sorted pieces, long ones go through a radix sort by bytes,
 * least significant first, that skips bytes in which all keys agree (the indices ascend already, so
 * stability is all that is needed). Selection is quickselect with a median of three that gives up
 * to a sort after too many uneven cuts, so its worst case is that of the sort. */
#include "cpu/body_sort.h"

#include <assert.h>
#include <string.h>

#include "base/half.h"

#define PIECE 16
#define RADIX_COUNT 1024 /* items from which radix sort wins */
#define SELECT_END 32

/* ---- keys ---- */

static uint32_t key_of_f32(float x) {
    uint32_t bits = tk_float_bits(x);
    if (x != x) return UINT32_MAX;
    if (x == 0) return UINT32_C(0x80000000);
    return bits >> 31 ? ~bits : bits | UINT32_C(0x80000000);
}

static uint64_t key_of_f64(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    if (x != x) return UINT64_MAX;
    if (x == 0) return UINT64_C(1) << 63;
    return bits >> 63 ? ~bits : bits | UINT64_C(1) << 63;
}

/* No float but NaN has a key of 0xffffff00 or above, so the classes with NaN fit behind. */
static uint64_t key_of_complex(const float *parts) {
    uint64_t re = key_of_f32(parts[0]), im = key_of_f32(parts[1]);
    bool re_nan = re == UINT32_MAX, im_nan = im == UINT32_MAX;
    if (re_nan && im_nan) return UINT64_MAX;
    if (re_nan) return UINT64_C(0xffffff01) << 32 | im;
    if (im_nan) return UINT64_C(0xffffff00) << 32 | re;
    return re << 32 | im;
}

#define FLIP(bits) (UINT32_C(1) << (bits - 1))
#define NARROW_KEYS(X)                                                                             \
    X(TK_BOOL, uint8_t, x != 0)                                                                    \
    X(TK_UINT8, uint8_t, x)                                                                        \
    X(TK_UINT16, uint16_t, x)                                                                      \
    X(TK_UINT32, uint32_t, x)                                                                      \
    X(TK_INT8, int8_t, (uint8_t)x ^ FLIP(8))                                                       \
    X(TK_INT16, int16_t, (uint16_t)x ^ FLIP(16))                                                   \
    X(TK_INT32, int32_t, (uint32_t)x ^ FLIP(32))                                                   \
    X(TK_FLOAT16, uint16_t, key_of_f32(tk_f16_to_f32(x)))                                          \
    X(TK_BFLOAT16, uint16_t, key_of_f32(tk_bf16_to_f32(x)))                                        \
    X(TK_FLOAT32, float, key_of_f32(x))

void tk_narrow_items(tk_dtype dtype, const void *row, int64_t count, tk_narrow_item *items) {
    switch (dtype) {
#define NARROW_KEY(dtype, type, key)                                                               \
    case dtype:                                                                                    \
        for (int64_t i = 0; i < count; i++) {                                                      \
            type x = ((const type *)row)[i];                                                       \
            items[i] = (uint64_t)(key) << 32 | (uint32_t)i;                                        \
        }                                                                                          \
        break;
        NARROW_KEYS(NARROW_KEY)
    default:
        assert(false);
    }
}

void tk_wide_items(tk_dtype dtype, const void *row, int64_t count, tk_wide_item *items) {
    for (int64_t i = 0; i < count; i++) {
        uint64_t key;
        switch (dtype) {
        case TK_UINT64:
            key = ((const uint64_t *)row)[i];
            break;
        case TK_INT64:
            key = (uint64_t)((const int64_t *)row)[i] ^ UINT64_C(1) << 63;
            break;
        case TK_FLOAT64:
            key = key_of_f64(((const double *)row)[i]);
            break;
        default:
            assert(dtype == TK_COMPLEX64);
            key = key_of_complex((const float *)row + 2 * i);
        }
        items[i] = (tk_wide_item){key, (uint64_t)i};
    }
}

/* ---- orders ---- */

#define NARROW_LESS(a, b) ((a) < (b))
#define WIDE_LESS(a, b) ((a).key < (b).key || ((a).key == (b).key && (a).index < (b).index))
#define NARROW_BYTE(item, byte) ((item) >> (32 + 8 * (byte)) & 255)
#define WIDE_BYTE(item, byte) ((item).key >> 8 * (byte)&255)

#define SORTS(name, T, LESS, BYTE, BYTES)                                                          \
    static void name##_insert(T *items, int64_t count) {                                           \
        for (int64_t i = 1; i < count; i++) {                                                      \
            T item = items[i];                                                                     \
            int64_t at = i;                                                                        \
            for (; at > 0 && LESS(item, items[at - 1]); at--) items[at] = items[at - 1];           \
            items[at] = item;                                                                      \
        }                                                                                          \
    }                                                                                              \
    static void name##_merge(const T *a, int64_t a_count, const T *b, int64_t b_count, T *out) {   \
        while (a_count && b_count) {                                                               \
            bool from_b = LESS(*b, *a);                                                            \
            *out++ = from_b ? *b : *a;                                                             \
            b += from_b;                                                                           \
            b_count -= from_b;                                                                     \
            a += !from_b;                                                                          \
            a_count -= !from_b;                                                                    \
        }                                                                                          \
        memcpy(out, a_count ? a : b, (size_t)(a_count + b_count) * sizeof(T));                     \
    }                                                                                              \
    static void name##_merge_sort(T *items, T *spare, int64_t count) {                             \
        for (int64_t i = 0; i < count; i += PIECE)                                                 \
            name##_insert(items + i, count - i < PIECE ? count - i : PIECE);                       \
        T *from = items, *to = spare;                                                              \
        for (int64_t width = PIECE; width < count; width *= 2) {                                   \
            for (int64_t i = 0; i < count; i += 2 * width) {                                       \
                int64_t left = count - i < width ? count - i : width;                              \
                int64_t right = count - i - left < width ? count - i - left : width;               \
                name##_merge(from + i, left, from + i + left, right, to + i);                      \
            }                                                                                      \
            T *old = from;                                                                         \
            from = to;                                                                             \
            to = old;                                                                              \
        }                                                                                          \
        if (from != items) memcpy(items, from, (size_t)count * sizeof(T));                         \
    }                                                                                              \
    static void name##_radix_sort(T *items, T *spare, int64_t count) {                             \
        int64_t counts[BYTES][256] = {{0}};                                                        \
        for (int64_t i = 0; i < count; i++)                                                        \
            for (int byte = 0; byte < BYTES; byte++) counts[byte][BYTE(items[i], byte)]++;         \
        T *from = items, *to = spare;                                                              \
        for (int byte = 0; byte < BYTES; byte++) {                                                 \
            int64_t *places = counts[byte];                                                        \
            if (places[BYTE(from[0], byte)] == count) continue;                                    \
            for (int64_t digit = 0, sum = 0; digit < 256; digit++) {                               \
                int64_t here = places[digit];                                                      \
                places[digit] = sum;                                                               \
                sum += here;                                                                       \
            }                                                                                      \
            for (int64_t i = 0; i < count; i++) to[places[BYTE(from[i], byte)]++] = from[i];       \
            T *old = from;                                                                         \
            from = to;                                                                             \
            to = old;                                                                              \
        }                                                                                          \
        if (from != items) memcpy(items, from, (size_t)count * sizeof(T));                         \
    }                                                                                              \
    void tk_##name##_sort(T *items, T *spare, int64_t count) {                                     \
        if (count >= RADIX_COUNT)                                                                  \
            name##_radix_sort(items, spare, count);                                                \
        else                                                                                       \
            name##_merge_sort(items, spare, count);                                                \
    }
SORTS(narrow, tk_narrow_item, NARROW_LESS, NARROW_BYTE, 4)
SORTS(wide, tk_wide_item, WIDE_LESS, WIDE_BYTE, 8)

/* ---- selection ---- */

/* Heap sort is the way out: in place, and never quadratic. */
#define SELECTS(name, T, LESS)                                                                     \
    static void name##_sink(T *items, int64_t at, int64_t count) {                                 \
        T item = items[at];                                                                        \
        for (int64_t child = 2 * at + 1; child < count; child = 2 * at + 1) {                      \
            if (child + 1 < count && LESS(items[child], items[child + 1])) child++;                \
            if (!LESS(item, items[child])) break;                                                  \
            items[at] = items[child];                                                              \
            at = child;                                                                            \
        }                                                                                          \
        items[at] = item;                                                                          \
    }                                                                                              \
    static void name##_heap_sort(T *items, int64_t count) {                                        \
        for (int64_t i = count / 2; i-- > 0;) name##_sink(items, i, count);                        \
        for (int64_t end = count - 1; end > 0; end--) {                                            \
            T largest = items[0];                                                                  \
            items[0] = items[end];                                                                 \
            items[end] = largest;                                                                  \
            name##_sink(items, 0, end);                                                            \
        }                                                                                          \
    }                                                                                              \
    static T name##_pivot(const T *items, int64_t count) {                                         \
        T a = items[0], b = items[count / 2], c = items[count - 1];                                \
        if (LESS(b, a)) {                                                                          \
            T old = a;                                                                             \
            a = b;                                                                                 \
            b = old;                                                                               \
        }                                                                                          \
        return LESS(c, a) ? a : LESS(c, b) ? c : b;                                                \
    }                                                                                              \
    /* How many are smaller than or equal to the pivot; they come first. */                        \
    static int64_t name##_cut(T *items, int64_t count, T pivot) {                                  \
        int64_t low = 0, high = count - 1;                                                         \
        while (true) {                                                                             \
            while (LESS(items[low], pivot)) low++;                                                 \
            while (LESS(pivot, items[high])) high--;                                               \
            if (low >= high) return high + 1;                                                      \
            T old = items[low];                                                                    \
            items[low++] = items[high];                                                            \
            items[high--] = old;                                                                   \
        }                                                                                          \
    }                                                                                              \
    void tk_##name##_select(T *items, int64_t count, int64_t kth) {                                \
        int patience = 2 * (64 - __builtin_clzll((uint64_t)count));                                \
        while (count > SELECT_END && patience-- > 0) {                                             \
            int64_t before = name##_cut(items, count, name##_pivot(items, count));                 \
            if (kth < before) {                                                                    \
                count = before;                                                                    \
            } else {                                                                               \
                items += before;                                                                   \
                count -= before;                                                                   \
                kth -= before;                                                                     \
            }                                                                                      \
        }                                                                                          \
        if (count > SELECT_END)                                                                    \
            name##_heap_sort(items, count);                                                        \
        else                                                                                       \
            name##_insert(items, count);                                                           \
    }
SELECTS(narrow, tk_narrow_item, NARROW_LESS)
SELECTS(wide, tk_wide_item, WIDE_LESS)
