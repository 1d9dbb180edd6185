/* See sample_maker.h. */
#include "support/sample_maker.h"

#include <assert.h>
#include <string.h>

static double uniform(maker *m) {
    m->state += 0x9e3779b97f4a7c15u;
    uint64_t mixed = (m->state ^ (m->state >> 30)) * 0xbf58476d1ce4e5b9u;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebu;
    return (double)((mixed ^ (mixed >> 31)) >> 54) / 1024;
}

static double draw(maker *m, domain domain) {
    double u = uniform(m);
    switch (domain) {
    case POSITIVE:
        return 0.5 + 2 * u;
    case UNIT:
        return 1.75 * u - 0.875;
    case ABOVE1:
        return 1.25 + 2 * u;
    case NONZERO:
        return u < 0.5 ? -0.5 - 3 * u : 3 * u - 1;
    case SPARSE:
        return u < 0.4 ? 0 : 4 * u - 2;
    case ANY:
    case DISTINCT:
        break;
    }
    return 4 * u - 2;
}

static int64_t size_of(tk_shape shape) {
    int64_t size = 1;
    for (int64_t i = 0; i < shape.count; i++) size *= shape.items[i];
    return size;
}

/* Distinct values in a random order. */
static void fill_distinct(maker *m, int64_t count, double *values) {
    for (int64_t i = 0; i < count; i++) {
        int64_t other = (int64_t)(uniform(m) * (double)(i + 1));
        values[i] = values[other];
        values[other] = 0.375 * (double)i - 1.6875;
    }
}

void input_array(maker *m, tk_array array) {
    assert(m->s->n_inputs < SAMPLE_INPUTS);
    m->s->inputs[m->s->n_inputs++] = array;
}

static tk_array make_array(maker *m, tk_shape shape, domain domain) {
    int64_t size = size_of(shape), parts = m->dtype == TK_COMPLEX64 ? 2 : 1;
    double values[256];
    assert(size * parts <= 256);
    if (domain == DISTINCT) fill_distinct(m, size * parts, values);
    for (int64_t i = 0; i < size * parts && domain != DISTINCT; i++) values[i] = draw(m, domain);
    if (parts == 1) return tk_astype(tk_from_data(m->context, values, shape, TK_FLOAT64), m->dtype);
    float pairs[256];
    for (int64_t i = 0; i < 2 * size; i++) pairs[i] = (float)values[i];
    return tk_from_data(m->context, pairs, shape, TK_COMPLEX64);
}

void input(maker *m, tk_shape shape, domain domain) {
    input_array(m, make_array(m, shape, domain));
}

void input_as(maker *m, tk_dtype dtype, tk_shape shape, domain domain) {
    tk_dtype before = m->dtype;
    m->dtype = dtype;
    input(m, shape, domain);
    m->dtype = before;
}

void input_matrix(maker *m, tk_shape shape) {
    double values[64];
    int64_t columns = shape.items[shape.count - 1], rows = shape.items[shape.count - 2];
    assert(size_of(shape) <= 64);
    for (int64_t i = 0; i < size_of(shape); i++) {
        int64_t row = i / columns % rows, column = i % columns;
        values[i] = 0.25 * draw(m, ANY) + (row == column ? 2 + 1.5 * (double)row : 0);
    }
    tk_dtype dtype = m->dtype == TK_FLOAT64 ? TK_FLOAT64 : TK_FLOAT32;
    m->s->has_diagonal |= m->s->n_inputs == 0;
    input_array(m, tk_astype(tk_from_data(m->context, values, shape, TK_FLOAT64), dtype));
}

void input_indices(maker *m, tk_shape shape, const int32_t *values) {
    input_array(m, tk_from_data(m->context, values, shape, TK_INT32));
}

void input_bools(maker *m, tk_shape shape, const char *bits) {
    uint8_t values[256];
    for (int64_t i = 0; i < size_of(shape); i++) values[i] = bits[i] == '1';
    input_array(m, tk_from_data(m->context, values, shape, TK_BOOL));
}

void input_words(maker *m, tk_shape shape) {
    uint32_t words[64];
    for (int64_t i = 0; i < size_of(shape); i++)
        words[i] = (uint32_t)(uniform(m) * 1024) << 22 ^ (uint32_t)(uniform(m) * 1024) << 11 ^
                   (uint32_t)(uniform(m) * 1024);
    input_array(m, tk_from_data(m->context, words, shape, TK_UINT32));
}

void input_bytes(maker *m, tk_shape shape, uint8_t least) {
    uint8_t bytes[64];
    for (int64_t i = 0; i < size_of(shape); i++) bytes[i] = (uint8_t)(least + 3 * uniform(m));
    input_array(m, tk_from_data(m->context, bytes, shape, TK_UINT8));
}

domain domain_of(const char *name) {
    static const char *const names[] = {"any", "positive", "unit", "above1", "nonzero"};
    for (int i = 0; i < 5; i++)
        if (!strcmp(names[i], name)) return (domain)i;
    return ANY;
}
