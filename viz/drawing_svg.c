/* drawing_svg.c - writes a drawing as SVG; see drawing.h. */
#include "viz/drawing_backend.h"

#include "viz/safe.h"

static void begin(const struct esp_drawing *d, FILE *file)
{
    fprintf(file,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
            "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" width=\"%.0fpt\" "
            "height=\"%.0fpt\" viewBox=\"0 0 %.2f %.2f\" "
            "font-family=\"DejaVu Sans,Verdana,sans-serif\">\n<title>",
            d->width, d->height, d->width, d->height);
    esp_safe_xml(file, d->title, 0);
    fprintf(file,
            "</title>\n<style>.mono{font-family:DejaVu Sans Mono,Menlo,Consolas,monospace}"
            "</style>\n<rect width=\"100%%\" height=\"100%%\" fill=\"%s\"/>\n",
            d->background);
}

static void put_pen(const struct esp_pen *pen, FILE *file)
{
    fprintf(file, " fill=\"%s\"", pen->fill ? pen->fill : "none");
    if (pen->stroke)
        fprintf(file, " stroke=\"%s\" stroke-width=\"%.4g\"", pen->stroke, esp_pen_width(pen));
    if (pen->stroke && pen->dashes)
        fprintf(file, " stroke-dasharray=\"%s\"", pen->dashes);
    if (pen->kind)
        fprintf(file, " class=\"%s\"", pen->kind);
    fputs("/>\n", file);
}

static void put_path(struct esp_drawing *d, const struct esp_pen *pen, const double *points,
                     int count, bool closed)
{
    fputs("<path d=\"", d->body);
    for (int i = 0; i < count; i++)
        fprintf(d->body, "%c%.2f %.2f", i ? 'L' : 'M', points[2 * i], points[2 * i + 1]);
    fputs(closed ? "z\"" : "\"", d->body);
    put_pen(pen, d->body);
}

static void put_rect(struct esp_drawing *d, const struct esp_pen *pen, double x, double y,
                     double width, double height, double round)
{
    fprintf(d->body, "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\"", x, y, width,
            height);
    if (round > 0)
        fprintf(d->body, " rx=\"%.1f\"", round);
    put_pen(pen, d->body);
}

static void put_circle(struct esp_drawing *d, const struct esp_pen *pen, double x, double y,
                       double radius)
{
    fprintf(d->body, "<circle cx=\"%.2f\" cy=\"%.2f\" r=\"%.2f\"", x, y, radius);
    put_pen(pen, d->body);
}

static void put_text(struct esp_drawing *d, double x, double y, double width, int size,
                     int anchor, int flags, const char *colour, const char *text)
{
    static const char *const anchors[] = {"start", "middle", "end"};
    FILE *file = d->body;
    fprintf(file, "<text x=\"%.2f\" y=\"%.2f\" font-size=\"%d\" text-anchor=\"%s\" fill=\"%s\"",
            x, y, size, anchors[anchor], colour);
    if (flags & ESP_TEXT_BOLD)
        fputs(" font-weight=\"bold\"", file);
    if (flags & ESP_TEXT_MONO)
        fprintf(file, " class=\"mono\" textLength=\"%.2f\" lengthAdjust=\"spacingAndGlyphs\"",
                width);
    if (flags & ESP_TEXT_UPWARDS)
        fprintf(file, " transform=\"rotate(-90 %.2f %.2f)\"", x, y);
    putc('>', file);
    esp_safe_xml(file, text, 0);
    fputs("</text>\n", file);
}

const struct esp_drawing_backend esp_drawing_svg = {begin,      put_path, put_rect,
                                                    put_circle, put_text, "</svg>\n"};
