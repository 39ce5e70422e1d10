/* text_picture.c - see text_picture.h. Lengths are in points. */
#include "viz/text_picture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/status.h"
#include "viz/colours.h"
#include "viz/picture_options.h"
#include "viz/wrap.h"

enum { COLUMNS = 76, SIZE = 15, ROW = 24, EDGE = 30, SMALL = 12, RUN = 512 };

struct picture {
    const struct esp_text_picture *given;
    const struct esp_colours *colours;
    struct esp_drawing *file;
    char *bytes; /* (count) the text */
    int *owner;  /* (count) index of each byte's token */
    size_t count;
    double y; /* baseline of the current line */
};

static double cell(void)
{
    return SIZE * ESP_MONO_CELL;
}

/* ------------------------------------------------------------------ styles */

/* Returns the colour step of a token (viz/heat.h), or -1. */
static int step_of(const struct picture *p, int token)
{
    const struct esp_picture_token *t = &p->given->tokens[token];
    const int heat = p->given->heat == ESP_HEAT_OFF ? ESP_HEAT_ORIGIN : p->given->heat;
    return esp_heat_step(heat, t->kind, t->score);
}

/* Draws a piece of text in which all tokens have the same step, at a column of the current
 * line. The piece has a background and, for the higher steps, an underline. */
static void draw_run(struct picture *p, int column, int cells, int step, const char *text)
{
    const double x = EDGE + column * cell();
    char fill[8];
    if (step > 0) {
        esp_colours_shade(p->colours, step / 4.0, fill);
        esp_drawing_rect(p->file, &(struct esp_pen){.fill = fill}, x, p->y - SIZE,
                         cells * cell(), SIZE + 5, 0);
    }
    if (step > 1)
        esp_drawing_line(p->file,
                         &(struct esp_pen){.stroke = p->colours->text, .width = step - 1}, x,
                         p->y + 4, x + cells * cell(), p->y + 4);
    esp_drawing_text(p->file, x, p->y, SIZE, ESP_ANCHOR_START,
                     ESP_TEXT_MONO | (step == 4 ? ESP_TEXT_BOLD : 0),
                     step == 0 ? p->colours->label : p->colours->text, text);
}

/* ------------------------------------------------------------------ lines */

static void draw_line(struct picture *p, const struct esp_wrap *wrap, size_t at, size_t end)
{
    char text[RUN];
    size_t used = 0;
    int column = 0, begin = 0, step = -1;
    while (end > at && (p->bytes[end - 1] == ' ' || p->bytes[end - 1] == '\n'))
        end--;
    while (at < end) {
        struct esp_safe_unit unit;
        const int next = step_of(p, p->owner[at]);
        at += esp_wrap_unit(wrap, at, end, column, &unit);
        if (used > 0 && (next != step || used + sizeof unit.text >= sizeof text)) {
            draw_run(p, begin, column - begin, step, text);
            used = 0;
        }
        if (used == 0)
            begin = column;
        step = next;
        used += (size_t)snprintf(text + used, sizeof text - used, "%s", unit.text);
        column += unit.width;
    }
    if (used > 0)
        draw_run(p, begin, column - begin, step, text);
    p->y += ROW;
}

static void draw_legend(struct picture *p)
{
    const int heat = p->given->heat == ESP_HEAT_OFF ? ESP_HEAT_ORIGIN : p->given->heat;
    int column = 0;
    esp_drawing_text(p->file, EDGE, p->y, SIZE, ESP_ANCHOR_START, ESP_TEXT_MONO,
                     p->colours->label, esp_heat_title(heat));
    column += (int)strlen(esp_heat_title(heat)) + 2;
    for (int i = 0; i < ESP_HEAT_STEPS; i++) {
        const char *words = esp_heat_words(heat, i);
        if (!words)
            continue;
        draw_run(p, column, (int)strlen(words), i, words);
        column += (int)strlen(words) + 2;
    }
    p->y += ROW * 1.5;
}

static void draw_lines(struct picture *p)
{
    const struct esp_wrap wrap = {p->bytes, p->count, COLUMNS, 0};
    for (size_t at = 0; at < p->count;) {
        const char *newline = memchr(p->bytes + at, '\n', p->count - at);
        const size_t paragraph = newline ? (size_t)(newline - p->bytes) + 1 : p->count;
        const size_t end = esp_wrap_line(&wrap, at, paragraph);
        draw_line(p, &wrap, at, end);
        at = end;
    }
}

/* ------------------------------------------------------------------ the whole picture */

static int gather(struct picture *p)
{
    const struct esp_text_picture *given = p->given;
    for (int i = 0; i < given->count; i++)
        p->count += given->tokens[i].length;
    p->bytes = malloc(p->count + 1);
    p->owner = malloc((p->count + 1) * sizeof *p->owner);
    if (!p->bytes || !p->owner)
        return ESP_E_MEMORY;
    size_t at = 0;
    for (int i = 0; i < given->count; i++)
        for (size_t j = 0; j < given->tokens[i].length; j++) {
            p->bytes[at] = given->tokens[i].bytes[j];
            p->owner[at++] = i;
        }
    return ESP_OK;
}

int esp_text_picture_draw(const struct esp_text_picture *given, struct esp_drawing *drawing,
                          char *err, size_t errlen)
{
    struct picture p = {.given = given,
                        .colours = esp_colours_find(given->theme ? given->theme : "light"),
                        .file = drawing,
                        .y = EDGE + SIZE};
    if (!p.colours)
        return esp_fail(err, errlen, ESP_E_ARGUMENT, "pictures have no theme '%.40s'",
                        given->theme);
    int status = gather(&p);
    if (status == ESP_OK && p.count == 0)
        status = esp_fail(err, errlen, ESP_E_ARGUMENT, "there is no text yet");
    if (status == ESP_E_MEMORY)
        esp_fail(err, errlen, status, "not enough memory for the picture");
    if (status == ESP_OK) {
        drawing->background = p.colours->background;
        drawing->width = 2 * EDGE + COLUMNS * cell();
        snprintf(drawing->title, sizeof drawing->title, "a text and its probabilities");
        draw_legend(&p);
        draw_lines(&p);
        if (given->caption != ESP_CAPTION_NONE && given->models && *given->models) {
            esp_drawing_text(drawing, EDGE, p.y, SMALL, ESP_ANCHOR_START, 0, p.colours->label,
                             given->models);
            p.y += ROW;
        }
        drawing->height = p.y + EDGE - ROW;
    }
    free(p.bytes);
    free(p.owner);
    return status;
}
