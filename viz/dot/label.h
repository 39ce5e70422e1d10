/* label.h - escapes text for Graphviz labels.
 *
 * Labels use Graphviz's HTML-like form, because one label has lines of different sizes. All
 * text from a file or a model goes through these functions. Control and format characters and
 * bytes that are not UTF-8 become visible stand-ins (safe.h), and characters with a meaning in
 * HTML-like labels or in Graphviz's escapes (\N, \G) become numeric references. So no text can
 * begin a tag, a link or an escape.
 */
#ifndef ESP_LABEL_H
#define ESP_LABEL_H

#include <stdio.h>

#include "viz/tree_view.h"

/* These functions begin and end a row of text in a table. A run of text must not begin with a
 * blank, because some SVG renderers drop it. */
void esp_label_row(FILE *file, int size, const char *colour);
void esp_label_row_end(FILE *file);
/* Writes any text into a label, truncated to one line. */
void esp_label_text(FILE *file, const char *text);
/* Writes a token in quotes with visible spaces, truncated to `columns` columns. */
void esp_label_token(FILE *file, const struct esp_tokens *tokens, int32_t token, int columns);

/* Returns the first 2000 bytes of the token for the attribute `text` of a node. Bytes that are
 * not safe to show become backslash escapes. The caller frees the text. Returns NULL if there
 * is no memory. */
char *esp_label_escaped(const struct esp_tokens *tokens, int32_t token);

#endif
