/* PTX text read back: functions as instructions over registers, with their control flow.
 *
 * It takes the text of any compiler. What an instruction means is not known, but for branches, ends
 * and wgmma: an operand is a register or not, and the first one is written unless the instruction
 * is known to have no destination. That is what it takes to see who touches the registers of a
 * wgmma that is not over. */
#ifndef TARGET_PTX_READER_H
#define TARGET_PTX_READER_H

#include "base/arena.h"
#include "base/vec.h"
#include "tiki/status.h"

#define TK_PTX_NO_TARGET UINT32_MAX

typedef enum tk_ptx_role {
    TK_PTX_READS,
    TK_PTX_WRITES,
    TK_PTX_ACCUMULATES,
    TK_PTX_FRAGMENT
} tk_ptx_role;

/* A register in an operand. */
typedef struct tk_ptx_use {
    uint32_t reg; /* below the function's n_registers */
    uint32_t role;
    const char *name; /* in the text */
    size_t length;
} tk_ptx_use;

typedef enum tk_ptx_kind {
    TK_PTX_PLAIN,
    TK_PTX_WGMMA,
    TK_PTX_COMMIT,
    TK_PTX_WAIT,
    TK_PTX_BRANCH,
    TK_PTX_TABLE, /* a branch to one of a list of labels */
    TK_PTX_END
} tk_ptx_kind;

typedef struct tk_ptx_insn {
    const char *word; /* in the text: the name with its dots */
    size_t length;
    uint32_t line;
    uint32_t kind;
    bool guarded;
    uint32_t first, count; /* its uses */
    uint32_t target,
        targets;     /* of branches: instruction, of tables: first and count in `targets` */
    uint32_t groups; /* of waits */
} tk_ptx_insn;

typedef struct tk_ptx_function {
    const char *name;
    size_t name_length;
    uint32_t n_registers;
    TK_VEC(tk_ptx_insn) insns;
    TK_VEC(tk_ptx_use) uses;
    TK_VEC(uint32_t) targets;
} tk_ptx_function;

typedef struct tk_ptx_module {
    TK_VEC(tk_ptx_function) functions;
} tk_ptx_module;

/* Reads a text, which must outlive the module. TK_FORMAT_ERROR with `source` and line. The module
 * is to be deinitialised after an error too. */
tk_status tk_ptx_read(const char *text, const char *source, tk_ptx_module *out);
void tk_ptx_module_deinit(tk_ptx_module *module);

/* TK_INVALID_ARGUMENT with line and register where a register of a wgmma is touched before a wait
 * has retired it. */
tk_status tk_ptx_check_function(const tk_ptx_function *function, const char *source);

#endif
