/* suggestion.h - finds the existing name that is closest to a mistyped name, for messages such
 * as "did you mean dynatree?". */
#ifndef ESP_SUGGESTION_H
#define ESP_SUGGESTION_H

#include <stddef.h>

struct esp_suggestion {
    char typed[64], best[64]; /* best: "" if no name is close enough */
    int distance;             /* distance between `typed` and `best` */
};

/* Starts a search for the first `length` bytes of the typed name. */
void esp_suggestion_begin(struct esp_suggestion *suggestion, const char *typed, size_t length);
/* Offers an existing name. It is close enough if at most one letter in three is missing, wrong,
 * extra or swapped with its neighbour (optimal string alignment distance). It is also close
 * enough if it begins with the typed name. Among equally close names, the first is
 * suggested. */
void esp_suggestion_try(struct esp_suggestion *suggestion, const char *name);
/* Offers the names of all folders that are in the same folder as `path`, which does not
 * exist. */
void esp_suggestion_folders(struct esp_suggestion *suggestion, const char *path);
/* Writes " (did you mean NAME?)", or "" if no name is close enough. Returns `text`. */
const char *esp_suggestion_text(const struct esp_suggestion *suggestion, char text[96]);

#endif
