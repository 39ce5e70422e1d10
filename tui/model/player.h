/* player.h - plays a recording into a state (state.h), forward, backward and at any speed.
 *
 * Recorded events go through the same functions as live ones (snapshot.h, state.h), so that
 * what is drawn is what was drawn live. A position is the number of events that were applied
 * and, of the iteration that comes next, how many of its steps (draft passes, then the six
 * stages) are shown, as step mode shows them.
 *
 * The state depends on the position alone, not on the way to it. Forward, events are applied
 * one by one. Backward or far away, the state is rebuilt: text and baseline come from
 * the recording's index, settings from the events that changed them, and only the last
 * iterations, as many as a state shows, are read again. So a jump costs the same wherever it
 * leads.
 */
#ifndef ESP_PLAYER_H
#define ESP_PLAYER_H

#include "sessions/recording.h"
#include "tui/model/state.h"

struct esp_player {
    struct esp_recording *recording;
    struct esp_state *state;
    struct esp_snapshot snapshot; /* its buffers are used again */
    int at;                       /* events that were applied */
    int step, steps; /* of the next iteration, if step > 0: how many are shown, of how many */
    int phase;       /* of the state, without the step */
    bool stepped;    /* the recorded session was in step mode */

    int *markers; /* (marker_count) their events */
    int marker_count;

    bool playing;
    /* 0: exactly as recorded. Else 0.25..16: this many times the pace of the recording, held to
     * what an eye can follow (12 iterations a second) */
    double speed;
    double idle; /* the longest pause that is played, in seconds; 0: any */
    double due;  /* when the next event is applied, in the caller's time */
};

#define ESP_SPEED_LEAST 0.25
#define ESP_SPEED_MOST 16.0
#define ESP_IDLE_DEFAULT 2.0
#define ESP_IDLE_MOST 86400.0

/* Reads "2", "0.5x" or "recorded". Returns 0, or ESP_E_ARGUMENT with a sentence. */
int esp_speed_parse(const char *text, double *speed, char *err, size_t errlen);

/* Opens a recording; the state, which is empty, shows what was there before its first
 * iteration, and takes token texts from the recording. Nothing plays yet. After a failure there
 * is nothing to close. */
int esp_player_open(struct esp_player *player, const char *path, struct esp_state *state,
                    char *err, size_t errlen);
void esp_player_close(struct esp_player *player);

/* ------------------------------------------------------------------ position */

/* How many iterations were applied, and how many there are. */
int esp_player_iteration(const struct esp_player *player);
int esp_player_iterations(const struct esp_player *player);
bool esp_player_is_at_end(const struct esp_player *player);
/* Recorded seconds, from the session's start to the last applied event, and to the last of all.
 */
double esp_player_time(const struct esp_player *player);
double esp_player_duration(const struct esp_player *player);

/* All of these stop at the first and last position there is; they return 0 or a negative status
 * with a sentence, and the state then shows the position that `at` and `step` say. */

/* After `at` events, and `step` steps of the iteration that is next. */
int esp_player_seek(struct esp_player *player, int at, int step, char *err, size_t errlen);
/* Right after `count` iterations; after all of them, the end of the recording. */
int esp_player_go(struct esp_player *player, int count, char *err, size_t errlen);
/* To the iteration before (direction -1) or after (1). */
int esp_player_move(struct esp_player *player, int direction, char *err, size_t errlen);
/* The same by draft passes and stages. */
int esp_player_step(struct esp_player *player, int direction, char *err, size_t errlen);

/* The number of events up to and with the next marker in this direction; -1: there is none. */
int esp_player_marker(const struct esp_player *player, int direction);
/* The position (events) at which `text` (search.h) next occurs in the text that was written,
 * looking on from here (1) or back (-1), and round the end; -1: nowhere, -2: it could not be
 * read. The player does not move. */
int esp_player_find(struct esp_player *player, const char *text, int direction);

/* ------------------------------------------------------------------ time */

/* `now` is any clock in seconds that does not go back. At the end, playing starts from the
 * beginning. */
int esp_player_play(struct esp_player *player, bool on, double now, char *err, size_t errlen);
/* Applies what is due; returns 1 if something was, else 0, or a negative status. */
int esp_player_advance(struct esp_player *player, double now, char *err, size_t errlen);
/* Seconds until something is due; negative: nothing plays. */
double esp_player_wait(const struct esp_player *player, double now);

#endif
