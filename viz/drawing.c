/* drawing.c - passes shapes to the backend for SVG or TikZ; see drawing.h. */
#include "viz/drawing.h"

#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "kernels/status.h"
#include "viz/safe.h"

/* A generous estimate of the width of a character in a proportional font, relative to the font
 * size. */
static const double usual_width = 0.62;

static const char visible_space[] = "\u2423", ellipsis[] = "\u2026";

static const struct esp_drawing_backend *backend(const struct esp_drawing *d)
{
    return d->latex ? &esp_drawing_tikz : &esp_drawing_svg;
}

/* Prepares for the next shape. Returns false if there is no memory. */
static bool begin(struct esp_drawing *d)
{
    if (!d->body && !d->failed)
        d->body = open_memstream(&d->bytes, &d->length);
    d->failed = d->failed || !d->body;
    return !d->failed;
}

void esp_drawing_free(struct esp_drawing *d)
{
    if (d->body)
        fclose(d->body);
    free(d->bytes);
    *d = (struct esp_drawing){.width = 0};
}

void esp_drawing_path(struct esp_drawing *d, const struct esp_pen *pen, const double *points,
                      int count, bool closed)
{
    if (count > 1 && begin(d))
        backend(d)->path(d, pen, points, count, closed);
}

void esp_drawing_line(struct esp_drawing *d, const struct esp_pen *pen, double x1, double y1,
                      double x2, double y2)
{
    esp_drawing_path(d, pen, (const double[]){x1, y1, x2, y2}, 2, false);
}

void esp_drawing_rect(struct esp_drawing *d, const struct esp_pen *pen, double x, double y,
                      double width, double height, double round)
{
    if (begin(d))
        backend(d)->rect(d, pen, x, y, width, height, round);
}

void esp_drawing_circle(struct esp_drawing *d, const struct esp_pen *pen, double x, double y,
                        double radius)
{
    if (begin(d))
        backend(d)->circle(d, pen, x, y, radius);
}

void esp_drawing_text(struct esp_drawing *d, double x, double y, int size, int anchor,
                      int flags, const char *colour, const char *text)
{
    if (*text && begin(d))
        backend(d)->text(d, x, y, esp_drawing_width(text, size, flags), size, anchor, flags,
                         colour, text);
}

double esp_drawing_width(const char *text, int size, int flags)
{
    return (flags & ESP_TEXT_MONO ? ESP_MONO_CELL : usual_width) * size *
           esp_safe_width(text, strlen(text), 0);
}

/* ------------------------------------------------------------------ tokens */

/* Reads the next unit of text and writes it to `shown`, in a form that the drawing's file
 * format can show. Returns how many bytes were read. */
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
    for (size_t i = 0; i < length;) {
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

int esp_drawing_write(const struct esp_drawing *d, char **bytes, size_t *length)
{
    *bytes = NULL;
    const bool whole = !d->failed && (!d->body || (fflush(d->body) == 0 && !ferror(d->body)));
    FILE *file = whole ? open_memstream(bytes, length) : NULL;
    if (!file)
        return ESP_E_MEMORY;
    backend(d)->begin(d, file);
    fwrite(d->bytes, 1, d->length, file);
    fputs(backend(d)->end, file);
    const bool bad = ferror(file) != 0;
    if (fclose(file) == 0 && !bad)
        return ESP_OK;
    free(*bytes);
    *bytes = NULL;
    return ESP_E_MEMORY;
}
