/* player.h - plays a recording into a state (state.h), forward, backward and at any speed.
 *
 * Recorded events are applied with the same functions as live events (snapshot.h, state.h), so
 * the screen looks the same. A position has two parts. The first is the number of applied
 * events. The second is the number of steps of the next iteration that are shown, as in step
 * mode. The steps are the draft passes, followed by the six stages.
 *
 * The state depends only on the position, not on how it was reached. To move forward, events
 * are applied one by one. After any other jump the state is rebuilt. The text and the baseline
 * come from the recording's index, and the settings from the events that changed them. The
 * state stores only the last iterations, up to a fixed number, and only these are read.
 * Therefore every jump costs the same.
 */
#ifndef ESP_PLAYER_H
#define ESP_PLAYER_H

#include "sessions/recording.h"
#include "tui/model/state.h"

struct esp_player {
    struct esp_recording *recording;
    struct esp_state *state;
    struct esp_snapshot snapshot; /* the event that is being applied */
    int at;                       /* number of applied events */
    int step, steps; /* of the next iteration: number of shown steps, number of all steps */
    int phase;       /* the phase of the state before a step was shown */
    bool stepped;    /* at this position, the recorded session was in step mode */

    int *markers; /* (marker_count) indices of the events that are markers */
    int marker_count;

    bool playing;
    /* 0 means the recorded pace. Otherwise it is a factor from 0.25 to 16. It multiplies the
     * recorded pace, which is first limited to 12 iterations per second, slow enough to
     * watch. */
    double speed;
    double idle; /* longest pause in seconds; 0 means no limit */
    double due;  /* time of the next event, on the caller's clock */
};

#define ESP_SPEED_LEAST 0.25
#define ESP_SPEED_MOST 16.0
#define ESP_IDLE_DEFAULT 2.0
#define ESP_IDLE_MOST 86400.0

/* Reads a speed such as "2", "0.5x" or "recorded". Returns 0, or ESP_E_ARGUMENT with a
 * message. */
int esp_speed_parse(const char *text, double *speed, char *err, size_t errlen);

/* Opens a recording and pauses before its first iteration. `state` must be empty. The texts of
 * its tokens come from the recording. After a failure there is nothing to close. */
int esp_player_open(struct esp_player *player, const char *path, struct esp_state *state,
                    char *err, size_t errlen);
void esp_player_close(struct esp_player *player);

/* ------------------------------------------------------------------ position */

/* These two functions return the number of applied iterations and the number of all
 * iterations. */
int esp_player_iteration(const struct esp_player *player);
int esp_player_iterations(const struct esp_player *player);
bool esp_player_is_at_end(const struct esp_player *player);
/* These functions return the recorded seconds from the session's start to the last applied
 * event, and to the last event of the recording. */
double esp_player_time(const struct esp_player *player);
double esp_player_duration(const struct esp_player *player);

/* The following functions stop at the first and the last position. They return 0, or a
 * negative status with a message. After an error the state shows the position given by `at`
 * and `step`. */

/* Goes to the position after `at` events and `step` steps of the next iteration. */
int esp_player_seek(struct esp_player *player, int at, int step, char *err, size_t errlen);
/* Goes to the position after `count` iterations. If `count` is the number of all
 * iterations, goes to the end of the recording. */
int esp_player_go(struct esp_player *player, int count, char *err, size_t errlen);
/* Goes to the previous (direction -1) or next (1) iteration. */
int esp_player_move(struct esp_player *player, int direction, char *err, size_t errlen);
/* Goes back (direction -1) or forward (1) by a step, which is a draft pass or a stage. */
int esp_player_step(struct esp_player *player, int direction, char *err, size_t errlen);

/* Returns the position (a number of events) after the next marker in this direction, or -1 if
 * there is none. */
int esp_player_marker(const struct esp_player *player, int direction);
/* Finds the next match of `text` (search.h) in the recorded text, forward (1) or backward (-1).
 * At an end of the recording, continues at the other end. Returns the position of the match, in
 * events. Returns -1 if there is no match, and -2 after a read error. Does not move the
 * player. */
int esp_player_find(struct esp_player *player, const char *text, int direction);

/* ------------------------------------------------------------------ time */

/* Plays or pauses. At the end of the recording, playing starts from the beginning. `now` is
 * the time in seconds, by any monotonic clock. */
int esp_player_play(struct esp_player *player, bool on, double now, char *err, size_t errlen);
/* Applies the events that are due. Returns 1 if there were any, 0 if there were none, or a
 * negative status. */
int esp_player_advance(struct esp_player *player, double now, char *err, size_t errlen);
/* Returns the seconds until the next event is due, or a negative number if playback is
 * paused. */
double esp_player_wait(const struct esp_player *player, double now);

#endif
