/* keeper.h - keeps the session of the engine thread in the library, while it runs.
 *
 * The engine thread hands over copies of its events. The keeper has its own thread, which
 * applies the events to a tree of texts and writes what changed. (This tree equals the
 * interface's, because both apply the same rules to the same events in the same order.) It
 * writes one transaction for each iteration, or for several if they come faster than the disk
 * can take them. So the engine never waits for the keeper.
 *
 * The first failure (a full disk, a folder that cannot be written) is reported; after that,
 * nothing more is written.
 */
#ifndef ESP_KEEPER_H
#define ESP_KEEPER_H

#include "sessions/library.h"
#include "sessions/recording.h"

struct esp_keeper;

/* Called in the keeper's thread with a sentence about an error. */
typedef void esp_keeper_tell(void *user, const char *sentence);

/* Starts the thread. `resume` is the number of the kept session to continue, or 0 for a new
 * one, which the library gets when it has its first token. Nothing is written before
 * esp_keeper_private(keeper, false). Returns 0 or ESP_E_MEMORY. */
int esp_keeper_open(struct esp_keeper **keeper, const char *path, int64_t resume,
                    esp_keeper_tell *tell, void *user);
/* Writes the remaining events, ends the thread and frees the keeper. */
void esp_keeper_close(struct esp_keeper *keeper);
/* Waits until everything handed over is written. */
void esp_keeper_settle(struct esp_keeper *keeper);
bool esp_keeper_is_settled(struct esp_keeper *keeper);

/* ---- for the engine thread; none of them waits */

/* On: nothing more is written, and what was kept of this session is deleted (unless the
 * session was resumed). Off: the whole session is kept, including its earlier text. */
void esp_keeper_private(struct esp_keeper *keeper, bool on);
/* Sets the models and settings from now on. `tokens` must stay valid until everything that was
 * handed over before the next call (or the end) is written. `anew`: the vocabulary is another
 * one, so a new session begins. */
void esp_keeper_models(struct esp_keeper *keeper, const struct esp_recording_header *header,
                       const char *target_path, const char *draft_path,
                       const struct esp_tokens *tokens, bool anew);
/* Assigns the next iterations to generation `number`, which the caller counts from 0. A new
 * number begins a generation at the end of the present text; a number that was used before
 * continues that generation. */
void esp_keeper_generation(struct esp_keeper *keeper, int number,
                           const struct esp_recording_header *header,
                           const struct esp_generator *generator, int tokens);
/* Hands over an event of the session: LAYER, ITERATION, PROMPT, REWIND, DROP or CLEAR. Others
 * are ignored. */
void esp_keeper_event(struct esp_keeper *keeper, const struct esp_event *event);
/* Says that the session has switched to text[0, count). Its first `kept` tokens are those of
 * the text before. */
void esp_keeper_fork(struct esp_keeper *keeper, int kept, const struct esp_text_token *text,
                     int count);
/* Hands over the scores of tokens [first, first + count) of the text. */
void esp_keeper_scores(struct esp_keeper *keeper, int first,
                       const struct esp_token_score *scores, int count);
/* Reports what the user did to a branch. */
void esp_keeper_branch(struct esp_keeper *keeper, int branch, const char *name, bool marked,
                       bool deleted);

#endif
