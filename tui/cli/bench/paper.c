/* paper.c - reads a paper's figures and those from here; see paper.h. Both files are untrusted.
 */
#include "tui/cli/bench/paper.h"

#include <cJSON.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/status.h"
#include "tui/cli/bench/suite.h"
#include "tui/model/line_file.h"

enum { CONDITIONS = 4 };

/* Rows of a table whose cells have these values. */
struct condition {
    char key[ESP_BESIDE_TEXT], value[ESP_BESIDE_TEXT];
};

struct conditions {
    struct condition of[CONDITIONS];
    int count;
};

struct reading {
    struct esp_beside *beside;
    const char *path;
    char results[PATH_MAX], column[ESP_BESIDE_TEXT];
    struct conditions here[ESP_BESIDE_HERE], row[ESP_BESIDE_ROWS];
    int number; /* of the line */
    char *err;
    size_t errlen;
};

static int wrong(const struct reading *r, const char *why)
{
    return esp_fail(r->err, r->errlen, ESP_E_FORMAT, "%s, line %d: %s", r->path, r->number,
                    why);
}

/* ------------------------------------------------------------------ lines */

static int take_text(const struct reading *r, char to[ESP_BESIDE_TEXT], const char *text)
{
    if (!*text || strlen(text) >= ESP_BESIDE_TEXT)
        return wrong(r, "there is no text, or it is too long");
    strcpy(to, text);
    return ESP_OK;
}

static int take_title(struct reading *r, char *text)
{
    return take_text(r, r->beside->title, text);
}

static int take_measure(struct reading *r, char *text)
{
    return take_text(r, r->beside->measure, text);
}

static int take_paper(struct reading *r, char *text)
{
    return take_text(r, r->beside->paper, text);
}

static int take_column(struct reading *r, char *text)
{
    return take_text(r, r->column, text);
}

/* A file beside this one. */
static int take_results(struct reading *r, char *text)
{
    const char *slash = *text == '/' ? NULL : strrchr(r->path, '/');
    const int length = slash ? (int)(slash - r->path) + 1 : 0;
    const int n = snprintf(r->results, sizeof r->results, "%.*s%s", length, r->path, text);
    return *text && n < (int)sizeof r->results ? (int)ESP_OK : wrong(r, "results takes a FILE");
}

/* A number that a bar can have; NaN: it is none. */
static double value_of(const char *text)
{
    char *end;
    const double value = strtod(text, &end);
    return end != text && !*end && value > 0 && value < 1e6 ? value : NAN;
}

/* Takes the part up to the next '|' off *text, without blanks around it. */
static char *next_part(char **text)
{
    char *part = *text + strspn(*text, " \t"), *end = part + strcspn(part, "|");
    *text = *end ? end + 1 : end;
    *end = '\0';
    while (end > part && strchr(" \t", end[-1]))
        *--end = '\0';
    return part;
}

/* KEY VALUE | KEY VALUE ... */
static int take_conditions(const struct reading *r, struct conditions *c, char *text)
{
    while (*text) {
        char *key = next_part(&text), *value = key + strcspn(key, " \t");
        if (c->count == CONDITIONS)
            return wrong(r, "there are too many conditions");
        struct condition *one = &c->of[c->count++];
        if (*value)
            *value++ = '\0';
        int status = take_text(r, one->key, key);
        if (status == ESP_OK)
            status = take_text(r, one->value, value + strspn(value, " \t"));
        if (status < 0)
            return status;
    }
    return ESP_OK;
}

static int take_here(struct reading *r, char *text)
{
    struct esp_beside *b = r->beside;
    if (b->here_count == ESP_BESIDE_HERE)
        return wrong(r, "there are too many lines: here");
    int status = take_text(r, b->here[b->here_count], next_part(&text));
    if (status == ESP_OK)
        status = take_conditions(r, &r->here[b->here_count++], text);
    return status;
}

static int take_row(struct reading *r, char *text)
{
    struct esp_beside *b = r->beside;
    struct esp_beside_row *row = &b->row[b->rows];
    if (b->rows == ESP_BESIDE_ROWS)
        return wrong(r, "there are too many rows");
    int status = take_text(r, row->label, next_part(&text));
    const char *value = next_part(&text);
    row->paper = value_of(value);
    if (status == ESP_OK && !isfinite(row->paper) && strcmp(value, "-") != 0)
        status =
            wrong(r, "row takes NAME | VALUE | KEY VALUE ..., or - where there is no value");
    if (status == ESP_OK)
        status = take_conditions(r, &r->row[b->rows++], text);
    return status;
}

static int take_reference(struct reading *r, char *text)
{
    char *label = text + strcspn(text, " \t");
    if (*label)
        *label++ = '\0';
    r->beside->reference = value_of(text);
    if (!isfinite(r->beside->reference))
        return wrong(r, "reference takes a VALUE above 0 and a NAME");
    return take_text(r, r->beside->reference_label, label + strspn(label, " \t"));
}

static const struct {
    const char *name;
    int (*take)(struct reading *r, char *text);
} lines[] = {
    {"title", take_title},   {"measure", take_measure},     {"paper", take_paper},
    {"column", take_column}, {"results", take_results},     {"here", take_here},
    {"row", take_row},       {"reference", take_reference},
};

static int take_line(void *user, char *line, int number, char *err, size_t errlen)
{
    struct reading *r = user;
    const size_t length = strcspn(line, " \t");
    r->number = number;
    r->err = err;
    r->errlen = errlen;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        if (strlen(lines[i].name) == length && strncmp(lines[i].name, line, length) == 0)
            return lines[i].take(r, line + length + strspn(line + length, " \t"));
    return wrong(r, "there is no such line; sessions/samples/README.md lists them");
}

/* ------------------------------------------------------------------ the table */

static bool holds(const cJSON *row, const struct conditions *conditions)
{
    for (int i = 0; i < conditions->count; i++) {
        const struct condition *c = &conditions->of[i];
        const cJSON *cell = cJSON_GetObjectItemCaseSensitive(row, c->key);
        char *end;
        const double number = strtod(c->value, &end);
        if (!(cJSON_IsNumber(cell) && !*end && fabs(cell->valuedouble - number) < 1e-9) &&
            !(cJSON_IsString(cell) && strcmp(cell->valuestring, c->value) == 0))
            return false;
    }
    return true;
}

/* The mean over all rows of the table that are meant; NaN if there is none. */
static double mean_of(const cJSON *rows, const char *column, const struct conditions *a,
                      const struct conditions *b)
{
    const cJSON *row;
    double sum = 0;
    int count = 0;
    cJSON_ArrayForEach(row, rows)
    {
        const cJSON *cell = cJSON_GetObjectItemCaseSensitive(row, column);
        if (!cJSON_IsNumber(cell) || !holds(row, a) || !holds(row, b))
            continue;
        sum += cell->valuedouble;
        count++;
    }
    return count > 0 && sum / count < 1e6 ? sum / count : NAN;
}

static const char *text_in(const cJSON *o, const char *name)
{
    const cJSON *text = cJSON_GetObjectItemCaseSensitive(o, name);
    return cJSON_IsString(text) ? text->valuestring : "?";
}

static double number_in(const cJSON *o, const char *name)
{
    const cJSON *number = cJSON_GetObjectItemCaseSensitive(o, name);
    return cJSON_IsNumber(number) ? number->valuedouble : 0;
}

/* "suite dynatree-main: fairytale-target, fairytale-draft, 8 prompts, 128 tokens each" */
static void name_source(struct esp_beside *b, const cJSON *table)
{
    const cJSON *target = cJSON_GetObjectItemCaseSensitive(table, "target");
    const cJSON *draft = cJSON_GetObjectItemCaseSensitive(table, "draft");
    snprintf(b->source, sizeof b->source,
             "suite %s; %s with %s, %.0f prompts, %.0f tokens each", text_in(table, "suite"),
             text_in(target, "name"), text_in(draft, "name"), number_in(table, "prompts"),
             number_in(table, "tokens"));
}

static int take_table(struct reading *r)
{
    struct esp_beside *b = r->beside;
    cJSON *table = NULL;
    int status = cli_suite_read_table(&table, r->results, r->err, r->errlen);
    const cJSON *rows = cJSON_GetObjectItemCaseSensitive(table, "rows");
    for (int i = 0; i < b->rows && status == ESP_OK; i++)
        for (int j = 0; j < b->here_count && status == ESP_OK; j++) {
            b->row[i].here[j] = mean_of(rows, r->column, &r->row[i], &r->here[j]);
            if (!isfinite(b->row[i].here[j]))
                status = esp_fail(r->err, r->errlen, ESP_E_MISMATCH,
                                  "%s: %s has no %s for row '%s', %s", r->path, r->results,
                                  r->column, b->row[i].label, b->here[j]);
        }
    if (status == ESP_OK)
        name_source(b, table);
    cJSON_Delete(table);
    return status;
}

bool cli_is_paper(const char *path)
{
    const size_t length = strlen(path);
    return length > 6 && strcmp(path + length - 6, ".paper") == 0;
}

int cli_paper_read(struct esp_beside *beside, const char *path, char *err, size_t errlen)
{
    struct reading *r = calloc(1, sizeof *r);
    if (!r)
        return esp_fail(err, errlen, ESP_E_MEMORY, "no memory for the figures");
    memset(beside, 0, sizeof *beside);
    *r = (struct reading){.beside = beside, .path = path, .err = err, .errlen = errlen};
    int status = esp_line_file_read(path, take_line, r, err, errlen);
    if (status == ESP_OK && (!*beside->title || !*r->results || !*r->column ||
                             beside->rows == 0 || beside->here_count == 0))
        status = esp_fail(err, errlen, ESP_E_FORMAT,
                          "%s: title, results, column, here and row must be there", path);
    if (status == ESP_OK)
        status = take_table(r);
    free(r);
    return status;
}
