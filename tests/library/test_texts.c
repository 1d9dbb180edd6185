/* Every kernel of the library has one text, whichever compiler built the library. The digests in
 * texts.txt are compared by the builds of gcc and of clang: where one of them differs, a call takes
 * two operands that are themselves emitted in its argument list, and C leaves their order open.
 * `--write` writes the digests anew, after a change to a kernel that is meant. */
#include "support/library_run.h"

#include <stdlib.h>
#include <string.h>

#include "base/sha256.h"
#include "base/strbuf.h"
#include "kernel/print.h"
#include "support/kernel_files.h"

#define GOLDEN "tests/library/texts.txt"
enum { MOST_TENSORS = 5 };

static bool writing;

typedef struct call {
    tk_library_id id;
    const char *elements; /* of the tensors, in order; "-" for one that is missing */
    const char *schedules[4];
} call;

static const call calls[] = {
    {TK_LIBRARY_ADD, "f32 f32 f32", {"", "vector = 4", "per_thread = 4, threads = 64"}},
    {TK_LIBRARY_ADD, "bf16 bf16 bf16", {"", "vector = 2"}},
    {TK_LIBRARY_AXPY, "f16 f16 f16", {"", "vector = 1"}},
    {TK_LIBRARY_COPY, "f32 f32", {"", "vector = 4", "per_thread = 8"}},
    {TK_LIBRARY_COPY, "f32 f16", {"", "threads = 32"}},
    {TK_LIBRARY_FILL, "bf16", {"", "vector = 2"}},
    {TK_LIBRARY_TRANSPOSE,
     "f32 f32",
     {"", "tile = 16, threads = 32", "tile = 64, threads = 256", "vector = 4"}},
    {TK_LIBRARY_TRANSPOSE, "f16 f16", {"", "tile = 128, threads = 256", "group = 8"}},
    {TK_LIBRARY_RMS_NORM,
     "f16 f16 f16 f32",
     {"", "held = 0", "threads_per_row = 128, rows_per_block = 1, held = 8"}},
    {TK_LIBRARY_RMS_NORM,
     "f32 - f32 -",
     {"", "vector = 4, held = 8, rows_per_block = 2",
      "threads_per_row = 64, held = 4, prefetch = 5, overlap = 2"}},
    {TK_LIBRARY_RMS_NORM_BACKWARD,
     "f16 f16 f16 f16 f16",
     {"", "held = 0", "chunks = 1", "ahead = 1, overlap = 1"}},
    {TK_LIBRARY_RMS_NORM_BACKWARD, "f32 f32 f32 - f32", {"", "threads = 64, chunks = 7"}},
    {TK_LIBRARY_SOFTMAX,
     "f32 f32",
     {"", "held = 0", "threads_per_row = 64, rows_per_block = 4, held = 4"}},
    {TK_LIBRARY_SOFTMAX,
     "bf16 bf16",
     {"", "vector = 2, threads_per_row = 1024, rows_per_block = 1",
      "threads_per_row = 32, rows_per_block = 4, held = 4, cluster = 4, overlap = 2",
      "threads_per_row = 32, rows_per_block = 2, held = 4, cluster = 2, prefetch = 3"}},
    {TK_LIBRARY_SOFTMAX_BACKWARD,
     "f16 f16 f16",
     {"", "held = 0", "threads_per_row = 64, rows_per_block = 2, held = 2, cluster = 2",
      "threads_per_row = 64, held = 2, rows_per_block = 1, prefetch = 3, late = 1"}},
    {TK_LIBRARY_COLUMN_SUM, "f32 f32", {"", "chunks = 1", "chunks = 9, threads = 32"}},
    {TK_LIBRARY_COLUMN_SUM, "bf16 bf16", {"", "vector = 2", "per_thread = 16, overlap = 1"}},
    {TK_LIBRARY_GEMM,
     "f16 f16 f16",
     {"", "tile_k = 64, stages = 3", "stages = 1, tile_m = 64, warps_m = 1",
      "vector = 4, tile_k = 16"}},
    {TK_LIBRARY_GEMM, "bf16 bf16 f32", {"", "tile_m = 16, warps_m = 1"}},
    {TK_LIBRARY_HOPPER_GEMM, "bf16 bf16 bf16", {"", "tile_n = 64, stages = 2"}},
    {TK_LIBRARY_HOPPER_GEMM, "f16 f16 f32", {"", "stages = 3"}}};

/* ---- the tensors of a call ---- */

enum { ALIGNED, ODD, TURNED, WAYS };

/* Rows and columns that are multiples of 16 bytes, odd ones with odd pitches, and operands of
 * products that lie column by column. */
static tk_library_tensor matrix(const char *element, int way, bool turned) {
    int64_t rows = way == ODD ? 65 : 128, columns = rows, pitch = columns + (way == ODD);
    tk_library_tensor t = {.rank = 2, .shape = {rows, columns}, .stride = {pitch, 1}};
    t.align = way == ODD ? 2 : 16;
    if (turned) t.stride[0] = 1, t.stride[1] = pitch;
    if (!strcmp(element, "-")) t.rank = -1;
    for (int k = 0; k < TK_KSCALAR_COUNT; k++)
        if (!strcmp(tk_kscalar_text((tk_kscalar)k), element)) t.element = (tk_kscalar)k;
    if (t.align < tk_kscalar_bytes(t.element)) t.align = tk_kscalar_bytes(t.element);
    return t;
}

static void make_vector(tk_library_tensor *t) {
    t->shape[0] = t->shape[1];
    t->rank = t->rank < 0 ? -1 : 1;
    t->stride[0] = 1;
}

/* Roles that are no matrix. */
static bool is_vector(tk_library_id id, size_t index) {
    if (id == TK_LIBRARY_RMS_NORM) return index == 1 || index == 3;
    if (id == TK_LIBRARY_RMS_NORM_BACKWARD) return index == 1 || index == 4;
    return id == TK_LIBRARY_COLUMN_SUM && index == 1;
}

static bool is_product(tk_library_id id) {
    return id == TK_LIBRARY_GEMM || id == TK_LIBRARY_HOPPER_GEMM;
}

static size_t make_tensors(const call *c, int way, tk_library_tensor *out) {
    size_t count = 0;
    bool flat = c->id == TK_LIBRARY_ADD || c->id == TK_LIBRARY_AXPY;
    for (const char *at = c->elements; *at; count++) {
        char element[8];
        int length = (int)strcspn(at, " ");
        snprintf(element, sizeof element, "%.*s", length, at);
        out[count] = matrix(element, way, way == TURNED && is_product(c->id) && count < 2);
        if (flat || is_vector(c->id, count)) make_vector(&out[count]);
        at += length + (at[length] == ' ');
    }
    return count;
}

/* ---- digests ---- */

static void put_kernels(const tk_library_plan *plan, tk_strbuf *out) {
    for (size_t i = 0; i < tk_library_plan_launches(plan); i++) {
        tk_library_launch launch;
        assert_ok(tk_library_plan_launch(plan, i, &launch));
        assert_ok(tk_kernel_put(launch.kernel, TK_KERNEL_ANONYMOUS, out));
    }
}

static void put_digest(const call *c, int way, const char *fields, tk_strbuf *out) {
    static const char *const names[WAYS] = {"aligned", "odd", "turned"};
    tk_library_tensor tensors[MOST_TENSORS];
    tk_library_schedule schedule;
    tk_library_plan *plan = NULL;
    tk_strbuf text = {0};
    unsigned char digest[TK_SHA256_BYTES];
    char digits[TK_SHA256_TEXT];
    double number = 0.5;
    size_t count = make_tensors(c, way, tensors);
    assert_ok(tk_library_schedule_default(c->id, count, tensors, &schedule));
    assert_ok(tk_library_schedule_read(c->id, fields, &schedule));
    assert_ok(tk_library_plan_create(c->id, count, tensors, tk_library_numbers(c->id), &number,
                                     &schedule, &plan));
    put_kernels(plan, &text);
    tk_library_plan_release(plan);
    tk_sha256_of(text.text, text.length, digest);
    tk_sha256_text(digest, digits);
    tk_strbuf_printf(out, "%.16s %s (%s) %s %s\n", digits, tk_library_name(c->id), c->elements,
                     names[way], fields);
    tk_strbuf_deinit(&text);
}

/* What is called for ahead, as TMA, refuses what does not lie at multiples of 16 bytes. */
static bool has_way(tk_library_id id, int way, const char *fields) {
    bool even = strstr(fields, "prefetch") != NULL;
    if (way == ODD) return id != TK_LIBRARY_HOPPER_GEMM && !even;
    return way == ALIGNED || is_product(id);
}

static void test_texts(void **state) {
    (void)state;
    tk_strbuf found = {0};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        for (int way = 0; way < WAYS; way++)
            for (int s = 0; s < 4 && calls[i].schedules[s]; s++)
                if (has_way(calls[i].id, way, calls[i].schedules[s]))
                    put_digest(&calls[i], way, calls[i].schedules[s], &found);
    if (writing) {
        FILE *file = fopen(GOLDEN, "wb");
        assert_true(file && fwrite(found.text, 1, found.length, file) == found.length);
        assert_int_equal(fclose(file), 0);
    }
    char *golden = read_text_file(GOLDEN);
    assert_string_equal(found.text, golden);
    free(golden);
    tk_strbuf_deinit(&found);
}

int main(int argc, char **argv) {
    writing = argc == 2 && !strcmp(argv[1], "--write");
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_texts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
