/* replay_line.c - where in a recording one is: the line that stands where a prompt is typed.
 *
 *     paused  1x   iter 41/319, step 3 of 9   0:12 / 1:04   ████████▌     |
 *
 * The bar is the share of iterations; markers are drawn into it.
 */
#include "replay_line.h"

#include <stdio.h>
#include <string.h>

#include "chart.h"

enum { LEAST_BAR = 8 };

/* "0.4", "1:04", "2:00:00"; all of a recording look alike. */
static const char *clock_text(char text[16], double seconds, double duration)
{
    int s = seconds < 1e6 ? (int)seconds : 1000000;
    if (duration < 60)
        snprintf(text, 16, "%.1f", seconds);
    else if (duration < 3600)
        snprintf(text, 16, "%d:%02d", s / 60, s % 60);
    else
        snprintf(text, 16, "%d:%02d:%02d", s / 3600, s / 60 % 60, s % 60);
    return text;
}

static int draw_mode(struct esp_canvas *canvas, const struct esp_player *player)
{
    char speed[16] = "as recorded";
    int x;
    if (player->playing)
        x = esp_draw(canvas, 0, 0, ESP_STYLE_GOOD, "playing") + 2;
    else if (esp_player_is_at_end(player))
        x = esp_draw(canvas, 0, 0, ESP_STYLE_WARN, "end of recording") + 2;
    else
        x = esp_draw(canvas, 0, 0, ESP_STYLE_WARN, "paused") + 2;
    if (player->speed > 0)
        snprintf(speed, sizeof speed, "%gx", player->speed);
    return esp_draw(canvas, x, 0, ESP_STYLE_STATUS, speed) + 3;
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
    esp_draw_bar(canvas, x, 0, width, ESP_STYLE_BAR_REST,
                 share * esp_player_iteration(player));
    for (int i = 0; i < player->marker_count; i++) {
        int event = player->markers[i];
        int before = esp_recording_entry(player->recording, event).iterations;
        int column = (int)(share * before * width);
        esp_draw(canvas, x + (column < width ? column : width - 1), 0, ESP_STYLE_KEY, "|");
    }
}

void esp_replay_line_draw(struct esp_canvas *canvas, const struct esp_player *player,
                          const char *typed)
{
    char now[16], whole[16];
    int width = canvas->view.rect.width;
    int x = draw_position(canvas, draw_mode(canvas, player), player);
    double duration = esp_player_duration(player);
    clock_text(now, esp_player_time(player), duration);
    clock_text(whole, duration, duration);
    if (*typed)
        x = esp_drawf(canvas, x, 0, ESP_STYLE_KEY, "%s: g goes there", typed) + 3;
    if (x + (int)(strlen(now) + 5 + strlen(whole)) <= width)
        x = esp_drawf(canvas, x, 0, ESP_STYLE_LABEL, "%s / %s%s", now, whole,
                      duration < 60 ? " s" : "") + 3;
    if (width - x >= LEAST_BAR)
        draw_progress(canvas, x, width - x, player);
}
