/* fuzzy.h - fuzzy matching for the palette. */
#ifndef ESP_FUZZY_H
#define ESP_FUZZY_H

/* Scores `text` against `query`: higher is better, and -1 means no match. The letters of the
 * query must occur in the text in the same order. Case, and blanks in the query, are ignored.
 * Adjacent letters, starts of words and short texts score higher. An empty query scores 0. */
int esp_fuzzy_score(const char *query, const char *text);

#endif
