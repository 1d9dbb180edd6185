/* From a kernel to what a card runs.
 *
 * A target turns a kernel in thread form into an artifact: the text it generated, the binary, what
 * the assembler said, and a report. An artifact is counted, never changes and may be used from any
 * thread; any number of builds may run at once. */
#ifndef TIKI_TARGET_H
#define TIKI_TARGET_H

#include "tiki/cache.h"
#include "tiki/kernel.h"

TK_BEGIN_DECLS

typedef struct tk_artifact tk_artifact;

typedef enum tk_emit {
    TK_EMIT_TEXT,  /* the target's text: PTX, CuTe MLIR */
    TK_EMIT_BINARY /* a cubin besides */
} tk_emit;

/* Who turns a kernel into a binary. One that is named never falls back to the other. */
typedef enum tk_target {
    TK_TARGET_PTX,  /* PTX, and NVIDIA's assembler */
    TK_TARGET_CUTE, /* CuTe MLIR, and NVIDIA's CuTe compiler */
    TK_TARGET_COUNT
} tk_target;

/* "ptx", "cute"; "?" for what is none. */
TK_API const char *tk_target_name(tk_target target);
/* TK_NOT_FOUND names those that there are. */
TK_API tk_status tk_target_find(const char *name, tk_target *out_target);

typedef struct tk_build {
    const char *arch; /* "sm_80", "sm_90" or "sm_90a"; NULL: sm_90a */
    tk_target target; /* of tk_kernel_build and of the cache */
    tk_emit emit;
    bool lines;              /* line information in text and binary */
    bool serialized;         /* take it that ptxas runs wgmma one by one (its messages C75xx) */
    bool stages;             /* of the CuTe target: keep what lies between text and binary */
    int limit_ms;            /* of the CuTe target: longest time of a compilation; 0: two minutes */
    bool (*stop)(void *arg); /* of the CuTe target: asked about every 20 ms on the calling thread;
                                true gives up. NULL: nobody is asked */
    void *stop_arg;
} tk_build;

/* Builds a kernel by how->target: one of the two functions that follow. */
TK_API tk_status tk_kernel_build(const tk_kernel *kernel, const tk_build *how, tk_artifact **out);

/* Builds a kernel as PTX and, with TK_EMIT_BINARY, assembles it by the first that is there of
 *   ptxas, a program: in PATH, or of the Python package nvidia-cuda-nvcc (of python3);
 *   nvPTXCompiler, a shared object that `make nvptxcompiler` makes, beside this library;
 *   driver, that of a card.
 * The environment's TIKI_ASSEMBLER chooses one by its word, TIKI_PTXAS and TIKI_NVPTXCOMPILER by
 * its file; what is chosen and not there is an error. `how` NULL: all as above, text only.
 *
 * TK_UNSUPPORTED: another form, an operation without a PTX form (named with its line), an unknown
 * architecture, no assembler. TK_INVALID_ARGUMENT: registers of a wgmma are touched while it is in
 * flight (see tk_ptx_check), or the assembler says that it serialises wgmma. TK_INTERNAL with the
 * assembler's messages when it refuses the text. */
TK_API tk_status tk_kernel_build_ptx(const tk_kernel *kernel, const tk_build *how,
                                     tk_artifact **out);

/* Builds a kernel in view or thread form as CuTe MLIR and, with TK_EMIT_BINARY, has NVIDIA's CuTe
 * compiler make a cubin of it, with the same launch contract as the one of tk_kernel_build_ptx:
 * architecture, presence of the kernel, offset and size of each parameter are compared. The
 * compiler is the Python package nvidia-cutlass-dsl 4.8, run by the Python that the environment's
 * TIKI_CUTE_PYTHON names, else by the one of tk_cute_use_python, else by python3, in worker
 * processes that are kept; or the library that TIKI_CUTE_LIBRARY names. docs/cute.md says more.
 *
 * TK_UNSUPPORTED: the tensor form, an operation without a CuTe form (named with its line), an
 * unknown architecture, no package or one of another version. TK_INTERNAL: the compiler refuses the
 * text (with its message, and the operation and line of the kernel that it is about), a binary that
 * differs from the contract, a worker that dies twice. TK_INTERRUPTED: it took longer than the
 * limit or was stopped. TK_IO_ERROR: no room for the compiler's files. TK_INVALID_ARGUMENT as
 * tk_ptx_check, which reads the PTX that the compiler made. */
TK_API tk_status tk_kernel_build_cute(const tk_kernel *kernel, const tk_build *how,
                                      tk_artifact **out);

/* The assembler that a build would take now, in words that tell one version from another, with its
 * path. TK_UNSUPPORTED that says why there is none. Any thread. */
TK_API tk_status tk_assembler_name(char *text, size_t capacity);

/* The same for people, with its version: "ptxas 13.0.88 of /usr/local/cuda/bin/ptxas". Starts the
 * program to ask it. */
TK_API tk_status tk_assembler_describe(char *text, size_t capacity);

/* The version of the CuTe compiler into `text`; the errors of tk_kernel_build_cute. */
TK_API tk_status tk_cute_version(char *text, size_t capacity);

/* The same in words, with where it is: "nvidia-cutlass-dsl 4.8.1 of /usr/bin/python3". */
TK_API tk_status tk_cute_describe(char *text, size_t capacity);

/* The Python that runs this process, tried before python3; NULL: none does. Workers that run
 * already stay. Any thread. */
TK_API tk_status tk_cute_use_python(const char *path);

/* As tk_kernel_build with a binary, from the cache of built kernels (cache.h) if it is there; built
 * and kept else, once among all processes that ask at the same time. A hit starts no assembler and
 * no worker (where the CuTe package is found in a usual place beside its Python). `cache`
 * NULL: the default one, opened once a process. *out_built (may be NULL) says whether it was built.
 * Whatever goes wrong on the disk is a warning of the cache. Errors as above. Any thread. */
TK_API tk_status tk_kernel_build_cached(const tk_kernel *kernel, const tk_build *how,
                                        tk_cache *cache, tk_artifact **out, bool *out_built);

/* Says in words that the kernel is in the cache, or in which parts of its identity the nearest
 * entry differs. The caller frees the text with tk_cache_text_free. */
TK_API tk_status tk_kernel_cache_explain(const tk_kernel *kernel, const tk_build *how,
                                         tk_cache *cache, char **out_text);

/* Reads PTX text of any compiler and refuses a function that touches registers of a wgmma between
 * its issue and the wait that retires it, on any path: the accumulator at all, the A fragment by
 * writing. (Products of one shape may follow each other in one accumulator.) ptxas accepts such
 * text, and what it makes of it gives wrong numbers. tk_kernel_build_ptx checks what it generated.
 *
 * TK_INVALID_ARGUMENT with `name`, line, instruction and register; TK_FORMAT_ERROR for text that is
 * no PTX; TK_UNSUPPORTED for a function too large to check. Any thread may call. */
TK_API tk_status tk_ptx_check(const char *text, const char *name);

TK_API tk_artifact *tk_artifact_retain(tk_artifact *artifact);
TK_API void tk_artifact_release(tk_artifact *artifact);

/* What the artifact was made of, as 64 hexadecimal digits: the digest of target, architecture,
 * options, tool versions and text. Equal kernels have one, whatever their values are called and,
 * unless lines were asked for, wherever they come from. Borrowed. */
TK_API const char *tk_artifact_identity(const tk_artifact *artifact);

/* Borrowed from the artifact. The binary is NULL when there is none, the log "". */
TK_API const char *tk_artifact_text(const tk_artifact *artifact);
TK_API const void *tk_artifact_binary(const tk_artifact *artifact, size_t *out_bytes);
TK_API const char *tk_artifact_log(const tk_artifact *artifact);
/* What made the binary: the assembler as tk_assembler_name says it, without its path, or the CuTe
 * compiler; "" without a binary. */
TK_API const char *tk_artifact_assembler(const tk_artifact *artifact);
TK_API const char *tk_artifact_arch(const tk_artifact *artifact);
TK_API const tk_kernel *tk_artifact_kernel(const tk_artifact *artifact);

/* What was made on the way from text to binary, NULL where it was not kept (`stages` of tk_build).
 */
typedef enum tk_stage {
    TK_STAGE_LOWERED, /* MLIR after the CuTe compiler's passes */
    TK_STAGE_PTX,     /* of the CuTe compiler */
    TK_STAGE_COUNT
} tk_stage;
TK_API const char *tk_artifact_stage(const tk_artifact *artifact, tk_stage stage);

/* What the assembler counted, of one thread, and the shared memory of the kernel's buffers; -1
 * where nothing was assembled. */
typedef struct tk_report {
    int64_t registers, spill_stores, spill_loads, stack_bytes, barriers;
    int64_t shared_bytes;
    int64_t blocks_of_an_sm; /* that fit at once: by threads, registers and shared memory */
} tk_report;

TK_API tk_status tk_artifact_report(const tk_artifact *artifact, tk_report *out);

TK_END_DECLS

#endif
