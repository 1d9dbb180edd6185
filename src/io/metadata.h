/* What readers of files need of metadata beside tiki/io.h. */
#ifndef IO_METADATA_H
#define IO_METADATA_H

#include "tiki/io.h"

/* Adds a pair whose key is known to be new. */
tk_status tk_metadata_append(tk_metadata *metadata, const char *key, const char *value);

#endif
