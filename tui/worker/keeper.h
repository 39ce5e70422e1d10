/* keeper.h - keeps the session of the engine thread in the library, while it runs.
 *
 * The engine thread hands over copies of its events. The keeper has a thread of its own, which
 * applies the events to a tree of texts and writes what changed. (This tree equals the
 * interface's, because both apply the same rules to the same events in the same order.) It
 * writes one transaction for each iteration, or for several if they come faster than the disk
 * takes them. So the engine never waits for the keeper.
 *
 * A failure (a full disk, a folder that cannot be written) is reported once; after it, nothing
 * more is written.
 */
#ifndef ESP_KEEPER_H
#define ESP_KEEPER_H

#include "sessions/library.h"
#include "sessions/recording.h"

struct esp_keeper;

/* Called in the keeper's thread with a sentence about an error. */
typedef void esp_keeper_tell(void *user, const char *sentence);

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

/* On: nothing more is written, and what was kept of this session is deleted (unless the
 * session was resumed). Off: the whole session is kept, including its earlier text. */
void esp_keeper_private(struct esp_keeper *keeper, bool on);
/* Models and settings from now on. `tokens` gives the texts of tokens until the next call, or
 * the end. `anew`: other tokens than before, so another session begins. */
void esp_keeper_models(struct esp_keeper *keeper, const struct esp_recording_header *header,
                       const char *target_path, const char *draft_path,
                       const struct esp_tokens *tokens, bool anew);
/* The next iterations belong to generation `number`, counted from 0 by the caller. It begins
 * at the end of the present text. A generation that is named again is continued. */
void esp_keeper_generation(struct esp_keeper *keeper, int number,
                           const struct esp_recording_header *header,
                           const struct esp_generator *generator, int tokens);
/* An event of the session: LAYER, ITERATION, PROMPT, REWIND, DROP or CLEAR; others are
 * ignored. */
void esp_keeper_event(struct esp_keeper *keeper, const struct esp_event *event);
/* The session has turned to another text: `kept` tokens stay, and text[kept, count) follow. */
void esp_keeper_fork(struct esp_keeper *keeper, int kept, const struct esp_text_token *text,
                     int count);
/* Hands over the scores of tokens [first, first + count) of the text. */
void esp_keeper_scores(struct esp_keeper *keeper, int first,
                       const struct esp_token_score *scores, int count);
/* Hands over the name and the marks that the user gave to a branch. */
void esp_keeper_branch(struct esp_keeper *keeper, int branch, const char *name, bool marked,
                       bool deleted);

#endif
