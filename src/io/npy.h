/* The header of npy files, for single arrays and for the members of archives. */
#ifndef IO_NPY_H
#define IO_NPY_H

#include "base/strbuf.h"
#include "io/load.h"

/* Reads a header and the array behind it, which must fill the mapping. May replace the mapping's
 * bytes by a converted copy: *mapping is consumed and replaced, and still the caller's. */
tk_status tk_npy_read(tk_context *context, const char *what, tk_mapping **mapping,
                      tk_array *out_array);

/* Puts the header of a row-major array. */
tk_status tk_npy_put_header(tk_strbuf *out, tk_array array);

#endif
