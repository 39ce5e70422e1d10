/* branching.h - replaces the current text by another one: begins a branch, undoes a change, or
 * continues the text differently. */
#ifndef ESP_BRANCHING_H
#define ESP_BRANCHING_H

#include "tui/commands/control.h"

/* Sets *point to the place in the text at which a new branch would begin. This is the selection
 * of the focused pane. If that pane has no selection, it is the token or node that was selected
 * last, or else the end of the text. If there is no such place, replies with the reason and
 * returns false. */
bool esp_branching_point(struct esp_control *control, struct esp_branch_point *point);
/* Returns the reason why the text cannot be changed now, or NULL if it can be changed. */
const char *esp_branching_refusal(const struct esp_control *control);
/* Returns the text up to a point, in allocated memory. It has the form that ESP_COMMAND_FORK
 * takes (tui/worker/mailbox.h). */
struct esp_text_token *esp_branching_text(const struct esp_control *control,
                                          const struct esp_branch_point *point, int *count);
/* Switches the session to the text up to a point, followed by `words` unless `words` is NULL.
 * If `on` is true, the session then continues this text. Returns 0 or a negative status, and
 * replies to the user. */
int esp_branching_go(struct esp_control *control, const struct esp_branch_point *point,
                     const char *words, enum esp_fork why, bool on);
/* Tells the library of kept sessions that a branch was named, marked, deleted or restored. */
void esp_branching_judge(struct esp_control *control, int branch);
/* Undoes the last change of the text. If `redo` is true, reverts the last undo. If the text is
 * still being changed, waits for this change (esp_branching_done). Returns 0 or a negative
 * status, and replies to the user. */
int esp_branching_back(struct esp_control *control, bool redo);
/* Must be called when the engine thread has switched to another text. Runs the undo or redo
 * that was waiting for the switch. Returns 0 or a negative status, and replies to the user. */
int esp_branching_done(struct esp_control *control);

#endif
