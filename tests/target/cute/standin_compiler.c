/* Stands in for libCutlassCompiler.so: the same functions, answering with what the compiler of the
 * package answered once. TIKI_FAKE_COMPILER says what fails: `parse`, `target`, `pipeline`,
 * `compile`, `data`, `ptx` (none is written). Whatever a caller does that the real one would not
 * take is answered with an error, and cutlass_standin_live counts what was not given back. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RECORDED "tests/target/cute/recorded/vector_add"
#define EXPORT __attribute__((visibility("default")))

enum { PRE_COMPILED_MLIR = 1, OBJECT = 4 };

typedef struct compiler {
    bool has_target, has_abi;
    char pipeline[2000];
} compiler;

typedef struct artifacts {
    int type;
} artifacts;

static int live;

EXPORT void *cutlass_cute_compiler_create(void);
EXPORT void cutlass_compiler_destroy(void *self);
EXPORT int cutlass_compiler_set_device_target(void *self, const char *text, size_t bytes,
                                              char **error, size_t *error_bytes);
EXPORT int cutlass_compiler_set_abi(void *self, int abi, char **error, size_t *error_bytes);
EXPORT int cutlass_compiler_set_pipeline(void *self, int type, const char *text, size_t bytes);
EXPORT void *cutlass_compiler_compile_to(void *self, void *from, int type, char **error,
                                         size_t *error_bytes);
EXPORT void *cutlass_artifacts_from_textual_form(int type, const char *text, size_t bytes);
EXPORT int cutlass_artifacts_get_data(void *self, uint8_t **data, size_t *bytes);
EXPORT void cutlass_artifacts_destroy(void *self);
EXPORT int cutlass_standin_live(void);

static bool fails(const char *what) {
    const char *mode = getenv("TIKI_FAKE_COMPILER");
    return mode && !strcmp(mode, what);
}

/* As the real one does: without a zero behind it that would count. */
static int say(const char *text, char **error, size_t *error_bytes) {
    *error_bytes = strlen(text);
    *error = malloc(*error_bytes);
    if (*error) memcpy(*error, text, *error_bytes);
    return 1;
}

static uint8_t *recorded(const char *suffix, size_t *bytes) {
    char path[200];
    snprintf(path, sizeof path, "%s%s", RECORDED, suffix);
    FILE *file = fopen(path, "rb");
    uint8_t *data = malloc(1 << 20);
    *bytes = file && data ? fread(data, 1, 1 << 20, file) : 0;
    if (file) fclose(file);
    return data;
}

static void *new_artifacts(int type) {
    artifacts *made = malloc(sizeof *made);
    if (!made) return NULL;
    made->type = type;
    live++;
    return made;
}

int cutlass_standin_live(void) { return live; }

void *cutlass_cute_compiler_create(void) {
    live++;
    return calloc(1, sizeof(compiler));
}

void cutlass_compiler_destroy(void *self) {
    live--;
    free(self);
}

int cutlass_compiler_set_device_target(void *self, const char *text, size_t bytes, char **error,
                                       size_t *error_bytes) {
    if (fails("target") || bytes != 6 || memcmp(text, "sm_90a", 6))
        return say("no such target", error, error_bytes);
    ((compiler *)self)->has_target = true;
    return 0;
}

int cutlass_compiler_set_abi(void *self, int abi, char **error, size_t *error_bytes) {
    if (abi) return say("only Tbd", error, error_bytes);
    ((compiler *)self)->has_abi = true;
    return 0;
}

int cutlass_compiler_set_pipeline(void *self, int type, const char *text, size_t bytes) {
    compiler *c = self;
    if (fails("pipeline") || type != PRE_COMPILED_MLIR || bytes >= sizeof c->pipeline) return 1;
    memcpy(c->pipeline, text, bytes);
    c->pipeline[bytes] = 0;
    return strncmp(c->pipeline, "cute-to-nvvm{", 13) || c->pipeline[bytes - 1] != '}';
}

static void dump_ptx(const compiler *c) {
    char path[1000];
    size_t bytes, length;
    const char *at = strstr(c->pipeline, "dump-ptx-path=");
    if (!at || fails("ptx")) return;
    length = strcspn(at + 14, " }");
    snprintf(path, sizeof path, "%.*s.sm_90a.ptx", (int)length, at + 14);
    uint8_t *data = recorded(".ptx", &bytes);
    FILE *file = fopen(path, "wb");
    if (file) {
        fwrite(data, 1, bytes, file);
        fclose(file);
    }
    free(data);
}

void *cutlass_compiler_compile_to(void *self, void *from, int type, char **error,
                                  size_t *error_bytes) {
    const compiler *c = self;
    if (fails("compile") || !c->has_target || !c->has_abi || !*c->pipeline || type != OBJECT ||
        ((artifacts *)from)->type != PRE_COMPILED_MLIR) {
        say("loc(\"-\":8:7): error: not this", error, error_bytes);
        return NULL;
    }
    dump_ptx(c);
    return new_artifacts(OBJECT);
}

void *cutlass_artifacts_from_textual_form(int type, const char *text, size_t bytes) {
    bool known = bytes > 7 && !strncmp(text, "module ", 7);
    return type == PRE_COMPILED_MLIR && known && !fails("parse") ? new_artifacts(type) : NULL;
}

int cutlass_artifacts_get_data(void *self, uint8_t **data, size_t *bytes) {
    if (fails("data") || ((artifacts *)self)->type != OBJECT) return 1;
    *data = recorded(".object", bytes);
    return 0;
}

void cutlass_artifacts_destroy(void *self) {
    live--;
    free(self);
}
