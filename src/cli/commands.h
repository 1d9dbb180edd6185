/* The subcommands. Each is given argv[0] = its name and returns the exit code: 0, 1 for a failure,
 * 2 for a wrong usage, 130 after Ctrl-C, 143 after SIGTERM. They use the public API only. */
#ifndef CLI_COMMANDS_H
#define CLI_COMMANDS_H

#include "tiki/train.h"

int command_train(int argc, char **argv);
int command_generate(int argc, char **argv);
int command_eval(int argc, char **argv);
int command_info(int argc, char **argv);
int command_cache(int argc, char **argv);
int command_bench(int argc, char **argv);

/* Is --help or -h the first word after the command, or the last? */
bool asks_for_help(int argc, char **argv);

/* Prints "tiki COMMAND: message of this thread's error" and returns 1. */
int complain_of_error(const char *command);

/* How often the user pressed Ctrl-C or somebody sent SIGTERM, and the exit code that says so. */
int interrupts(void);
int interrupt_code(void);

/* Counts interrupts instead of dying from them. */
void catch_interrupts(void);

/* tk_wait polls: true after the first and the second interrupt. */
bool interrupted(void *arg);
bool interrupted_twice(void *arg);

/* TK_UNSUPPORTED when the model in `folder` has a tokenizer other than Tiki's bytes. */
tk_status check_byte_level(const char *folder, const tk_model_config *config);

/* What is made from here on is on the device: "cpu", "emulator", "gpu". */
tk_status use_device(tk_context *context, const char *name);

/* tk_model_load of a model of bytes, onto the device, which is then in use. */
tk_status load_byte_model(tk_context *context, const char *device, const char *folder,
                          tk_model_config *out_config, tk_tree *parameters);

/* Seconds of a clock that never goes back. */
double now(void);

#endif
