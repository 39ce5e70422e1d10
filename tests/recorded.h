/* recorded.h - what tests of recordings share: a file, sessions that are recorded while every
 * event is kept, and what is equal.
 */
#ifndef ESP_RECORDED_H
#define ESP_RECORDED_H

#include "sessions/iteration_copy.h"
#include "sessions/recorder.h"

/* A file that is not there at first and is removed at the end; there is one. */
const char *recorded_path(void);
void recorded_write(const char *bytes, size_t length);
/* The whole file with a NUL behind it; the caller frees it. */
char *recorded_read(size_t *length);

/* An event as the observer saw it. */
struct recorded_event {
    int type, stage;
    struct esp_iteration_copy iteration;
    int32_t *tokens;
    int token_count;
    char key[64], text[1024];
};

struct recorded_events {
    struct recorded_event **event; /* (count) */
    int count;
};

void recorded_keep(struct recorded_events *events, const struct esp_event *event);
void recorded_forget(struct recorded_events *events);

/* Texts of tokens: plain ones, controls, quotes, wide characters, invalid UTF-8, a NUL, none
 * at all. */
const char *recorded_token(void *user, int32_t token, size_t *length);

/* Records a marker with a text. */
void recorded_mark(struct esp_recorder *recorder, const char *text);

/* Records `iterations` of a session on the toy models, settings and a second prompt among
 * them, and keeps its events unless `events` is NULL. */
void recorded_session(struct recorded_events *events, const char *drafter, double temperature,
                      int iterations);

/* Every field is equal, bit for bit (a value that is not a number is like any other); fails the
 * test if not. */
void recorded_same(const struct esp_iteration *got, const struct esp_iteration *want,
                   const char *what);

/* Opens the file, which must be a good recording. */
struct esp_recording *recorded_open(void);

#endif
