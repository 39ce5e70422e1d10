/* race_page.h - a race in place of the panes (tui/model/race.h). */
#ifndef ESP_RACE_PAGE_H
#define ESP_RACE_PAGE_H

#include "tui/commands/control.h"

/* Opens the page; the worker decodes. The strings of the choice but for its drafters must stay.
 */
int esp_race_page_open(struct esp_control *control, const struct esp_race_choice *choice);
/* Opens the page on two recordings. */
int esp_race_page_read(struct esp_control *control, const char *const paths[2], char *err,
                       size_t errlen);

#endif
