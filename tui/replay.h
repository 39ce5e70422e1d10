/* replay.h - the interface on a recording: keys and commands that move a player (player.h).
 *
 * The app has a player instead of a worker; everything else, panes above all, is as in a live
 * session. Where the input line stands, a line says where in the recording one is.
 */
#ifndef ESP_REPLAY_H
#define ESP_REPLAY_H

#include "app.h"

/* Opens the recording that the app's options name. */
int esp_replay_open(struct esp_app *app, char *err, size_t errlen);
void esp_replay_close(struct esp_app *app);

/* Obeys an action. False: it is the same as in a live session. */
bool esp_replay_act(struct esp_app *app, int action, int key);
/* Goes to the next place (direction 1; -1: the one before) of the recorded text where what is
 * looked for occurs. */
void esp_replay_find(struct esp_app *app, int direction);

/* What commands ask for; these say what happened. */
void esp_replay_play(struct esp_app *app, bool on);
void esp_replay_go(struct esp_app *app, int iterations);
void esp_replay_speed(struct esp_app *app, double speed);
void esp_replay_idle(struct esp_app *app, double seconds);

/* Applies what is due. */
void esp_replay_receive(struct esp_app *app);
/* Milliseconds until something is due; -1: nothing plays. */
int esp_replay_wait(const struct esp_app *app);

#endif
