/* race_page.h - opens the page of a race (tui/model/race.h). */
#ifndef ESP_RACE_PAGE_H
#define ESP_RACE_PAGE_H

#include "tui/commands/control.h"

/* Opens the page of a race that the worker decodes. esp_race_new() describes the options. */
int esp_race_page_open(struct esp_control *control, const struct esp_race_options *options);
/* Opens the page of a race between two recordings. */
int esp_race_page_read(struct esp_control *control, const char *const paths[2], char *err,
                       size_t errlen);

#endif
