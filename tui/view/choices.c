/* choices.c - see choices.h. */
#include "tui/view/choices.h"

#include <stdlib.h>
#include <string.h>

void esp_choices_add(struct esp_choices *choices, const char *text, const char *summary)
{
    if (choices->count == ESP_MOST_CHOICES)
        return;
    struct esp_choice choice = {strdup(text), summary ? strdup(summary) : NULL};
    if (choice.text)
        choices->choice[choices->count++] = choice;
    else
        free((char *)choice.summary);
}

void esp_choices_clear(struct esp_choices *choices)
{
    for (int i = 0; i < choices->count; i++) {
        free((char *)choices->choice[i].text);
        free((char *)choices->choice[i].summary);
    }
    choices->count = 0;
    choices->append = ' ';
}
