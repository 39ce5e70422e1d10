/* keeper.h - keeps the session of the engine thread in the library, while it runs.
 *
 * The engine thread hands over copies of its events. A thread of the keeper's own follows them
 * with a tree of texts, which is the same as the interface's because both apply the same rules
 * to the same events in the same order, and writes what changed: one transaction for each
 * iteration, or for several if they come faster than the disk takes them. So the engine never
 * waits for it.
 *
 * A failure (a full disk, a folder that cannot be written) is told once and ends the keeping.
 */
#ifndef ESP_KEEPER_H
#define ESP_KEEPER_H

#include "sessions/library.h"
#include "sessions/recording.h"

struct esp_keeper;

/* Called in the keeper's thread with a sentence for the user. */
typedef void esp_keeper_tell(void *user, bool trouble, const char *sentence);

/* Starts the thread. `resume`: the kept session that goes on; 0: a new one, which is added
 * with its first token. Nothing is written before esp_keeper_private(keeper, false). Returns 0
 * or ESP_E_MEMORY. */
int esp_keeper_open(struct esp_keeper **keeper, const char *path, int64_t resume,
                    esp_keeper_tell *tell, void *user);
/* Writes what is left and ends the thread. */
void esp_keeper_close(struct esp_keeper *keeper);
/* Waits until everything handed over is written. */
void esp_keeper_settle(struct esp_keeper *keeper);
bool esp_keeper_is_settled(struct esp_keeper *keeper);

/* ---- for the engine thread; none of them waits */

/* On: nothing is written any more, and what was kept of this session is deleted (of one that
 * goes on nothing is). Off: all of it is kept, also what was there before. */
void esp_keeper_private(struct esp_keeper *keeper, bool on);
/* Models and settings from now on. `tokens` gives the texts of tokens until the next call, or
 * the end. `anew`: other tokens than before, so another session begins. */
void esp_keeper_models(struct esp_keeper *keeper, const struct esp_recording_header *header,
                       const char *target_path, const char *draft_path,
                       const struct esp_tokens *tokens, bool anew);
/* The next iterations write generation `number`, which the caller counts from 0; it begins at
 * the end of the present text. One that is named again goes on. */
void esp_keeper_generation(struct esp_keeper *keeper, int number,
                           const struct esp_recording_header *header,
                           const struct esp_generator *generator, int tokens);
/* An event of the session: LAYER, ITERATION, PROMPT, REWIND, DROP or CLEAR; others are
 * ignored. */
void esp_keeper_event(struct esp_keeper *keeper, const struct esp_event *event);
/* The session has turned to another text: `kept` tokens stay, and text[kept, count) follow. */
void esp_keeper_fork(struct esp_keeper *keeper, int kept, const struct esp_text_token *text,
                     int count);
/* What the target thinks of tokens [first, first + count) of the text. */
void esp_keeper_scores(struct esp_keeper *keeper, int first,
                       const struct esp_token_score *scores, int count);
/* What the user says of a branch. */
void esp_keeper_branch(struct esp_keeper *keeper, int branch, const char *name, bool marked,
                       bool deleted);

#endif
