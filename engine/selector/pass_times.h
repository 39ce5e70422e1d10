/* pass_times.h - stores how long passes of draft and target take, by rows and by length of the
 * text.
 *
 * The times are measured once, when a selector is trained (engine/train/measure_times.c), and
 * stored with the selector. The selector's choices therefore depend only on the text, and the
 * same seed gives the same choices again.
 */
#ifndef ESP_PASS_TIMES_H
#define ESP_PASS_TIMES_H

#include "engine/selector/actions.h"

enum { ESP_TIME_ROWS = 7, ESP_TIME_LENGTHS = 4, ESP_TIME_DRAFT_ROWS = 4 };

/* Lists the row counts for which the target is timed. The draft is timed for 1 to
 * ESP_TIME_DRAFT_ROWS rows. */
extern const int esp_time_rows[ESP_TIME_ROWS];

/* All times are in seconds. */
struct esp_pass_times {
    float length[ESP_TIME_LENGTHS]; /* lengths of the text in tokens, ascending */
    float draft[ESP_TIME_LENGTHS][ESP_TIME_DRAFT_ROWS];
    float target[ESP_TIME_LENGTHS][ESP_TIME_ROWS];
    float choice; /* time that the selector itself takes, whatever it chooses */
};

/* Sets nominal times, which were not measured. A pass of the target takes a millisecond; each
 * additional row takes 3 % of this time, and a pass of the draft takes 5 % of it. The length of
 * the text does not matter. */
void esp_nominal_times(struct esp_pass_times *times);

/* Returns whether all times are finite and positive, and the lengths are ascending. */
bool esp_pass_times_sound(const struct esp_pass_times *times);

/* These functions return how many seconds one pass over `rows` rows takes after `length`
 * tokens: t_q for the draft, t_p for the target. */
double esp_time_draft(const struct esp_pass_times *times, int rows, double length);
double esp_time_target(const struct esp_pass_times *times, int rows, double length);

/* Returns how many seconds all passes of an iteration with this action take after `length`
 * tokens, without `choice` (delayed-tree-expansion, eq. 11). There are three differences from
 * the paper. The time of a pass also depends on its rows, which matters on a processor. The
 * pass over the branching node has one row. The pass over the root is always made, because the
 * selector reads its result. */
double esp_time_of_action(const struct esp_pass_times *times, struct esp_action action,
                          int length);

#endif
