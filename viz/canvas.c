/* canvas.c - draws into a grid of cells, clipped to the view; see canvas.h. */
#include "viz/canvas.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "engine/espalier.h"
#include "viz/safe.h"

static const struct esp_cell blank = {.text = " ", .width = 1, .style = ESP_STYLE_TEXT};

static struct esp_rect intersect(struct esp_rect a, struct esp_rect b)
{
    int left = a.x > b.x ? a.x : b.x, top = a.y > b.y ? a.y : b.y;
    int right = a.x + a.width < b.x + b.width ? a.x + a.width : b.x + b.width;
    int bottom = a.y + a.height < b.y + b.height ? a.y + a.height : b.y + b.height;
    return (struct esp_rect){left, top, right > left ? right - left : 0,
                             bottom > top ? bottom - top : 0};
}

int esp_canvas_open(struct esp_canvas *canvas, int width, int height)
{
    *canvas = (struct esp_canvas){.glyphs = &esp_glyphs_full};
    return esp_canvas_resize(canvas, width, height);
}

void esp_canvas_close(struct esp_canvas *canvas)
{
    free(canvas->cells);
    canvas->cells = NULL;
    canvas->width = canvas->height = 0;
    canvas->capacity = 0;
}

int esp_canvas_resize(struct esp_canvas *canvas, int width, int height)
{
    if (width < 1 || height < 1 || width > 10000 || height > 10000)
        return ESP_E_ARGUMENT;
    size_t count = (size_t)width * (size_t)height;
    if (count > canvas->capacity) {
        struct esp_cell *cells = realloc(canvas->cells, count * sizeof *cells);
        if (!cells)
            return ESP_E_MEMORY;
        canvas->cells = cells;
        canvas->capacity = count;
    }
    canvas->width = width;
    canvas->height = height;
    esp_canvas_clear(canvas);
    return 0;
}

void esp_canvas_clear(struct esp_canvas *canvas)
{
    size_t width = (size_t)canvas->width, height = (size_t)canvas->height;
    for (size_t i = 0; i < width; i++)
        canvas->cells[i] = blank;
    for (size_t y = 1; y < height; y++)
        memcpy(canvas->cells + y * width, canvas->cells, width * sizeof blank);
    struct esp_rect all = {0, 0, canvas->width, canvas->height};
    canvas->view = (struct esp_view){all, all};
    canvas->cursor_x = canvas->cursor_y = -1;
}

struct esp_view esp_canvas_enter(struct esp_canvas *canvas, struct esp_rect rect)
{
    struct esp_view previous = canvas->view;
    rect.x += previous.rect.x;
    rect.y += previous.rect.y;
    canvas->view.rect = rect;
    canvas->view.clip = intersect(rect, previous.clip);
    return previous;
}

void esp_canvas_leave(struct esp_canvas *canvas, struct esp_view previous)
{
    canvas->view = previous;
}

/* Returns the cell at (x, y) of the view, or NULL if it is clipped. */
static struct esp_cell *cell_at(struct esp_canvas *canvas, int x, int y)
{
    const struct esp_rect *clip = &canvas->view.clip;
    x += canvas->view.rect.x;
    y += canvas->view.rect.y;
    if (x < clip->x || y < clip->y || x >= clip->x + clip->width || y >= clip->y + clip->height)
        return NULL;
    return &canvas->cells[(size_t)y * (size_t)canvas->width + (size_t)x];
}

/* Blanks the other half of a wide character before one half is overwritten. */
static void detach(struct esp_canvas *canvas, struct esp_cell *cell)
{
    size_t column = (size_t)(cell - canvas->cells) % (size_t)canvas->width;
    if (cell->width == 0 && column > 0 && cell[-1].width == 2)
        cell[-1] = blank;
    if (cell->width == 2 && column + 1 < (size_t)canvas->width && cell[1].width == 0)
        cell[1] = blank;
}

static void put(struct esp_canvas *canvas, int x, int y, int style, const char *text, int width)
{
    struct esp_cell *cell = cell_at(canvas, x, y);
    struct esp_cell *right = width == 2 ? cell_at(canvas, x + 1, y) : NULL;
    if (cell) {
        detach(canvas, cell);
        *cell = (struct esp_cell){.width = 1, .style = (uint8_t)style};
        snprintf(cell->text, sizeof cell->text, "%s", width == 2 && !right ? " " : text);
    }
    if (right) {
        detach(canvas, right);
        *right = (struct esp_cell){.width = cell ? 0 : 1, .style = (uint8_t)style};
        if (cell)
            cell->width = 2;
        else
            strcpy(right->text, " ");
    }
}

/* Draws one unit of text (safe.h). An ASCII stand-in takes one cell per character. */
static int put_shown(struct esp_canvas *canvas, int x, int y, int style,
                     const struct esp_safe_unit *shown)
{
    if ((size_t)shown->width != strlen(shown->text)) {
        put(canvas, x, y, style, shown->text, shown->width);
        return x + shown->width;
    }
    for (const char *c = shown->text; *c; c++)
        put(canvas, x++, y, style, (char[]){*c, '\0'}, 1);
    return x;
}

int esp_draw_bytes(struct esp_canvas *canvas, int x, int y, int room, int style, int flags,
                   const char *bytes, size_t length)
{
    struct esp_safe_unit shown;
    if (canvas->ascii_text)
        flags |= ESP_SAFE_ASCII;
    int end = x + room;
    for (size_t i = 0, taken; i < length && x < end; i += taken) {
        taken = esp_safe_next(bytes + i, length - i, flags, &shown);
        bool last = i + taken == length;
        if (x + shown.width > end || (!last && x + shown.width == end)) {
            put(canvas, x, y, style, canvas->glyphs->ellipsis, 1);
            return x + 1;
        }
        x = put_shown(canvas, x, y, style, &shown);
    }
    return x;
}

int esp_draw(struct esp_canvas *canvas, int x, int y, int style, const char *text)
{
    enum { ROOM = 1 << 24 };
    return esp_draw_bytes(canvas, x, y, ROOM, style, 0, text, strlen(text));
}

int esp_drawf(struct esp_canvas *canvas, int x, int y, int style, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return esp_draw(canvas, x, y, style, text);
}

int esp_draw_right(struct esp_canvas *canvas, int end, int y, int style, const char *text)
{
    int flags = canvas->ascii_text ? ESP_SAFE_ASCII : 0;
    int x = end - esp_safe_width(text, strlen(text), flags);
    esp_draw(canvas, x, y, style, text);
    return x;
}

int esp_draw_repeat(struct esp_canvas *canvas, int x, int y, int count, int style,
                    const char *glyph)
{
    for (; count > 0; count--)
        put(canvas, x++, y, style, glyph, 1);
    return x;
}

void esp_draw_fill(struct esp_canvas *canvas, struct esp_rect rect, int style)
{
    for (int y = 0; y < rect.height; y++)
        esp_draw_repeat(canvas, rect.x, rect.y + y, rect.width, style, " ");
}

static void put_line(struct esp_canvas *canvas, int x, int y, int style, int lines)
{
    struct esp_cell *cell = cell_at(canvas, x, y);
    if (!cell)
        return;
    detach(canvas, cell);
    lines |= cell->lines;
    *cell = (struct esp_cell){.width = 1, .style = (uint8_t)style, .lines = (uint8_t)lines};
}

void esp_draw_frame(struct esp_canvas *canvas, struct esp_rect rect, int style)
{
    int right = rect.x + rect.width - 1, bottom = rect.y + rect.height - 1;
    if (rect.width < 2 || rect.height < 2)
        return;
    for (int x = rect.x; x <= right; x++) {
        int lines = (x > rect.x ? ESP_LINE_LEFT : 0) | (x < right ? ESP_LINE_RIGHT : 0);
        bool corner = x == rect.x || x == right;
        put_line(canvas, x, rect.y, style, lines | (corner ? ESP_LINE_DOWN : 0));
        put_line(canvas, x, bottom, style, lines | (corner ? ESP_LINE_UP : 0));
    }
    for (int y = rect.y + 1; y < bottom; y++) {
        put_line(canvas, rect.x, y, style, ESP_LINE_UP | ESP_LINE_DOWN);
        put_line(canvas, right, y, style, ESP_LINE_UP | ESP_LINE_DOWN);
    }
}

void esp_draw_restyle(struct esp_canvas *canvas, struct esp_rect rect, int style)
{
    for (int y = rect.y; y < rect.y + rect.height; y++)
        for (int x = rect.x; x < rect.x + rect.width; x++) {
            struct esp_cell *cell = cell_at(canvas, x, y);
            if (cell)
                cell->style = (uint8_t)style;
        }
}

const char *esp_cell_text(const struct esp_canvas *canvas, const struct esp_cell *cell)
{
    return cell->lines ? canvas->glyphs->lines[cell->lines & 15] : cell->text;
}

static char style_letter(const struct esp_cell *cell)
{
    if (cell->style == ESP_STYLE_TEXT)
        return strcmp(cell->text, " ") == 0 ? ' ' : '.';
    return (char)(cell->style < 26 ? 'a' + cell->style : 'A' + cell->style - 26);
}

void esp_canvas_dump(const struct esp_canvas *canvas, FILE *file, bool styles)
{
    for (int y = 0; y < canvas->height; y++) {
        const struct esp_cell *row = &canvas->cells[(size_t)y * (size_t)canvas->width];
        int blanks = 0;
        for (int x = 0; x < canvas->width; x++) {
            char letter[2] = {style_letter(&row[x]), '\0'};
            const char *text = styles ? letter : esp_cell_text(canvas, &row[x]);
            if (strcmp(text, " ") == 0) {
                blanks++;
                continue;
            }
            fprintf(file, "%*s%s", blanks, "", text);
            blanks = 0;
        }
        fputc('\n', file);
    }
}
