/* Random bits on devices: Threefry-2x32 with 20 rounds, word for word those of cpu/random_bits.c. A
 * thread writes one word of one key's stream, or the part of it that is left at the end. */
#include "base/error.h"
#include "compile/index.h"
#include "compile/kernel_text.h"
#include "compile/kernels_made.h"
#include "compile/launch.h"
#include "compile/run.h"

typedef struct signature {
    tk_dtype dtype; /* of the output */
} signature;

static void put_params(const signature *s, tk_strbuf *out) {
    tk_strbuf_printf(out,
                     "tiki kernel 1\n\nkernel random_bits_%s(\n"
                     "  %%key: ptr<i32, global> read align 4,\n"
                     "  %%y: ptr<%s, global> write align %zu,\n"
                     "  %%n: i64,\n  %%words: i64,\n  %%each: i64,\n  %%s0: i64,\n  %%s1: i64)\n"
                     "form thread\nrequire %%n >= 0\nrequire %%words >= 1\n",
                     tk_dtype_name(s->dtype), tk_text_memory(s->dtype), tk_dtype_size(s->dtype));
}

/* %x and %y0 are the counter's words: block i has i and i + apart, the odd middle word half, 0. */
static void put_counter(tk_strbuf *out) {
    tk_text_put_elements(256, out);
    tk_strbuf_printf(out, "    %%at = udiv %%i, %%words : i64\n"
                          "    %%word = urem %%i, %%words : i64\n"
                          "    %%half = ushr %%words, i32(1) : i64\n"
                          "    %%odd = and %%words, i64(1) : i64\n"
                          "    %%apart = add %%half, %%odd : i64\n"
                          "    %%later = icmp.sge %%word, %%apart : i1\n"
                          "    %%back = sub %%word, %%apart : i64\n"
                          "    %%own = select %%later, %%back, %%word : i64\n"
                          "    %%across = add %%own, %%apart : i64\n"
                          "    %%is_odd = icmp.eq %%odd, i64(1) : i1\n"
                          "    %%is_half = icmp.eq %%word, %%half : i1\n"
                          "    %%middle = and %%is_odd, %%is_half : i1\n"
                          "    %%other = select %%middle, i64(0), %%across : i64\n"
                          "    %%c0 = truncate %%own : i32\n    %%c1 = truncate %%other : i32\n");
}

static void put_keys(tk_strbuf *out) {
    tk_strbuf_printf(out, "    %%ko = mul %%at, %%s0 : i64\n"
                          "    %%p0 = offset %%key, %%ko : ptr<i32, global>\n"
                          "    %%p1 = offset %%p0, %%s1 : ptr<i32, global>\n"
                          "    %%k0 = load %%p0 : i32\n    %%k1 = load %%p1 : i32\n"
                          "    %%k01 = xor %%k0, %%k1 : i32\n"
                          "    %%k2 = xor %%k01, i32(466688986) : i32\n"
                          "    %%x0 = add %%c0, %%k0 : i32\n    %%z0 = add %%c1, %%k1 : i32\n");
}

/* %x20 and %z20 at the end. */
static void put_rounds(tk_strbuf *out) {
    static const int turns[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
    for (int group = 0; group < 5; group++)
        for (int round = 0; round < 4; round++) {
            int n = 4 * group + round, by = turns[group & 1][round];
            bool last = round == 3;
            tk_strbuf_printf(out,
                             "    %%%s%d = add %%x%d, %%z%d : i32\n"
                             "    %%l%d = shl %%z%d, i32(%d) : i32\n"
                             "    %%r%d = ushr %%z%d, i32(%d) : i32\n"
                             "    %%t%d = or %%l%d, %%r%d : i32\n"
                             "    %%%s%d = xor %%t%d, %%%s%d : i32\n",
                             last ? "a" : "x", n + 1, n, n, n, n, by, n, n, 32 - by, n, n, n,
                             last ? "b" : "z", n + 1, n, last ? "a" : "x", n + 1);
            if (!last) continue;
            tk_strbuf_printf(out,
                             "    %%x%d = add %%a%d, %%k%d : i32\n"
                             "    %%e%d = add %%b%d, %%k%d : i32\n"
                             "    %%z%d = add %%e%d, i32(%d) : i32\n",
                             n + 1, n + 1, (group + 1) % 3, n + 1, n + 1, (group + 2) % 3, n + 1,
                             n + 1, group + 1);
        }
}

/* The word as elements, of which those behind the stream's end are left out. */
static void put_store(const signature *s, tk_strbuf *out) {
    int bytes = (int)tk_dtype_size(s->dtype), parts = 4 / bytes;
    const char *type = tk_text_memory(s->dtype);
    tk_strbuf_printf(out,
                     "    %%v = select %%later, %%z20, %%x20 : i32\n"
                     "    %%line = mul %%at, %%each : i64\n"
                     "    %%in_line = mul %%word, i64(%d) : i64\n",
                     parts);
    for (int i = 0; i < parts; i++) {
        tk_strbuf_printf(out,
                         "    %%c%d_at = add %%in_line, i64(%d) : i64\n"
                         "    %%is%d = icmp.slt %%c%d_at, %%each : i1\n"
                         "    %%to%d = add %%line, %%c%d_at : i64\n"
                         "    %%q%d = offset %%y, %%to%d : ptr<%s, global>\n"
                         "    %%part%d = ushr %%v, i32(%d) : i32\n",
                         i, i, i, i, i, i, i, i, type, i, 8 * bytes * i);
        if (parts > 1) tk_strbuf_printf(out, "    %%cut%d = truncate %%part%d : %s\n", i, i, type);
        tk_strbuf_printf(out, "    store %%q%d, %%%s%d, if=%%is%d\n", i, parts > 1 ? "cut" : "part",
                         i, i);
    }
    tk_strbuf_printf(out, "  }\n}\n");
}

static void put_kernel(const void *key, tk_strbuf *out) {
    const signature *s = key;
    put_params(s, out);
    put_counter(out);
    put_keys(out);
    put_rounds(out);
    put_store(s, out);
}

static tk_kernels_made kernels = {
    PTHREAD_MUTEX_INITIALIZER, "random_bits", sizeof(signature), put_kernel, {0}};

static tk_status run_keys(const tk_body_call *call, const tk_strided *keys, const tk_strided *out) {
    signature key = {out->dtype};
    tk_kernel *kernel;
    int64_t n_keys = keys->size / 2, each = out->size / n_keys,
            words = (each * (int64_t)tk_dtype_size(out->dtype) + 3) / 4,
            line = keys->rank > 1 ? keys->strides[0] : 0;
    TK_TRY(tk_kernels_find(&kernels, &key, &kernel));
    tk_run_argument arguments[] = {{.data = keys->data},
                                   {.data = out->data},
                                   {.bits = (uint64_t)(n_keys * words)},
                                   {.bits = (uint64_t)words},
                                   {.bits = (uint64_t)each},
                                   {.bits = (uint64_t)line},
                                   {.bits = (uint64_t)keys->strides[keys->rank - 1]}};
    tk_extent_of(keys, &arguments[0].before, &arguments[0].bytes);
    tk_extent_of(out, &arguments[1].before, &arguments[1].bytes);
    tk_run run = {kernel, NULL, 7, arguments, TK_TARGET_PTX, NULL};
    return tk_run_kernel(call->device, call->queue, &run);
}

/* Keys whose leading axes are one axis; others are copied first. */
tk_status tk_body_random_on_device(const tk_body_call *call) {
    tk_operand_copies copies = {.call = call};
    tk_strided keys = call->inputs[0], copied;
    if (call->outputs[0].size == 0) return TK_OK;
    if (keys.rank > 2) {
        TK_TRY(tk_copy_operand(&copies, &keys, &copied));
        keys = copied;
        keys.strides[0] = 2;
        keys.strides[1] = 1;
        keys.shape[0] = keys.size / 2;
        keys.shape[1] = 2;
        keys.rank = 2;
    }
    tk_status status = run_keys(call, &keys, &call->outputs[0]);
    tk_release_copies(&copies);
    return status;
}
