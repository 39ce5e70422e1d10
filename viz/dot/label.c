/* label.c - escapes text for labels; see label.h. */
#include "viz/dot/label.h"

#include <stdlib.h>
#include <string.h>

#include "viz/safe.h"

/* LABEL: maximum width in columns of a text that is not a token. ATTRIBUTE: maximum length in
 * bytes of an attribute; Graphviz could read 16 KB. */
enum { LABEL = 80, ATTRIBUTE = 2000 };

static const char visible_space[] = "\u2423", ellipsis[] = "\u2026";

/* Writes one unit of text (safe.h). A backslash is doubled, because Graphviz first replaces
 * numeric references and then backslash escapes. */
static void put(FILE *file, const char *text)
{
    for (; *text; text++) {
        if (*text == '\\')
            fputs("&#92;&#92;", file);
        else if (strchr("&<>\"'[]{}|", *text))
            fprintf(file, "&#%d;", *text);
        else
            putc(*text, file);
    }
}

void esp_label_row(FILE *file, int size, const char *colour)
{
    fprintf(file, "<tr><td align=\"left\"><font point-size=\"%d\" color=\"%s\">", size, colour);
}

void esp_label_row_end(FILE *file)
{
    fputs("</font></td></tr>", file);
}

void esp_label_text(FILE *file, const char *text)
{
    struct esp_safe_unit shown;
    size_t length = strlen(text);
    int used = 0;
    for (size_t i = 0; i < length && used < LABEL; used += shown.width) {
        i += esp_safe_next(text + i, length - i, 0, &shown);
        put(file, used + shown.width < LABEL || i == length ? shown.text : ellipsis);
    }
}

void esp_label_token(FILE *file, const struct esp_tokens *tokens, int32_t token, int columns)
{
    size_t length;
    const char *bytes = esp_token_bytes_of(tokens, token, &length);
    int flags = ESP_SAFE_QUOTED, used = 0, room = columns - 2;
    bool cut = esp_safe_width(bytes, length < 4096 ? length : 4096, flags) > room;
    struct esp_safe_unit shown;
    put(file, "\"");
    for (size_t i = 0; i < length; used += shown.width) {
        i += esp_safe_next(bytes + i, length - i, flags, &shown);
        if (used + shown.width > room - cut)
            break;
        put(file, strcmp(shown.text, " ") == 0 ? visible_space : shown.text);
    }
    if (cut)
        put(file, ellipsis);
    put(file, "\"");
}

char *esp_label_escaped(const struct esp_tokens *tokens, int32_t token)
{
    size_t length, size;
    const char *bytes = esp_token_bytes_of(tokens, token, &length);
    char *text = NULL;
    struct esp_safe_unit shown;
    FILE *file = open_memstream(&text, &size);
    if (!file)
        return NULL;
    for (size_t i = 0, used = 0; i < length && used < ATTRIBUTE; used += strlen(shown.text)) {
        i += esp_safe_next(bytes + i, length - i, ESP_SAFE_ESCAPED, &shown);
        fputs(shown.text, file);
    }
    if (fclose(file) != 0) {
        free(text);
        return NULL;
    }
    return text;
}
