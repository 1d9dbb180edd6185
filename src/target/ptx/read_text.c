/* The text of PTX as functions of instructions.
 *
 * Names have scopes: braces inside a function, which inline assembly writes, may declare registers
 * and labels of their own. Declared names are in a hash table, each entry with its declarations
 * from the innermost out. */
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "target/ptx/reader.h"

#define NONE UINT32_MAX
enum { MOST_REGISTERS = 1 << 20 };

typedef enum token_kind { END, WORD, STRING, MARK } token_kind;

typedef struct token {
    token_kind kind;
    const char *text;
    size_t length;
    uint32_t line;
    bool line_ends; /* behind it */
} token;

/* Registers of one declaration: `count` numbered ones, or the one of this name (count 0). */
typedef struct declared {
    uint32_t first, count;
    uint32_t entry, outer; /* the declaration that it hides */
} declared;

typedef struct entry {
    const char *name;
    size_t length;
    uint32_t innermost;
} entry;

typedef struct label {
    const char *name;
    size_t length;
    uint32_t scope;
    uint32_t insn;           /* that it stands before */
    uint32_t table, n_table; /* of .branchtargets: its names in `listed` */
} label;

typedef struct scope {
    uint32_t parent;
    size_t open; /* declarations before it */
} scope;

/* A branch whose label is looked up at the function's end. */
typedef struct pending {
    uint32_t insn, scope;
    token name;
} pending;

typedef struct reader {
    const char *source, *at;
    uint32_t line;
    token next;
    tk_ptx_function *function;
    TK_VEC(declared) open;
    TK_VEC(entry) entries;
    uint32_t *slots; /* hash table of entries plus one */
    size_t n_slots;
    TK_VEC(scope) scopes;
    uint32_t scope;
    TK_VEC(label) labels;
    TK_VEC(token) listed;
    TK_VEC(pending) pending;
} reader;

static tk_status no_memory(void) { return tk_fail(TK_OUT_OF_MEMORY, "no memory to read PTX"); }

static tk_status fail_at(const reader *r, uint32_t line, const char *what, const token *found) {
    if (!found || found->kind == END)
        return tk_fail(TK_FORMAT_ERROR, "%s:%u: %s%s", r->source, line, what,
                       found ? ", found the end of the text" : "");
    return tk_fail(TK_FORMAT_ERROR, "%s:%u: %s, found \"%.*s\"", r->source, line, what,
                   (int)(found->length < 60 ? found->length : 60), found->text);
}

/* ---- tokens ---- */

static bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '$' || c == '%' || c == '.';
}

static void skip_comment(reader *r) {
    bool block = r->at[1] == '*';
    r->at += 2;
    while (*r->at && (block ? !(r->at[0] == '*' && r->at[1] == '/') : *r->at != '\n'))
        if (*r->at++ == '\n') r->line++;
    if (block && *r->at) r->at += 2;
}

static void skip_blanks(reader *r) {
    for (;;) {
        if (*r->at == '\n')
            r->line++, r->at++;
        else if (*r->at == ' ' || *r->at == '\t' || *r->at == '\r' || *r->at == '\f' ||
                 *r->at == '\v')
            r->at++;
        else if (r->at[0] == '/' && (r->at[1] == '/' || r->at[1] == '*'))
            skip_comment(r);
        else
            return;
    }
}

/* a.b::c is one word; a: is a word and a mark. */
static void take_word(reader *r) {
    while (is_word(*r->at) || (r->at[0] == ':' && r->at[1] == ':')) r->at += *r->at == ':' ? 2 : 1;
}

static void take_string(reader *r) {
    r->at++;
    while (*r->at && *r->at != '"' && *r->at != '\n') r->at += r->at[0] == '\\' && r->at[1] ? 2 : 1;
    if (*r->at == '"') r->at++;
}

static void advance(reader *r) {
    skip_blanks(r);
    token t = {.text = r->at, .line = r->line, .kind = MARK};
    if (!*r->at)
        t.kind = END;
    else if (is_word(*r->at))
        t.kind = WORD, take_word(r);
    else if (*r->at == '"')
        t.kind = STRING, take_string(r);
    else
        r->at++;
    t.length = (size_t)(r->at - t.text);
    const char *behind = r->at;
    while (*behind == ' ' || *behind == '\t' || *behind == '\r') behind++;
    t.line_ends = *behind == '\n' || !*behind || (behind[0] == '/' && behind[1] == '/');
    r->next = t;
}

static bool see(const reader *r, char c) {
    return r->next.kind == MARK && r->next.length == 1 && *r->next.text == c;
}
static bool take(reader *r, char c) {
    if (!see(r, c)) return false;
    advance(r);
    return true;
}

static bool is(const token *t, const char *word) {
    return t->kind == WORD && strlen(word) == t->length && !memcmp(t->text, word, t->length);
}

/* The word up to its first dot. */
static bool begins(const token *t, const char *word) {
    size_t length = strlen(word);
    return t->kind == WORD && t->length >= length && !memcmp(t->text, word, length) &&
           (t->length == length || t->text[length] == '.');
}

/* To behind the mark that closes; the opening one is the next token. */
static tk_status skip_balanced(reader *r) {
    uint32_t line = r->next.line;
    int depth = 0;
    do {
        if (r->next.kind == END) return fail_at(r, line, "a bracket that nothing closes", NULL);
        if (see(r, '(') || see(r, '{') || see(r, '[')) depth++;
        if (see(r, ')') || see(r, '}') || see(r, ']')) depth--;
        advance(r);
    } while (depth > 0);
    return TK_OK;
}

/* To behind the semicolon, over braces. */
static tk_status skip_statement(reader *r) {
    uint32_t line = r->next.line;
    while (!see(r, ';')) {
        if (r->next.kind == END || see(r, '}'))
            return fail_at(r, line, "expected a semicolon", &r->next);
        if (see(r, '{'))
            TK_TRY(skip_balanced(r));
        else
            advance(r);
    }
    advance(r);
    return TK_OK;
}

static void skip_line(reader *r) {
    while (r->next.kind != END && !r->next.line_ends) advance(r);
    advance(r);
}

/* ---- names ---- */

static uint32_t *slot_of(const reader *r, const char *name, size_t length) {
    size_t at = (size_t)tk_hash_bytes(1, name, length) & (r->n_slots - 1);
    for (; r->slots[at]; at = (at + 1) & (r->n_slots - 1)) {
        const entry *e = &r->entries.items[r->slots[at] - 1];
        if (e->length == length && !memcmp(e->name, name, length)) break;
    }
    return &r->slots[at];
}

static bool grow_slots(reader *r) {
    size_t wanted = r->n_slots ? 2 * r->n_slots : 256;
    uint32_t *slots = tk_calloc(wanted, sizeof *slots);
    if (!slots) return false;
    tk_free(r->slots);
    r->slots = slots;
    r->n_slots = wanted;
    for (size_t i = 0; i < r->entries.count; i++)
        *slot_of(r, r->entries.items[i].name, r->entries.items[i].length) = (uint32_t)i + 1;
    return true;
}

/* The entry of a name, made when there is none; NONE when memory is out. */
static uint32_t entry_of(reader *r, const char *name, size_t length) {
    if (2 * (r->entries.count + 1) > r->n_slots && !grow_slots(r)) return NONE;
    uint32_t *slot = slot_of(r, name, length);
    if (*slot) return *slot - 1;
    entry made = {.name = name, .length = length, .innermost = NONE};
    if (!tk_vec_push(&r->entries, made)) return NONE;
    *slot = (uint32_t)r->entries.count;
    return *slot - 1;
}

static tk_status declare(reader *r, const token *name, uint32_t count) {
    tk_ptx_function *f = r->function;
    uint32_t size = count ? count : 1;
    if (size > MOST_REGISTERS - f->n_registers)
        return fail_at(r, name->line, "more than 1048576 registers", NULL);
    uint32_t at = entry_of(r, name->text, name->length);
    if (at == NONE) return no_memory();
    declared d = {.first = f->n_registers,
                  .count = count,
                  .entry = at,
                  .outer = r->entries.items[at].innermost};
    if (!tk_vec_push(&r->open, d)) return no_memory();
    r->entries.items[at].innermost = (uint32_t)r->open.count - 1;
    f->n_registers += size;
    return TK_OK;
}

static const declared *find(const reader *r, const char *name, size_t length) {
    if (!r->n_slots) return NULL;
    uint32_t slot = *slot_of(r, name, length);
    uint32_t at = slot ? r->entries.items[slot - 1].innermost : NONE;
    return at == NONE ? NULL : &r->open.items[at];
}

/* %v.x is of %v. */
static size_t without_component(const token *t) {
    size_t length = t->length;
    bool component =
        length > 2 && t->text[length - 2] == '.' && strchr("xyzwrgba", t->text[length - 1]);
    return component ? length - 2 : length;
}

/* The register of a name, NONE when it is none. */
static uint32_t register_of(const reader *r, const token *t) {
    size_t length = without_component(t), digits = 0;
    const declared *exact = find(r, t->text, length), *run = NULL;
    while (digits < length && digits < 8 && t->text[length - 1 - digits] >= '0' &&
           t->text[length - 1 - digits] <= '9')
        digits++;
    uint32_t number = 0;
    for (size_t i = length - digits; i < length; i++)
        number = 10 * number + (uint32_t)(t->text[i] - '0');
    if (digits && digits < length) run = find(r, t->text, length - digits);
    if (run && number >= run->count) run = NULL;
    if (exact && exact->count) exact = NULL;
    if (!exact && !run) return NONE;
    if (exact && (!run || exact > run)) return exact->first;
    return run->first + number;
}

/* ---- declarations ---- */

static bool number_of(const token *t, uint32_t *out) {
    uint64_t number = 0;
    if (t->kind != WORD || !t->length) return false;
    for (size_t i = 0; i < t->length; i++) {
        if (t->text[i] < '0' || t->text[i] > '9' || number > UINT32_MAX) return false;
        number = 10 * number + (uint64_t)(t->text[i] - '0');
    }
    *out = (uint32_t)number;
    return number <= UINT32_MAX;
}

/* name, or name<number>. */
static tk_status read_register(reader *r) {
    token name = r->next, extent;
    uint32_t count = 0;
    if (name.kind != WORD) return fail_at(r, name.line, "expected the name of a register", &name);
    advance(r);
    if (!take(r, '<')) return declare(r, &name, 0);
    extent = r->next;
    if (!number_of(&extent, &count) || !count)
        return fail_at(r, extent.line, "expected how many registers", &extent);
    advance(r);
    if (!take(r, '>')) return fail_at(r, r->next.line, "expected >", &r->next);
    return declare(r, &name, count);
}

/* .reg .b32 %a, %b<4>; behind the word .reg. */
static tk_status read_registers(reader *r) {
    while (r->next.kind == WORD && *r->next.text == '.') advance(r);
    do {
        TK_TRY(read_register(r));
    } while (take(r, ','));
    if (!take(r, ';')) return fail_at(r, r->next.line, "expected a semicolon", &r->next);
    return TK_OK;
}

/* (.reg .b32 %a, .param .b32 b): registers that a function takes and gives. */
static tk_status read_parameters(reader *r) {
    uint32_t line = r->next.line;
    bool of_register = false;
    advance(r);
    while (!take(r, ')')) {
        if (r->next.kind == END) return fail_at(r, line, "a bracket that nothing closes", NULL);
        if (is(&r->next, ".reg")) of_register = true;
        if (of_register && r->next.kind == WORD && *r->next.text != '.') {
            TK_TRY(declare(r, &r->next, 0));
            of_register = false;
        }
        advance(r);
    }
    return TK_OK;
}

/* ---- labels ---- */

static tk_status add_label(reader *r, const token *name) {
    label l = {.name = name->text,
               .length = name->length,
               .scope = r->scope,
               .insn = (uint32_t)r->function->insns.count};
    return tk_vec_push(&r->labels, l) ? TK_OK : no_memory();
}

/* .branchtargets a, b; belongs to the label before it. */
static tk_status read_branch_targets(reader *r) {
    uint32_t first = (uint32_t)r->listed.count;
    do {
        if (r->next.kind != WORD) return fail_at(r, r->next.line, "expected a label", &r->next);
        if (!tk_vec_push(&r->listed, r->next)) return no_memory();
        advance(r);
    } while (take(r, ','));
    if (!take(r, ';')) return fail_at(r, r->next.line, "expected a semicolon", &r->next);
    if (!r->labels.count) return TK_OK;
    label *l = &r->labels.items[r->labels.count - 1];
    l->table = first;
    l->n_table = (uint32_t)r->listed.count - first;
    return TK_OK;
}

/* The label of a name that a scope sees; NULL when there is none. */
static const label *find_label(const reader *r, const token *name, uint32_t from) {
    for (uint32_t at = from;; at = r->scopes.items[at].parent) {
        for (size_t i = r->labels.count; i-- > 0;) {
            const label *l = &r->labels.items[i];
            if (l->scope == at && l->length == name->length &&
                !memcmp(l->name, name->text, name->length))
                return l;
        }
        if (at == 0) return NULL;
    }
}

static tk_status aim(reader *r, const pending *p, const token *name, uint32_t *out) {
    const label *l = find_label(r, name, p->scope);
    if (!l) return fail_at(r, name->line, "there is no such label", name);
    *out = l->insn;
    return TK_OK;
}

static tk_status aim_table(reader *r, const pending *p) {
    tk_ptx_function *f = r->function;
    const label *l = find_label(r, &p->name, p->scope);
    if (!l) return fail_at(r, p->name.line, "there is no such label", &p->name);
    uint32_t first = (uint32_t)f->targets.count;
    if (!l->n_table) return fail_at(r, p->name.line, "no .branchtargets at the label", &p->name);
    for (uint32_t i = 0; i < l->n_table; i++) {
        uint32_t target = 0;
        TK_TRY(aim(r, p, &r->listed.items[l->table + i], &target));
        if (!tk_vec_push(&f->targets, target)) return no_memory();
    }
    f->insns.items[p->insn].target = first;
    f->insns.items[p->insn].targets = l->n_table;
    return TK_OK;
}

static tk_status aim_branches(reader *r) {
    for (size_t i = 0; i < r->pending.count; i++) {
        const pending *p = &r->pending.items[i];
        tk_ptx_insn *insn = &r->function->insns.items[p->insn];
        if (insn->kind == TK_PTX_TABLE)
            TK_TRY(aim_table(r, p));
        else
            TK_TRY(aim(r, p, &p->name, &insn->target));
    }
    return TK_OK;
}

/* ---- instructions ---- */

static tk_ptx_kind kind_of(const token *word) {
    if (begins(word, "wgmma.mma_async")) return TK_PTX_WGMMA;
    if (begins(word, "wgmma.commit_group")) return TK_PTX_COMMIT;
    if (begins(word, "wgmma.wait_group")) return TK_PTX_WAIT;
    if (begins(word, "bra")) return TK_PTX_BRANCH;
    if (begins(word, "brx")) return TK_PTX_TABLE;
    if (begins(word, "ret") || begins(word, "exit") || begins(word, "trap")) return TK_PTX_END;
    return TK_PTX_PLAIN;
}

static bool has_no_destination(const token *word) {
    static const char *const words[] = {"bar", "barrier", "bra", "brx", "nanosleep", "st", "red"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (begins(word, words[i])) return true;
    return false;
}

/* Where an operand stands: its number, and whether in [] or {}. */
typedef struct standing {
    uint32_t place;
    int address, list;
} standing;

static uint32_t role_of(const token *word, tk_ptx_kind kind, const standing *s) {
    if (kind == TK_PTX_WGMMA && s->list && !s->address && s->place < 2)
        return s->place == 0 ? TK_PTX_ACCUMULATES : TK_PTX_FRAGMENT;
    bool written = begins(word, "call") || (s->place == 0 && !has_no_destination(word));
    return written && !s->address && kind != TK_PTX_WGMMA ? TK_PTX_WRITES : TK_PTX_READS;
}

static tk_status add_use(reader *r, const token *word, tk_ptx_kind kind, const standing *s) {
    uint32_t reg = register_of(r, &r->next);
    if (reg == NONE) return TK_OK;
    tk_ptx_use use = {
        .reg = reg, .role = role_of(word, kind, s), .name = r->next.text, .length = r->next.length};
    return tk_vec_push(&r->function->uses, use) ? TK_OK : no_memory();
}

static void note_mark(const reader *r, standing *s) {
    if (see(r, '[')) s->address++;
    if (see(r, ']')) s->address--;
    if (see(r, '{')) s->list++;
    if (see(r, '}')) s->list--;
    if (see(r, ',') && !s->address && !s->list) s->place++;
}

static tk_status read_operands(reader *r, const token *word, tk_ptx_insn *insn, token *out_label) {
    standing s = {0};
    for (; !see(r, ';'); advance(r)) {
        if (r->next.kind == END || s.list < 0)
            return fail_at(r, word->line, "expected a semicolon behind the instruction", word);
        note_mark(r, &s);
        if (r->next.kind != WORD) continue;
        *out_label = r->next;
        if (insn->kind == TK_PTX_WAIT && !number_of(&r->next, &insn->groups))
            return fail_at(r, r->next.line, "expected how many groups", &r->next);
        TK_TRY(add_use(r, word, (tk_ptx_kind)insn->kind, &s));
    }
    advance(r);
    return TK_OK;
}

static tk_status read_instruction(reader *r, bool guarded, uint32_t first) {
    tk_ptx_function *f = r->function;
    token word = r->next, last = {.kind = END};
    if (word.kind != WORD) return fail_at(r, word.line, "expected an instruction", &word);
    tk_ptx_insn insn = {.word = word.text,
                        .length = word.length,
                        .line = word.line,
                        .kind = kind_of(&word),
                        .guarded = guarded,
                        .first = first,
                        .target = TK_PTX_NO_TARGET};
    advance(r);
    TK_TRY(read_operands(r, &word, &insn, &last));
    insn.count = (uint32_t)f->uses.count - first;
    if (insn.kind == TK_PTX_BRANCH || insn.kind == TK_PTX_TABLE) {
        pending p = {.insn = (uint32_t)f->insns.count, .scope = r->scope, .name = last};
        if (last.kind != WORD) return fail_at(r, word.line, "a branch without a label", NULL);
        if (!tk_vec_push(&r->pending, p)) return no_memory();
    }
    return tk_vec_push(&f->insns, insn) ? TK_OK : no_memory();
}

/* @%p or @!%p, then the instruction. */
static tk_status read_guarded(reader *r) {
    uint32_t first = (uint32_t)r->function->uses.count;
    bool guarded = take(r, '@');
    static const standing behind = {.place = 1};
    if (guarded) {
        (void)take(r, '!');
        if (r->next.kind != WORD) return fail_at(r, r->next.line, "expected a predicate", &r->next);
        TK_TRY(add_use(r, &r->next, TK_PTX_PLAIN, &behind));
        advance(r);
    }
    return read_instruction(r, guarded, first);
}

static tk_status read_directive(reader *r) {
    if (is(&r->next, ".loc") || is(&r->next, ".file")) {
        skip_line(r);
        return TK_OK;
    }
    bool registers = is(&r->next, ".reg"), targets = is(&r->next, ".branchtargets");
    if (is(&r->next, ".section")) {
        while (r->next.kind != END && !see(r, '{')) advance(r);
        return skip_balanced(r);
    }
    if (!registers && !targets) return skip_statement(r);
    advance(r);
    return registers ? read_registers(r) : read_branch_targets(r);
}

/* ---- functions ---- */

static tk_status open_scope(reader *r) {
    scope s = {.parent = r->scope, .open = r->open.count};
    if (!tk_vec_push(&r->scopes, s)) return no_memory();
    r->scope = (uint32_t)r->scopes.count - 1;
    return TK_OK;
}

static void close_declarations(reader *r, size_t open) {
    while (r->open.count > open) {
        const declared *d = &r->open.items[--r->open.count];
        r->entries.items[d->entry].innermost = d->outer;
    }
}

static tk_status read_word_statement(reader *r) {
    token word = r->next;
    const char *behind = r->at;
    while (*behind == ' ' || *behind == '\t') behind++;
    if (*word.text == '.') return read_directive(r);
    if (*behind != ':') return read_guarded(r);
    advance(r);
    advance(r);
    return add_label(r, &word);
}

/* Up to the brace that closes the function. */
static tk_status read_body(reader *r) {
    uint32_t line = r->next.line;
    int depth = 1;
    advance(r);
    while (depth > 0) {
        if (r->next.kind == END) return fail_at(r, line, "a function that nothing closes", NULL);
        if (take(r, '{')) {
            depth++;
            TK_TRY(open_scope(r));
        } else if (take(r, '}')) {
            depth--;
            close_declarations(r, r->scopes.items[r->scope].open);
            r->scope = r->scopes.items[r->scope].parent;
        } else if (take(r, ';')) {
            continue;
        } else {
            TK_TRY(r->next.kind == WORD ? read_word_statement(r) : read_guarded(r));
        }
    }
    return aim_branches(r);
}

static void forget_function(reader *r) {
    r->function->n_registers = 0;
    r->function->insns.count = r->function->uses.count = r->function->targets.count = 0;
    close_declarations(r, 0);
    r->scopes.count = r->labels.count = r->listed.count = r->pending.count = 0;
    r->scope = 0;
}

/* Behind .entry or .func: (results) name (parameters) directives, then a body or a semicolon. */
static tk_status read_function(reader *r, tk_ptx_module *module) {
    static const tk_ptx_function none = {0};
    if (!tk_vec_push(&module->functions, none)) return no_memory();
    r->function = &module->functions.items[module->functions.count - 1];
    forget_function(r);
    TK_TRY(open_scope(r));
    r->scopes.items[0].parent = 0;
    while (!see(r, '{') && !see(r, ';')) {
        if (r->next.kind == END)
            return fail_at(r, r->next.line, "expected a function's body", &r->next);
        if (see(r, '(')) {
            TK_TRY(read_parameters(r));
            continue;
        }
        if (r->next.kind == WORD && *r->next.text != '.' && !r->function->name)
            r->function->name = r->next.text, r->function->name_length = r->next.length;
        advance(r);
    }
    return see(r, ';') ? TK_OK : read_body(r);
}

static tk_status read_module(reader *r, tk_ptx_module *module) {
    advance(r);
    while (r->next.kind != END) {
        bool function = is(&r->next, ".entry") || is(&r->next, ".func");
        if (see(r, '{') || see(r, '(')) {
            TK_TRY(skip_balanced(r));
            continue;
        }
        advance(r);
        if (function) TK_TRY(read_function(r, module));
    }
    return TK_OK;
}

tk_status tk_ptx_read(const char *text, const char *source, tk_ptx_module *out) {
    reader r = {.source = source, .at = text, .line = 1};
    *out = (tk_ptx_module){0};
    tk_status status = read_module(&r, out);
    tk_vec_deinit(&r.open);
    tk_vec_deinit(&r.entries);
    tk_vec_deinit(&r.scopes);
    tk_vec_deinit(&r.labels);
    tk_vec_deinit(&r.listed);
    tk_vec_deinit(&r.pending);
    tk_free(r.slots);
    return status;
}

void tk_ptx_module_deinit(tk_ptx_module *module) {
    for (size_t i = 0; i < module->functions.count; i++) {
        tk_vec_deinit(&module->functions.items[i].insns);
        tk_vec_deinit(&module->functions.items[i].uses);
        tk_vec_deinit(&module->functions.items[i].targets);
    }
    tk_vec_deinit(&module->functions);
}
