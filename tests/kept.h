/* kept.h - makes a library of kept sessions in a temporary folder, for tests. The tokens of the
 * sessions are the letters of the alphabet. */
#ifndef ESP_TESTS_KEPT_H
#define ESP_TESTS_KEPT_H

#include "tui/worker/keeper.h"

enum { VOCABULARY = 26 };

extern char kept_folder[64], kept_path[128]; /* the folder, and the library's file in it */
extern char kept_told[700];                  /* the last message of a keeper */
extern int kept_troubles;                    /* number of messages from keepers */

/* Makes the temporary folder. */
void kept_begin(void);
/* Removes the temporary folder. */
void kept_end(void);
void kept_tell(void *user, const char *sentence);
/* Returns the text of a token. */
const char *kept_letter(void *user, int32_t token, size_t *length);
struct esp_recording_header kept_header(const char *target);
/* Opens a keeper, which stores a session in the library. `resume` is the id of a kept session
 * that continues, or 0 for a new session. */
struct esp_keeper *kept_keeper(int64_t resume);
/* Runs SQL statements on the library. */
void kept_execute(const char *statements);

#endif
