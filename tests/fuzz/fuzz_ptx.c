/* PTX text: whatever the bytes, reading and checking end with a status, the same one each time. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tiki/target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = malloc(size + 1);
    if (!text) abort();
    if (size) memcpy(text, data, size);
    text[size] = 0;
    tk_status first = tk_ptx_check(text, "fuzz");
    if (tk_ptx_check(text, "fuzz") != first) abort();
    free(text);
    return 0;
}
