/* app_parts.h - declares the functions that app.c and opening.c share. app.c runs the
 * interface; opening.c opens and closes it. */
#ifndef ESP_APP_PARTS_H
#define ESP_APP_PARTS_H

#include "tui/app/app.h"

/* Functions that the input line calls (input.h). `user` is the app. */
void esp_app_submit(void *user, const char *line);
void esp_app_complete(void *user, const char *before, const char *word,
                      struct esp_choices *choices);
void esp_app_open_editor(void *user);
/* Shows the reply of a command, a setting or a key. */
void esp_app_show_reply(struct esp_app *app, int status);

#endif
