/* The npy reader on any bytes. */
#include "fuzz_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    tk_array array;
    tk_status status = tk_npy_parse(fuzz_context(), "fuzz", data, size, &array);
    if (status == TK_OK) fuzz_touch(array);
    if (status != TK_OK && !tk_error_message()[0]) abort();
    tk_release(array);
    return 0;
}
