/* Objects of the CuTe compiler and cubins: whatever the bytes, both readers end with a status, and
 * what they find lies inside of the bytes. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "target/cubin.h"
#include "target/cute/object.h"
#include "tiki/kernel.h"

static const char kernel_text[] =
    "tiki kernel 1\nkernel k(%x: ptr<f32, global> read align 4, %n: i32)\nform thread grid (1, 1, "
    "1) block (32, 1, 1)\n{ %t = thread_index.x : i32\n}\n";

static const tk_kernel *the_kernel(void) {
    static tk_kernel *kernel;
    if (!kernel && tk_kernel_parse(kernel_text, "fuzz", &kernel) != TK_OK) abort();
    return kernel;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const unsigned char *at;
    size_t bytes;
    /* An exact copy, so that a sanitizer sees a read beyond the end. */
    unsigned char *copy = malloc(size ? size : 1);
    if (!copy) abort();
    if (size) memcpy(copy, data, size);
    if (tk_cute_object_find(copy, size, &at, &bytes) == TK_OK) {
        if (at < copy || bytes > size || at + bytes > copy + size) abort();
        (void)tk_cubin_check(at, bytes, the_kernel(), "sm_90a");
    }
    (void)tk_cubin_check(copy, size, the_kernel(), "sm_90a");
    free(copy);
    return 0;
}
