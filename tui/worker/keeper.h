/* keeper.h - stores the session of the engine thread in the library of kept sessions, while
 * the session runs.
 *
 * The engine thread writes the events of the session into its journal, as records of a log
 * (sessions/log.h, journal.h). This only copies bytes in memory. The records survive a crash of
 * the program, because the journal is a memory-mapped file. The keeper's thread moves the
 * records to the library every two seconds, or earlier if there are many. Therefore the engine
 * waits for a disk only when a session begins, when it becomes private, and at the end.
 *
 * The first failure (a full disk, a folder that cannot be written) is reported. After that,
 * nothing more is written.
 */
#ifndef ESP_KEEPER_H
#define ESP_KEEPER_H

#include "sessions/recording.h"

struct esp_keeper;

/* A function that is called with a sentence about an error. It is called in the keeper's thread
 * or in the caller's thread. */
typedef void esp_keeper_tell(void *user, const char *sentence);

/* Starts the keeper's thread. `resume` is the number of the kept session to continue, or 0 for
 * a new session. A new session is added to the library when it gets its first token. Nothing is
 * written before esp_keeper_private(keeper, false) is called. Returns 0 or ESP_E_MEMORY. */
int esp_keeper_open(struct esp_keeper **keeper, const char *path, int64_t resume,
                    esp_keeper_tell *tell, void *user);
/* Moves the remaining records to the library, ends the thread and frees the keeper. */
void esp_keeper_close(struct esp_keeper *keeper);
/* Moves all records to the library. Any thread can call this. */
void esp_keeper_settle(struct esp_keeper *keeper);

/* ---- for the engine thread */

/* Makes the session private if `on` is true. Then nothing more is written. The part of this
 * session that is in the library is deleted, unless the session was resumed. If `on` is false,
 * the whole session is kept, including its earlier texts. */
void esp_keeper_private(struct esp_keeper *keeper, bool on);
/* Sets the models and settings of the following events. `tokens` must stay valid until the next
 * call of this function or until the keeper is closed. If `anew` is true, the vocabulary has
 * changed, and a new session begins. */
void esp_keeper_models(struct esp_keeper *keeper, const struct esp_recording_header *header,
                       const char *target_path, const char *draft_path,
                       const struct esp_tokens *tokens, bool anew);
/* Assigns the next iterations to generation `number`. The caller counts generations from 0. A
 * new number begins a generation at the end of the current text. A number that was used before
 * continues that generation. */
void esp_keeper_generation(struct esp_keeper *keeper, int number,
                           const struct esp_recording_header *header,
                           const struct esp_generator *generator, int tokens);
/* Writes an event of the session: LAYER, ITERATION, PROMPT, REWIND, DROP or CLEAR. Ignores all
 * other events. */
void esp_keeper_event(struct esp_keeper *keeper, const struct esp_event *event);
/* Must be called when the session has switched to text[0, count). Its first `kept` tokens are
 * the same as in the previous text. */
void esp_keeper_fork(struct esp_keeper *keeper, int kept, const struct esp_text_token *text,
                     int count);
/* Writes the scores of tokens [first, first + count) of the text. */
void esp_keeper_scores(struct esp_keeper *keeper, int first,
                       const struct esp_token_score *scores, int count);
/* Must be called when the user has named, marked or deleted a branch. */
void esp_keeper_branch(struct esp_keeper *keeper, int branch, const char *name, bool marked,
                       bool deleted);

#endif
