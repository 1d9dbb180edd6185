/* `tiki info`: what this build is and what this machine offers it. */
#include <jansson.h>
#include <stdio.h>
#include <zip.h>

#include "cli/commands.h"
#include "cli/options.h"
#include "tiki/cache.h"
#include "tiki/gpu.h"
#include "tiki/target.h"
#include "tiki/version.h"

static void print_gpu(int index) {
    tk_gpu_info info;
    if (tk_gpu_describe(index, &info) != TK_OK) {
        printf("gpu        off: %s\n", tk_error_message());
        return;
    }
    printf(
        "gpu        cuda:%d, %s, compute capability %d.%d, %d multiprocessors, %.1f GiB, driver of "
        "CUDA %d.%d\n",
        index, info.name, info.major, info.minor, info.multiprocessors,
        (double)info.memory / (1 << 30), info.driver / 1000, info.driver % 1000 / 10);
}

static void print_gpus(void) {
    int count;
    if (tk_gpu_count(&count) != TK_OK) printf("gpu        off: %s\n", tk_error_message());
    for (int i = 0; i < count; i++) print_gpu(i);
}

static void print_assembler(void) {
    char name[1400];
    bool there = tk_assembler_describe(name, sizeof name) == TK_OK;
    printf("assembler  %s%s\n", there ? "" : "off: ", there ? name : tk_error_message());
}

static void print_cache(void) {
    tk_cache_options looking = {.read_only = true};
    tk_cache *cache;
    char warning[512];
    if (tk_cache_open(&looking, &cache) != TK_OK) return;
    tk_cache_warning(cache, warning, sizeof warning);
    printf("cache      %s%s\n", tk_cache_folder(cache), warning);
    tk_cache_close(cache);
}

static void print_cute(void) {
    char text[1400];
    bool there = tk_cute_describe(text, sizeof text) == TK_OK;
    printf("cute       %s%s\n", there ? "" : "off: ", there ? text : tk_error_message());
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
    print_gpus();
    printf("blas       %s\n",
           blas ? blas : "none: libopenblas.so.0 is not installed, own products do all the work");
    printf("json       jansson %s\n", jansson_version_str());
    printf("zip        libzip %s\n", zip_libzip_version());
    print_assembler();
    print_cute();
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
