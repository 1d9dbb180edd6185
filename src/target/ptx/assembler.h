/* The assembler of NVIDIA, a program of its own. */
#ifndef TARGET_PTX_ASSEMBLER_H
#define TARGET_PTX_ASSEMBLER_H

#include "target/artifact.h"

#define TK_ASSEMBLER_PATH_BYTES 1024

/* Where it is: TIKI_PTXAS, PATH, the Python package nvidia-cuda-nvcc. TK_UNSUPPORTED that says how
 * to get it. Any thread. */
tk_status tk_assembler_find(char path[TK_ASSEMBLER_PATH_BYTES]);

/* What tells one version from another, in words. */
tk_status tk_assembler_identity(const char *path, char *text, size_t bytes);

/* Adds binary, log and report to an artifact that has its text. TK_INTERNAL with the assembler's
 * messages when it refuses the text, TK_INVALID_ARGUMENT for messages that are errors here. Of
 * `how` only `lines` and `serialized` are looked at. */
tk_status tk_ptx_assemble(tk_artifact *artifact, const tk_build *how);

#endif
