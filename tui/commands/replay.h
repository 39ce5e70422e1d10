/* replay.h - replays a recording. Its keys and commands control a player (player.h).
 *
 * In a replay, the control has a player instead of a worker. The panes and all other parts of
 * the interface work as in a live session. A line that shows the position in the recording
 * replaces the input line.
 */
#ifndef ESP_REPLAY_H
#define ESP_REPLAY_H

#include "tui/commands/control.h"

/* Opens the recording that the options name. */
int esp_replay_open(struct esp_control *control, char *err, size_t errlen);
void esp_replay_close(struct esp_control *control);

enum { ESP_REPLAY_IGNORES = 1 };

/* Runs the action of a key. Returns 0 or a negative status. Returns ESP_REPLAY_IGNORES, and
 * does nothing, if the action works as in a live session. */
int esp_replay_act(struct esp_control *control, int action, int key);
/* Goes to the next match in the recorded text or, if `direction` is -1, to the previous one. */
int esp_replay_find(struct esp_control *control, int direction);

/* Plays or pauses. Commands and keys call this function and the functions below it. All these
 * functions can set the reply. */
int esp_replay_play(struct esp_control *control, bool on);
/* Goes to an iteration by number, or to "start" or "end". */
int esp_replay_seek(struct esp_control *control, const char *where);
int esp_replay_speed(struct esp_control *control, double speed);
int esp_replay_idle(struct esp_control *control, double seconds);

/* Applies the events that are due. */
int esp_replay_receive(struct esp_control *control);
/* Returns the milliseconds until the next event is due, or -1 if the replay is paused. */
int esp_replay_wait(const struct esp_player *player);

#endif
