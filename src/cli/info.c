/* `tiki info`: what this build is and what this machine offers it. */
#include <dlfcn.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <zip.h>

#include "cli/commands.h"
#include "cli/options.h"
#include "tiki/version.h"

static void print_cuda(void) {
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (driver) dlclose(driver);
    printf("gpu        off: %s\n",
           driver ? "an NVIDIA driver is there, but this version of Tiki has no CUDA device"
                  : "no NVIDIA driver (libcuda.so.1) and no CUDA device in this version");
}

static void print_cache(void) {
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (cache && cache[0])
        printf("cache      %s/tiki (not used by this version)\n", cache);
    else if (home && home[0])
        printf("cache      %s/.cache/tiki (not used by this version)\n", home);
    else
        printf("cache      none: neither XDG_CACHE_HOME nor HOME is set\n");
}

static int print_all(void) {
    tk_context *context;
    if (tk_context_create(NULL, &context) != TK_OK) return complain_of_error("info");
    tk_device *device = tk_context_device(context);
    const char *blas = tk_cpu_blas();
    printf("tiki       %s\n", TK_VERSION);
    printf("cpu        %s, %d threads, %s vectors, %.1f GiB memory limit\n", tk_device_name(device),
           tk_threads_count(), tk_cpu_variant(),
           (double)tk_device_memory(device).memory_limit / (1 << 30));
    print_cuda();
    printf("blas       %s\n",
           blas ? blas : "none: libopenblas.so.0 is not installed, own products do all the work");
    printf("json       jansson %s\n", jansson_version_str());
    printf("zip        libzip %s\n", zip_libzip_version());
    print_cache();
    tk_context_release(context);
    return 0;
}

int command_info(int argc, char **argv) {
    options set = {"info", "", "Prints version, devices, libraries, and why a device is off.", NULL,
                   0};
    int code = options_parse(&set, argc, argv);
    return code >= 0 ? code : print_all();
}
