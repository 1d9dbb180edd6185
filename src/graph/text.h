/* Small pieces of text shared by printers and error messages. */
#ifndef GRAPH_TEXT_H
#define GRAPH_TEXT_H

#include "base/strbuf.h"

struct tk_node;

/* "[2,3]" */
void tk_text_put_list(tk_strbuf *out, const int64_t *items, int64_t count);

/* A string in double quotes with \" \\ \n \t and \xHH escapes. */
void tk_text_put_quoted(tk_strbuf *out, const char *text);

/* "(2, 3)" into `text`, cut with "..." where there is no room. Returns `text`. */
const char *tk_text_shape(char *text, size_t bytes, int64_t rank, const int64_t *shape);

/* "f32(2, 3)" of a node, for messages; one of four per-thread buffers, so up to four in one
 * message. */
const char *tk_text_node(const struct tk_node *node);

#endif
