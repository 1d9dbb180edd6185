/* What stands behind assembler.h: one file for each guise that is not the runtime's. */
#ifndef TARGET_PTX_ASSEMBLERS_H
#define TARGET_PTX_ASSEMBLERS_H

#include <stdbool.h>
#include <stddef.h>

#include "tiki/status.h"

#define TK_ASSEMBLER_PATH_BYTES 1024

typedef struct tk_assembled {
    char *log;             /* freed with tk_free by who asked, after errors too */
    unsigned char *binary; /* NULL: the text was refused, as the log says */
    size_t bytes;
    char how[24]; /* of a refusal: "exit code 1" */
} tk_assembled;

/* The program in PATH or of the Python package; false when there is none. */
bool tk_ptxas_find(char path[TK_ASSEMBLER_PATH_BYTES]);
bool tk_ptxas_is_program(const char *path);
/* Its version, "13.0.88"; "" where it does not say. */
void tk_ptxas_version(const char *program, char *text, size_t bytes);
tk_status tk_ptxas_assemble(const char *program, const char *text, const char *arch, bool lines,
                            tk_assembled *out);

/* The shared object beside this library, or in the folder lib beside its own; false when there is
 * none. */
bool tk_nvptx_find(char path[TK_ASSEMBLER_PATH_BYTES]);
void tk_nvptx_version(const char *path, char *text, size_t bytes);
tk_status tk_nvptx_assemble(const char *path, const char *text, const char *arch, bool lines,
                            tk_assembled *out);

#endif
