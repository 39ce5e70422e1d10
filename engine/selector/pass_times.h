/* pass_times.h - how long passes of draft and target take, by rows and by length of the text.
 *
 * Measured once when a selector is trained (engine/train/measure_times.c) and stored with it:
 * what the selector chooses then depends on the text alone, and a seed repeats it.
 */
#ifndef ESP_PASS_TIMES_H
#define ESP_PASS_TIMES_H

#include "engine/selector/actions.h"

enum { ESP_TIME_ROWS = 7, ESP_TIME_LENGTHS = 4, ESP_TIME_DRAFT_ROWS = 4 };

/* Rows at which the target is measured. The draft is measured at 1..ESP_TIME_DRAFT_ROWS. */
extern const int esp_time_rows[ESP_TIME_ROWS];

struct esp_pass_times {
    float length[ESP_TIME_LENGTHS]; /* tokens of text, ascending */
    float draft[ESP_TIME_LENGTHS][ESP_TIME_DRAFT_ROWS];
    float target[ESP_TIME_LENGTHS][ESP_TIME_ROWS]; /* seconds */
    float choice; /* seconds that the selector itself takes, whatever it chooses */
};

/* Costs of no machine: a pass of the target is a millisecond, a row more 3 % of it, a pass of
 * the draft 5 %, and the length does not count. */
void esp_nominal_times(struct esp_pass_times *times);

/* Are all numbers finite and positive, and the lengths ascending? */
bool esp_pass_times_sound(const struct esp_pass_times *times);

/* Seconds of one pass over `rows` rows behind `length` tokens: t_q and t_p. */
double esp_time_draft(const struct esp_pass_times *times, int rows, double length);
double esp_time_target(const struct esp_pass_times *times, int rows, double length);

/* Seconds, without `choice`, that all passes of an iteration with this action take behind
 * `length` tokens (delayed-tree-expansion, eq. 11). Deviations: t depends on the rows of a
 * pass, too, which counts on a processor; the pass over the branching node has one row; and the
 * pass over the root is always made, because the selector reads its outcome. */
double esp_time_of_action(const struct esp_pass_times *times, struct esp_action action,
                          int length);

#endif
