/* Which Python has the CuTe compiler's package. */
#ifndef TARGET_CUTE_PYTHON_H
#define TARGET_CUTE_PYTHON_H

#include <stdbool.h>
#include <stddef.h>

#define TK_CUTE_PATH_BYTES 1024
#define TK_CUTE_MOST_PYTHONS 2

/* What installs the package, after the name of a Python. */
#define TK_CUTE_INSTALL "-m pip install 'nvidia-cutlass-dsl==4.8.*'"

typedef struct tk_cute_python {
    char path[TK_CUTE_PATH_BYTES];
} tk_cute_python;

/* Those to try, in order: TIKI_CUTE_PYTHON alone where it is set, else the Python that runs this
 * process (tk_cute_use_python) and python3. Gives how many. */
int tk_cute_pythons(tk_cute_python out[TK_CUTE_MOST_PYTHONS]);

/* The version of the package of the first Python that has one, as its folder of packages says,
 * without starting anything. False when none is found that way, which does not mean that there is
 * none. */
bool tk_cute_version_on_disk(char *text, size_t capacity);

/* The text that is written is that of 4.8. */
bool tk_cute_version_fits(const char *version);

#endif
