/* Kernel text: whatever the bytes, the parser ends with a status; what it accepts passes the
 * verifier and prints to text that parses to an equal kernel, copies to one, and has PTX or a
 * refusal. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/ir.h"
#include "tiki/target.h"

/* Not an assert: a fuzzer must find this in every build. */
static void require(bool condition) {
    if (!condition) abort();
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
