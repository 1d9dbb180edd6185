/* The reader of exported functions on any bytes; what it could read is called. Results stay lazy:
 * a graph from anywhere may be any amount of work. */
#include "fuzz_file.h"
#include "tiki/export.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    tk_context *context = fuzz_context();
    tk_exported *exported;
    tk_arrays results = {0};
    tk_status status = tk_exported_parse(context, "fuzz", data, size, &exported);
    if (status == TK_INTERNAL || (status == TK_OK) != (exported != NULL)) abort();
    if (status != TK_OK && !tk_error_message()[0]) abort();
    tk_scope scope = tk_scope_open(context);
    for (int64_t rows = 1; exported && rows < 6; rows++) {
        tk_array x = tk_ones(context, TK_SHAPE(rows, 3), TK_FLOAT32);
        status = tk_exported_call(exported, &x, 1, NULL, 0, &results);
        if (status != TK_OK && !tk_error_message()[0]) abort();
    }
    tk_arrays_clear(&results);
    tk_scope_close(scope);
    tk_exported_free(exported);
    return 0;
}
