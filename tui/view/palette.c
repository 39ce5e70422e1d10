/* palette.c - filters the palette, handles its keys and draws it; see palette.h. */
#include "tui/view/palette.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "tui/view/fuzzy.h"
#include "tui/view/keys.h"
#include "viz/safe.h"
#include "viz/wrap.h"

enum { WIDEST = 100, PAGE = 8, DETAILS = 4 /* rows below the items, one of them blank */ };

void esp_palette_open(struct esp_palette *palette)
{
    esp_palette_close(palette);
    palette->open = true;
}

void esp_palette_close(struct esp_palette *palette)
{
    for (int i = 0; i < palette->count; i++) {
        free(palette->items[i].text);
        free(palette->items[i].summary);
    }
    free(palette->items);
    free(palette->shown);
    *palette = (struct esp_palette){.open = false};
}

void esp_palette_add(struct esp_palette *palette, const char *kind, const char *text,
                     const char *summary, const struct esp_binding *binding)
{
    struct esp_palette_item item = {.kind = kind,
                                    .text = strdup(text),
                                    .summary = strdup(summary ? summary : ""),
                                    .binding = binding};
    size_t count = (size_t)palette->count + 1;
    struct esp_palette_item *items = realloc(palette->items, count * sizeof *items);
    if (items)
        palette->items = items;
    int *shown = items ? realloc(palette->shown, count * sizeof *shown) : NULL;
    if (shown)
        palette->shown = shown;
    if (!shown || !item.text || !item.summary) {
        free(item.text);
        free(item.summary);
        return;
    }
    palette->items[palette->count++] = item;
}

void esp_palette_mark(struct esp_palette *palette, bool current, bool refused)
{
    if (palette->count == 0)
        return;
    palette->items[palette->count - 1].current = current;
    palette->items[palette->count - 1].refused = refused;
}

/* ------------------------------------------------------------------ filtering */

/* Returns whether every word of the query occurs in the name or the summary of the item. */
static bool has_words(const struct esp_palette_item *item, const char *query)
{
    char words[sizeof((struct esp_palette *)0)->query], *rest = NULL;
    snprintf(words, sizeof words, "%s", query);
    for (char *word = strtok_r(words, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
        if (!strcasestr(item->text, word) && !strcasestr(item->summary, word) &&
            !strcasestr(item->kind, word))
            return false;
    return true;
}

/* Returns the score of an item. A match in the summary scores less than a match in the name. */
static int score_of(const struct esp_palette_item *item, const char *query)
{
    enum { NAMED = 10000 };
    int score = esp_fuzzy_score(query, item->text);
    if (score >= 0)
        return NAMED + score;
    return has_words(item, query) ? 0 : -1;
}

void esp_palette_filter(struct esp_palette *palette)
{
    int *scores = malloc(((size_t)palette->count + 1) * sizeof *scores);
    palette->shown_count = palette->selected = 0;
    for (int i = 0; scores && i < palette->count; i++) {
        int score = score_of(&palette->items[i], palette->query), at = palette->shown_count;
        if (score < 0)
            continue;
        for (; at > 0 && scores[at - 1] < score; at--) { /* equal items keep their order */
            scores[at] = scores[at - 1];
            palette->shown[at] = palette->shown[at - 1];
        }
        scores[at] = score;
        palette->shown[at] = i;
        palette->shown_count++;
    }
    free(scores);
    for (int i = 0; !palette->query[0] && i < palette->shown_count; i++)
        if (palette->items[palette->shown[i]].current)
            palette->selected = i;
}

const struct esp_palette_item *esp_palette_selected(const struct esp_palette *palette)
{
    return palette->shown_count > 0 ? &palette->items[palette->shown[palette->selected]] : NULL;
}

/* ------------------------------------------------------------------ keys */

static void move(struct esp_palette *palette, int steps)
{
    int last = palette->shown_count - 1, at = palette->selected + steps;
    palette->selected = at > last ? last : at;
    if (palette->selected < 0)
        palette->selected = 0;
}

static void type(struct esp_palette *palette, int key)
{
    size_t used = strlen(palette->query);
    char bytes[4];
    if (key < ' ' || key >= ESP_KEY_FIRST || key == 127)
        return;
    int length = (int)utf8proc_encode_char(key, (utf8proc_uint8_t *)bytes);
    if (used + (size_t)length >= sizeof palette->query)
        return;
    memcpy(palette->query + used, bytes, (size_t)length);
    palette->query[used + (size_t)length] = '\0';
    esp_palette_filter(palette);
}

/* Deletes the last character of the query. */
static void erase(struct esp_palette *palette)
{
    size_t used = strlen(palette->query);
    while (used > 0 && (palette->query[used - 1] & 0xc0) == 0x80)
        used--;
    palette->query[used > 0 ? used - 1 : 0] = '\0';
    esp_palette_filter(palette);
}

enum esp_palette_answer esp_palette_key(struct esp_palette *palette, int key)
{
    enum {
        CONTROL_C = 3,
        CONTROL_G = 7,
        CONTROL_H = 8,
        CONTROL_N = 14,
        CONTROL_P = 16,
        CONTROL_U = 21,
        BACKSPACE = 127
    };
    switch (key) {
    case ESP_KEY_ESCAPE:
    case CONTROL_C:
    case CONTROL_G:
        return ESP_PALETTE_LEFT;
    case ESP_KEY_ENTER:
    case '\n':
        return palette->shown_count > 0 ? ESP_PALETTE_CHOSE : ESP_PALETTE_STAYS;
    case ESP_KEY_UP:
    case CONTROL_P:
        move(palette, -1);
        break;
    case ESP_KEY_DOWN:
    case ESP_KEY_TAB:
    case CONTROL_N:
        move(palette, 1);
        break;
    case ESP_KEY_PAGE_UP:
        move(palette, -PAGE);
        break;
    case ESP_KEY_PAGE_DOWN:
        move(palette, PAGE);
        break;
    case CONTROL_H:
    case BACKSPACE:
        erase(palette);
        break;
    case CONTROL_U:
        palette->query[0] = '\0';
        esp_palette_filter(palette);
        break;
    default:
        type(palette, key);
        break;
    }
    return ESP_PALETTE_STAYS;
}

/* ------------------------------------------------------------------ drawing */

/* Returns the number of columns before the texts of a menu. They have room for the check
 * mark. */
static int indent_of(const struct esp_palette *palette)
{
    return palette->title ? 2 : 0;
}

static bool has_details(const struct esp_palette *palette, struct esp_rect frame)
{
    return palette->title && frame.height >= 6 + DETAILS;
}

/* Returns the text at the right of an item. In the full palette it is the kind of the item. In
 * a menu it says whether the item is current or refused. */
static const char *mark_of(const struct esp_palette *palette,
                           const struct esp_palette_item *item)
{
    return !palette->title ? item->kind
           : item->current ? "now"
           : item->refused ? "refused"
                           : "";
}

static void draw_item(struct esp_canvas *canvas, int y, const struct esp_palette *palette,
                      const struct esp_palette_item *item, int column, bool selected)
{
    const int width = canvas->view.rect.width, kind = width >= 50 ? 10 : 0;
    const char *text = item->text + palette->skipped;
    const int style = item->refused ? ESP_STYLE_CUT : ESP_STYLE_VALUE;
    if (item->current)
        esp_draw(canvas, 2, y, ESP_STYLE_ACCEPTED, canvas->glyphs->accepted);
    esp_draw_bytes(canvas, 2 + indent_of(palette), y, width - 4 - kind, style, 0, text,
                   strlen(text));
    if (width - kind - column - 4 > 8)
        esp_draw_bytes(canvas, column, y, width - kind - column - 3,
                       item->refused ? style : ESP_STYLE_LABEL, 0, item->summary,
                       strlen(item->summary));
    if (kind > 0)
        esp_draw_right(canvas, width - 2, y, ESP_STYLE_LABEL, mark_of(palette, item));
    if (selected)
        esp_draw_restyle(canvas, (struct esp_rect){1, y, width - 2, 1}, ESP_STYLE_SELECTION);
}

/* Returns the column where the summaries start. It is after the longest text, but not beyond a
 * limit. */
static int summary_column(const struct esp_palette *palette, int first, int rows)
{
    int widest = 0;
    for (int i = first; i < first + rows; i++) {
        const char *text = palette->items[palette->shown[i]].text + palette->skipped;
        int width = esp_safe_width(text, strlen(text), 0);
        widest = width > widest ? width : widest;
    }
    return 2 + indent_of(palette) + (widest < 34 ? widest : 34) + 2;
}

static void draw_hints(struct esp_canvas *canvas, int y)
{
    static const char *const hints[][2] = {
        {" Enter ", "do it "}, {" Up Down ", "move "}, {" Esc ", "leave "}};
    int x = 2;
    for (int i = 0; i < 3 && x + 16 < canvas->view.rect.width; i++) {
        x = esp_draw(canvas, x, y, ESP_STYLE_KEY, hints[i][0]);
        x = esp_draw(canvas, x, y, ESP_STYLE_LABEL, hints[i][1]) + 1;
    }
}

/* Returns the area of the palette on a screen of this size. Its width is 0 if there is no room.
 * A menu is as high as its items and the details below them. The details are the full summary
 * of the selected item, or the reason why it is refused. */
static struct esp_rect frame_of(const struct esp_palette *palette, int width, int height)
{
    const int wide = width - 4 < WIDEST ? width - 4 : WIDEST, most = height - 5;
    int high = palette->title ? palette->count + 3 + DETAILS : most;
    high = high < most ? high : most;
    if (wide < 12 || high < 4)
        return (struct esp_rect){0, 0, 0, 0};
    return (struct esp_rect){(width - wide) / 2, 2, wide, high};
}

/* Returns the number of rows that show items. Sets *first to the item in the first of these
 * rows. */
static int rows_of(const struct esp_palette *palette, struct esp_rect frame, int *first)
{
    int rows = frame.height - 3 - (has_details(palette, frame) ? DETAILS : 0);
    *first = palette->selected - rows / 2;
    if (*first > palette->shown_count - rows)
        *first = palette->shown_count - rows;
    *first = *first < 0 ? 0 : *first;
    return rows > palette->shown_count - *first ? palette->shown_count - *first : rows;
}

int esp_palette_at(const struct esp_palette *palette, int width, int height, int x, int y)
{
    const struct esp_rect frame = frame_of(palette, width, height);
    int first, rows;
    if (x < frame.x || x >= frame.x + frame.width || y < frame.y || y >= frame.y + frame.height)
        return ESP_PALETTE_OUTSIDE;
    rows = rows_of(palette, frame, &first);
    return y - frame.y >= 2 && y - frame.y < 2 + rows ? first + y - frame.y - 2
                                                      : ESP_PALETTE_NOTHING;
}

/* Draws the whole summary of the selected item, which can be too long for the row of the
 * item. */
static void draw_details(struct esp_canvas *canvas, const struct esp_palette *palette, int y)
{
    const struct esp_palette_item *item = esp_palette_selected(palette);
    struct esp_rect inside = {2, y, canvas->view.rect.width - 4, DETAILS - 1};
    if (!item)
        return;
    struct esp_view whole = esp_canvas_enter(canvas, inside);
    esp_draw_paragraph(canvas, 0, item->refused ? ESP_STYLE_WARN : ESP_STYLE_TEXT,
                       item->summary);
    esp_canvas_leave(canvas, whole);
}

void esp_palette_draw(struct esp_canvas *canvas, const struct esp_palette *palette)
{
    const struct esp_rect frame = frame_of(palette, canvas->width, canvas->height);
    const int width = frame.width, height = frame.height;
    if (width == 0)
        return;
    struct esp_view whole = esp_canvas_enter(canvas, frame);
    struct esp_rect all = {0, 0, width, height};
    esp_draw_fill(canvas, all, ESP_STYLE_TEXT);
    esp_draw_frame(canvas, all, ESP_STYLE_FRAME_FOCUS);
    esp_drawf(canvas, 2, 0, ESP_STYLE_SELECTION, " %s ",
              palette->title ? palette->title : "everything you can do");
    draw_hints(canvas, height - 1);
    int x = esp_draw(canvas, 2, 1, ESP_STYLE_KEY, "> ");
    x = esp_draw_bytes(canvas, x, 1, width - x - 2, ESP_STYLE_TEXT, 0, palette->query,
                       strlen(palette->query));
    canvas->cursor_x = frame.x + x;
    canvas->cursor_y = frame.y + 1;
    esp_drawf(canvas, x + 3, 1, ESP_STYLE_LABEL,
              palette->shown_count ? "%d of %d" : "nothing matches", palette->shown_count,
              palette->count);
    int first, rows = rows_of(palette, frame, &first);
    if (has_details(palette, frame))
        draw_details(canvas, palette, height - DETAILS);
    int column = summary_column(palette, first, rows);
    for (int i = 0; i < rows; i++)
        draw_item(canvas, 2 + i, palette, &palette->items[palette->shown[first + i]], column,
                  first + i == palette->selected);
    esp_canvas_leave(canvas, whole);
}
