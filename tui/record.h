/* record.h - the engine's thread records its session, when the user wants it to.
 *
 * All of it runs in that thread, between events; what happens is told with ESP_SNAPSHOT_RECORD
 * (the path, or "" when nothing is recorded any more) and a message by the worker.
 */
#ifndef ESP_RECORD_H
#define ESP_RECORD_H

#include <limits.h>

#include "mailbox.h"
#include "pair.h"
#include "recorder.h"

/* Zeroed: nothing is recorded. */
struct esp_record {
    struct esp_recorder *recorder;
    char path[PATH_MAX];
    bool stepped; /* the iteration before was in step mode */
};

/* Starts as the command says: `text` is the path, `key` the size of the screen ("80x24"),
 * `number` whether to overwrite. What there is of a text is recorded as a prompt. The pair must
 * stay as long as it is recorded. */
int esp_record_start(struct esp_record *record, const struct esp_pair *pair,
                     const struct esp_posted *command, char *err, size_t errlen);
/* Before an iteration's event: whether it ran in step mode, where times mean little. Recorded
 * as a setting, "step", when it changes. */
bool esp_record_step(struct esp_record *record, bool stepped, char *err, size_t errlen);
/* Returns false if the recording had to be ended, with a sentence in err. */
bool esp_record_event(struct esp_record *record, const struct esp_event *event, char *err,
                      size_t errlen);
int esp_record_stop(struct esp_record *record, char *err, size_t errlen);

#endif
