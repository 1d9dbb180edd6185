/* The readers of JSON files on any bytes: the index of shards, and the log of a run, whose first
 * byte is the step to cut at. What a cut keeps is kept by the same cut again. */
#include "fuzz_file.h"
#include "io/run_log.h"
#include "io/safetensors.h"

static void cut_log(int64_t last_step, const char *text, size_t bytes) {
    size_t kept, again;
    if (tk_run_log_find_cut("fuzz", text, bytes, last_step, &kept) != TK_OK) return;
    if (kept > bytes || (kept && text[kept - 1] != '\n')) abort();
    if (tk_run_log_find_cut("fuzz", text, kept, last_step, &again) == TK_OK && again != kept)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const char *text = (const char *)data;
    json_t *map = NULL;
    if (tk_safetensors_index("fuzz", text, size, &map) == TK_OK) {
        if (!json_is_object(map)) abort();
        json_decref(map);
    }
    if (size) cut_log((int8_t)data[0], text + 1, size - 1);
    return 0;
}
