/* drawing_svg.c - writes a drawing as SVG; see drawing.h. */
#include "viz/drawing.h"

#include "viz/safe.h"

static void put_pen(const struct esp_drawing_shape *shape, FILE *file)
{
    fprintf(file, " fill=\"%s\"", *shape->fill ? shape->fill : "none");
    if (*shape->stroke)
        fprintf(file, " stroke=\"%s\" stroke-width=\"%.4g\"", shape->stroke, shape->line);
    if (*shape->stroke && shape->dashes)
        fprintf(file, " stroke-dasharray=\"%s\"", shape->dashes);
    if (shape->kind)
        fprintf(file, " class=\"%s\"", shape->kind);
    fputs("/>\n", file);
}

static void put_path(const struct esp_drawing *d, const struct esp_drawing_shape *shape,
                     FILE *file)
{
    fputs("<path d=\"", file);
    for (size_t i = 0; i < shape->count; i++) {
        const double *point = d->points + 2 * (shape->start + i);
        fprintf(file, "%c%.2f %.2f", i ? 'L' : 'M', point[0], point[1]);
    }
    fputs(shape->closed ? "z\"" : "\"", file);
    put_pen(shape, file);
}

static void put_text(const struct esp_drawing *d, const struct esp_drawing_shape *shape,
                     FILE *file)
{
    static const char *const anchors[] = {"start", "middle", "end"};
    fprintf(file, "<text x=\"%.2f\" y=\"%.2f\" font-size=\"%d\" text-anchor=\"%s\" fill=\"%s\"",
            shape->x, shape->y, shape->size, anchors[shape->anchor], shape->fill);
    if (shape->flags & ESP_TEXT_BOLD)
        fputs(" font-weight=\"bold\"", file);
    if (shape->flags & ESP_TEXT_MONO)
        fprintf(file, " class=\"mono\" textLength=\"%.2f\" lengthAdjust=\"spacingAndGlyphs\"",
                shape->width);
    if (shape->flags & ESP_TEXT_UPWARDS)
        fprintf(file, " transform=\"rotate(-90 %.2f %.2f)\"", shape->x, shape->y);
    putc('>', file);
    esp_safe_xml(file, d->bytes + shape->start, 0);
    fputs("</text>\n", file);
}

void esp_drawing_svg(const struct esp_drawing *d, FILE *file)
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
    for (size_t i = 0; i < d->count; i++) {
        const struct esp_drawing_shape *shape = &d->shapes[i];
        switch (shape->type) {
        case ESP_SHAPE_PATH:
            put_path(d, shape, file);
            break;
        case ESP_SHAPE_RECT:
            fprintf(file, "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\"",
                    shape->x, shape->y, shape->width, shape->height);
            if (shape->round > 0)
                fprintf(file, " rx=\"%.1f\"", shape->round);
            put_pen(shape, file);
            break;
        case ESP_SHAPE_CIRCLE:
            fprintf(file, "<circle cx=\"%.2f\" cy=\"%.2f\" r=\"%.2f\"", shape->x, shape->y,
                    shape->width);
            put_pen(shape, file);
            break;
        default:
            put_text(d, shape, file);
        }
    }
    fputs("</svg>\n", file);
}
