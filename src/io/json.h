/* JSON text by jansson, with errors that name the file. */
#ifndef IO_JSON_H
#define IO_JSON_H

#include <jansson.h>

#include "tiki/status.h"

/* Parses an object; names given twice are refused. `name` stands for the file. The caller drops
 * *out_object with json_decref. */
tk_status tk_json_parse(const char *name, const char *text, size_t bytes, json_t **out_object);

/* "an object", "a string", ... for messages; "nothing" for NULL. */
const char *tk_json_kind(const json_t *value);

#endif
