/* NVIDIA's assembler of PTX, in one of three guises: the program ptxas, the library nvPTXCompiler,
 * the driver of a card. */
#ifndef TARGET_PTX_ASSEMBLER_H
#define TARGET_PTX_ASSEMBLER_H

#include "target/artifact.h"

typedef enum tk_assembler_kind {
    TK_ASSEMBLER_PTXAS,
    TK_ASSEMBLER_LIBRARY,
    TK_ASSEMBLER_DRIVER
} tk_assembler_kind;

typedef struct tk_assembler {
    tk_assembler_kind kind;
    const char *word;                           /* "ptxas", "nvPTXCompiler", "driver" */
    char path[1024];                            /* "" for the driver */
    char identity[TK_ARTIFACT_ASSEMBLER_BYTES]; /* what tells one version from another, in words */
} tk_assembler;

/* The one that the environment asks for (TIKI_ASSEMBLER by its word, TIKI_PTXAS and
 * TIKI_NVPTXCOMPILER by its file), else the first that is there. Starts no process but a
 * python3 that is a script, once, to find its package. TK_UNSUPPORTED that says of each why it is
 * not there and how to get it, TK_INVALID_ARGUMENT for another word. Any thread. */
tk_status tk_assembler_choose(tk_assembler *out);

/* Adds binary, log and report to an artifact that has its text.
 * TK_INTERNAL with the assembler's messages when it refuses the text, TK_INVALID_ARGUMENT for
 * messages that are errors here. Of `how` only `lines` and `serialized` are looked at. */
tk_status tk_ptx_assemble(tk_artifact *artifact, const tk_build *how, const tk_assembler *with);

#endif
