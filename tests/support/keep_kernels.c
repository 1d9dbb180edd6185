/* Keeps the kernels that tests run or build, for the test that builds each by both targets
 * (target/test_both_targets.c).
 *
 * Test programs are linked with --wrap for the two functions through which every kernel goes, so no
 * test names its kernels a second time. With TIKI_KEEP_KERNELS a kernel's text is written into that
 * folder under its digest; random tests make thousands, so a program leaves MOST and stops to look.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/sha256.h"
#include "tiki/emulator.h"
#include "tiki/target.h"

enum { MOST = 600, MOST_LOOKS = 6000 };

static atomic_int kept, looks;

static void write_text(const char *path, const char *text) {
    char beside[1100];
    snprintf(beside, sizeof beside, "%s.%ld", path, (long)getpid());
    FILE *file = fopen(beside, "wx");
    if (!file) return;
    fputs(text, file);
    fclose(file);
    rename(beside, path);
    atomic_fetch_add(&kept, 1);
}

static void keep(const tk_kernel *kernel) {
    const char *folder = getenv("TIKI_KEEP_KERNELS");
    unsigned char digest[TK_SHA256_BYTES];
    char path[1024], *text = NULL;
    if (!folder || !kernel || atomic_load(&kept) >= MOST) return;
    if (atomic_fetch_add(&looks, 1) >= MOST_LOOKS) return;
    mkdir(folder, 0777);
    if (tk_kernel_print(kernel, 0, &text) != TK_OK) return;
    tk_sha256_of(text, strlen(text), digest);
    snprintf(path, sizeof path, "%s/%s-%02x%02x%02x%02x%02x%02x.tk", folder,
             program_invocation_short_name, digest[0], digest[1], digest[2], digest[3], digest[4],
             digest[5]);
    if (access(path, F_OK)) write_text(path, text);
    tk_kernel_text_free(text);
}

tk_status __real_tk_kernel_emulate(const tk_kernel *kernel, const tk_kemulate *how,
                                   tk_emulation **out);
tk_status __wrap_tk_kernel_emulate(const tk_kernel *kernel, const tk_kemulate *how,
                                   tk_emulation **out);
tk_status __wrap_tk_kernel_emulate(const tk_kernel *kernel, const tk_kemulate *how,
                                   tk_emulation **out) {
    keep(kernel);
    return __real_tk_kernel_emulate(kernel, how, out);
}

tk_status __real_tk_kernel_build_ptx(const tk_kernel *kernel, const tk_build *how,
                                     tk_artifact **out);
tk_status __wrap_tk_kernel_build_ptx(const tk_kernel *kernel, const tk_build *how,
                                     tk_artifact **out);
tk_status __wrap_tk_kernel_build_ptx(const tk_kernel *kernel, const tk_build *how,
                                     tk_artifact **out) {
    keep(kernel);
    return __real_tk_kernel_build_ptx(kernel, how, out);
}
