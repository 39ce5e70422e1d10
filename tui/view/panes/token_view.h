/* token_view.h - draws the node pane while a token of the text is selected. It shows the origin
 * of the token, its probability, and the alternatives.
 *
 *     target (p) .31  rank 2  surprisal 1.7 bits  entropy 2.4 bits
 *     The draft guessed it, and the target accepted it, in iteration 12.
 *     > 1 " old"    ██████████▎  .42
 *       2 " king"   ███████▋     .31  written
 *       3 " queen"  █▊           .08
 */
#ifndef ESP_TOKEN_VIEW_H
#define ESP_TOKEN_VIEW_H

#include "tui/view/pane.h"

void esp_token_view_title(const struct esp_shown *shown, char *title, size_t size);
void esp_token_view_draw(struct esp_canvas *canvas, const struct esp_shown *shown);
bool esp_token_view_request(const struct esp_shown *shown, int action);
bool esp_token_view_click(const struct esp_shown *shown, int x, int y);
/* Sets *point to the text before the token, followed by the chosen alternative. Returns false
 * if there is no alternative. */
bool esp_token_view_point(const struct esp_shown *shown, struct esp_branch_point *point);

#endif
