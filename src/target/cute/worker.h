/* NVIDIA's CuTe compiler, which is a Python package: a pool of worker processes that keep it
 * loaded.
 *
 * A worker compiles one text at a time and is kept for the next. There are at most
 * TK_CUTE_MOST_WORKERS in a process, and a number of a user in all (slots.h); who finds none free
 * waits. Nothing is shared between compilations. A worker
 * that dies is replaced and its text tried once more; one that takes too long is ended. Workers end
 * by themselves when this process does, however it ends. Any thread may call; a forked child starts
 * workers of its own. */
#ifndef TARGET_CUTE_WORKER_H
#define TARGET_CUTE_WORKER_H

#include <stdbool.h>
#include <stddef.h>

#include "target/artifact.h"
#include "target/cute/python.h"
#include "tiki/status.h"

#define TK_CUTE_MOST_WORKERS 4

typedef struct tk_cute_job {
    const char *arch, *options, *text;
    size_t text_bytes;
    bool ptx, lowered;
    int limit_ms;            /* 0: two minutes */
    bool (*stop)(void *arg); /* asked about every 20 ms; true gives up. NULL: nobody */
    void *stop_arg;
} tk_cute_job;

/* Each text ends with a zero byte that is not counted. */
typedef struct tk_cute_answer {
    bool refused; /* the compiler did not take the text: `messages` says why */
    bool no_room; /* files could not be written: `messages` says where */
    char *object, *ptx, *lowered, *messages;
    size_t object_bytes;
    char version[TK_CUTE_TOOLS_BYTES]; /* of the compiler that answered */
} tk_cute_answer;
void tk_cute_answer_free(tk_cute_answer *answer);

/* TK_UNSUPPORTED when there is no package or one of another version, with the command that installs
 * it; TK_INTERRUPTED when it took too long or was stopped; TK_INTERNAL when the worker died twice
 * or did not speak the language. A text that the compiler refuses is an answer. */
tk_status tk_cute_worker_compile(const tk_cute_job *job, tk_cute_answer *out);

/* The version of the package that a worker has loaded into `text`, and the Python that runs it into
 * `python`, which may be NULL; the errors of tk_cute_worker_compile. */
tk_status tk_cute_compiler_version(char *text, size_t capacity, tk_cute_python *python);

/* Workers that are alive, for tests. */
int tk_cute_worker_count(void);

#endif
