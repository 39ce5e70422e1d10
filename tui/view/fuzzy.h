/* fuzzy.h - matches a query with a text, for the palette. */
#ifndef ESP_FUZZY_H
#define ESP_FUZZY_H

/* Returns a score that says how well `text` matches `query`. Higher is better, and -1 means no
 * match. The letters of the query must occur in the text in the same order. Case, and blanks in
 * the query, are ignored. Matches of adjacent letters or at starts of words score higher, and
 * so do short texts. An empty query scores 0. */
int esp_fuzzy_score(const char *query, const char *text);

#endif
