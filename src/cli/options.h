/* Command-line options from a table: parsing, help, and the same options from and to JSON.
 *
 * A subcommand lists its options once, with a place for each value; what it prints as help, reads
 * from a JSON file and writes into state.json all comes from that list. */
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
    OPTION_PATH,   /* const char *; absolute in JSON */
    OPTION_LIST,   /* text_list: one or more paths; absolute in JSON */
    OPTION_CHOICE, /* const char *, one of `choices` */
} option_kind;

/* What state.json keeps of an option. */
typedef enum option_role {
    OPTION_PASSING,    /* nothing */
    OPTION_REMEMBERED, /* the value, until another one is given */
    OPTION_FIXED,      /* the value, and another one would give other numbers: refused */
} option_role;

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
    option_role role;
    bool given; /* on the command line or in a file that was named there */
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

/* Sets what is not given yet from a JSON object (texts stay valid while the object lives); `origin`
 * names the file. An unknown name is an error, and where `contradictions_are_errors` a value that
 * differs from one that was given. Returns false after a message. */
bool options_from_json(options *set, json_t *object, const char *origin,
                       bool contradictions_are_errors);

/* A JSON object of the options with a role; NULL when memory is out. */
json_t *options_to_json(const options *set, option_role role);

/* The option of a name; it must exist. */
option *options_find(options *set, const char *name);

void options_free(options *set);

#endif
