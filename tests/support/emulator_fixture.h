/* A context, a scope and the emulator's stream for each test. A test file includes this once. */
#ifndef SUPPORT_EMULATOR_FIXTURE_H
#define SUPPORT_EMULATOR_FIXTURE_H

#include "support/arrays.h"
#include "tiki/devices.h"

static tk_context *ctx;
static tk_scope scope;
static tk_stream_id emulator;

static int open_emulator(void **state) {
    (void)state;
    ctx = make_context();
    scope = tk_scope_open(ctx);
    return tk_device_stream(ctx, "emulator", &emulator) == TK_OK ? 0 : -1;
}

static int close_context(void **state) {
    (void)state;
    tk_scope_close(scope);
    tk_context_release(ctx);
    return 0;
}

#endif
