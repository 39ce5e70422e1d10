/* branching.h - goes to other texts: branches, undo, continuations. */
#ifndef ESP_BRANCHING_H
#define ESP_BRANCHING_H

#include "tui/commands/control.h"

/* Where a branch begins, by what the user looks at: in the focused pane, else at the token or
 * node that was looked at last, else at the end of the text. False, with a reply: nowhere. */
bool esp_branching_point(struct esp_control *control, struct esp_branch_point *point);
/* Why the text cannot be changed now, or NULL. */
const char *esp_branching_refusal(const struct esp_control *control);
/* The tokens of a point as the engine thread takes them, allocated. */
struct esp_text_token *esp_branching_text(const struct esp_control *control,
                                          const struct esp_branch_point *point, int *count);
/* Turns the session to the text of a point, with `words` after it (or NULL), and goes on
 * writing if `on`. Returns 0 or a negative status, with a reply. */
int esp_branching_go(struct esp_control *control, const struct esp_branch_point *point,
                     const char *words, enum esp_fork why, bool on);
/* Name, mark or deletion of a branch have changed: the library hears of it. */
void esp_branching_judge(struct esp_control *control, int branch);
/* Undo, or redo. */
int esp_branching_back(struct esp_control *control, bool redo);
/* The engine thread has turned to another text. */
void esp_branching_done(struct esp_control *control);

#endif
