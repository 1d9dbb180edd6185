/* Kernels of tests/kernel/passes, lowered, and run without findings. */
#ifndef SUPPORT_LOWERED_H
#define SUPPORT_LOWERED_H

#include "support/kernel_files.h"
#include "tiki/emulator.h"
#include "tiki/passes.h"

static const int all_flags[] = {0, TK_KLOWER_OPTIMISE, TK_KLOWER_OPTIMISE | TK_KLOWER_FUSE};

static inline tk_kernel *lowered(const char *name, int flags) {
    char path[100];
    tk_kernel *out = NULL;
    snprintf(path, sizeof path, "tests/kernel/passes/%s.tk", name);
    tk_kernel *kernel = parse_file(path);
    assert_ok(tk_kernel_lower(kernel, TK_KFORM_THREAD, flags, &out));
    tk_kernel_release(kernel);
    return out;
}

static inline void emulate_clean(const tk_kernel *kernel, uint64_t seed, size_t count,
                                 const tk_kbuffer *buffers, const tk_kargument *arguments) {
    tk_emulation *emulation = NULL;
    char *text;
    tk_kemulate how = {
        .seed = seed, .n_arguments = count, .arguments = arguments, .buffers = buffers};
    assert_ok(tk_kernel_emulate(kernel, &how, &emulation));
    assert_ok(tk_emulation_text(emulation, &text));
    assert_string_equal(text, "");
    tk_kernel_text_free(text);
    tk_emulation_release(emulation);
}

#endif
