/* fuzzy.h - how well a text matches letters typed in a hurry. */
#ifndef ESP_FUZZY_H
#define ESP_FUZZY_H

/* The letters of `query` must occur in `text` in order, in either case; blanks in the query are
 * skipped. Higher is better: letters that follow each other, that start a word or the text,
 * and little else in the text. -1: no match. An empty query matches everything with 0. */
int esp_fuzzy_score(const char *query, const char *text);

#endif
