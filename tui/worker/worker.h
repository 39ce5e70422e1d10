/* worker.h - the thread that owns the engine.
 *
 * It loads the models, opens the session and runs iterations. Commands go in through a mailbox
 * and take effect between iterations, in the order they were posted; what happens comes out
 * through a ring of snapshots (ring.h). Posting never waits. In step mode the thread stops
 * after every draft layer and every stage until it is told to step.
 *
 * Other models can be loaded while it runs (models.h). The interface may ask for the texts of
 * the tokens of those before until it has seen the READY snapshot of the new ones and says so
 * (esp_worker_seen); only then are they closed.
 */
#ifndef ESP_WORKER_H
#define ESP_WORKER_H

#include "engine/espalier.h"
#include "tui/worker/mailbox.h"
#include "tui/model/ring.h"

struct esp_worker;

/* Starts the thread, which starts to load. The options' strings must outlive it; their progress
 * and observer are ignored. `tokens`: how many a prompt may be continued by. */
int esp_worker_open(struct esp_worker **worker, const struct esp_engine_options *engine,
                    const struct esp_session_options *session, int tokens, char *err,
                    size_t errlen);
/* Ends the thread. If it does not come to an end within some seconds (a long prompt on a slow
 * machine), gives up and returns false: its memory then stays with it. */
bool esp_worker_close(struct esp_worker *worker);

/* Becomes readable when there are snapshots; esp_worker_rest() before reading the ring makes it
 * unreadable until the next one. */
int esp_worker_wake_fd(const struct esp_worker *worker);
void esp_worker_rest(struct esp_worker *worker);
struct esp_ring *esp_worker_ring(struct esp_worker *worker);

/* Posts a command (mailbox.h); clear, rewind and load stop the generation first. */
void esp_worker_post(struct esp_worker *worker, const struct esp_message *command);
/* The same with the command's own members: ESP_WORKER_POST(worker, MARK, .text = {text}). */
#define ESP_WORKER_POST(worker, name, ...)                                                     \
    esp_worker_post(worker, &(struct esp_message){.type = ESP_COMMAND_##name, __VA_ARGS__})
/* Posts a setting. `origin` stands before what is wrong with it, and keeps quiet what is right
 * (settings.h); NULL: the user is told what it is now. */
void esp_worker_set(struct esp_worker *worker, const char *key, const char *value,
                    const char *origin);
/* For what acts at once: stop, step mode, pace (mailbox.h). */
struct esp_mailbox *esp_worker_mailbox(struct esp_worker *worker);

/* Is there nothing left to do: no command waiting, no generation running (or, in step mode, the
 * engine waiting for a step), every snapshot read? For scripts. */
bool esp_worker_settled(struct esp_worker *worker);

#endif
