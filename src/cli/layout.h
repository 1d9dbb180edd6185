/* The `layout` subcommand. */
#ifndef CLI_LAYOUT_H
#define CLI_LAYOUT_H

/* argv[0] is "layout". Returns the exit code: 0, 1 for a failed operation, 2 for a wrong usage.
 * Prints to stdout and stderr. Main thread. */
int tk_cli_layout(int argc, char **argv);

#endif
