/* branches.c - the branches pane: all texts of the session as a tree, one per line.
 *
 *     >   Once upon a time there was a king            41 tokens   ppl 3.1   dynatree  10:42
 *           queen who had no child                     38 tokens   ppl 4.0   dynatree  10:43
 *       *   woman in the forest                        12 tokens   ppl 5.2   ar        10:44
 *
 * Below the list, the text of the branch at the cursor is shown. Next to it are the texts of
 * the branches that begin at the same place.
 */
#include "tui/view/pane.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "viz/safe.h"
#include "viz/say.h"
#include "viz/search.h"
#include "viz/wrap.h"

enum { PREVIEW = 6, COLUMN = 18, COLUMNS = 4, INDENT = 2, DEEPEST = 8 };

/* The branches in the list, from top to bottom. */
struct list {
    int *order, *depth; /* (count) */
    int count, at;      /* `at` is the row of the cursor, or -1 */
};

static bool open_list(struct list *list, const struct esp_shown *s)
{
    const struct esp_branches *b = &s->state->branches;
    *list = (struct list){.at = -1};
    list->order = calloc((size_t)b->count + 1, 2 * sizeof *list->order);
    if (!list->order)
        return false;
    list->depth = list->order + b->count + 1;
    list->count = esp_branches_list(b, list->order, list->depth);
    const int chosen = s->look->branch >= 0 ? s->look->branch : b->at.branch;
    for (int i = 0; i < list->count; i++)
        if (list->order[i] == chosen)
            list->at = i;
    if (list->at < 0 && list->count > 0)
        list->at = 0;
    return true;
}

static int branch_at(const struct list *list)
{
    return list->at >= 0 ? list->order[list->at] : -1;
}

/* ------------------------------------------------------------------ drawing */

/* Writes a branch's own tokens as one line, beginning with token `from`. Stops when the line is
 * full. */
static void write_words(char *text, size_t size, const struct esp_state *state,
                        const struct esp_branch *branch, int from)
{
    size_t used = 0;
    for (int i = from; i < branch->count && used + 1 < size; i++) {
        size_t length = 0;
        const char *bytes =
            state->tokens.text && branch->tokens[i].kind != ESP_TEXT_MARK
                ? state->tokens.text(state->tokens.user, branch->tokens[i].token, &length)
                : NULL;
        for (size_t j = 0; bytes && j < length && used + 1 < size; j++)
            text[used++] = bytes[j] == '\n' || bytes[j] == '\t' || !bytes[j] ? ' ' : bytes[j];
    }
    text[used] = '\0';
}

static double perplexity_of(const struct esp_branch *branch)
{
    double sum = 0;
    int count = 0;
    for (int i = 0; i < branch->count; i++) {
        const struct esp_written *token = &branch->tokens[i];
        if ((token->kind == ESP_TEXT_DRAFTED || token->kind == ESP_TEXT_BONUS) &&
            token->score.p > 0) {
            sum -= log((double)token->score.p);
            count++;
        }
    }
    return count > 0 ? exp(sum / count) : NAN;
}

/* Draws the statistics of a branch at the right end of the row. Returns the column where they
 * begin. */
static int draw_numbers(struct esp_canvas *canvas, int y, const struct esp_branch *branch)
{
    char text[96] = "", time[8] = "";
    const double perplexity = perplexity_of(branch);
    const int width = canvas->view.rect.width;
    struct tm parts;
    if (branch->created && localtime_r(&branch->created, &parts))
        strftime(time, sizeof time, "%H:%M", &parts);
    esp_say(text, sizeof text, width < 60 ? "%4d" : "%4d tokens", branch->count);
    if (isfinite(perplexity) && width >= 50)
        esp_say(text, sizeof text, "  ppl %.3g", perplexity);
    if (width >= 80)
        esp_say(text, sizeof text, "  %-9.9s %s", branch->drafter, time);
    return esp_draw_right(canvas, width, y, ESP_STYLE_LABEL, text);
}

static void draw_branch(struct esp_canvas *canvas, const struct esp_shown *s,
                        const struct list *list, int row, int y)
{
    char words[200];
    const struct esp_branches *b = &s->state->branches;
    const struct esp_branch *branch = &b->branch[list->order[row]];
    const int depth = list->depth[row] < DEEPEST ? list->depth[row] : DEEPEST;
    const int end = draw_numbers(canvas, y, branch), x = 4 + INDENT * depth;
    const bool present = list->order[row] == b->at.branch;
    if (row == list->at)
        esp_draw(canvas, 0, y, ESP_STYLE_KEY, ">");
    if (branch->marked)
        esp_draw(canvas, 1, y, ESP_STYLE_WARN, "*");
    if (present)
        esp_draw(canvas, 2, y, ESP_STYLE_GOOD, canvas->glyphs->running);
    if (*branch->name)
        snprintf(words, sizeof words, "[%s]", branch->name);
    else
        write_words(words, sizeof words, s->state, branch, 0);
    const char *from = words + strspn(words, " ");
    if (end - 1 > x)
        esp_draw_bytes(canvas, x, y, end - 1 - x,
                       row == list->at ? ESP_STYLE_SELECTION
                       : present       ? ESP_STYLE_VALUE
                                       : ESP_STYLE_TEXT,
                       canvas->ascii_text ? ESP_SAFE_ASCII : 0, from, strlen(from));
}

/* A family is a group of branches. It contains all branches that begin at the same place in a
 * text, and their parent, which is the branch with this text. */
struct family {
    int branch[COLUMNS]; /* (count) */
    int from[COLUMNS];   /* (count) index of the branch's first own token after that place */
    int count, most;
};

/* Adds a branch to the family. If the family is full, removes its first member. */
static void add_member(struct family *f, int branch, int from)
{
    if (f->count == f->most) {
        memmove(f->branch, f->branch + 1, (size_t)(f->count - 1) * sizeof *f->branch);
        memmove(f->from, f->from + 1, (size_t)(f->count - 1) * sizeof *f->from);
        f->count--;
    }
    f->branch[f->count] = branch;
    f->from[f->count++] = from;
}

/* Finds the family of the branches that begin at token `fork` of `parent`. If the family has no
 * room for all of them, `branch` is still a member. */
static void find_family(struct family *f, const struct esp_branches *b, const struct list *list,
                        int parent, int fork, int branch)
{
    bool found = false;
    f->count = 0;
    for (int i = 0; i < list->count; i++) {
        const int other = list->order[i];
        const bool leaves = b->branch[other].parent == parent && b->branch[other].fork == fork;
        if ((!leaves && other != parent) || (found && f->count == f->most))
            continue;
        add_member(f, other, leaves ? 0 : fork - b->branch[other].fork);
        found = found || other == branch;
    }
}

/* Returns the family for the place where `branch` begins. If no other branch begins at that
 * place, returns the family for the last place in the text of `branch` where another branch
 * begins. */
static struct family family_of(const struct esp_branches *b, const struct list *list,
                               int branch, int most)
{
    struct family f = {.most = most};
    find_family(&f, b, list, b->branch[branch].parent, b->branch[branch].fork, branch);
    if (f.count > 1)
        return f;
    for (int i = list->count - 1; i >= 0; i--)
        if (b->branch[list->order[i]].parent == branch) {
            find_family(&f, b, list, branch, b->branch[list->order[i]].fork, branch);
            return f;
        }
    return f;
}

/* Draws the texts of a family side by side, from the place where they begin to differ. */
static void draw_preview(struct esp_canvas *canvas, const struct esp_shown *s,
                         const struct list *list, struct esp_rect rect)
{
    const struct esp_branches *b = &s->state->branches;
    const int room = rect.width / COLUMN;
    const struct family f = family_of(b, list, branch_at(list),
                                      room < 1         ? 1
                                      : room > COLUMNS ? COLUMNS
                                                       : room);
    const int each = f.count > 0 ? (rect.width + 2) / f.count - 2 : rect.width;
    for (int i = 0; i < f.count; i++) {
        char words[2048];
        const bool chosen = f.branch[i] == branch_at(list);
        const struct esp_rect column = {rect.x + i * (each + 2), rect.y, each, rect.height};
        write_words(words, sizeof words, s->state, &b->branch[f.branch[i]], f.from[i]);
        const struct esp_view whole = esp_canvas_enter(canvas, column);
        esp_draw_paragraph(canvas, 0, chosen ? ESP_STYLE_TEXT : ESP_STYLE_LABEL,
                           words + strspn(words, " "));
        esp_canvas_leave(canvas, whole);
    }
}

/* Returns the number of rows that the list gets. */
static int list_rows(const struct list *list, int height)
{
    const int preview = height >= 2 * PREVIEW ? PREVIEW + 1 : 0;
    return list->count < height - preview ? list->count : height - preview;
}

static int first_row(const struct list *list, int rows)
{
    const int first = list->at - rows / 2, most = list->count - rows;
    return first < 0 ? 0 : first > most ? most : first;
}

static void draw(struct esp_canvas *canvas, const struct esp_shown *s)
{
    const int height = canvas->view.rect.height, width = canvas->view.rect.width;
    struct list list;
    if (!s->state->has_branches || s->state->branches.count == 0) {
        esp_draw_paragraph(
            canvas, 0, ESP_STYLE_LABEL,
            s->state->has_branches
                ? "The texts of this session are listed here. b begins a branch: "
                  "at a node of the tree, or at a token of the text."
                : "A replay shows one text; it has no branches.");
        return;
    }
    if (!open_list(&list, s))
        return;
    const int rows = list_rows(&list, height), first = first_row(&list, rows);
    for (int i = 0; i < rows; i++)
        draw_branch(canvas, s, &list, first + i, i);
    if (rows + 2 < height && list.at >= 0)
        draw_preview(canvas, s, &list,
                     (struct esp_rect){0, rows + 1, width, height - rows - 1});
    free(list.order);
}

static void title(const struct esp_shown *s, char *text, size_t size)
{
    struct list list;
    int present = 0;
    snprintf(text, size, "branches");
    if (!s->state->has_branches || s->state->branches.count == 0 || !open_list(&list, s))
        return;
    for (int i = 0; i < list.count; i++)
        if (list.order[i] == s->state->branches.at.branch)
            present = i + 1;
    if (present > 0)
        snprintf(text, size, "branches   %d of %d", present, list.count);
    else
        snprintf(text, size, "branches   %d", list.count);
    free(list.order);
}

/* ------------------------------------------------------------------ the cursor */

static int moved(const struct esp_shown *s, const struct list *list, int action)
{
    const int page = s->height > 2 ? s->height - 1 : 1;
    int at = list->at;
    switch (action) {
    case ESP_ACTION_UP:
        return at - 1;
    case ESP_ACTION_DOWN:
        return at + 1;
    case ESP_ACTION_PAGE_UP:
        return at - page;
    case ESP_ACTION_PAGE_DOWN:
        return at + page;
    case ESP_ACTION_FIRST:
        return 0;
    case ESP_ACTION_LAST:
        return list->count - 1;
    case ESP_ACTION_LEFT: /* the parent */
        while (at > 0 && list->depth[at] >= list->depth[list->at])
            at--;
        return at;
    case ESP_ACTION_RIGHT: /* the first child */
        return at + 1 < list->count && list->depth[at + 1] > list->depth[at] ? at + 1 : at;
    default:
        return -2;
    }
}

static bool request(const struct esp_shown *s, int action)
{
    struct list list;
    if (action == ESP_ACTION_LEAVE_PANE) {
        const bool moved_away = s->look->branch >= 0;
        s->look->branch = -1;
        return moved_away;
    }
    if (!s->state->has_branches || s->state->branches.count == 0 || !open_list(&list, s))
        return false;
    int row = moved(s, &list, action);
    const bool means = row > -2 && list.count > 0;
    row = row < 0 ? 0 : row < list.count ? row : list.count - 1;
    if (means)
        s->look->branch = list.order[row];
    free(list.order);
    return means;
}

static bool click(const struct esp_shown *s, int x, int y)
{
    struct list list;
    (void)x;
    if (!s->state->has_branches || !open_list(&list, s))
        return false;
    const int rows = list_rows(&list, s->height), row = first_row(&list, rows) + y;
    if (y < rows && row < list.count)
        s->look->branch = list.order[row];
    free(list.order);
    return y < rows;
}

/* Sets *point to the end of the whole text of the branch at the cursor. */
static bool point(const struct esp_shown *s, struct esp_branch_point *point)
{
    struct list list;
    if (!s->state->has_branches || !open_list(&list, s))
        return false;
    *point = (struct esp_branch_point){
        .place = esp_branches_end(&s->state->branches, branch_at(&list)), .written = true};
    free(list.order);
    return point->place.branch >= 0;
}

/* Finds the next branch that has the searched words in its own text. */
static struct esp_search_result find(const struct esp_shown *s, int step)
{
    struct esp_search_result found = {.count = 0};
    struct list list;
    int chosen = -1;
    if (!s->state->has_branches || !open_list(&list, s))
        return found;
    for (int i = 0; i < list.count; i++) {
        /* The search starts at the cursor and wraps around. */
        const int row = ((list.at + step * (i + 1)) % list.count + list.count) % list.count;
        char words[4096];
        write_words(words, sizeof words, s->state, &s->state->branches.branch[list.order[row]],
                    0);
        if (esp_search_forward(words, strlen(words), 0, s->look->search) < 0)
            continue;
        found.count++;
        if (chosen < 0) {
            chosen = row;
            found.round = step > 0 ? row <= list.at : row >= list.at;
        }
    }
    found.index = found.count > 0;
    if (chosen >= 0)
        s->look->branch = list.order[chosen];
    free(list.order);
    return found;
}

const struct esp_pane_ops esp_pane_branches = {
    .name = "branches",
    .summary = "all texts of the session as a tree; Enter goes to one",
    .title = title,
    .draw = draw,
    .request = request,
    .click = click,
    .point = point,
    .find = find,
};
