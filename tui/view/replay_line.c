/* replay_line.c - draws the line that shows the position in a recording.
 *
 *     paused   iter 41/319, step 3 of 9   1x   0:12 / 1:04   ████████▌     |
 *
 * The length of the bar is the fraction of the iterations up to this position. Markers are
 * drawn into the bar unless there are too many.
 */
#include "tui/view/replay_line.h"

#include <stdio.h>
#include <string.h>

#include "viz/chart.h"

enum { LEAST_BAR = 8, NARROW = 50 };

/* Writes a time as "0.4", "1:04" or "2:00:00", depending on the duration. Returns `text`. */
static const char *clock_text(char text[16], double seconds, double duration)
{
    int s = seconds < 1e6 ? (int)seconds : 1000000;
    if (duration < 60)
        snprintf(text, 16, duration < 10 ? "%.2f" : "%.1f", seconds);
    else if (duration < 3600)
        snprintf(text, 16, "%d:%02d", s / 60, s % 60);
    else
        snprintf(text, 16, "%d:%02d:%02d", s / 3600, s / 60 % 60, s % 60);
    return text;
}

static int draw_mode(struct esp_canvas *canvas, const struct esp_player *player)
{
    bool narrow = canvas->view.rect.width < NARROW;
    if (player->playing)
        return esp_draw(canvas, 0, 0, ESP_STYLE_GOOD, "playing") + 3;
    if (!esp_player_is_at_end(player))
        return esp_draw(canvas, 0, 0, ESP_STYLE_WARN, "paused") + 3;
    if (esp_recording_is_cut(player->recording))
        return esp_draw(canvas, 0, 0, ESP_STYLE_WARN, narrow ? "cut" : "cut off here") + 3;
    return esp_draw(canvas, 0, 0, ESP_STYLE_WARN, narrow ? "end" : "end of recording") + 3;
}

static int draw_position(struct esp_canvas *canvas, int x, const struct esp_player *player)
{
    int now = esp_player_iteration(player), last = esp_player_iterations(player) - 1;
    if (last < 0)
        return esp_draw(canvas, x, 0, ESP_STYLE_WARN, "no iterations") + 3;
    if (player->step > 0)
        x = esp_drawf(canvas, x, 0, ESP_STYLE_VALUE, "iter %d/%d, step %d of %d", now, last,
                      player->step, player->steps);
    else if (now == 0)
        x = esp_drawf(canvas, x, 0, ESP_STYLE_VALUE, "start, %d iterations", last + 1);
    else
        x = esp_drawf(canvas, x, 0, ESP_STYLE_VALUE, "iter %d/%d", now - 1, last);
    return x + 3;
}

static void draw_progress(struct esp_canvas *canvas, int x, int width,
                          const struct esp_player *player)
{
    int iterations = esp_player_iterations(player);
    double share = iterations > 0 ? 1.0 / iterations : 0;
    esp_draw_bar(canvas, x, 0, width, ESP_STYLE_BAR_REST, share * esp_player_iteration(player));
    bool crowded = player->marker_count > width / 4;
    for (int i = 0; i < player->marker_count && !crowded; i++) {
        int event = player->markers[i];
        int before = esp_recording_entry(player->recording, event).iterations;
        int column = (int)(share * before * width);
        esp_draw(canvas, x + (column < width ? column : width - 1), 0, ESP_STYLE_KEY, "|");
    }
}

/* Draws a text if all of it fits. Returns the column after it. */
static int draw_part(struct esp_canvas *canvas, int x, int style, const char *text)
{
    if (!*text || x + (int)strlen(text) > canvas->view.rect.width)
        return x;
    return esp_draw(canvas, x, 0, style, text) + 3;
}

void esp_replay_line_draw(struct esp_canvas *canvas, const struct esp_player *player,
                          const char *typed)
{
    char now[16], whole[16], speed[16] = "as recorded", time[40], number[32] = "";
    double duration = esp_player_duration(player);
    clock_text(now, esp_player_time(player), duration);
    clock_text(whole, duration, duration);
    snprintf(time, sizeof time, "%s / %s%s", now, whole, duration < 60 ? " s" : "");
    if (player->speed > 0)
        snprintf(speed, sizeof speed, "%gx", player->speed);
    if (*typed)
        snprintf(number, sizeof number, "%s: g goes there", typed);
    int x = draw_position(canvas, draw_mode(canvas, player), player);
    x = draw_part(canvas, x, ESP_STYLE_KEY, number);
    x = draw_part(canvas, x, ESP_STYLE_STATUS, speed);
    x = draw_part(canvas, x, ESP_STYLE_LABEL, time);
    if (canvas->view.rect.width - x >= LEAST_BAR)
        draw_progress(canvas, x, canvas->view.rect.width - x, player);
}
