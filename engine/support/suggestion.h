/* suggestion.h - the name that was meant where another was typed: "did you mean dynatree?". */
#ifndef ESP_SUGGESTION_H
#define ESP_SUGGESTION_H

#include <stddef.h>

struct esp_suggestion {
    char typed[64], best[64]; /* best: "": no name is near enough */
    int distance;             /* of the best */
};

/* Begins with the first `length` bytes of what was typed. */
void esp_suggestion_begin(struct esp_suggestion *suggestion, const char *typed, size_t length);
/* Offers a name that exists. It is near enough if a letter in three at most is missing, is
 * wrong, is too many or stands before its neighbour (optimal string alignment distance), or if
 * it begins with what was typed. Of names that are as near, the first stays. */
void esp_suggestion_try(struct esp_suggestion *suggestion, const char *name);
/* Offers the names of the folders beside a path that does not exist. */
void esp_suggestion_folders(struct esp_suggestion *suggestion, const char *path);
/* " (did you mean NAME?)" or "". */
const char *esp_suggestion_text(const struct esp_suggestion *suggestion, char text[96]);

#endif
