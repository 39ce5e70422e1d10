/* mask_view.c - draws the tree attention mask as character cells; see mask_view.h. */
#include "viz/mask_view.h"

#include <utf8proc.h>

#include "viz/mask.h"

static void draw_labelled(struct esp_canvas *canvas, const struct esp_mask *mask, int label,
                          const struct esp_iteration *it, const struct esp_tokens *tokens,
                          int node)
{
    const struct esp_glyphs *glyphs = canvas->glyphs;
    for (int i = 0; i < mask->rows; i++) {
        int at = it->tree.order[i];
        esp_draw_token(canvas, 0, i, label, at == node ? ESP_STYLE_KEY : ESP_STYLE_LABEL,
                       tokens, it->tree.nodes[at].token);
        for (int j = 0; j < mask->rows; j++) {
            bool seen = esp_mask_sees(mask, i, j);
            esp_draw_repeat(canvas, label + 2 + 2 * j, i, seen ? 2 : 1,
                            seen ? i == j ? ESP_STYLE_BAR_VERIFY : ESP_STYLE_BAR_DRAFT
                                 : ESP_STYLE_EDGE,
                            seen ? glyphs->eighths[8] : glyphs->dot);
        }
    }
}

/* Draws the mask with `wide` x `high` entries in each cell. Each entry that is set in the mask
 * sets a bit, and the bits select the glyph of the cell. */
static void draw_packed(struct esp_canvas *canvas, const struct esp_mask *mask, int wide,
                        int high)
{
    static const int bits[4][2] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
    for (int y = 0; high * y < mask->rows; y++)
        for (int x = 0; wide * x < mask->rows; x++) {
            utf8proc_uint8_t braille[5] = "";
            int pattern = 0;
            for (int i = 0; i < wide * high; i++)
                if (esp_mask_sees(mask, high * y + i / wide, wide * x + i % wide))
                    pattern |= bits[i / wide][i % wide];
            utf8proc_encode_char(0x2800 + pattern, braille);
            if (pattern)
                esp_draw_repeat(canvas, x, y, 1, ESP_STYLE_BAR_DRAFT,
                                high == 2 ? canvas->glyphs->halves[pattern]
                                          : (const char *)braille);
        }
}

static void draw_characters(struct esp_canvas *canvas, const struct esp_mask *mask)
{
    for (int y = 0; y < mask->rows && y < canvas->view.rect.height; y++)
        for (int x = 0; x < mask->rows && x < canvas->view.rect.width; x++)
            esp_draw_repeat(canvas, x, y, 1,
                            esp_mask_sees(mask, y, x) ? ESP_STYLE_BAR_DRAFT : ESP_STYLE_EDGE,
                            esp_mask_sees(mask, y, x) ? canvas->glyphs->eighths[8]
                                                      : canvas->glyphs->dot);
}

/* If only `height` rows and `width` columns fit, writes how much of the mask is shown. */
static void note_rest(struct esp_canvas *canvas, const struct esp_mask *mask, int height,
                      int width)
{
    char text[64];
    if (mask->rows <= height && mask->rows <= width)
        return;
    snprintf(text, sizeof text, " %d x %d of %d x %d fit ",
             height < mask->rows ? height : mask->rows, width < mask->rows ? width : mask->rows,
             mask->rows, mask->rows);
    esp_draw_right(canvas, canvas->view.rect.width, canvas->view.rect.height - 1,
                   ESP_STYLE_WARN, text);
}

void esp_mask_draw(struct esp_canvas *canvas, const struct esp_iteration *it,
                   const struct esp_tokens *tokens, int node)
{
    enum { LABEL = 12 };
    struct esp_mask mask;
    int rows = it->tree.verified, width = canvas->view.rect.width;
    int height = canvas->view.rect.height;
    if (!esp_mask_open(&mask, &it->tree))
        return;
    if (rows <= height && LABEL + 2 + 2 * rows <= width) {
        draw_labelled(canvas, &mask, LABEL, it, tokens, node);
    } else if (!canvas->glyphs->halves[1]) {
        draw_characters(canvas, &mask);
        note_rest(canvas, &mask, height, width);
    } else if ((rows + 1) / 2 <= height && rows <= width) {
        draw_packed(canvas, &mask, 1, 2);
    } else {
        draw_packed(canvas, &mask, 2, 4);
        note_rest(canvas, &mask, 4 * height, 2 * width);
    }
    esp_mask_close(&mask);
}
