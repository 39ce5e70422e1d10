/* Tests drawing. The canvas must clip what is drawn, join lines, and never show half a wide
 * character. Numbers and bars must be formatted correctly. */
#include "viz/canvas.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "viz/chart.h"
#include "tests/check.h"

static char *dump(const struct esp_canvas *canvas)
{
    char *text = NULL;
    size_t length;
    FILE *file = open_memstream(&text, &length);
    esp_canvas_dump(canvas, file, false);
    fclose(file);
    return text;
}

static void looks(struct esp_canvas *canvas, const char *want)
{
    char *text = dump(canvas);
    bool same = strcmp(text, want) == 0;
    if (!same)
        printf("%s", text);
    free(text);
    esp_canvas_close(canvas);
    CHECK(same, "wanted:\n%s", want);
}

TEST(text_is_clipped_to_its_view)
{
    struct esp_canvas canvas;
    CHECK(esp_canvas_open(&canvas, 8, 2) == 0);
    struct esp_view whole = esp_canvas_enter(&canvas, (struct esp_rect){2, 0, 3, 1});
    CHECK(esp_draw(&canvas, -1, 0, ESP_STYLE_TEXT, "abcdef") == 5);
    esp_draw(&canvas, 0, 1, ESP_STYLE_TEXT, "below");
    esp_canvas_leave(&canvas, whole);
    esp_draw(&canvas, 6, 1, ESP_STYLE_TEXT, "end and more");
    looks(&canvas, "  bcd\n      en\n");
}

TEST(frames_join_where_they_meet)
{
    struct esp_canvas canvas;
    CHECK(esp_canvas_open(&canvas, 7, 5) == 0);
    esp_draw_frame(&canvas, (struct esp_rect){0, 0, 4, 3}, ESP_STYLE_FRAME);
    esp_draw_frame(&canvas, (struct esp_rect){3, 0, 4, 3}, ESP_STYLE_FRAME);
    esp_draw_frame(&canvas, (struct esp_rect){0, 2, 7, 3}, ESP_STYLE_FRAME);
    looks(&canvas, "┌──┬──┐\n│  │  │\n├──┴──┤\n│     │\n└─────┘\n");
}

TEST(wide_characters_stay_whole)
{
    struct esp_canvas canvas;
    CHECK(esp_canvas_open(&canvas, 5, 3) == 0);
    esp_draw(&canvas, 0, 0, ESP_STYLE_TEXT, "\u6f22\u5b57\u6f22");
    esp_draw(&canvas, 0, 1, ESP_STYLE_TEXT, "\u6f22\u5b57");
    esp_draw(&canvas, 1, 1, ESP_STYLE_TEXT, "x");
    esp_draw(&canvas, 0, 2, ESP_STYLE_TEXT, "\u6f22\u5b57");
    esp_draw(&canvas, 2, 2, ESP_STYLE_TEXT, "x");
    looks(&canvas, "\u6f22\u5b57\n x\u5b57\n\u6f22x\n");
}

TEST(text_that_does_not_fit_ends_with_an_ellipsis)
{
    struct esp_canvas canvas;
    CHECK(esp_canvas_open(&canvas, 10, 3) == 0);
    CHECK(esp_draw_bytes(&canvas, 0, 0, 4, ESP_STYLE_TEXT, 0, "king", 4) == 4);
    CHECK(esp_draw_bytes(&canvas, 0, 1, 4, ESP_STYLE_TEXT, 0, "kings", 5) == 4);
    CHECK(esp_draw_bytes(&canvas, 0, 2, 4, ESP_STYLE_TEXT, 0, "a\u6f22\u5b57", 7) == 4);
    looks(&canvas, "king\nkin…\na\u6f22…\n");
}

TEST(a_canvas_draws_no_control_characters)
{
    struct esp_canvas canvas;
    CHECK(esp_canvas_open(&canvas, 12, 1) == 0);
    esp_draw(&canvas, 0, 0, ESP_STYLE_TEXT, "\033[31m\n\xff");
    looks(&canvas, "^[[31m^J<FF>\n");
}

TEST(probabilities_take_three_columns_and_small_ones_a_fourth)
{
    char text[8];
    const double values[] = {0, 0.004, 0.005, 0.5, 0.994, 0.995, 1, NAN, INFINITY};
    const char *const wanted[] = {".00", "<.01", ".01", ".50", ".99",
                                  "1.0", "1.0",  "  -", "  -"};
    for (int i = 0; i < 9; i++)
        CHECK(strcmp(esp_probability(text, values[i]), wanted[i]) == 0, "%g is '%s', want '%s'",
              values[i], text, wanted[i]);
}

TEST(numbers_keep_their_digits)
{
    char text[16];
    const double values[] = {0,    0.4,   0.004,  0.018, 0.01, 1,
                             5.25, 31.44, 1240.3, -2.5,  1e-7, NAN};
    const char *const wanted[] = {".00", ".40", ".004", ".018", ".01", "1.0",
                                  "5.2", "31",  "1240", "-2.5", ".00", "-"};
    for (int i = 0; i < 12; i++)
        CHECK(strcmp(esp_number(text, values[i], 2), wanted[i]) == 0, "%g is '%s', want '%s'",
              values[i], text, wanted[i]);
}

TEST(bars_and_sparklines_scale)
{
    struct esp_canvas canvas;
    const float values[] = {9, 0, 0.5f, 1, NAN, -1, 2};
    CHECK(esp_canvas_open(&canvas, 8, 6) == 0);
    CHECK(esp_draw_bar(&canvas, 0, 0, 8, ESP_STYLE_SPARK, 0) == 0);
    CHECK(esp_draw_bar(&canvas, 0, 1, 8, ESP_STYLE_SPARK, 1e-9) == 1);
    CHECK(esp_draw_bar(&canvas, 0, 2, 8, ESP_STYLE_SPARK, 0.5) == 4);
    CHECK(esp_draw_bar(&canvas, 0, 3, 8, ESP_STYLE_SPARK, 7) == 8);
    CHECK(esp_draw_bar(&canvas, 0, 4, 8, ESP_STYLE_SPARK, NAN) == 0);
    esp_draw_spark(&canvas, 0, 5, 6, ESP_STYLE_SPARK, values, 7, &(struct esp_axis){0, 1});
    looks(&canvas, "\n▏\n████\n████████\n\n▁▅█ ▁█\n");
}

/* The scale of a sparkline covers the shown values, and is logarithmic if their range is
 * wide. */
TEST(a_value_that_halves_visibly_halves)
{
    const float halves[] = {NAN, 0.8f, 0.4f, 0.2f, 0.1f, 0.05f, 0.025f, 0.0125f},
                close[] = {0.501f, 0.502f, 0.503f};
    struct esp_canvas canvas;
    char low[16], high[16];
    CHECK(esp_canvas_open(&canvas, 8, 2) == 0);
    struct esp_axis axis = esp_axis_of(halves, 8);
    CHECK(axis.low == (double)halves[7] && axis.high == (double)halves[1] &&
          esp_axis_is_log(&axis));
    CHECK(fabs(esp_axis_place(&axis, 0.1) - 0.5) < 1e-6);
    esp_draw_spark(&canvas, 0, 0, 8, ESP_STYLE_SPARK, halves, 8, &axis);
    axis = esp_axis_of(close, 3);
    esp_axis_ends(&axis, low, high);
    CHECK(!esp_axis_is_log(&axis) && strcmp(low, ".501") == 0 && strcmp(high, ".503") == 0);
    esp_draw_spark(&canvas, 0, 1, 3, ESP_STYLE_SPARK, close, 3, &axis);
    looks(&canvas, " █▇▆▅▃▂▁\n▁▄█\n");
    axis = esp_axis_of(close, 0);
    CHECK(isnan(esp_axis_place(&axis, NAN)) && esp_axis_place(&axis, 1) == 0.5);
}
