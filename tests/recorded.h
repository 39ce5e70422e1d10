/* recorded.h - helpers for tests of recordings. They make a file, record sessions with all
 * their events, and compare iterations.
 */
#ifndef ESP_RECORDED_H
#define ESP_RECORDED_H

#include "sessions/iteration_copy.h"
#include "sessions/recorder.h"

/* Returns the path of the test's recording. At first, the file does not exist. It is removed
 * when the program ends. */
const char *recorded_path(void);
void recorded_write(const char *bytes, size_t length);
/* Returns the contents of the file, with a NUL at the end. The caller must free them. */
char *recorded_read(size_t *length);

/* Holds a copy of an event that the session's observer has received. */
struct recorded_event {
    int type, stage;
    struct esp_iteration_copy iteration;
    int32_t *tokens;
    int token_count;
    char key[64], text[1024];
};

struct recorded_events {
    struct recorded_event **event; /* shape (count) */
    int count;
};

void recorded_keep(struct recorded_events *events, const struct esp_event *event);
void recorded_forget(struct recorded_events *events);

/* Returns the text of a token. Tokens have texts of all kinds: plain text, control characters,
 * quotes, wide characters, invalid UTF-8, a NUL, or nothing. */
const char *recorded_token(void *user, int32_t token, size_t *length);

/* Records a marker event with this text. */
void recorded_mark(struct esp_recorder *recorder, const char *text);

/* Records `iterations` iterations of a session on the toy models. Between iterations, settings
 * change and a second prompt is added. If `events` is not NULL, stores the events in it. */
void recorded_session(struct recorded_events *events, const char *drafter, double temperature,
                      int iterations);

/* Fails the test if any bit of a field differs between the two iterations. NaN equals NaN. */
void recorded_same(const struct esp_iteration *got, const struct esp_iteration *want,
                   const char *what);

/* Opens the file. The test fails if it is not a valid recording. */
struct esp_recording *recorded_open(void);

#endif
