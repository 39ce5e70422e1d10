/* pass_times.c - interpolates the measured times linearly in rows and in length. */
#include "engine/selector/pass_times.h"

#include <math.h>
#include <string.h>

const int esp_time_rows[ESP_TIME_ROWS] = {1, 2, 4, 8, 16, 28, 41};

static const int draft_rows[ESP_TIME_DRAFT_ROWS] = {1, 2, 3, 4};

void esp_nominal_times(struct esp_pass_times *t)
{
    static const double PASS = 1e-3, ROW = 0.03, DRAFT = 0.05, CHOICE = 0.01;
    for (int i = 0; i < ESP_TIME_LENGTHS; i++) {
        t->length[i] = (float)(100 * (i + 1));
        for (int j = 0; j < ESP_TIME_DRAFT_ROWS; j++)
            t->draft[i][j] = (float)(DRAFT * PASS);
        for (int j = 0; j < ESP_TIME_ROWS; j++)
            t->target[i][j] = (float)((1 + ROW * (esp_time_rows[j] - 1)) * PASS);
    }
    t->choice = (float)(CHOICE * PASS);
}

bool esp_pass_times_sound(const struct esp_pass_times *t)
{
    bool sound = true;
    for (size_t i = 0; i < sizeof *t / sizeof(float); i++) {
        float number;
        memcpy(&number, (const char *)t + i * sizeof number, sizeof number);
        sound &= isfinite(number) && number > 0;
    }
    for (int i = 1; i < ESP_TIME_LENGTHS; i++)
        sound &= t->length[i] > t->length[i - 1];
    return sound;
}

/* Returns the value at x of the piecewise linear curve through the points. Beyond the last
 * point, the last segment is extended. */
static double between_rows(const float *y, const int *at, int count, double x)
{
    int i = 0;
    while (i < count - 2 && x > at[i + 1])
        i++;
    return y[i] + (y[i + 1] - y[i]) * (x - at[i]) / (at[i + 1] - at[i]);
}

/* Returns the time for `rows` and `length`. y: (ESP_TIME_LENGTHS, count) measured times. at:
 * (count) the row counts that were timed. */
static double at_length(const struct esp_pass_times *t, const float *y, const int *at,
                        int count, double rows, double length)
{
    int i = 0;
    while (i < ESP_TIME_LENGTHS - 2 && length > t->length[i + 1])
        i++;
    const double part = (length - t->length[i]) / (t->length[i + 1] - t->length[i]);
    const double share = fmin(fmax(part, 0), 2);
    const double low = between_rows(y + i * count, at, count, rows);
    const double high = between_rows(y + (i + 1) * count, at, count, rows);
    return fmax(low + (high - low) * share, 0.5 * fmin(low, high));
}

double esp_time_draft(const struct esp_pass_times *t, int rows, double length)
{
    return at_length(t, t->draft[0], draft_rows, ESP_TIME_DRAFT_ROWS, rows, length);
}

double esp_time_target(const struct esp_pass_times *t, int rows, double length)
{
    return at_length(t, t->target[0], esp_time_rows, ESP_TIME_ROWS, rows, length);
}

double esp_time_of_action(const struct esp_pass_times *t, struct esp_action a, int length)
{
    const int passes = esp_action_depth(a) > 0 ? esp_action_depth(a) : 1;
    double sum = esp_time_target(t, esp_action_rows(a), length);
    for (int i = 0; i < passes; i++)
        sum += esp_time_draft(t, i <= a.stem ? 1 : a.paths, length + i);
    return sum;
}
