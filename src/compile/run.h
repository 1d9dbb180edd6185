/* Kernels on memory: one launch, on whichever device has the memory.
 *
 * The emulator runs it at once, and what it finds wrong is an error. A GPU gets the kernel built
 * (from the cache of artifacts, or by the assembler), loaded once, and the launch handed to the
 * queue. Both check the preconditions of the launch contract first. */
#ifndef COMPILE_RUN_H
#define COMPILE_RUN_H

#include "kernel/digest.h"
#include "kernel/shared.h"
#include "runtime/device.h"
#include "tiki/kernel.h"
#include "tiki/target.h"

/* A scalar's bits, or memory: the pointer is `data`, inside of the `bytes` from `data - before`. */
typedef struct tk_run_argument {
    uint64_t bits;
    void *data;
    size_t before, bytes;
    bool unset; /* new memory: on the emulator its bytes are 0xff until they are written */
} tk_run_argument;

/* What a GPU needs of a kernel's body, for launches that were recalled without it. */
typedef struct tk_body_facts {
    unsigned char digest[TK_SHA256_BYTES]; /* of the whole kernel, without lines */
    tk_kshared_map shared;
} tk_body_facts;

typedef struct tk_run {
    const tk_kernel *kernel; /* in thread form */
    const char *site;        /* where it is launched, for errors; NULL: not known */
    size_t n_arguments;      /* one a parameter; those of tensor maps are not looked at */
    const tk_run_argument *arguments;
    tk_target target;           /* that builds it for a GPU */
    const tk_body_facts *facts; /* NULL: the kernel is whole; else it has no body, and is not run by
                                   the emulator */
} tk_run;

/* Runs the kernel, or hands it to the queue (which only a GPU has). Any thread. Errors: a
 * precondition that does not hold, what building says, the device's; from the emulator
 * TK_DEVICE_ERROR with what it found, and TK_UNSUPPORTED for another target than PTX: it builds
 * nothing. TK_NOT_FOUND for a kernel without its body that is no longer in the cache. */
tk_status tk_run_kernel(tk_device *device, tk_queue *queue, const tk_run *run);

/* For run_cuda.c */
tk_status tk_run_on_cuda(tk_device *device, tk_queue *queue, const tk_run *run);

/* "kernel NAME launched at SITE" into a buffer. */
const char *tk_run_text(const tk_run *run, char *text, size_t bytes);

#endif
