/* Small pieces of text shared by printers and error messages. */
#ifndef GRAPH_TEXT_H
#define GRAPH_TEXT_H

#include "base/strbuf.h"
#include "tiki/dtype.h"

struct tk_node;

/* "[2,3]" */
void tk_text_put_list(tk_strbuf *out, const int64_t *items, int64_t count);

/* A string in double quotes with \" \\ \n \t and \xHH escapes. */
void tk_text_put_quoted(tk_strbuf *out, const char *text);

/* The value that constants and ranges of a dtype keep as 64 bits (integers as such, floats and
 * parts of complex numbers as a double): 1.5, -3, true; 0x... where no decimal number has these
 * bits. */
void tk_text_put_bits(tk_strbuf *out, tk_dtype dtype, uint64_t bits);

/* "(2, 3)" into `text`, cut with "..." where there is no room. Returns `text`. */
const char *tk_text_shape(char *text, size_t bytes, int64_t rank, const int64_t *shape);

/* "f32(2, 3)" of a node, for messages; one of four per-thread buffers, so up to four in one
 * message. */
const char *tk_text_node(const struct tk_node *node);

#endif
