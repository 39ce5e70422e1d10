/* Fuzzes the functions that make text safe for a terminal. The result must be safe and have the
 * reported width, and no byte may be skipped. This harness also fuzzes line breaking and
 * search. The lowest bits of the first byte are flags (1: quoted, 2: ASCII only); its other
 * bits are the width. */
#include "viz/safe.h"

#include <stdlib.h>
#include <string.h>

#include <utf8proc.h>

#include "viz/canvas.h"
#include "tests/fuzz/support/fuzz.h"
#include "viz/search.h"
#include "viz/wrap.h"

static int width_of(const char *text)
{
    int width = 0;
    while (*text) {
        utf8proc_int32_t c;
        utf8proc_ssize_t n = utf8proc_iterate((const utf8proc_uint8_t *)text, -1, &c);
        FUZZ_REQUIRE(n > 0, "the shown text is valid UTF-8");
        width += utf8proc_charwidth(c);
        text += n;
    }
    return width;
}

static void show(const char *bytes, size_t length, int flags)
{
    struct esp_safe_unit shown;
    int width = 0;
    for (size_t at = 0, n; at < length; at += n) {
        n = esp_safe_next(bytes + at, length - at, flags, &shown);
        FUZZ_REQUIRE(n > 0 && n <= length - at, "byte %zu is not skipped", at);
        FUZZ_REQUIRE(*shown.text && strlen(shown.text) < sizeof shown.text, "it is shown");
        FUZZ_REQUIRE(!strchr(shown.text, '\n'), "the shown text has no newline");
        fuzz_require_safe(shown.text, strlen(shown.text), "what is shown");
        FUZZ_REQUIRE(shown.width == width_of(shown.text), "'%s' is %d wide, not %d", shown.text,
                     width_of(shown.text), shown.width);
        for (const char *c = shown.text; (flags & ESP_SAFE_ASCII) && *c; c++)
            FUZZ_REQUIRE((unsigned char)*c < 0x80, "it is ASCII");
        width += shown.width;
    }
    FUZZ_REQUIRE(width == esp_safe_width(bytes, length, flags),
                 "the width of a text is the sum of the widths of its parts");
}

static void wrap(const char *bytes, size_t length, int flags, int width)
{
    const struct esp_wrap lines = {bytes, length, width, flags};
    for (size_t at = 0; at < length;) {
        size_t end = esp_wrap_line(&lines, at, length);
        FUZZ_REQUIRE(end > at && end <= length, "the line that begins at byte %zu is not empty",
                     at);
        at = end;
    }
}

static void draw(const char *bytes, size_t length, int flags, int width)
{
    struct esp_canvas canvas;
    char *text = NULL;
    size_t size = 0;
    FUZZ_REQUIRE(esp_canvas_open(&canvas, width, 3) == 0, "there is memory");
    canvas.ascii_text = flags & ESP_SAFE_ASCII;
    esp_draw_bytes(&canvas, 0, 0, width, ESP_STYLE_TEXT, flags, bytes, length);
    esp_draw_bytes(&canvas, width / 2, 1, width, ESP_STYLE_TEXT, flags, bytes, length);
    esp_draw_bytes(&canvas, -1, 2, width, ESP_STYLE_TEXT, flags, bytes, length);
    FILE *file = open_memstream(&text, &size);
    FUZZ_REQUIRE(file, "there is memory");
    esp_canvas_dump(&canvas, file, false);
    fclose(file);
    fuzz_require_safe(text, size, "a drawn text");
    free(text);
    esp_canvas_close(&canvas);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    if (length == 0)
        return 0;
    const char *text = (const char *)bytes + 1;
    int flags = *bytes & (ESP_SAFE_QUOTED | ESP_SAFE_ASCII), width = 1 + *bytes / 4;
    show(text, --length, flags);
    wrap(text, length, flags, width);
    draw(text, length, flags, width);
    char *what = fuzz_text(text, length < 3 ? length : 3);
    long at = esp_search_forward(text, length, 0, what);
    FUZZ_REQUIRE(!*what ? at < 0 : at == 0,
                 "a search for the start of a text finds it at byte 0");
    free(what);
    return 0;
}
