/* result_table.c - see result_table.h. */
#include "tui/cli/bench/result_table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "viz/plot.h"
#include "viz/safe.h"

enum { CELL = 512, SERIES = 64 };

void cli_table_free(struct cli_table *t)
{
    for (int i = 0; i < t->rows * t->columns; i++)
        free(t->cell[i].text);
    free(t->cell);
    *t = (struct cli_table){0};
}

bool cli_table_column(struct cli_table *t, const char *name, const char *heading, int digits,
                      bool key)
{
    if (t->columns == TABLE_COLUMNS || t->rows > 0)
        return false;
    const int i = t->columns++;
    t->column[i].name = name;
    t->column[i].heading = heading;
    t->column[i].digits = digits;
    t->column[i].key = key;
    return true;
}

struct cli_cell *cli_table_row(struct cli_table *t)
{
    const size_t columns = (size_t)t->columns;
    if (t->rows == t->room) {
        const int room = t->room ? 2 * t->room : 16;
        struct cli_cell *cell = realloc(t->cell, (size_t)room * columns * sizeof *cell);
        if (!cell)
            return NULL;
        t->cell = cell;
        t->room = room;
    }
    struct cli_cell *row = t->cell + (size_t)t->rows++ * columns;
    for (size_t i = 0; i < columns; i++)
        row[i] = (struct cli_cell){.number = NAN};
    return row;
}

bool cli_cell_text(struct cli_cell *cell, const char *text)
{
    free(cell->text);
    return (cell->text = strdup(text)) != NULL;
}

int cli_table_find(const struct cli_table *t, const char *name)
{
    for (int i = 0; i < t->columns; i++)
        if (strcmp(t->column[i].name, name) == 0)
            return i;
    return -1;
}

static const struct cli_cell *at(const struct cli_table *t, int row, int column)
{
    return &t->cell[(size_t)row * (size_t)t->columns + (size_t)column];
}

/* Writes the text of a cell to `text`, or `none` if the cell is empty. Returns `text`. */
static const char *shown(const struct cli_table *t, int row, int column, const char *none,
                         char text[CELL])
{
    const struct cli_cell *cell = at(t, row, column);
    if (cell->text)
        snprintf(text, CELL, "%s", *cell->text ? cell->text : none);
    else if (!isfinite(cell->number))
        snprintf(text, CELL, "%s", none);
    else
        snprintf(text, CELL, "%.*f", t->column[column].digits, cell->number);
    return text;
}

/* ------------------------------------------------------------------ CSV, JSON, Markdown */

/* Labels and categories are untrusted text, and a table is read by spreadsheets, browsers and
 * terminals. In CSV and Markdown, safe.h replaces newlines and all characters that could
 * control a terminal. In JSON they are escaped. */

/* Returns whether a text is a single number, such as -0.5 or 1e3, but not -1+1. */
static bool is_number(const char *text)
{
    char *end;
    strtod(text, &end);
    return end != text && !*end && strspn(text, "0123456789.eE+-") == strlen(text);
}

/* Returns whether a spreadsheet would read a cell as a formula. East Asian spreadsheets also
 * accept full-width signs. */
static bool is_formula(const char *text)
{
    static const char *const signs[] = {"=",      "+",      "-",      "@",
                                        "\uff1d", "\uff0b", "\uff0d", "\uff20"};
    bool begins = false;
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
        begins = begins || strncmp(text, signs[i], strlen(signs[i])) == 0;
    return begins && !is_number(text);
}

/* Prints a cell of a CSV file. If it looks like a formula, puts an apostrophe before it,
 * because a spreadsheet then treats the cell as text. */
static void print_csv(FILE *file, const char *text)
{
    struct esp_safe_unit shown;
    const bool quoted = strpbrk(text, ",;\"") != NULL;
    if (quoted)
        fputc('"', file);
    if (is_formula(text))
        fputc('\'', file);
    for (size_t left = strlen(text), n; left > 0; text += n, left -= n) {
        n = esp_safe_next(text, left, 0, &shown);
        fputs(&"\""[*shown.text != '"'], file); /* a quotation mark is doubled */
        fputs(shown.text, file);
    }
    if (quoted)
        fputc('"', file);
}

void cli_table_csv(const struct cli_table *t, FILE *file)
{
    char text[CELL];
    for (int row = -1; row < t->rows; row++) {
        for (int i = 0; i < t->columns; i++) {
            if (i > 0)
                fputc(',', file);
            print_csv(file, row < 0 ? t->column[i].name : shown(t, row, i, "", text));
        }
        fputc('\n', file);
    }
}

cJSON *cli_table_json(const struct cli_table *t)
{
    cJSON *rows = cJSON_CreateArray();
    for (int row = 0; row < t->rows; row++) {
        cJSON *o = cJSON_CreateObject();
        for (int i = 0; i < t->columns; i++) {
            const struct cli_cell *cell = at(t, row, i);
            if (isfinite(cell->number))
                cJSON_AddNumberToObject(o, t->column[i].name, cell->number);
            else if (cell->text)
                cJSON_AddStringToObject(o, t->column[i].name, cell->text);
            else
                cJSON_AddNullToObject(o, t->column[i].name);
        }
        cJSON_AddItemToArray(rows, o);
    }
    return rows;
}

void cli_markdown_text(FILE *file, const char *text)
{
    struct esp_safe_unit shown;
    for (size_t left = strlen(text), n; left > 0; text += n, left -= n) {
        n = esp_safe_next(text, left, 0, &shown);
        for (const char *c = shown.text; *c; c++)
            if (*c == '&' || *c == '<' || *c == '>')
                fputs(*c == '&' ? "&amp;" : *c == '<' ? "&lt;" : "&gt;", file);
            else
                fprintf(file, strchr("|\\`*[]~", *c) ? "\\%c" : "%c", *c);
    }
}

static void print_cell(FILE *file, const char *text)
{
    fputs("| ", file);
    cli_markdown_text(file, text);
    fputc(' ', file);
}

void cli_table_markdown(const struct cli_table *t, FILE *file)
{
    char text[CELL];
    for (int i = 0; i < t->columns; i++)
        print_cell(file, t->column[i].heading);
    fputs("|\n", file);
    for (int i = 0; i < t->columns; i++)
        fputs(t->column[i].key ? "|---" : "|---:", file);
    fputs("|\n", file);
    for (int row = 0; row < t->rows; row++) {
        for (int i = 0; i < t->columns; i++)
            print_cell(file, shown(t, row, i, "-", text));
        fputs("|\n", file);
    }
}

/* ------------------------------------------------------------------ pivots */

static bool same_cell(const struct cli_table *t, int a, int b, int column)
{
    char one[CELL], other[CELL];
    return strcmp(shown(t, a, column, "", one), shown(t, b, column, "", other)) == 0;
}

/* Returns whether two rows have the same keys. Ignores the key in column `besides`. */
static bool same_keys(const struct cli_table *t, int a, int b, int besides)
{
    for (int i = 0; i < t->columns; i++)
        if (t->column[i].key && i != besides && !same_cell(t, a, b, i))
            return false;
    return true;
}

/* Returns whether no earlier row is the same as this row, according to the function `same`. */
static bool is_first(const struct cli_table *t, int row, int column,
                     bool (*same)(const struct cli_table *t, int a, int b, int column))
{
    int i = 0;
    while (i < row && !same(t, i, row, column))
        i++;
    return i == row;
}

/* Returns the first row that has the same keys as row `keys`, and in column x the same value as
 * row `value`. Returns -1 if there is none. */
static int find_row(const struct cli_table *t, int keys, int value, int x)
{
    int i = t->rows - 1, found = -1;
    for (; i >= 0; i--)
        if (same_keys(t, i, keys, x) && same_cell(t, i, value, x))
            found = i;
    return found;
}

void cli_table_pivot(const struct cli_table *t, const char *across, const char *column,
                     FILE *file)
{
    const int x = cli_table_find(t, across), y = cli_table_find(t, column);
    char text[CELL], heading[2 * CELL];
    int keys = 0, values = 0;
    if (x < 0 || y < 0)
        return;
    for (int i = 0; i < t->columns; i++)
        if (t->column[i].key && i != x && ++keys)
            print_cell(file, t->column[i].heading);
    for (int row = 0; row < t->rows; row++)
        if (is_first(t, row, x, same_cell) && ++values) {
            snprintf(heading, sizeof heading, "%s %s", t->column[x].heading,
                     shown(t, row, x, "-", text));
            print_cell(file, heading);
        }
    fputs("|\n", file);
    for (int i = 0; i < keys + values; i++)
        fputs(i < keys ? "|---" : "|---:", file);
    fputs("|\n", file);
    for (int row = 0; row < t->rows; row++) {
        if (!is_first(t, row, x, same_keys))
            continue;
        for (int i = 0; i < t->columns; i++)
            if (t->column[i].key && i != x)
                print_cell(file, shown(t, row, i, "-", text));
        for (int value = 0; value < t->rows; value++) {
            if (!is_first(t, value, x, same_cell))
                continue;
            const int found = find_row(t, row, value, x);
            print_cell(file, found < 0 ? "-" : shown(t, found, y, "-", text));
        }
        fputs("|\n", file);
    }
}

/* Returns whether a row has this value in column `key`. */
static bool meets(const struct cli_table *t, int row, int key, const char *value, size_t length)
{
    char text[CELL];
    const char *has = shown(t, row, key, "", text);
    return strlen(has) == length && memcmp(has, value, length) == 0;
}

static bool is_used(const struct cli_table *t, int column)
{
    char text[CELL];
    for (int row = 0; row < t->rows; row++)
        if (*shown(t, row, column, "", text))
            return true;
    return false;
}

bool cli_table_part(struct cli_table *part, const struct cli_table *t, const char *where)
{
    const size_t width = (size_t)t->columns;
    *part = *t;
    part->cell = calloc((size_t)t->rows * width + 1, sizeof *part->cell);
    if (!part->cell)
        return false;
    memcpy(part->cell, t->cell, (size_t)t->rows * width * sizeof *part->cell);
    for (const char *at = where; *(at += strspn(at, " \t")); at += strcspn(at, " \t")) {
        const char *equals = at + strcspn(at, "= \t"), *value = equals + (*equals == '=');
        char name[CELL];
        snprintf(name, sizeof name, "%.*s", (int)(equals - at), at);
        const int key = cli_table_find(t, name), rows = part->rows;
        part->rows = 0;
        for (int row = 0; key >= 0 && row < rows; row++)
            if (meets(part, row, key, value, strcspn(value, " \t")))
                memmove(part->cell + (size_t)part->rows++ * width,
                        part->cell + (size_t)row * width, width * sizeof *part->cell);
        if (key >= 0)
            part->column[key].key = false;
    }
    for (int i = 0; i < part->columns && *where; i++)
        part->column[i].key = part->column[i].key && is_used(part, i);
    return true;
}

/* ------------------------------------------------------------------ plots */

/* Returns the key column in which a row has this word, or -1. */
static int key_of(const struct cli_table *t, int row, const char *word)
{
    for (int i = 0; word && i < t->columns; i++)
        if (t->column[i].key && at(t, row, i)->text && strcmp(at(t, row, i)->text, word) == 0)
            return i;
    return -1;
}

/* Joins the keys of a row into a label. Leaves the key in column x out, unless it equals
 * `reference`. */
static void label_row(const struct cli_table *t, int row, int x, const char *reference,
                      char label[CELL])
{
    char text[CELL];
    size_t used = 0;
    const int named = key_of(t, row, reference);
    label[0] = '\0';
    for (int i = 0; i < t->columns; i++) {
        if (!t->column[i].key || (i == x && i != named) || used >= CELL - 1)
            continue;
        if (!*shown(t, row, i, "", text))
            continue;
        const bool number = isfinite(at(t, row, i)->number);
        used += (size_t)snprintf(label + used, CELL - used, "%s%s%s%s", used ? ", " : "",
                                 number ? t->column[i].heading : "", number ? " " : "",
                                 shown(t, row, i, "-", text));
        used = used < CELL ? used : CELL - 1;
    }
}

/* Returns whether two rows are points of the same series. */
static bool same_series(const struct cli_table *t, int a, int b, int x, const char *reference)
{
    return same_keys(t, a, b, x) &&
           (key_of(t, a, reference) >= 0) == (key_of(t, b, reference) >= 0);
}

static bool begins_series(const struct cli_table *t, int row, int x, const char *reference)
{
    int i = 0;
    while (i < row && !same_series(t, i, row, x, reference))
        i++;
    return i == row;
}

struct plotted {
    char label[SERIES][CELL];
    struct esp_plot_series series[SERIES]; /* (count) */
    const char **names;                    /* (names_count) the values of x that are words */
    double *x, *y, *error;                 /* (used) the points of all series */
    int count, names_count, used;
};

/* Returns the position of a row on the x axis. This is the number in column x or, if column x
 * contains words, the index of the word. Returns NaN for a reference, which has the same value
 * for all x. */
static double place(const struct cli_table *t, int row, int x, const char *reference,
                    struct plotted *p)
{
    const struct cli_cell *cell = at(t, row, x);
    if (isfinite(cell->number) || !cell->text)
        return cell->number;
    if (key_of(t, row, reference) == x)
        return NAN;
    for (int i = 0; i < p->names_count; i++)
        if (strcmp(p->names[i], cell->text) == 0)
            return i;
    p->names[p->names_count] = cell->text;
    return p->names_count++;
}

/* Adds the series of points that begins with `row`. */
static void add_series(const struct cli_table *t, int row, int x, int y, const char *reference,
                       struct plotted *p)
{
    struct esp_plot_series *s = &p->series[p->count];
    label_row(t, row, x, reference, p->label[p->count]);
    *s = (struct esp_plot_series){.label = p->label[p->count++],
                                  .x = p->x + p->used,
                                  .y = p->y + p->used,
                                  .error = p->error + p->used,
                                  .reference = key_of(t, row, reference) >= 0};
    for (int i = row; i < t->rows; i++)
        if (same_series(t, i, row, x, reference)) {
            p->x[p->used] = place(t, i, x, reference, p);
            p->error[p->used] = at(t, i, y)->spread;
            p->y[p->used++] = at(t, i, y)->number;
            s->count++;
        }
}

void cli_table_plot(const struct cli_table *t, const char *title, const char *x_name,
                    const char *y_name, const char *reference, struct esp_drawing *drawing)
{
    const int x = cli_table_find(t, x_name), y = cli_table_find(t, y_name);
    const size_t rows = (size_t)t->rows + 1;
    struct plotted *p = calloc(1, sizeof *p);
    double *numbers = calloc(3 * rows, sizeof *numbers);
    const char **names = calloc(rows, sizeof *names);
    drawing->failed = drawing->failed || !p || !numbers || !names;
    if (p && numbers && names) {
        p->x = numbers;
        p->y = p->x + rows;
        p->error = p->y + rows;
        p->names = names;
        for (int row = 0; x >= 0 && y >= 0 && row < t->rows && p->count < SERIES; row++)
            if (begins_series(t, row, x, reference))
                add_series(t, row, x, y, reference, p);
        const struct esp_plot plot = {.title = title,
                                      .x_label = x >= 0 ? t->column[x].heading : x_name,
                                      .y_label = y >= 0 ? t->column[y].heading : y_name,
                                      .names = p->names_count ? p->names : NULL,
                                      .name_count = p->names_count,
                                      .series = p->series,
                                      .series_count = p->count,
                                      .error_label = "deviation over the prompts"};
        esp_plot_draw(&plot, drawing);
    }
    free(names);
    free(numbers);
    free(p);
}
