/* drawing.c - fills a list of shapes; see drawing.h. */
#include "viz/drawing.h"

#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "kernels/status.h"
#include "viz/safe.h"

/* Of the size of the text. Fonts differ; that of a proportional one is a generous estimate. */
static const double cell_width = 0.602, usual_width = 0.62;

static const char visible_space[] = "\u2423", ellipsis[] = "\u2026";

void esp_drawing_free(struct esp_drawing *d)
{
    free(d->shapes);
    free(d->points);
    free(d->bytes);
    *d = (struct esp_drawing){.count = 0};
}

/* Room for `more` elements behind `count`. */
static bool make_room(struct esp_drawing *d, void **list, size_t count, size_t *capacity,
                      size_t more, size_t size)
{
    if (d->failed)
        return false;
    if (count + more <= *capacity)
        return true;
    const size_t wanted = 2 * (count + more) + 16;
    void *larger = realloc(*list, wanted * size);
    d->failed = !larger;
    if (d->failed)
        return false;
    *list = larger;
    *capacity = wanted;
    return true;
}

static void add(struct esp_drawing *d, const struct esp_drawing_shape *shape)
{
    void *list = d->shapes;
    if (make_room(d, &list, d->count, &d->capacity, 1, sizeof *shape)) {
        d->shapes = list;
        d->shapes[d->count++] = *shape;
    }
}

/* A shape that looks as the pen says. */
static struct esp_drawing_shape begin(int type, const struct esp_pen *pen)
{
    struct esp_drawing_shape shape = {.type = type,
                                      .line = pen->width > 0 ? pen->width : 1,
                                      .dashes = pen->dashes,
                                      .kind = pen->kind};
    if (pen->fill)
        snprintf(shape.fill, sizeof shape.fill, "%s", pen->fill);
    if (pen->stroke)
        snprintf(shape.stroke, sizeof shape.stroke, "%s", pen->stroke);
    return shape;
}

void esp_drawing_path(struct esp_drawing *d, const struct esp_pen *pen, const double *points,
                      int count, bool closed)
{
    struct esp_drawing_shape shape = begin(ESP_SHAPE_PATH, pen);
    shape.start = d->point_count;
    shape.count = (size_t)(count > 0 ? count : 0);
    shape.closed = closed;
    void *list = d->points;
    if (count < 2 || !make_room(d, &list, d->point_count, &d->point_capacity, shape.count,
                                2 * sizeof *points))
        return;
    d->points = list;
    memcpy(d->points + 2 * d->point_count, points, 2 * shape.count * sizeof *points);
    d->point_count += shape.count;
    add(d, &shape);
}

void esp_drawing_line(struct esp_drawing *d, const struct esp_pen *pen, double x1, double y1,
                      double x2, double y2)
{
    esp_drawing_path(d, pen, (const double[]){x1, y1, x2, y2}, 2, false);
}

void esp_drawing_rect(struct esp_drawing *d, const struct esp_pen *pen, double x, double y,
                      double width, double height, double round)
{
    struct esp_drawing_shape shape = begin(ESP_SHAPE_RECT, pen);
    shape.x = x;
    shape.y = y;
    shape.width = width;
    shape.height = height;
    shape.round = round;
    add(d, &shape);
}

void esp_drawing_circle(struct esp_drawing *d, const struct esp_pen *pen, double x, double y,
                        double radius)
{
    struct esp_drawing_shape shape = begin(ESP_SHAPE_CIRCLE, pen);
    shape.x = x;
    shape.y = y;
    shape.width = radius;
    add(d, &shape);
}

void esp_drawing_text(struct esp_drawing *d, double x, double y, int size, int anchor,
                      int flags, const char *colour, const char *text)
{
    const size_t length = strlen(text) + 1;
    struct esp_drawing_shape shape = begin(ESP_SHAPE_TEXT, &(struct esp_pen){.fill = colour});
    shape.x = x;
    shape.y = y;
    shape.width = esp_drawing_width(text, size, flags);
    shape.start = d->byte_count;
    shape.count = length - 1;
    shape.size = size;
    shape.anchor = anchor;
    shape.flags = flags;
    void *list = d->bytes;
    if (length == 1 || !make_room(d, &list, d->byte_count, &d->byte_capacity, length, 1))
        return;
    d->bytes = list;
    memcpy(d->bytes + d->byte_count, text, length);
    d->byte_count += length;
    add(d, &shape);
}

double esp_drawing_width(const char *text, int size, int flags)
{
    return (flags & ESP_TEXT_MONO ? cell_width : usual_width) * size *
           esp_safe_width(text, strlen(text), 0);
}

/* ------------------------------------------------------------------ tokens */

/* The next unit of text as the drawing's files can show it. */
static size_t next_unit(const struct esp_drawing *d, const char *bytes, size_t length,
                        struct esp_safe_unit *shown)
{
    size_t taken = esp_safe_next(bytes, length, ESP_SAFE_ESCAPED, shown);
    const utf8proc_uint8_t *at = (const utf8proc_uint8_t *)shown->text;
    bool printed = true;
    utf8proc_int32_t c;
    for (utf8proc_ssize_t n; *at && (n = utf8proc_iterate(at, -1, &c)) > 0; at += n)
        printed = printed && esp_latex_prints((int)c);
    if (d->latex && !printed)
        taken = esp_safe_next(bytes, length, ESP_SAFE_ESCAPED | ESP_SAFE_ASCII, shown);
    if (strcmp(shown->text, " ") == 0)
        strcpy(shown->text, visible_space);
    return taken;
}

int esp_drawing_cells(const struct esp_drawing *d, char *text, size_t size, const char *bytes,
                      size_t length, int columns)
{
    struct esp_safe_unit shown;
    int used = 0, fits = 0;
    size_t end = 0, kept = 0;
    *text = '\0';
    for (size_t i = 0; bytes && i < length;) {
        i += next_unit(d, bytes + i, length - i, &shown);
        const size_t bytes_of = strlen(shown.text);
        if (used + shown.width > columns || end + bytes_of + sizeof ellipsis > size) {
            strcpy(text + kept, ellipsis);
            return fits + 1;
        }
        memcpy(text + end, shown.text, bytes_of + 1);
        end += bytes_of;
        used += shown.width;
        if (used < columns) {
            fits = used;
            kept = end;
        }
    }
    return used;
}

int esp_drawing_write(const struct esp_drawing *d, int format, char **bytes, size_t *length)
{
    *bytes = NULL;
    FILE *file = d->failed ? NULL : open_memstream(bytes, length);
    if (!file)
        return ESP_E_MEMORY;
    if (format == ESP_DRAWING_TIKZ)
        esp_drawing_tikz(d, file);
    else
        esp_drawing_svg(d, file);
    const bool bad = ferror(file) != 0;
    if (fclose(file) == 0 && !bad)
        return ESP_OK;
    free(*bytes);
    *bytes = NULL;
    return ESP_E_MEMORY;
}
