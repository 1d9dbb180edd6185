/* See kernels_made.h. */
#include "compile/kernels_made.h"

#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "tiki/passes.h"

static tk_status make(const tk_kernels_made *made, const void *key, tk_kernel **out) {
    tk_strbuf text = {0};
    tk_kernel *raw = NULL;
    made->put(key, &text);
    tk_status status = text.failed ? tk_fail(TK_OUT_OF_MEMORY, "no memory for a kernel")
                                   : tk_kernel_parse(text.text, made->name, &raw);
    tk_strbuf_deinit(&text);
    if (status == TK_OK) status = tk_kernel_pass(raw, TK_KPASS_expand, out);
    tk_kernel_release(raw);
    return status;
}

/* With the lock. */
static tk_status add(tk_kernels_made *made, const void *key, tk_kernel **out) {
    tk_made entry = {tk_malloc(made->key_bytes), NULL};
    if (!entry.key) return tk_fail(TK_OUT_OF_MEMORY, "no memory for a kernel");
    memcpy(entry.key, key, made->key_bytes);
    tk_status status = make(made, key, &entry.kernel);
    if (status == TK_OK && !tk_vec_push(&made->kernels, entry))
        status = tk_fail(TK_OUT_OF_MEMORY, "no memory for a kernel");
    if (status == TK_OK) {
        *out = entry.kernel;
        return TK_OK;
    }
    tk_kernel_release(entry.kernel);
    tk_free(entry.key);
    return status;
}

tk_status tk_kernels_find(tk_kernels_made *made, const void *key, tk_kernel **out) {
    tk_status status = TK_OK;
    *out = NULL;
    pthread_mutex_lock(&made->lock);
    for (size_t i = 0; !*out && i < made->kernels.count; i++)
        if (!memcmp(made->kernels.items[i].key, key, made->key_bytes))
            *out = made->kernels.items[i].kernel;
    if (!*out) status = add(made, key, out);
    pthread_mutex_unlock(&made->lock);
    return status;
}
