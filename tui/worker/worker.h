/* worker.h - the engine thread.
 *
 * It loads the models, opens the session and runs iterations. It takes commands from a mailbox,
 * between iterations and in order, and writes events to a ring of snapshots (ring.h). Posting a
 * command never blocks. In step mode the thread stops after every draft layer and every stage,
 * and waits for a step.
 *
 * Other models can be loaded while it runs (models.h). The UI thread can still read token texts
 * of the old models until it has applied the READY snapshot of the new models. It then posts
 * ESP_COMMAND_RETIRE, and the old models are closed.
 */
#ifndef ESP_WORKER_H
#define ESP_WORKER_H

#include "engine/espalier.h"
#include "tui/worker/mailbox.h"
#include "tui/worker/reporter.h"

struct esp_worker;

/* Starts the thread, which loads the models. The strings of the options must exist as long as
 * the worker. The functions `progress` and `observer` of the options are ignored. `tokens` is
 * the largest number of new tokens per prompt. */
int esp_worker_open(struct esp_worker **worker, const struct esp_engine_options *engine,
                    const struct esp_session_options *session, int tokens, char *err,
                    size_t errlen);
/* Ends the thread. Returns false if it has not ended within a few seconds. This happens, for
 * example, with a long prompt on a slow machine. Then the thread still uses the memory of the
 * worker. */
bool esp_worker_close(struct esp_worker *worker);

/* Returns the reporter. It has the thread's snapshots, and a file descriptor that is readable
 * when there are new snapshots. */
struct esp_reporter *esp_worker_report(struct esp_worker *worker);

/* Posts a command (mailbox.h). The commands to clear, rewind and load stop the generation
 * first. */
void esp_worker_post(struct esp_worker *worker, const struct esp_message *command);
/* Posts a command whose message has the given members, for example
 * ESP_WORKER_POST(worker, MARK, .text = {text}). */
#define ESP_WORKER_POST(worker, name, ...)                                                     \
    esp_worker_post(worker, &(struct esp_message){.type = ESP_COMMAND_##name, __VA_ARGS__})
/* Posts a change of a setting. If `origin` is not NULL, it is put before error messages, and
 * success is not reported (settings.h). If `origin` is NULL, the user is told the new value. */
void esp_worker_set(struct esp_worker *worker, const char *key, const char *value,
                    const char *origin);
/* Returns the mailbox. It has functions for the commands that take effect immediately: stop,
 * step mode and pace. */
struct esp_mailbox *esp_worker_mailbox(struct esp_worker *worker);

/* Returns whether no command waits, no generation runs and all snapshots have been read. In
 * step mode, a generation is allowed if the engine waits for a step. Scripts wait until this is
 * true. */
bool esp_worker_settled(struct esp_worker *worker);

#endif
