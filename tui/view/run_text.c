/* run_text.c - see run_text.h. */
#include "tui/view/run_text.h"

#include <stdlib.h>
#include <string.h>

#include "viz/wrap.h"

const int esp_text_styles[] = {[ESP_TEXT_PROMPT] = ESP_STYLE_PROMPT,
                               [ESP_TEXT_DRAFTED] = ESP_STYLE_DRAFTED,
                               [ESP_TEXT_BONUS] = ESP_STYLE_BONUS,
                               [ESP_TEXT_MARK] = ESP_STYLE_LABEL,
                               [ESP_TEXT_CHOSEN] = ESP_STYLE_PROMPT};

/* Returns the bytes of the first `tokens` tokens and the style of each byte, or NULL if there
 * is no memory. The bytes and styles are in a single block of memory, which the caller
 * frees. */
static char *join(struct esp_run *run, int tokens, unsigned char **style, size_t *count)
{
    size_t total = 0, length;
    for (int i = 0; i < tokens; i++)
        if (esp_texts_find(&run->texts, run->tokens[i].token, &length))
            total += length;
    char *bytes = malloc(2 * total + 1);
    *count = 0;
    if (!bytes)
        return NULL;
    *style = (unsigned char *)bytes + total;
    for (int i = 0; i < tokens; i++) {
        const char *text = esp_texts_find(&run->texts, run->tokens[i].token, &length);
        if (!text)
            continue;
        memcpy(bytes + *count, text, length);
        memset(*style + *count, esp_text_styles[run->tokens[i].kind], length);
        *count += length;
    }
    return bytes;
}

static void draw_line(struct esp_canvas *canvas, int y, const struct esp_wrap *wrap, size_t at,
                      size_t end, const unsigned char *style)
{
    int x = 0;
    while (at < end && wrap->bytes[at] != '\n') {
        struct esp_safe_unit shown;
        const size_t taken = esp_wrap_unit(wrap, at, end, x, &shown);
        if (wrap->bytes[at] == '\t')
            x += shown.width;
        else
            x = esp_draw(canvas, x, y, style[at], shown.text);
        at += taken;
    }
}

int esp_run_text_draw(struct esp_canvas *canvas, int y, int height, struct esp_run *run,
                      int tokens)
{
    unsigned char *style;
    size_t count;
    char *bytes = join(run, tokens, &style, &count);
    if (!bytes)
        return y;
    const int width = canvas->view.rect.width;
    const struct esp_wrap wrap = {bytes, count, width > 0 ? width : 1,
                                  canvas->ascii_text ? ESP_SAFE_ASCII : 0};
    int lines = 0, line = 0;
    for (size_t at = 0; at < count; lines++)
        at = esp_wrap_line(&wrap, at, count);
    for (size_t at = 0; at < count; line++) {
        const size_t end = esp_wrap_line(&wrap, at, count);
        if (line >= lines - height)
            draw_line(canvas, y++, &wrap, at, end, style);
        at = end;
    }
    free(bytes);
    return y;
}
