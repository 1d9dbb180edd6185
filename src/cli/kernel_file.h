/* What the subcommands on kernels share. */
#ifndef CLI_KERNEL_FILE_H
#define CLI_KERNEL_FILE_H

#include "tiki/kernel.h"

/* Reads and parses a `.tk` file; NULL after a message. `command` begins the message. */
tk_kernel *kernel_read(const char *command, const char *path);

/* The kernel in a form, by tk_kernel_lower; the given one is released. NULL for NULL, or after a
 * message. */
tk_kernel *kernel_lowered(const char *command, tk_kernel *kernel, tk_kform form, int flags);

/* `tiki kernel report`, arguments behind those words; the exit code. */
int kernel_report(int argc, char **argv);

int command_kernel(int argc, char **argv);
int command_emulate(int argc, char **argv);

#endif
