/* choices.h - what the word at the cursor of the input line can be. */
#ifndef ESP_CHOICES_H
#define ESP_CHOICES_H

enum { ESP_MOST_CHOICES = 256 };

struct esp_choice {
    const char *text, *summary; /* summary may be NULL */
};

/* Completions of a word; the texts are owned. */
struct esp_choices {
    struct esp_choice choice[ESP_MOST_CHOICES];
    int count;
    char append; /* what follows a word that is complete; '\0': nothing */
};

/* Copies the texts; what no longer fits is left out. */
void esp_choices_add(struct esp_choices *choices, const char *text, const char *summary);
/* Empties the list. */
void esp_choices_clear(struct esp_choices *choices);

#endif
