/* Speed of the layout algebra: nanoseconds an operation, one line each.
 *
 * The operands rotate among a few, so that no branch is learnt by heart, and each result feeds a
 * checksum that is printed, so that nothing is optimised away. Best of many short rounds: one that
 * nothing else disturbs is among them. With the argument `operands` it prints the operands instead,
 * for bench_layout_pycute.py. */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tiki/layout.h"

#define VARIANTS 4
#define ROUNDS 400

static int64_t checksum;

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static tk_layout parse(const char *text) {
    tk_layout layout;
    if (tk_layout_parse(text, &layout) == TK_OK) return layout;
    fprintf(stderr, "%s\n", tk_error_message());
    exit(1);
}

static tk_layout left[VARIANTS], right[VARIANTS], ragged[VARIANTS];

static void load(void) {
    static const char *const a[VARIANTS] = {"(64,32,16):(1,80,2560)", "(32,(8,4),8):(256,(1,8),32)",
                                            "(128,64,4):(64,1,8192)", "(16,16,16):(1,20,400)"};
    static const char *const b[VARIANTS] = {"(8,4,16):(1,64,2048)", "(4,(2,4),8):(1,(4,32),1024)",
                                            "(16,8,4):(1,128,8192)", "(4,(4,2),8):(1,(16,64),256)"};
    static const char *const c[VARIANTS] = {
        "((2,4),(1,8),3):((1,2),(0,8),100)", "(4,(2,8),2):(1,(4,8),64)",
        "((2,2),(2,2),(2,2)):((1,2),(8,16),(4,32))", "(3,(1,5),(7,2)):(1,(9,3),(15,105))"};
    for (int i = 0; i < VARIANTS; i++) {
        left[i] = parse(a[i]);
        right[i] = parse(b[i]);
        ragged[i] = parse(c[i]);
    }
}

typedef void body(int64_t count);

static void run_composition(int64_t count) {
    tk_layout out;
    for (int64_t i = 0; i < count; i++) {
        int v = (int)(i % VARIANTS);
        if (tk_layout_composition(&left[v], &right[v], &out) != TK_OK) abort();
        checksum += out.leaf[out.leaf_count - 1].stride.value;
    }
}

static void run_coalesce(int64_t count) {
    tk_layout out;
    for (int64_t i = 0; i < count; i++) {
        if (tk_layout_coalesce(&ragged[i % VARIANTS], NULL, &out) != TK_OK) abort();
        checksum += out.leaf_count;
    }
}

static void run_complement(int64_t count) {
    tk_layout out;
    for (int64_t i = 0; i < count; i++) {
        if (tk_layout_complement(&right[i % VARIANTS], tk_term_int(65536), &out) != TK_OK) abort();
        checksum += out.leaf_count;
    }
}

static void run_right_inverse(int64_t count) {
    tk_layout out;
    for (int64_t i = 0; i < count; i++) {
        if (tk_layout_right_inverse(&ragged[i % VARIANTS], &out) != TK_OK) abort();
        checksum += out.leaf_count;
    }
}

static void run_left_inverse(int64_t count) {
    tk_layout out;
    for (int64_t i = 0; i < count; i++) {
        if (tk_layout_left_inverse(&left[i % VARIANTS], &out) != TK_OK) abort();
        checksum += out.leaf_count;
    }
}

static void run_zipped_divide(int64_t count) {
    tk_tiler tiler;
    tk_layout out;
    if (tk_tiler_parse("(8,8,2)", &tiler) != TK_OK) abort();
    for (int64_t i = 0; i < count; i++) {
        if (tk_layout_zipped_divide(&left[i % VARIANTS], &tiler, &out) != TK_OK) abort();
        checksum += out.leaf_count;
    }
}

static void run_logical_product(int64_t count) {
    tk_layout tiler = parse("(4,2):(2,1)"), out;
    for (int64_t i = 0; i < count; i++) {
        if (tk_layout_logical_product(&right[i % VARIANTS], &tiler, &out) != TK_OK) abort();
        checksum += out.leaf_count;
    }
}

static void run_at(int64_t count) {
    for (int64_t i = 0; i < count; i++) checksum += tk_layout_at(&left[i % VARIANTS], i & 4095);
}

static void run_at_leaves(int64_t count) {
    int64_t coord[4] = {0};
    for (int64_t i = 0; i < count; i++) {
        coord[i & 3] = i & 7;
        checksum += tk_layout_at_leaves(&left[i % VARIANTS], coord);
    }
}

static void run_offsets(int64_t count) {
    static int64_t out[512];
    for (int64_t i = 0; i < count; i += 512) {
        if (tk_layout_offsets(&left[i / 512 % VARIANTS], 0, 512, out) != TK_OK) abort();
        checksum += out[511];
    }
}

static void run_parse(int64_t count) {
    for (int64_t i = 0; i < count; i++)
        checksum += parse("((2,4),(1,8),3):((1,2),(0,8),100)").leaf_count;
}

static void run_print(int64_t count) {
    char text[256];
    for (int64_t i = 0; i < count; i++)
        checksum += (int64_t)tk_layout_print(&ragged[i % VARIANTS], text, sizeof text);
}

static void measure(const char *name, body *run, double limit) {
    int64_t count = 1 << 11;
    double best = 1e30;
    run(count);
    for (int round = 0; round < ROUNDS; round++) {
        double start = now();
        run(count);
        double each = (now() - start) / (double)count;
        if (each < best) best = each;
    }
    printf("layout %-36s %8.1f ns", name, best);
    if (limit > 0) printf("   limit %.0f ns%s", limit, best < limit ? "" : "   MISSED");
    putchar('\n');
}

static void print_operands(void) {
    char text[256];
    const tk_layout *all[] = {left, right, ragged};
    static const char *const name[] = {"left", "right", "ragged"};
    for (int set = 0; set < 3; set++)
        for (int i = 0; i < VARIANTS; i++) {
            tk_layout_print(&all[set][i], text, sizeof text);
            printf("%s %s\n", name[set], text);
        }
}

int main(int argc, char **argv) {
    load();
    if (argc > 1 && !strcmp(argv[1], "operands")) {
        print_operands();
        return 0;
    }
    measure("composition of two rank-3 layouts", run_composition, 300);
    measure("coalesce", run_coalesce, 100);
    measure("evaluation at an integer", run_at, 10);
    measure("evaluation at leaf coordinates", run_at_leaves, 10);
    measure("evaluation of a run, a coordinate", run_offsets, 10);
    measure("complement", run_complement, 0);
    measure("right_inverse", run_right_inverse, 0);
    measure("left_inverse", run_left_inverse, 0);
    measure("zipped_divide by a rank-3 tiler", run_zipped_divide, 0);
    measure("logical_product", run_logical_product, 0);
    measure("parse", run_parse, 0);
    measure("print", run_print, 0);
    printf("layout checksum %" PRId64 "\n", checksum);
    return 0;
}
