/* A stand-in for nvPTXCompiler, for tests of what calls it: the binary is an ELF mark, the options
 * and the text; a text with "refuse" in it is refused, one with "break" breaks the compiler. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

typedef struct nvPTXCompiler {
    char *text, options[200], log[200];
    int failed;
} nvPTXCompiler;

EXPORT int nvPTXCompilerCreate(nvPTXCompiler **out, size_t length, const char *text);
EXPORT int nvPTXCompilerDestroy(nvPTXCompiler **compiler);
EXPORT int nvPTXCompilerGetVersion(unsigned *major, unsigned *minor);
EXPORT int nvPTXCompilerCompile(nvPTXCompiler *compiler, int count, const char *const *options);
EXPORT int nvPTXCompilerGetCompiledProgramSize(nvPTXCompiler *compiler, size_t *bytes);
EXPORT int nvPTXCompilerGetCompiledProgram(nvPTXCompiler *compiler, void *out);
EXPORT int nvPTXCompilerGetErrorLogSize(nvPTXCompiler *compiler, size_t *bytes);
EXPORT int nvPTXCompilerGetErrorLog(nvPTXCompiler *compiler, char *out);
EXPORT int nvPTXCompilerGetInfoLogSize(nvPTXCompiler *compiler, size_t *bytes);
EXPORT int nvPTXCompilerGetInfoLog(nvPTXCompiler *compiler, char *out);

int nvPTXCompilerCreate(nvPTXCompiler **out, size_t length, const char *text) {
    nvPTXCompiler *made = calloc(1, sizeof *made);
    made->text = calloc(1, length + 1);
    memcpy(made->text, text, length);
    *out = made;
    return 0;
}

int nvPTXCompilerGetVersion(unsigned *major, unsigned *minor) {
    *major = 12;
    *minor = 9;
    return 0;
}

int nvPTXCompilerDestroy(nvPTXCompiler **compiler) {
    free((*compiler)->text);
    free(*compiler);
    *compiler = NULL;
    return 0;
}

int nvPTXCompilerCompile(nvPTXCompiler *compiler, int count, const char *const *options) {
    for (int i = 0; i < count; i++) {
        strcat(compiler->options, options[i]);
        strcat(compiler->options, " ");
    }
    if (strstr(compiler->text, "break")) return 4;
    compiler->failed = strstr(compiler->text, "refuse") != NULL;
    snprintf(compiler->log, sizeof compiler->log, "%s",
             compiler->failed ? "ptxas application ptx input, line 7; error : no such thing"
                              : "ptxas info : Used 11 registers, used 1 barriers\n"
                                "ptxas info : 0 bytes stack frame, 8 bytes spill stores, "
                                "16 bytes spill loads\n");
    return compiler->failed ? 3 : 0;
}

int nvPTXCompilerGetCompiledProgramSize(nvPTXCompiler *compiler, size_t *bytes) {
    *bytes = 4 + strlen(compiler->options) + strlen(compiler->text);
    return 0;
}

int nvPTXCompilerGetCompiledProgram(nvPTXCompiler *compiler, void *out) {
    static const char magic[4] = {'\177', 'E', 'L', 'F'};
    char *at = out;
    memcpy(at, magic, sizeof magic);
    memcpy(at + 4, compiler->options, strlen(compiler->options));
    memcpy(at + 4 + strlen(compiler->options), compiler->text, strlen(compiler->text));
    return 0;
}

static int size_of(const nvPTXCompiler *compiler, int of_error, size_t *bytes) {
    *bytes = of_error == compiler->failed ? strlen(compiler->log) : 0;
    return 0;
}

int nvPTXCompilerGetErrorLogSize(nvPTXCompiler *compiler, size_t *bytes) {
    return size_of(compiler, 1, bytes);
}
int nvPTXCompilerGetInfoLogSize(nvPTXCompiler *compiler, size_t *bytes) {
    return size_of(compiler, 0, bytes);
}
int nvPTXCompilerGetErrorLog(nvPTXCompiler *compiler, char *out) {
    memcpy(out, compiler->log, strlen(compiler->log));
    return 0;
}
int nvPTXCompilerGetInfoLog(nvPTXCompiler *compiler, char *out) {
    memcpy(out, compiler->log, strlen(compiler->log));
    return 0;
}
