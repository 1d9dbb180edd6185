/* Kernel text: whatever the bytes, the parser ends with a status; what it accepts passes the
 * verifier and prints to text that parses to an equal kernel, copies to one, has PTX or a refusal,
 * and goes through every pass. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/ir.h"
#include "tiki/passes.h"
#include "tiki/target.h"

/* Not an assert: a fuzzer must find this in every build. */
static void require(bool condition) {
    if (!condition) abort();
}

static void lower(const tk_kernel *kernel, int flags) {
    tk_kernel *out = NULL;
    if (tk_kernel_lower(kernel, TK_KFORM_THREAD, flags, &out) != TK_OK) return;
    require(tk_kernel_verify(out) == TK_OK);
    tk_kernel_release(out);
}

/* A pass may refuse, but what it makes is verified, and that must not fail. */
static void run_passes(const tk_kernel *kernel) {
    for (int p = 0; p < TK_KPASS_COUNT; p++) {
        tk_kernel *out = NULL;
        tk_status status = tk_kernel_pass(kernel, (tk_kpass)p, &out);
        require(p <= TK_KPASS_view_to_thread || status == TK_OK || status == TK_UNSUPPORTED ||
                status == TK_OVERFLOW);
        if (status == TK_OK) tk_kernel_release(out);
    }
    lower(kernel, 0);
    lower(kernel, TK_KLOWER_OPTIMISE | TK_KLOWER_FUSE);
}

static void check(const tk_kernel *kernel) {
    char *first, *second;
    tk_kernel *again = NULL, *copy = NULL;
    tk_artifact *artifact = NULL;
    require(tk_kernel_print(kernel, TK_KERNEL_LINES, &first) == TK_OK);
    require(tk_kernel_parse(first, "again", &again) == TK_OK);
    require(tk_kernel_print(again, TK_KERNEL_LINES, &second) == TK_OK);
    require(!strcmp(first, second) && tk_kernel_equal(kernel, again));
    require(tk_kernel_clone(kernel, &copy) == TK_OK && tk_kernel_verify(copy) == TK_OK &&
            tk_kernel_equal(kernel, copy));
    if (tk_kernel_build_ptx(kernel, NULL, &artifact) == TK_OK) tk_artifact_release(artifact);
    run_passes(kernel);
    tk_kernel_text_free(first);
    tk_kernel_text_free(second);
    tk_kernel_release(again);
    tk_kernel_release(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = malloc(size + 1);
    tk_kernel *kernel = NULL;
    if (!text) abort();
    if (size) memcpy(text, data, size);
    text[size] = 0;
    if (tk_kernel_parse(text, "fuzz", &kernel) == TK_OK) check(kernel);
    tk_kernel_release(kernel);
    free(text);
    return 0;
}
