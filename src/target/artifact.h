/* Artifacts: what targets make. */
#ifndef TARGET_ARTIFACT_H
#define TARGET_ARTIFACT_H

#include "base/sha256.h"
#include "tiki/target.h"

#define TK_ARTIFACT_ASSEMBLER_BYTES 160

struct tk_artifact {
    int references; /* atomic */
    tk_kernel *kernel;
    char *text;
    char *log;
    char arch[16];
    char identity[65];
    char assembler[TK_ARTIFACT_ASSEMBLER_BYTES];
    unsigned char *binary;
    size_t binary_bytes;
    tk_report report;
    char *stages[TK_STAGE_COUNT]; /* NULL: not kept */
};

/* The digest of target, architecture, options, tools ("" for none) and text becomes the artifact's
 * identity, the tools its assembler. The text has the kernel and its contract but no names of
 * values and, unless lines were asked for, no lines. */
void tk_artifact_identify(tk_artifact *artifact, const char *target, const tk_build *how,
                          const char *tools);

#define TK_CUTE_TOOLS_BYTES 96

/* Of an artifact that has its text: adds the binary, what `how` asks for, and the identity. `tools`
 * is the compiler that answered, in words. */
tk_status tk_cute_finish(tk_artifact *artifact, const tk_build *how,
                         char tools[TK_CUTE_TOOLS_BYTES]);

/* The compiler in those words, without starting one where it is found on disk. */
tk_status tk_cute_identity(char *text, size_t capacity);

/* The default cache, opened once a process and never closed; NULL without memory. */
tk_cache *tk_artifact_cache(void);

/* The artifact of a kernel that is known by its digest and, of itself, by its contract alone:
 * `head` becomes the artifact's kernel. From the default cache; TK_NOT_FOUND without a message when
 * it is not there and the kernel itself is needed. */
tk_status tk_kernel_recall(const tk_kernel *head, const unsigned char digest[TK_SHA256_BYTES],
                           const tk_build *how, tk_artifact **out);

/* "lines serialized" and so on. */
const char *tk_build_option_words(const tk_build *how);

/* With one reference to it and one to the kernel; NULL when memory is out. */
tk_artifact *tk_artifact_create(const tk_kernel *kernel, const char *arch);

/* TK_UNSUPPORTED for an architecture that is not built for. */
tk_status tk_target_check_arch(const char *arch);

/* TK_INVALID_ARGUMENT for an `emit` that is none. */
tk_status tk_target_check_emit(const tk_build *how);

#endif
