/* replay.h - replays a recording: keys and commands that move a player (player.h).
 *
 * The control has a player instead of a worker. Panes and everything else work as in a live
 * session. A line with the position in the recording replaces the input line.
 */
#ifndef ESP_REPLAY_H
#define ESP_REPLAY_H

#include "tui/commands/control.h"

/* Opens the recording of the options. */
int esp_replay_open(struct esp_control *control, char *err, size_t errlen);
void esp_replay_close(struct esp_control *control);

enum { ESP_REPLAY_IGNORES = 1 };

/* Handles an action. Returns 0, a negative status, or ESP_REPLAY_IGNORES if the action works
 * as in a live session. */
int esp_replay_act(struct esp_control *control, int action, int key);
/* Goes to the next (direction 1) or previous (-1) match in the recorded text. */
int esp_replay_find(struct esp_control *control, int direction);

/* Plays or pauses. Like the functions below, this is for commands and keys, and may set the
 * reply. */
int esp_replay_play(struct esp_control *control, bool on);
/* Goes to an iteration by number, or to "start" or "end". */
int esp_replay_seek(struct esp_control *control, const char *where);
int esp_replay_speed(struct esp_control *control, double speed);
int esp_replay_idle(struct esp_control *control, double seconds);

/* Applies the events that are due. */
int esp_replay_receive(struct esp_control *control);
/* Milliseconds until the next event is due; -1 if the replay is paused. */
int esp_replay_wait(const struct esp_player *player);

#endif
