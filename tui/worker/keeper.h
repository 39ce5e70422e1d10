/* keeper.h - keeps the session of the engine thread in the library, while it runs.
 *
 * The engine thread writes what happens into the session's journal, as records of a log
 * (sessions/log.h, journal.h). This only copies bytes in memory. The records survive a crash of
 * the program, because the journal is a memory-mapped file. The keeper's thread moves the
 * records to the library every two seconds, or earlier if there are many. So the engine waits
 * for a disk only when a session begins, when it becomes private, and at the end.
 *
 * The first failure (a full disk, a folder that cannot be written) is reported; after that,
 * nothing more is written.
 */
#ifndef ESP_KEEPER_H
#define ESP_KEEPER_H

#include "sessions/recording.h"

struct esp_keeper;

/* Called with a sentence about an error, in the keeper's thread or in that of the caller. */
typedef void esp_keeper_tell(void *user, const char *sentence);

/* Starts the thread. `resume` is the number of the kept session to continue, or 0 for a new
 * one. A new session is added to the library when it gets its first token. Nothing is written
 * before esp_keeper_private(keeper, false). Returns 0 or ESP_E_MEMORY. */
int esp_keeper_open(struct esp_keeper **keeper, const char *path, int64_t resume,
                    esp_keeper_tell *tell, void *user);
/* Moves the remaining records to the library, ends the thread and frees the keeper. */
void esp_keeper_close(struct esp_keeper *keeper);
/* Moves all records to the library. Any thread may call this. */
void esp_keeper_settle(struct esp_keeper *keeper);

/* ---- for the engine thread */

/* `on`: nothing more is written, and what was kept of this session is deleted, unless the
 * session was resumed. Otherwise the whole session is kept, including its earlier texts. */
void esp_keeper_private(struct esp_keeper *keeper, bool on);
/* Sets the models and settings from now on. `tokens` must stay valid until the next call or the
 * end. `anew`: the vocabulary has changed, so a new session begins. */
void esp_keeper_models(struct esp_keeper *keeper, const struct esp_recording_header *header,
                       const char *target_path, const char *draft_path,
                       const struct esp_tokens *tokens, bool anew);
/* Assigns the next iterations to generation `number`; the caller counts generations from 0. A
 * new number begins a generation at the end of the current text; a number that was used before
 * continues that generation. */
void esp_keeper_generation(struct esp_keeper *keeper, int number,
                           const struct esp_recording_header *header,
                           const struct esp_generator *generator, int tokens);
/* Keeps an event of the session: LAYER, ITERATION, PROMPT, REWIND, DROP or CLEAR. Others are
 * ignored. */
void esp_keeper_event(struct esp_keeper *keeper, const struct esp_event *event);
/* Says that the session has switched to text[0, count). Its first `kept` tokens are those of
 * the previous text. */
void esp_keeper_fork(struct esp_keeper *keeper, int kept, const struct esp_text_token *text,
                     int count);
/* Keeps the scores of tokens [first, first + count) of the text. */
void esp_keeper_scores(struct esp_keeper *keeper, int first,
                       const struct esp_token_score *scores, int count);
/* Records that the user named, marked or deleted a branch. */
void esp_keeper_branch(struct esp_keeper *keeper, int branch, const char *name, bool marked,
                       bool deleted);

#endif
