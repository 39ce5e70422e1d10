/* player.h - plays a recording into a state (state.h), forward, backward and at any speed.
 *
 * Recorded events go through the same functions as live ones (snapshot.h, state.h), so the
 * screen looks the same. A position has two parts: the number of applied events, and the
 * number of steps of the next iteration that are shown (draft passes, then the six stages), as
 * in step mode.
 *
 * The state depends only on the position, not on how it was reached. Forward, events are
 * applied one by one. For other jumps the state is rebuilt: text and baseline come from the
 * recording's index, settings from the events that changed them, and only as many of the last
 * iterations are read as a state keeps. Every jump costs the same.
 */
#ifndef ESP_PLAYER_H
#define ESP_PLAYER_H

#include "sessions/recording.h"
#include "tui/model/state.h"

struct esp_player {
    struct esp_recording *recording;
    struct esp_state *state;
    struct esp_snapshot snapshot; /* reused buffers */
    int at;                       /* number of applied events */
    int step, steps; /* if step > 0: shown steps and all steps of the next iteration */
    int phase;       /* the state's phase before a step was shown */
    bool stepped;    /* the recorded session was in step mode */

    int *markers; /* (marker_count) event numbers */
    int marker_count;

    bool playing;
    /* 0: the recorded pace. Otherwise a factor from 0.25 to 16, by which the recorded pace is
     * multiplied. That pace is first limited to 12 iterations per second, so that the eye can
     * follow. */
    double speed;
    double idle; /* longest pause, in seconds; 0 means unlimited */
    double due;  /* time of the next event, on the caller's clock */
};

#define ESP_SPEED_LEAST 0.25
#define ESP_SPEED_MOST 16.0
#define ESP_IDLE_DEFAULT 2.0
#define ESP_IDLE_MOST 86400.0

/* Parses "2", "0.5x" or "recorded". Returns 0 or ESP_E_ARGUMENT with a message. */
int esp_speed_parse(const char *text, double *speed, char *err, size_t errlen);

/* Opens a recording, paused before its first iteration. `state` must be empty; its token texts
 * come from the recording. After a failure there is nothing to close. */
int esp_player_open(struct esp_player *player, const char *path, struct esp_state *state,
                    char *err, size_t errlen);
void esp_player_close(struct esp_player *player);

/* ------------------------------------------------------------------ position */

/* The number of applied iterations, and the number of all iterations. */
int esp_player_iteration(const struct esp_player *player);
int esp_player_iterations(const struct esp_player *player);
bool esp_player_is_at_end(const struct esp_player *player);
/* Return the recorded seconds from the session's start to the last applied event, and to the
 * last event. */
double esp_player_time(const struct esp_player *player);
double esp_player_duration(const struct esp_player *player);

/* These functions stop at the first and the last position. They return 0 or a negative status
 * with a message; the state then shows the position `at`, `step`. */

/* Goes to the position after `at` events and `step` steps of the next iteration. */
int esp_player_seek(struct esp_player *player, int at, int step, char *err, size_t errlen);
/* Goes to the position after `count` iterations; after all of them, to the recording's end. */
int esp_player_go(struct esp_player *player, int count, char *err, size_t errlen);
/* Goes to the previous (direction -1) or next (1) iteration. */
int esp_player_move(struct esp_player *player, int direction, char *err, size_t errlen);
/* Goes back (direction -1) or forward (1) by one step, a draft pass or a stage. */
int esp_player_step(struct esp_player *player, int direction, char *err, size_t errlen);

/* The number of events up to and including the next marker in this direction, or -1. */
int esp_player_marker(const struct esp_player *player, int direction);
/* Finds the next match of `text` (search.h) in the written text, forward (1) or backward (-1),
 * wrapping around. Returns its position in events; -1 means no match, -2 a read error. Does not
 * move the player. */
int esp_player_find(struct esp_player *player, const char *text, int direction);

/* ------------------------------------------------------------------ time */

/* Plays or pauses. At the end of the recording, playing starts from the beginning. `now` is
 * the time in seconds, by any monotonic clock. */
int esp_player_play(struct esp_player *player, bool on, double now, char *err, size_t errlen);
/* Applies due events. Returns 1 if there were any, 0 if not, or a negative status. */
int esp_player_advance(struct esp_player *player, double now, char *err, size_t errlen);
/* Seconds until the next event is due; negative if paused. */
double esp_player_wait(const struct esp_player *player, double now);

#endif
