/* accepted.c - the accepted pane. Bars show how many drafted tokens were accepted.
 *
 *     length of the accepted path          acceptance by depth
 *         0 ████████▎     13 %  of 59          1 █████████▋  86 %  of 59
 *         1 ████████████▌ 20 %                 2 ████████▋   78 %  of 50
 *
 *     acceptance by child                  acceptance by draft probability
 *
 * If some tokens were not drafted by the draft model, another table shows acceptance by source.
 * A table without rows is left out. The counts are the same as in `espalier stats`
 * (viz/acceptance.h). They include the iterations in memory since the last change of a setting.
 * If there is a cursor in the text, they include only the iteration that generated the token at
 * the cursor. The tables are in as many columns as fit.
 */
#include "tui/view/pane.h"

#include <stdio.h>

#include "viz/acceptance.h"
#include "viz/chart.h"

enum { MOST_ROWS = 16, TABLES = 5, LABEL = 10, NUMBERS = 16, LEAST_BAR = 8, GAP = 3 };

struct table {
    const char *title;
    int count;
    struct row {
        char label[40];
        int64_t part, whole;
    } row[MOST_ROWS];
};

/* Returns true if the node pane shows a token of the text and it is known which iteration
 * generated this token. */
static bool is_of_token(const struct esp_shown *s)
{
    return esp_looked_token(s->look, s->state) >= 0 && s->look->iteration >= 0 && s->it;
}

/* Counts the accepted tokens of the iterations in memory since the last change of a setting. If
 * there is a cursor in the text, counts only the iteration that generated the token at the
 * cursor. */
static struct esp_acceptance count_kept(const struct esp_shown *s)
{
    struct esp_acceptance a = {.iterations = 0};
    const struct esp_iteration *it;
    if (is_of_token(s)) {
        esp_acceptance_add(&a, s->it);
        return a;
    }
    for (int i = 0; i < s->state->trace.since_setting && (it = esp_state_kept(s->state, i));
         i++)
        esp_acceptance_add(&a, it);
    return a;
}

static void add_row(struct table *table, int64_t part, int64_t whole, double from, bool share)
{
    if (whole == 0 || table->count == MOST_ROWS)
        return;
    struct row *row = &table->row[table->count++];
    if (share)
        snprintf(row->label, sizeof row->label, "%.1f to %.1f", from,
                 from + 1.0 / ESP_ACCEPT_BINS);
    else
        snprintf(row->label, sizeof row->label, "%10.0f", from);
    row->part = part;
    row->whole = whole;
}

/* Fills the table by source. Leaves it empty if the draft model is the only source. */
static void add_sources(struct table *table, const struct esp_acceptance *a)
{
    int64_t found = 0;
    for (int i = ESP_SOURCE_DRAFT + 1; i < ESP_SOURCES; i++)
        found += a->source[i].tried;
    for (int i = 0; i < ESP_SOURCES && found > 0; i++) {
        if (a->source[i].tried == 0)
            continue;
        add_row(table, a->source[i].accepted, a->source[i].tried, i, false);
        snprintf(table->row[table->count - 1].label, sizeof table->row->label, "%10s",
                 esp_source_word(i));
    }
}

static void fill_tables(struct table tables[TABLES], const struct esp_acceptance *a)
{
    int longest = ESP_ACCEPT_DEPTHS;
    while (longest > 0 && a->length[longest] == 0)
        longest--;
    tables[0] = (struct table){.title = "length of the accepted path"};
    tables[1] = (struct table){.title = "acceptance by depth"};
    tables[2] = (struct table){.title = "acceptance by child"};
    tables[3] = (struct table){.title = "acceptance by draft probability"};
    tables[4] = (struct table){.title = "acceptance by source"};
    add_sources(&tables[4], a);
    for (int i = 0; i <= longest; i++)
        add_row(&tables[0], a->length[i], a->iterations, i, false);
    for (int i = 0; i < ESP_ACCEPT_DEPTHS; i++)
        add_row(&tables[1], a->depth[i].accepted, a->depth[i].tried, i + 1, false);
    for (int i = 0; i < ESP_ACCEPT_RANKS; i++)
        add_row(&tables[2], a->rank[i].accepted, a->rank[i].tried, i + 1, false);
    for (int i = 0; i < ESP_ACCEPT_BINS; i++)
        add_row(&tables[3], a->share[i].accepted, a->share[i].tried,
                (double)i / ESP_ACCEPT_BINS, true);
}

static void draw_table(struct esp_canvas *canvas, int x, int y, int width,
                       const struct table *table)
{
    const int bar = width - LABEL - NUMBERS, height = canvas->view.rect.height;
    if (y < height)
        esp_draw(canvas, x, y, ESP_STYLE_LABEL, table->title);
    for (int i = 0; i < table->count && y + 1 + i < height; i++) {
        const struct row *row = &table->row[i];
        const double share = (double)row->part / (double)row->whole;
        int at = esp_draw(canvas, x, y + 1 + i, ESP_STYLE_LABEL, row->label) + 1;
        esp_draw_bar(canvas, at, y + 1 + i, bar, ESP_STYLE_BAR_VERIFY, share);
        at = esp_drawf(canvas, at + bar, y + 1 + i, ESP_STYLE_VALUE, "%4.0f %%", 100 * share);
        esp_drawf(canvas, at + 1, y + 1 + i, ESP_STYLE_LABEL, "of %lld", (long long)row->whole);
    }
}

static void title(const struct esp_shown *s, char *text, size_t size)
{
    int count = 0;
    if (is_of_token(s)) {
        snprintf(text, size, "accepted   iteration %d", s->it->index);
        return;
    }
    while (count < s->state->trace.since_setting && esp_state_kept(s->state, count))
        count++;
    if (count > 0)
        snprintf(text, size, "accepted   the last %d iteration%s", count,
                 count == 1 ? "" : "s");
    else
        snprintf(text, size, "accepted");
}

static void draw(struct esp_canvas *canvas, const struct esp_shown *s)
{
    struct table tables[TABLES];
    const struct esp_acceptance a = count_kept(s);
    const int width = canvas->view.rect.width;
    int columns = (width + GAP) / (LABEL + LEAST_BAR + NUMBERS + GAP), below[TABLES] = {0};
    if (a.drafted == 0) {
        esp_draw(
            canvas, 0, 0, ESP_STYLE_LABEL,
            "The acceptance of drafted tokens, by depth and probability, is counted here.");
        return;
    }
    columns = columns < 1 ? 1 : columns > TABLES ? TABLES : columns;
    fill_tables(tables, &a);
    const int each = (width + GAP) / columns - GAP;
    for (int i = 0; i < TABLES; i++) {
        if (tables[i].count == 0)
            continue;
        int column = 0; /* the column with the fewest rows so far */
        for (int j = 1; j < columns; j++)
            column = below[j] < below[column] ? j : column;
        draw_table(canvas, column * (each + GAP), below[column], each, &tables[i]);
        below[column] += tables[i].count + 2;
    }
}

const struct esp_pane_ops esp_pane_accepted = {
    .name = "accepted",
    .summary = "accepted tokens: by path length, depth, child, probability and source",
    .title = title,
    .draw = draw,
};
