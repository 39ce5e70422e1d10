/* replay.h - the interface on a recording: keys and commands that move a player (player.h).
 *
 * The control has a player instead of a worker; everything else, panes above all, is as in a
 * live session. Where the input line stands, a line says where in the recording one is.
 */
#ifndef ESP_REPLAY_H
#define ESP_REPLAY_H

#include "tui/commands/control.h"

/* Opens the recording that the options name. */
int esp_replay_open(struct esp_control *control, char *err, size_t errlen);
void esp_replay_close(struct esp_control *control);

enum { ESP_REPLAY_IGNORES = 1 };

/* Obeys an action. Returns 0 or a negative status; or ESP_REPLAY_IGNORES: it is the same as in
 * a live session. */
int esp_replay_act(struct esp_control *control, int action, int key);
/* Goes to the next place (direction 1; -1: the one before) of the recorded text where what is
 * looked for occurs. */
int esp_replay_find(struct esp_control *control, int direction);

/* What commands and keys ask for; the reply says what happened. */
int esp_replay_play(struct esp_control *control, bool on);
/* To an iteration by its number, or to "start" or "end". */
int esp_replay_seek(struct esp_control *control, const char *where);
/* Right after so many iterations. */
int esp_replay_go(struct esp_control *control, int iterations);
int esp_replay_speed(struct esp_control *control, double speed);
int esp_replay_idle(struct esp_control *control, double seconds);

/* Applies what is due. */
int esp_replay_receive(struct esp_control *control);
/* Milliseconds until something is due; -1: nothing plays. */
int esp_replay_wait(const struct esp_control *control);

#endif
