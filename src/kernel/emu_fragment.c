/* Fragments to rows and back, and the product of a warp. All 32 lanes are converted at once: what a
 * lane that is not there would have had is not used. */
#include "kernel/emu_fragment.h"

#include "base/half.h"

/* ---- widening ---- */

/* The exponent's bias is put right by a product, which is exact and makes subnormals normal. */
static void widen_f16(const uint16_t *from, float *to, size_t count) {
    for (size_t i = 0; i < count; i++) {
        uint32_t half = from[i], special = (half & 0x7c00u) == 0x7c00u ? 0x7f800000u : 0;
        float magnitude = tk_bits_float((half & 0x7fffu) << 13) * 0x1p112f;
        to[i] = tk_bits_float(tk_float_bits(magnitude) | special | (half & 0x8000u) << 16);
    }
}

static void widen_bf16(const uint16_t *from, float *to, size_t count) {
    for (size_t i = 0; i < count; i++) to[i] = tk_bits_float((uint32_t)from[i] << 16);
}

static void widen_tf32(const uint32_t *from, float *to, size_t count) {
    for (size_t i = 0; i < count; i++) to[i] = tk_bits_float(from[i] & ~0x1fffu);
}

static void widen_e4m3(const uint8_t *from, float *to, size_t count) {
    for (size_t i = 0; i < count; i++) {
        uint32_t byte = from[i], special = (byte & 0x7fu) == 0x7fu ? 0x7fc00000u : 0;
        float magnitude = tk_bits_float((byte & 0x7fu) << 20) * 0x1p120f;
        to[i] = tk_bits_float(tk_float_bits(magnitude) | special | (byte & 0x80u) << 24);
    }
}

static void widen_i8(const int8_t *from, float *to, size_t count) {
    for (size_t i = 0; i < count; i++) to[i] = from[i];
}

/* The upper half of an f16. */
static void widen_e5m2(const uint8_t *from, float *to, size_t count) {
    for (size_t i = 0; i < count; i++) {
        uint16_t half = (uint16_t)(from[i] << 8);
        widen_f16(&half, to + i, 1);
    }
}

void tk_emu_widen(tk_kscalar scalar, const void *from, float *to, size_t count) {
    switch (scalar) {
    case TK_K_F16:
        widen_f16(from, to, count);
        break;
    case TK_K_BF16:
        widen_bf16(from, to, count);
        break;
    case TK_K_TF32:
        widen_tf32(from, to, count);
        break;
    case TK_K_E4M3:
        widen_e4m3(from, to, count);
        break;
    case TK_K_E5M2:
        widen_e5m2(from, to, count);
        break;
    case TK_K_I8:
        widen_i8(from, to, count);
        break;
    default:
        memcpy(to, from, count * sizeof *to);
    }
}

/* ---- operands ---- */

void tk_emu_unpack_a(tk_kscalar scalar, const unsigned char *elements, int k,
                     float a[16][TK_EMU_MOST_K]) {
    int bytes = tk_kscalar_bytes(scalar), per = 4 / bytes, count = 16 * k / TK_EMU_LANES;
    float lanes[TK_EMU_LANES];
    for (int e = 0; e < count; e++) {
        int r = e / per, column = e % per + 4 * per * (r / 2);
        tk_emu_widen(scalar, elements + (size_t)(e * bytes) * TK_EMU_LANES, lanes, TK_EMU_LANES);
        for (int l = 0; l < TK_EMU_LANES; l++)
            a[l / 4 + 8 * (r % 2)][column + per * (l % 4)] = lanes[l];
    }
}

void tk_emu_unpack_d(tk_kscalar scalar, const unsigned char *elements, int columns,
                     float (*d)[TK_EMU_MOST_N]) {
    size_t bytes = (size_t)tk_kscalar_bytes(scalar) * TK_EMU_LANES;
    float lanes[TK_EMU_LANES];
    for (int e = 0; e < columns / 2; e++, elements += bytes) {
        int row = 8 * (e / 2 % 2), column = e % 2 + 8 * (e / 4);
        tk_emu_widen(scalar, elements, lanes, TK_EMU_LANES);
        for (int l = 0; l < TK_EMU_LANES; l++) d[row + l / 4][column + 2 * (l % 4)] = lanes[l];
    }
}

void tk_emu_pack_d(tk_kscalar scalar, unsigned char *elements, uint32_t mask, int columns,
                   float (*d)[TK_EMU_MOST_N]) {
    size_t bytes = (size_t)tk_kscalar_bytes(scalar) * TK_EMU_LANES;
    for (int e = 0; e < columns / 2; e++, elements += bytes) {
        int row = 8 * (e / 2 % 2), column = e % 2 + 8 * (e / 4);
        float *wide = (float *)elements;
        uint16_t *half = (uint16_t *)elements;
        if (scalar == TK_K_F16)
            TK_EMU_EACH(mask, half[l] = tk_f32_to_f16(d[row + l / 4][column + 2 * (l % 4)]));
        else
            TK_EMU_EACH(mask, wide[l] = d[row + l / 4][column + 2 * (l % 4)]);
    }
}

/* ---- the product ---- */

/* Four numbers at once, of every processor that the library is built for. */
typedef float four __attribute__((vector_size(16)));

static four load_four(const float *from) {
    four numbers;
    memcpy(&numbers, from, sizeof numbers);
    return numbers;
}

/* Eight columns of two rows stay in registers while k runs. */
static void multiply_strip(const float *a, const float *below, float (*b)[TK_EMU_MOST_N], float *d,
                           float *d_below, int k, int column) {
    four s0 = load_four(d + column), s1 = load_four(d + column + 4),
         t0 = load_four(d_below + column), t1 = load_four(d_below + column + 4);
    for (int i = 0; i < k; i++) {
        four b0 = load_four(&b[i][column]), b1 = load_four(&b[i][column + 4]);
        s0 += b0 * a[i], s1 += b1 * a[i];
        t0 += b0 * below[i], t1 += b1 * below[i];
    }
    memcpy(d + column, &s0, sizeof s0), memcpy(d + column + 4, &s1, sizeof s1);
    memcpy(d_below + column, &t0, sizeof t0), memcpy(d_below + column + 4, &t1, sizeof t1);
}

void tk_emu_multiply(float a[16][TK_EMU_MOST_K], float (*b)[TK_EMU_MOST_N],
                     float (*d)[TK_EMU_MOST_N], int k, int columns) {
    for (int column = 0; column < columns; column += 8)
        for (int row = 0; row < 16; row += 2)
            multiply_strip(a[row], a[row + 1], b, d[row], d[row + 1], k, column);
}
