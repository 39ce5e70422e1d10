/* paper.c - see paper.h. Neither the paper file nor the table is trusted to be valid. */
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

/* Holds conditions that select rows of a table by the values of some cells. */
struct conditions {
    struct {
        char key[ESP_BESIDE_TEXT], value[ESP_BESIDE_TEXT];
    } of[CONDITIONS];
    int count;
};

struct paper {
    struct esp_beside beside;
    char results[PATH_MAX], column[ESP_BESIDE_TEXT];
    struct conditions here[ESP_BESIDE_HERE], row[ESP_BESIDE_ROWS];
};

/* ------------------------------------------------------------------ lines */

static int take_results(void *user, struct esp_file_line *line)
{
    struct paper *p = user;
    return *line->text && esp_path_beside(p->results, sizeof p->results, line->path,
                                          line->text) == ESP_OK
               ? (int)ESP_OK
               : esp_wrong_line(line, "results takes a FILE");
}

/* Reads the length of a bar; returns NaN if the text is not a valid length. */
static double value_of(const char *text)
{
    char *end;
    const double value = strtod(text, &end);
    return end != text && !*end && value > 0 && value < 1e6 ? value : NAN;
}

/* Reads conditions that are written as KEY VALUE | KEY VALUE ... */
static int take_conditions(struct conditions *c, struct esp_file_line *line)
{
    int status = ESP_OK;
    while (*line->text && status == ESP_OK) {
        char *value = esp_take_part(&line->text, "|"), *key = esp_take_part(&value, " \t");
        if (c->count == CONDITIONS)
            return esp_wrong_line(line, "there are too many conditions");
        status = esp_take_text(line, c->of[c->count].key, ESP_BESIDE_TEXT, key);
        if (status == ESP_OK)
            status = esp_take_text(line, c->of[c->count++].value, ESP_BESIDE_TEXT, value);
    }
    return status;
}

static int take_here(void *user, struct esp_file_line *line)
{
    struct paper *p = user;
    struct esp_beside *b = &p->beside;
    if (b->here_count == ESP_BESIDE_HERE)
        return esp_wrong_line(line, "there are too many 'here' lines");
    int status = esp_take_text(line, b->here[b->here_count], ESP_BESIDE_TEXT,
                               esp_take_part(&line->text, "|"));
    return status < 0 ? status : take_conditions(&p->here[b->here_count++], line);
}

static int take_row(void *user, struct esp_file_line *line)
{
    struct paper *p = user;
    struct esp_beside *b = &p->beside;
    struct esp_beside_row *row = &b->row[b->rows];
    if (b->rows == ESP_BESIDE_ROWS)
        return esp_wrong_line(line, "there are too many rows");
    int status =
        esp_take_text(line, row->label, ESP_BESIDE_TEXT, esp_take_part(&line->text, "|"));
    const char *value = esp_take_part(&line->text, "|");
    row->paper = value_of(value);
    if (status == ESP_OK && !isfinite(row->paper) && strcmp(value, "-") != 0)
        status = esp_wrong_line(
            line, "row takes NAME | VALUE | KEY VALUE ..., with - if there is no value");
    return status < 0 ? status : take_conditions(&p->row[b->rows++], line);
}

static int take_reference(void *user, struct esp_file_line *line)
{
    struct esp_beside *b = &((struct paper *)user)->beside;
    b->reference = value_of(esp_take_part(&line->text, " \t"));
    if (!isfinite(b->reference))
        return esp_wrong_line(line, "reference takes a VALUE above 0 and a NAME");
    return esp_take_text(line, b->reference_label, ESP_BESIDE_TEXT, line->text);
}

#define TEXT(field) NULL, offsetof(struct paper, field), ESP_BESIDE_TEXT
static const struct esp_line_kind kinds[] = {
    {"title", TEXT(beside.title)},     {"measure", TEXT(beside.measure)},
    {"paper", TEXT(beside.paper)},     {"column", TEXT(column)},
    {"results", .take = take_results}, {"here", .take = take_here},
    {"row", .take = take_row},         {"reference", .take = take_reference},
};

static int take_line(void *user, struct esp_file_line *line)
{
    int status = esp_take_kind(kinds, sizeof kinds / sizeof *kinds, user, line);
    return status == 1 ? esp_wrong_line(line, "unknown kind of line; "
                                              "sessions/samples/README.md lists them")
                       : status;
}

/* ------------------------------------------------------------------ the table */

static bool holds(const cJSON *row, const struct conditions *conditions)
{
    for (int i = 0; i < conditions->count; i++) {
        const char *value = conditions->of[i].value;
        const cJSON *cell = cJSON_GetObjectItemCaseSensitive(row, conditions->of[i].key);
        char *end;
        const double number = strtod(value, &end);
        if (!(cJSON_IsNumber(cell) && !*end && fabs(cell->valuedouble - number) < 1e-9) &&
            !(cJSON_IsString(cell) && strcmp(cell->valuestring, value) == 0))
            return false;
    }
    return true;
}

/* Returns the mean of a column over the rows that meet both conditions, or NaN if none does. */
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

/* Writes how the table was made, such as "suite dynatree-main; fairytale-target with
 * fairytale-draft, 8 prompts, 128 tokens each". */
static void name_source(struct esp_beside *b, const cJSON *table)
{
    const cJSON *target = cJSON_GetObjectItemCaseSensitive(table, "target");
    const cJSON *draft = cJSON_GetObjectItemCaseSensitive(table, "draft");
    snprintf(b->source, sizeof b->source,
             "suite %s; %s with %s, %.0f prompts, %.0f tokens each", text_in(table, "suite"),
             text_in(target, "name"), text_in(draft, "name"), number_in(table, "prompts"),
             number_in(table, "tokens"));
}

static int take_table(struct paper *p, const char *path, char *err, size_t errlen)
{
    struct esp_beside *b = &p->beside;
    cJSON *table = NULL;
    int status = cli_suite_read_table(&table, p->results, err, errlen);
    const cJSON *rows = cJSON_GetObjectItemCaseSensitive(table, "rows");
    for (int i = 0; i < b->rows && status == ESP_OK; i++)
        for (int j = 0; j < b->here_count && status == ESP_OK; j++) {
            b->row[i].here[j] = mean_of(rows, p->column, &p->row[i], &p->here[j]);
            if (!isfinite(b->row[i].here[j]))
                status =
                    esp_fail(err, errlen, ESP_E_MISMATCH, "%s: %s has no %s for row '%s', %s",
                             path, p->results, p->column, b->row[i].label, b->here[j]);
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
    struct paper *p = calloc(1, sizeof *p);
    if (!p)
        return esp_fail(err, errlen, ESP_E_MEMORY, "not enough memory for the figures");
    int status = esp_line_file_read(path, take_line, p, err, errlen);
    if (status == ESP_OK && (!*p->beside.title || !*p->results || !*p->column ||
                             p->beside.rows == 0 || p->beside.here_count == 0))
        status =
            esp_fail(err, errlen, ESP_E_FORMAT,
                     "%s: the lines title, results, column, here and row are required", path);
    if (status == ESP_OK)
        status = take_table(p, path, err, errlen);
    *beside = p->beside;
    free(p);
    return status;
}
