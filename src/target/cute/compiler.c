/* See compiler.h. */
#include "target/cute/compiler.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "target/artifact.h"
#include "target/cute/slots.h"

const char *tk_cute_library_named(void) {
    const char *path = getenv("TIKI_CUTE_LIBRARY");
    return path && *path ? path : NULL;
}

tk_status tk_cute_compile(const tk_cute_job *job, tk_cute_answer *out) {
    const char *library = tk_cute_library_named();
    return library ? tk_cute_library_compile(library, job, out) : tk_cute_worker_compile(job, out);
}

tk_status tk_cute_identity(char *text, size_t capacity) {
    const char *library = tk_cute_library_named();
    if (library) return tk_cute_library_identity(library, text, capacity);
    if (tk_cute_version_on_disk(text, capacity) && tk_cute_version_fits(text)) return TK_OK;
    return tk_cute_compiler_version(text, capacity, NULL);
}

tk_status tk_cute_version(char *text, size_t capacity) {
    TK_NEED(text);
    const char *library = tk_cute_library_named();
    if (library) return tk_cute_library_identity(library, text, capacity);
    return tk_cute_compiler_version(text, capacity, NULL);
}

tk_status tk_cute_describe(char *text, size_t capacity) {
    const char *library = tk_cute_library_named();
    tk_cute_python python;
    char version[64];
    TK_NEED(text);
    if (library) {
        TK_TRY(tk_cute_library_identity(library, version, sizeof version));
        snprintf(text, capacity, "%s at %s", version, library);
        return TK_OK;
    }
    TK_TRY(tk_cute_compiler_version(version, sizeof version, &python));
    tk_cute_slots slots;
    bool counted = tk_cute_slots_work(&slots);
    snprintf(text, capacity, "nvidia-cutlass-dsl %s of %s%s%s%s", version, python.path,
             counted ? "" : " (its workers are counted in each process alone: ", slots.why,
             counted ? "" : ")");
    return TK_OK;
}
