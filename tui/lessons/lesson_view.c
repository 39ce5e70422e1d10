/* lesson_view.c - see lesson_view.h.
 *
 * The text, the question and the answer are above the picture. On a wide screen, they are to
 * the left of it. A page that is higher than the screen can be scrolled (viz/scrolled.h).
 */
#include "tui/lessons/lesson_view.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tui/view/run_text.h"
#include "viz/chart.h"
#include "viz/mask_view.h"
#include "viz/scrolled.h"
#include "viz/tree_view.h"
#include "viz/walk_view.h"
#include "viz/wrap.h"

enum { WIDE = 116, LEAST_PICTURE = 3 };
/* If fewer than FAIR_PICTURE rows of the screen are left below the text, the picture gets
 * LOW_PICTURE rows. Then the page is higher than the screen and can be scrolled. */
enum { FAIR_PICTURE = 6, LOW_PICTURE = 10, LONGEST_WORDS = 300 };

/* ------------------------------------------------------------------ pictures */

/* Removes the results of the target and the verifier from a copied tree. The page shows the
 * tree without them until the question is answered. */
static void forget_outcome(struct esp_iteration_copy *copy)
{
    copy->it.path_length = 0;
    for (int i = 0; i < copy->it.tree.count; i++) {
        struct esp_node *node = &copy->nodes[i];
        node->p = node->u = node->acceptance = NAN;
        node->drawn = false;
        if (node->verdict != ESP_CUT)
            node->verdict = ESP_UNVISITED;
    }
}

static void draw_tree(struct esp_canvas *canvas, struct esp_lecture *lecture, int height)
{
    const int stages = lecture->answered ? (int)ESP_STAGES : esp_lecture_page(lecture)->stages;
    const struct esp_iteration *it = esp_lecture_iteration(lecture);
    struct esp_iteration_copy copy = {.node_capacity = 0};
    struct esp_tree_rows rows;
    const struct esp_tree_choice choice = {.stages = stages, .most = height};
    const struct esp_tree_look look = {
        .tokens = esp_run_tokens(esp_lecture_run(lecture)), .stages = stages, .cursor = -1};
    if (!it || esp_iteration_copy(&copy, it) < 0)
        return;
    if (stages <= ESP_STAGE_SELECT)
        forget_outcome(&copy);
    if (esp_tree_rows_build(&rows, &copy.it, &choice) == 0) {
        esp_tree_rows_draw(canvas, &rows, &copy.it, &look);
        esp_tree_rows_free(&rows);
    }
    esp_iteration_free(&copy);
}

/* Draws a chart of a controller's value over the iterations of the run. */
static void draw_gauge(struct esp_canvas *canvas, struct esp_lecture *lecture, int width)
{
    enum { MOST = 512 };
    const struct esp_run *run = esp_lecture_run(lecture);
    const char *name = esp_lecture_page(lecture)->gauge;
    float values[MOST];
    char low[16], high[16];
    int count = 0;
    for (int i = 0; i < esp_run_steps(run) && count < MOST; i++) {
        const struct esp_iteration *it = esp_trace_at(&run->trace, i);
        for (int j = 0; j < it->gauge_count; j++)
            if (strcmp(it->gauges[j].name, name) == 0)
                values[count++] = (float)it->gauges[j].after;
    }
    const int shown = count < width ? count : width;
    const struct esp_axis axis = esp_axis_of(values + count - shown, shown);
    esp_axis_ends(&axis, low, high);
    esp_drawf(canvas, 0, 0, ESP_STYLE_LABEL,
              "%s, from %s to %s, over the last %d iterations:", name, low, high, shown);
    esp_draw_spark(canvas, 0, 1, shown, ESP_STYLE_SPARK, values, count, &axis);
}

static void draw_picture(struct esp_canvas *canvas, struct esp_lecture *lecture,
                         struct esp_rect rect)
{
    struct esp_run *run = esp_lecture_run(lecture);
    if (!run || rect.height < LEAST_PICTURE || rect.width < 8)
        return;
    struct esp_view whole = esp_canvas_enter(canvas, rect);
    const struct esp_tokens tokens = esp_run_tokens(run);
    switch (esp_lecture_page(lecture)->picture) {
    case ESP_PICTURE_TREE:
        draw_tree(canvas, lecture, rect.height);
        break;
    case ESP_PICTURE_MASK:
        esp_mask_draw(canvas, esp_lecture_iteration(lecture), &tokens, -1);
        break;
    case ESP_PICTURE_WALK:
        esp_walk_draw(canvas, esp_lecture_iteration(lecture), &tokens, -1);
        break;
    case ESP_PICTURE_TEXT:
        esp_run_text_draw(canvas, 0, rect.height, run, run->token_count);
        break;
    case ESP_PICTURE_GAUGE:
        if (!esp_lecture_asks(lecture)) /* the chart would give the answer away */
            draw_gauge(canvas, lecture, rect.width);
        break;
    default:
        break;
    }
    esp_canvas_leave(canvas, whole);
}

/* ------------------------------------------------------------------ words */

/* Draws paragraphs with an empty row between them. Overwrites the newlines in `text`.
 * Returns the row below the last paragraph. */
static int draw_paragraphs(struct esp_canvas *canvas, int y, int style, char *text)
{
    char *rest = NULL;
    for (char *line = text; line; line = rest, y += rest != NULL) {
        rest = strchr(line, '\n');
        if (rest)
            *rest++ = '\0';
        rest = rest ? rest + strspn(rest, "\n") : NULL;
        y = esp_draw_paragraph(canvas, y, style, line);
    }
    return y;
}

static int draw_choices(struct esp_canvas *canvas, struct esp_lecture *lecture, int y)
{
    char text[512];
    for (int i = 0; i < esp_lecture_choices(lecture); i++) {
        const bool right = lecture->answered && esp_lecture_is_right(lecture, i);
        const bool chosen = lecture->answered && lecture->chosen == i;
        esp_lecture_choice(lecture, i, text, sizeof text);
        const char *mark = right    ? canvas->glyphs->accepted
                           : chosen ? canvas->glyphs->rejected
                                    : " ";
        esp_draw(canvas, 0, y, right ? ESP_STYLE_GOOD : ESP_STYLE_BAD, mark);
        esp_drawf(canvas, 2, y, ESP_STYLE_KEY, "%d", i + 1);
        const struct esp_rect *all = &canvas->view.rect;
        struct esp_view whole = esp_canvas_enter(
            canvas, (struct esp_rect){4, y, all->width > 5 ? all->width - 4 : 1, all->height});
        y += esp_draw_paragraph(canvas, 0,
                                right    ? ESP_STYLE_GOOD
                                : chosen ? ESP_STYLE_BAD
                                         : ESP_STYLE_VALUE,
                                text);
        esp_canvas_leave(canvas, whole);
    }
    return y;
}

/* Draws the text, the question, the answers to choose from and, when the user has answered, the
 * explanation. Returns the row below all of this. */
static int draw_words(struct esp_canvas *canvas, struct esp_lecture *lecture)
{
    const struct esp_lesson_page *page = esp_lecture_page(lecture);
    char text[ESP_LECTURE_TEXT], said[ESP_LECTURE_TEXT + 32];
    esp_lecture_text(lecture, page->text, text, sizeof text);
    int y = draw_paragraphs(canvas, 0, ESP_STYLE_TEXT, text);
    if (page->question) {
        esp_lecture_text(lecture, page->question, text, sizeof text);
        y = esp_draw_paragraph(canvas, y + 1, ESP_STYLE_TITLE, text);
        y = draw_choices(canvas, lecture, y);
    }
    if (page->question && lecture->answered) {
        esp_lecture_text(lecture, page->answer, text, sizeof text);
        snprintf(said, sizeof said, "%s%s",
                 lecture->chosen < 0                              ? ""
                 : esp_lecture_is_right(lecture, lecture->chosen) ? "Right. "
                                                                  : "Not so. ",
                 text);
        y = draw_paragraphs(canvas, y, ESP_STYLE_STATUS, said);
    }
    return y;
}

/* ------------------------------------------------------------------ the page */

static int draw_key(struct esp_canvas *canvas, int x, int y, const char *key, const char *label)
{
    x = esp_draw(canvas, x, y, ESP_STYLE_KEY, key) + 1;
    return esp_draw(canvas, x, y, ESP_STYLE_LABEL, label) + 3;
}

/* Draws the hint for a key if the row has room for it and for "Esc leave" after it. */
static int offer_key(struct esp_canvas *canvas, int x, int y, const char *key,
                     const char *label)
{
    const int after = x + (int)(strlen(key) + 1 + strlen(label)) + 3;
    return after + (int)strlen("Esc leave") < canvas->width ? draw_key(canvas, x, y, key, label)
                                                            : x;
}

static void draw_keys(struct esp_canvas *canvas, const struct esp_lecture *lecture, int y)
{
    char keys[16];
    int x = 1;
    const bool last = lecture->page + 1 == lecture->lesson.page_count;
    if (lecture->below > 0)
        x = offer_key(canvas, x, y, "Space", "more");
    if (esp_lecture_asks(lecture)) {
        snprintf(keys, sizeof keys, "1 to %d", esp_lecture_choices(lecture));
        x = offer_key(canvas, x, y, keys, "predict");
        x = offer_key(canvas, x, y, "?", "just tell me");
    } else if (lecture->below <= 0) {
        x = offer_key(canvas, x, y, "Space", last ? "finish" : "go on");
    }
    if (lecture->page > 0)
        x = offer_key(canvas, x, y, "Left", "back");
    if (lecture->below > 0 || lecture->scroll > 0)
        x = offer_key(canvas, x, y, "Up Down", "scroll");
    draw_key(canvas, x, y, "Esc", "leave");
}

static void draw_head(struct esp_canvas *canvas, const struct esp_lecture *lecture)
{
    char place[64];
    const int width = canvas->width;
    const char *title = lecture->lesson.title;
    snprintf(place, sizeof place, "%d of %d", lecture->page + 1, lecture->lesson.page_count);
    if (lecture->asked > 0)
        snprintf(place, sizeof place, "%d of %d right   page %d of %d", lecture->right,
                 lecture->asked, lecture->page + 1, lecture->lesson.page_count);
    const int end = esp_draw_right(canvas, width - 1, 0, ESP_STYLE_STATUS, place);
    esp_draw_bytes(canvas, 1, 0, end - 3, ESP_STYLE_TITLE, 0, title, strlen(title));
}

/* Draws the text and the picture of the page into the view of the canvas, scrolled by
 * lecture->scroll rows. */
static void draw_page(struct esp_canvas *canvas, struct esp_lecture *lecture, bool may_be_wide,
                      int height)
{
    struct esp_canvas page;
    const bool wide = may_be_wide && esp_lecture_page(lecture)->picture != ESP_PICTURE_NONE;
    const int width = canvas->view.rect.width, half = wide ? width / 2 - 2 : width;
    if (height < 1 || esp_scrolled_open(&page, canvas, width, height + LONGEST_WORDS) < 0)
        return;
    struct esp_view whole = esp_canvas_enter(&page, (struct esp_rect){0, 0, half, page.height});
    const int y = draw_words(&page, lecture), left = height - y - 1;
    esp_canvas_leave(&page, whole);
    draw_picture(
        &page, lecture,
        wide ? (struct esp_rect){half + 4, 0, width - half - 4, height}
             : (struct esp_rect){0, y + 1, width, left < FAIR_PICTURE ? LOW_PICTURE : left});
    const int rows = esp_scrolled_rows(&page), most = rows > height ? rows - height : 0;
    if (lecture->scroll < 0) /* scroll to the end of the text */
        lecture->scroll = y > height ? y - height : 0;
    lecture->scroll = lecture->scroll < most ? lecture->scroll : most;
    lecture->below = most - lecture->scroll;
    lecture->screen = height;
    esp_scrolled_show(canvas, &page, rows, lecture->scroll);
    esp_canvas_close(&page);
}

void esp_lesson_draw(struct esp_canvas *canvas, struct esp_lecture *lecture, bool keys)
{
    const int width = canvas->width, height = canvas->height - 2 - keys;
    char doing[512];
    const int phase = esp_lecture_phase(lecture, doing, sizeof doing);
    draw_head(canvas, lecture);
    struct esp_view whole =
        esp_canvas_enter(canvas, (struct esp_rect){1, 2, width - 2 > 1 ? width - 2 : 1,
                                                   height > 0 ? height : 0});
    if (phase <= 0) {
        esp_draw_paragraph(canvas, 0, phase < 0 ? ESP_STYLE_ERROR : ESP_STYLE_STATUS, doing);
        esp_canvas_leave(canvas, whole);
        draw_key(canvas, 1, canvas->height - 1, "Esc", "leave");
        return;
    }
    draw_page(canvas, lecture, width >= WIDE, height);
    esp_canvas_leave(canvas, whole);
    if (keys)
        draw_keys(canvas, lecture, canvas->height - 1);
}

void esp_lesson_draw_list(struct esp_canvas *canvas, int selected)
{
    char name[256], title[200];
    int y = 2;
    esp_draw(canvas, 1, 0, ESP_STYLE_TITLE, "espalier learn");
    for (int i = 0; esp_lesson_list(i, name, sizeof name, title, sizeof title); i++, y++) {
        esp_drawf(canvas, 1, y, i < 9 ? ESP_STYLE_KEY : ESP_STYLE_VALUE, "%d", i + 1);
        esp_draw_bytes(canvas, 4, y, canvas->width - 5, ESP_STYLE_VALUE, 0, title,
                       strlen(title));
        if (i == selected) {
            esp_draw(canvas, 0, y, ESP_STYLE_KEY, ">");
            esp_draw_restyle(canvas, (struct esp_rect){0, y, canvas->width, 1},
                             ESP_STYLE_SELECTION);
        }
    }
    if (y == 2)
        esp_draw(canvas, 1, y, ESP_STYLE_ERROR,
                 "no lessons found; set ESPALIER_DATA to the folder that contains lessons/");
    char digits[24];
    snprintf(digits, sizeof digits, "1 to %d", y - 2 < 9 ? y - 2 : 9);
    int x = 1;
    if (y > 2) {
        x = draw_key(canvas, x, canvas->height - 1, "Up Down", "choose");
        x = draw_key(canvas, x, canvas->height - 1, "Space", "begin");
        x = draw_key(canvas, x, canvas->height - 1, digits, "begin that one");
    }
    draw_key(canvas, x, canvas->height - 1, "Esc", "leave");
}
