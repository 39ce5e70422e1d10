/* suite_file.c - reads a suite, line by line; see sessions/suites/README.md. */
#include <stdlib.h>
#include <string.h>

#include "engine/espalier_ranks.h"
#include "engine/support/paths.h"
#include "kernels/status.h"
#include "tui/cli/bench/suite.h"
#include "tui/model/line_file.h"
#include "viz/safe.h"

/* Copies the next word and removes it from the line. Returns false if there is no word or if it
 * is too long. */
static bool next_word(struct esp_file_line *line, char word[SUITE_WORD])
{
    const char *next = esp_take_part(&line->text, " \t");
    if (!*next || strlen(next) >= SUITE_WORD)
        return false;
    strcpy(word, next);
    return true;
}

/* If the next word of the line is `wanted`, removes it and returns true. */
static bool is_word(struct esp_file_line *line, const char *wanted)
{
    const size_t length = strlen(wanted);
    const bool same =
        strcspn(line->text, " \t") == length && memcmp(line->text, wanted, length) == 0;
    if (same)
        esp_take_part(&line->text, " \t");
    return same;
}

/* Splits a text such as "a,b" into at most `most` words. Returns the number of words, or 0 if
 * there are more than `most`. */
static int split(const char *text, char word[][SUITE_WORD], int most)
{
    int count = 0;
    while (count < most) {
        const size_t length = strcspn(text, ",");
        memcpy(word[count], text, length);
        word[count++][length] = '\0';
        text += length;
        if (!*text++)
            return count;
    }
    return 0;
}

/* ------------------------------------------------------------------ lines */

/* Reads the rest of the line as a whole number of at least 1. */
static bool last_number(struct esp_file_line *line, int *number)
{
    char *end;
    const long value = strtol(line->text, &end, 10);
    *number = (int)value;
    return end != line->text && !*end && value >= 1 && value <= 1 << 24;
}

/* Reads the path of the file with the prompts, which is relative to the suite's folder, and how
 * many of the prompts to use. */
static int take_prompts(void *user, struct esp_file_line *line)
{
    struct cli_suite *s = user;
    char file[SUITE_WORD];
    if (!next_word(line, file) || (*line->text && !last_number(line, &s->most_prompts)))
        return esp_wrong_line(line,
                              "prompts takes a FILE and, optionally, a number of prompts");
    return esp_path_beside(s->prompts, sizeof s->prompts, line->path, file) == ESP_OK
               ? (int)ESP_OK
               : esp_wrong_line(line, "the path of the file of prompts is too long");
}

static int take_max_nodes(void *user, struct esp_file_line *line)
{
    struct cli_suite *s = user;
    return last_number(line, &s->max_nodes) && s->max_nodes <= ESP_MAX_NODES
               ? (int)ESP_OK
               : esp_wrong_line(line, "max_nodes takes a number up to 2048");
}

static int take_ranks(void *user, struct esp_file_line *line)
{
    struct cli_suite *s = user;
    return last_number(line, &s->ranks) && s->ranks >= 2 && s->ranks <= ESP_RANKS_MOST
               ? (int)ESP_OK
               : esp_wrong_line(line, "ranks takes a number from 2 to 64");
}

static int take_measure(void *user, struct esp_file_line *line)
{
    struct cli_suite *s = user;
    char known[SUITE_WORD] = "measure takes one of";
    for (const struct cli_suite_measure *m = cli_suite_measures; m->name; m++) {
        if (strcmp(m->name, line->text) == 0) {
            s->measure = m;
            return ESP_OK;
        }
        snprintf(known + strlen(known), sizeof known - strlen(known), " %s", m->name);
    }
    return esp_wrong_line(line, "%s", known);
}

static int take_set(void *user, struct esp_file_line *line)
{
    struct cli_suite *s = user;
    if (s->sets == SUITE_SETS)
        return esp_wrong_line(line, "there are too many 'set' lines");
    if (!next_word(line, s->set[s->sets].key) || !next_word(line, s->set[s->sets].value) ||
        *line->text)
        return esp_wrong_line(line, "set takes KEY VALUE");
    s->sets++;
    return ESP_OK;
}

static int take_vary(void *user, struct esp_file_line *line)
{
    struct cli_suite *s = user;
    struct cli_vary *v = &s->vary[s->varies];
    char word[SUITE_WORD];
    if (s->varies == SUITE_VARIES)
        return esp_wrong_line(line, "there are too many 'vary' lines");
    if (!next_word(line, word) || !(v->keys = split(word, v->key, SUITE_KEYS)))
        return esp_wrong_line(line, "vary takes KEY VALUE ..., or KEY,KEY VALUE,VALUE ...");
    while (*line->text) {
        if (v->count == SUITE_VALUES)
            return esp_wrong_line(line, "there are too many values");
        if (!next_word(line, word) || split(word, v->value[v->count], SUITE_KEYS) != v->keys)
            return esp_wrong_line(line,
                                  "there must be a value for every key, separated by commas");
        v->count++;
    }
    if (v->count == 0)
        return esp_wrong_line(line, "there are no values");
    s->varies++;
    return ESP_OK;
}

static int add_choice(struct cli_suite *s, struct esp_file_line *line, bool best)
{
    struct cli_suite_choice *c = &s->choice[s->choices];
    if (s->choices == SUITE_CHOICES)
        return esp_wrong_line(line, "there are too many choices");
    if (!next_word(line, c->spec))
        return esp_wrong_line(
            line, "there must be a drafter, or drafter+verifier; `as NAME` may follow");
    strcpy(c->label, best ? "" : c->spec);
    if (is_word(line, "with") && !next_word(line, c->with))
        return esp_wrong_line(line, "'with' takes one or more KEY=VALUE, separated by commas");
    if (*line->text) {
        if (!is_word(line, "as"))
            return esp_wrong_line(
                line, "after the choice only this may follow: with KEY=VALUE,.. as NAME");
        int status = esp_take_text(line, c->label, sizeof c->label, line->text);
        if (status < 0)
            return status;
    }
    if (best && !*c->label)
        return esp_wrong_line(line, "the best of several needs a name: best SPEC as NAME");
    c->best = best;
    s->choices++;
    return ESP_OK;
}

static int take_choice(void *user, struct esp_file_line *line)
{
    return add_choice(user, line, false);
}

static int take_best(void *user, struct esp_file_line *line)
{
    return add_choice(user, line, true);
}

static int take_best_by(void *user, struct esp_file_line *line)
{
    struct cli_suite *s = user;
    if (!cli_suite_can_choose(line->text))
        return esp_wrong_line(
            line, "best_by takes a column that is not a ratio to plain decoding or to a chain "
                  "(sessions/suites/README.md)");
    return esp_take_text(line, s->best_by, sizeof s->best_by, line->text);
}

static int take_columns(void *user, struct esp_file_line *line)
{
    struct cli_suite *s = user;
    while (*line->text) {
        if (s->columns == SUITE_COLUMNS)
            return esp_wrong_line(line, "there are too many columns");
        if (!next_word(line, s->column[s->columns]) ||
            !cli_suite_has_column(s->column[s->columns]))
            return esp_wrong_line(
                line, "there is no such column (sessions/suites/README.md lists them)");
        s->columns++;
    }
    return ESP_OK;
}

static int take_pivot(void *user, struct esp_file_line *line)
{
    struct cli_suite *s = user;
    if (s->pivots == SUITE_SHOWN)
        return esp_wrong_line(line, "there are too many pivots");
    if (!next_word(line, s->pivot[s->pivots].across) ||
        !next_word(line, s->pivot[s->pivots].column))
        return esp_wrong_line(line, "pivot takes KEY COLUMN, then any KEY=VALUE ...");
    for (const char *at = line->text; *at; at += strspn(at, " \t")) {
        const size_t length = strcspn(at, " \t");
        if (!memchr(at, '=', length))
            return esp_wrong_line(line, "after a pivot's column only KEY=VALUE ... may follow");
        at += length;
    }
    char *where = s->pivot[s->pivots++].where;
    return *line->text ? esp_take_text(line, where, SUITE_WORD, line->text) : ESP_OK;
}

static int take_plot(void *user, struct esp_file_line *line)
{
    struct cli_suite *s = user;
    if (s->plots == SUITE_SHOWN)
        return esp_wrong_line(line, "there are too many plots");
    if (!next_word(line, s->plot[s->plots].across) ||
        !next_word(line, s->plot[s->plots].column) || *line->text)
        return esp_wrong_line(line, "plot takes two columns, X and Y");
    s->plots++;
    return ESP_OK;
}

static int take_by(void *user, struct esp_file_line *line)
{
    struct cli_suite *s = user;
    s->by_category = true;
    return strcmp(line->text, "category") == 0 ? (int)ESP_OK
                                               : esp_wrong_line(line, "by takes category");
}

static int take_chain(void *user, struct esp_file_line *line)
{
    struct cli_suite *s = user;
    s->no_chain = true;
    return strcmp(line->text, "off") == 0 ? (int)ESP_OK
                                          : esp_wrong_line(line, "chain takes off");
}

#define TEXT(field)                                                                            \
    NULL, offsetof(struct cli_suite, field), sizeof((struct cli_suite *)NULL)->field
static const struct esp_line_kind kinds[] = {
    {"title", TEXT(title)},
    {"source", TEXT(source)},
    {"target", TEXT(target)},
    {"prompts", .take = take_prompts},
    {"measure", .take = take_measure},
    {"set", .take = take_set},
    {"vary", .take = take_vary},
    {"choice", .take = take_choice},
    {"best", .take = take_best},
    {"best_by", .take = take_best_by},
    {"columns", .take = take_columns},
    {"pivot", .take = take_pivot},
    {"plot", .take = take_plot},
    {"by", .take = take_by},
    {"chain", .take = take_chain},
    {"max_nodes", .take = take_max_nodes},
    {"ranks", .take = take_ranks},
};

static int take_line(void *user, struct esp_file_line *line)
{
    int status = esp_take_kind(kinds, sizeof kinds / sizeof *kinds, user, line);
    return status == 1
               ? esp_wrong_line(
                     line, "a suite has no line '%s'; sessions/suites/README.md lists them",
                     line->text)
               : status;
}

/* ------------------------------------------------------------------ files */

static int find(char *path, size_t size, const char *name, char *err, size_t errlen)
{
    char file[SUITE_WORD];
    const size_t length = strlen(name);
    if (strchr(name, '/') || (length > 6 && strcmp(name + length - 6, ".suite") == 0)) {
        if (snprintf(path, size, "%s", name) < (int)size)
            return ESP_OK;
    } else if (snprintf(file, sizeof file, "%s.suite", name) < (int)sizeof file &&
               esp_find_data(path, size, "suites", file) == 0) {
        return ESP_OK;
    }
    return esp_fail(
        err, errlen, ESP_E_FILE,
        "there is no suite '%s': `espalier bench --suite list` lists the suites; for "
        "a file, write ./FILE",
        name);
}

int cli_suite_read(struct cli_suite *s, const char *name, char *err, size_t errlen)
{
    memset(s, 0, sizeof *s);
    s->measure = &cli_suite_measures[0];
    strcpy(s->best_by, "speed");
    int status = find(s->path, sizeof s->path, name, err, errlen);
    if (status < 0)
        return status;
    const char *slash = strrchr(s->path, '/'), *last = slash ? slash + 1 : s->path;
    const size_t length = strcspn(last, ".");
    snprintf(s->name, sizeof s->name, "%.*s", (int)(length < 200 ? length : 200), last);
    status = esp_line_file_read(s->path, take_line, s, err, errlen);
    if (status == ESP_OK && s->choices == 0)
        status =
            esp_fail(err, errlen, ESP_E_FORMAT, "%s: a line `choice SPEC` is missing", s->path);
    return status;
}

int cli_suite_list(void)
{
    struct cli_suite *s = malloc(sizeof *s);
    char folder[PATH_MAX], name[SUITE_WORD], err[512];
    if (!s || esp_find_data(folder, sizeof folder, "suites", "") < 0) {
        free(s);
        esp_complain(
            "no suites were found; set ESPALIER_DATA to the folder that contains suites/");
        return 1;
    }
    for (int i = 0; esp_list_folder(folder, ".suite", i, name, sizeof name) == 0; i++)
        if (cli_suite_read(s, name, err, sizeof err) == ESP_OK)
            esp_safe_print(stdout, "%-20s %s%s%s%s\n", name, s->title, *s->source ? " (" : "",
                           s->source, *s->source ? ")" : "");
        else
            esp_complain("%s", err);
    free(s);
    return 0;
}
