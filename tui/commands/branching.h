/* branching.h - goes to other texts: branches, undo, continuations. */
#ifndef ESP_BRANCHING_H
#define ESP_BRANCHING_H

#include "tui/commands/control.h"

/* Sets *point to where a branch would begin: at the selection of the focused pane, or at the
 * token or node that was selected last, or at the end of the text. Takes the first of these
 * that exists. Returns false, with a reply, if there is none. */
bool esp_branching_point(struct esp_control *control, struct esp_branch_point *point);
/* Returns the reason that the text cannot be changed now, or NULL if it can. */
const char *esp_branching_refusal(const struct esp_control *control);
/* Returns the text of a point, allocated, in the form of ESP_COMMAND_FORK
 * (tui/worker/mailbox.h). */
struct esp_text_token *esp_branching_text(const struct esp_control *control,
                                          const struct esp_branch_point *point, int *count);
/* Switches the session to the text of a point, followed by `words` (or NULL), and continues it
 * if `on`. Returns 0 or a negative status, with a reply. */
int esp_branching_go(struct esp_control *control, const struct esp_branch_point *point,
                     const char *words, enum esp_fork why, bool on);
/* Tells the library that a branch was named, marked, deleted or restored. */
void esp_branching_judge(struct esp_control *control, int branch);
/* Undoes the last change of the text or, with `redo`, the last undo. Returns 0 or a negative
 * status, with a reply. */
int esp_branching_back(struct esp_control *control, bool redo);
/* Call when the engine thread has switched to another text. */
void esp_branching_done(struct esp_control *control);

#endif
