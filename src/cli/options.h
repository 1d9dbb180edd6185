/* Command-line options from a table: parsing, help, and the same options from and to JSON.
 *
 * A subcommand lists its options once, with a place for each value; what it prints as help, reads
 * from
 * --config and writes into state.json all comes from that list. */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum option_kind {
    OPTION_FLAG,   /* bool */
    OPTION_INT,    /* int64_t */
    OPTION_REAL,   /* double */
    OPTION_TEXT,   /* const char * */
    OPTION_LIST,   /* text_list: one or more words */
    OPTION_CHOICE, /* const char *, one of `choices` */
} option_kind;

typedef struct text_list {
    const char **items;
    size_t count;
} text_list;

typedef struct option {
    const char *name; /* without the dashes */
    option_kind kind;
    void *value;
    const char *help;
    const char *choices; /* "a|b|c" */
    double low, high;    /* of numbers, inclusive; both 0: any */
    bool shapes_the_run; /* kept in state.json: another value gives other numbers */
    bool given;          /* on the command line or in --config */
} option;

typedef struct options {
    const char *command;  /* "train" */
    const char *synopsis; /* one line of usage after the command's name */
    const char *summary;  /* one sentence */
    option *items;
    size_t count;
} options;

/* Parses argv[1..]. Returns -1 to go on, or the exit code: 0 after printing help, 2 after a
 * message. */
int options_parse(options *set, int argc, char **argv);

/* Sets what is not given yet from a JSON object (texts stay valid while the object lives). When
 * `strict`, unknown names are errors, and so is a value that contradicts one that was given:
 * `origin` names the file. Returns false after a message. */
bool options_from_json(options *set, json_t *object, const char *origin,
                       bool contradictions_are_errors);

/* A JSON object of the options that shape the run; NULL when memory is out. */
json_t *options_to_json(const options *set);

/* The option of a name; it must exist. */
option *options_find(options *set, const char *name);

void options_free(options *set);

#endif
