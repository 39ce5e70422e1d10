/* choices.h - stores a list of completions of the word at the cursor. */
#ifndef ESP_CHOICES_H
#define ESP_CHOICES_H

enum { ESP_MOST_CHOICES = 256 };

struct esp_choice {
    const char *text, *summary; /* summary can be NULL */
};

/* Holds a list of completions. The list owns the strings of its entries. */
struct esp_choices {
    /* `word` is the word to complete. `before` is the part of the line before it. */
    const char *before, *word;
    struct esp_choice choice[ESP_MOST_CHOICES];
    int count;
    char append; /* character to put after a completed word; '\0': none */
};

/* Adds a completion and copies its strings. Does nothing if the list is full. */
void esp_choices_add(struct esp_choices *choices, const char *text, const char *summary);
void esp_choices_clear(struct esp_choices *choices);

#endif
