/* resume.h - opens a kept session in order to continue it.
 *
 * The interface reads all texts of the session and the last iterations of the current text.
 * Therefore the panes show the same as before. The engine thread computes the KV cache rows of
 * the text again.
 */
#ifndef ESP_RESUME_H
#define ESP_RESUME_H

#include "sessions/event_json.h"
#include "sessions/library.h"
#include "tui/model/state.h"

struct esp_resumed {
    struct esp_kept_session session;
    struct esp_recording_header header; /* settings and models */
    struct esp_kept_text text;
    struct esp_texts names; /* names of gauges */
    /* The last iterations of the current text, from the oldest to the newest. */
    struct esp_resumed_iteration {
        struct esp_recorded_event event;
        struct esp_text_place place; /* the end of the text before the iteration */
    } * iterations;                  /* (count) */
    int count;
};

/* Reads session `which` from the library at `path`. esp_library_find() describes the forms of
 * `which`. Returns 0, or a negative status with a message. The status is ESP_E_FILE if another
 * program has the session open. */
int esp_resumed_open(struct esp_resumed **resumed, const char *path, const char *which,
                     char *err, size_t errlen);
void esp_resumed_close(struct esp_resumed *resumed);
/* Returns the current text in allocated memory, or NULL if there is no memory. */
struct esp_text_token *esp_resumed_text(const struct esp_resumed *resumed, int *count);
/* Moves the texts and iterations to the interface's state. The text of the state must be empty.
 * The names of gauges stay in `resumed`. Returns 0 or ESP_E_MEMORY. */
int esp_resumed_install(struct esp_resumed *resumed, struct esp_state *state);

#endif
