/* suite_file.c - reads a suite, line by line; see sessions/suites/README.md. */
#include <stdlib.h>
#include <string.h>

#include "engine/support/paths.h"
#include "kernels/status.h"
#include "tui/cli/bench/suite.h"
#include "tui/model/line_file.h"
#include "viz/safe.h"

struct reading {
    struct cli_suite *suite;
    const char *path;
    int number; /* of the line */
    char *err;
    size_t errlen;
};

static int wrong(const struct reading *r, const char *why)
{
    return esp_fail(r->err, r->errlen, ESP_E_FORMAT, "%s, line %d: %s", r->path, r->number,
                    why);
}

/* Takes the next word off *text; false: there is none, or it is too long. */
static bool next_word(char **text, char word[SUITE_WORD])
{
    *text += strspn(*text, " \t");
    const size_t length = strcspn(*text, " \t");
    if (length == 0 || length >= SUITE_WORD)
        return false;
    memcpy(word, *text, length);
    word[length] = '\0';
    *text += length;
    return true;
}

/* Takes the next word off *text if it is this one. */
static bool is_word(char **text, const char *wanted)
{
    char *rest = *text, word[SUITE_WORD];
    const bool same = next_word(&rest, word) && strcmp(word, wanted) == 0;
    *text = same ? rest : *text;
    return same;
}

static bool is_end(const char *text)
{
    return text[strspn(text, " \t")] == '\0';
}

static int take_text(const struct reading *r, char *to, size_t size, const char *text)
{
    if (!*text || strlen(text) >= size)
        return wrong(r, "there is no text, or it is too long");
    strcpy(to, text);
    return ESP_OK;
}

/* Splits "a,b" into `most` words at most; returns how many, 0 if there are more. */
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

static int take_title(struct reading *r, char *text)
{
    return take_text(r, r->suite->title, sizeof r->suite->title, text);
}

static int take_source(struct reading *r, char *text)
{
    return take_text(r, r->suite->source, sizeof r->suite->source, text);
}

/* Takes a whole number from 1 on off *text, the last word of the line. */
static bool last_number(char **text, int *number)
{
    char word[SUITE_WORD], *end;
    if (!next_word(text, word) || !is_end(*text))
        return false;
    const long value = strtol(word, &end, 10);
    *number = (int)value;
    return end != word && !*end && value >= 1 && value <= 1 << 24;
}

/* A file beside the suite, or one of the suites' folder. */
static int take_prompts(struct reading *r, char *text)
{
    const char *slash = strrchr(r->path, '/');
    char file[SUITE_WORD];
    if (!next_word(&text, file) ||
        (!is_end(text) && !last_number(&text, &r->suite->most_prompts)))
        return wrong(r, "prompts takes a FILE, and perhaps how many of them");
    const int length = *file == '/' || !slash ? 0 : (int)(slash - r->path) + 1;
    const int n =
        snprintf(r->suite->prompts, sizeof r->suite->prompts, "%.*s%s", length, r->path, file);
    return n < (int)sizeof r->suite->prompts ? (int)ESP_OK
                                             : wrong(r, "the name of the prompts is too long");
}

static int take_max_nodes(struct reading *r, char *text)
{
    return last_number(&text, &r->suite->max_nodes) && r->suite->max_nodes <= ESP_MAX_NODES
               ? (int)ESP_OK
               : wrong(r, "max_nodes takes a number up to 2048");
}

static int take_target(struct reading *r, char *text)
{
    return take_text(r, r->suite->target, sizeof r->suite->target, text);
}

static int take_measure(struct reading *r, char *text)
{
    char known[SUITE_WORD] = "measure takes one of";
    for (const struct cli_suite_measure *m = cli_suite_measures; m->name; m++) {
        if (strcmp(m->name, text) == 0) {
            r->suite->measure = m;
            return ESP_OK;
        }
        snprintf(known + strlen(known), sizeof known - strlen(known), " %s", m->name);
    }
    return wrong(r, known);
}

static int take_set(struct reading *r, char *text)
{
    struct cli_suite *s = r->suite;
    if (s->sets == SUITE_SETS)
        return wrong(r, "there are too many lines that set");
    if (!next_word(&text, s->set[s->sets].key) || !next_word(&text, s->set[s->sets].value) ||
        !is_end(text))
        return wrong(r, "set takes KEY VALUE");
    s->sets++;
    return ESP_OK;
}

static int take_vary(struct reading *r, char *text)
{
    struct cli_suite *s = r->suite;
    struct cli_vary *v = &s->vary[s->varies];
    char word[SUITE_WORD];
    if (s->varies == SUITE_VARIES)
        return wrong(r, "there are too many lines that vary");
    if (!next_word(&text, word) || !(v->keys = split(word, v->key, SUITE_KEYS)))
        return wrong(r, "vary takes KEY VALUE ..., or KEY,KEY VALUE,VALUE ...");
    while (!is_end(text)) {
        if (v->count == SUITE_VALUES)
            return wrong(r, "there are too many values");
        if (!next_word(&text, word) || split(word, v->value[v->count], SUITE_KEYS) != v->keys)
            return wrong(r, "there must be a value for every key, with commas between them");
        v->count++;
    }
    if (v->count == 0)
        return wrong(r, "there are no values");
    s->varies++;
    return ESP_OK;
}

static int add_choice(struct reading *r, char *text, bool best)
{
    struct cli_suite *s = r->suite;
    struct cli_suite_choice *c = &s->choice[s->choices];
    if (s->choices == SUITE_CHOICES)
        return wrong(r, "there are too many choices");
    if (!next_word(&text, c->spec))
        return wrong(r, "there must be a drafter, or drafter+verifier, and perhaps: as NAME");
    strcpy(c->label, best ? "" : c->spec);
    if (is_word(&text, "with") && !next_word(&text, c->with))
        return wrong(r, "with takes KEY=VALUE, or several with commas between them");
    if (!is_end(text)) {
        if (!is_word(&text, "as"))
            return wrong(r, "behind the choice there may only be: with KEY=VALUE,.. as NAME");
        text += strspn(text, " \t");
        int status = take_text(r, c->label, sizeof c->label, text);
        if (status < 0)
            return status;
    }
    if (best && !*c->label)
        return wrong(r, "the best of several needs a name: best SPEC as NAME");
    c->best = best;
    s->choices++;
    return ESP_OK;
}

static int take_choice(struct reading *r, char *text)
{
    return add_choice(r, text, false);
}

static int take_best(struct reading *r, char *text)
{
    return add_choice(r, text, true);
}

static int take_best_by(struct reading *r, char *text)
{
    if (!cli_suite_can_choose(text))
        return wrong(
            r, "best_by takes a column that is no comparison (sessions/suites/README.md)");
    return take_text(r, r->suite->best_by, sizeof r->suite->best_by, text);
}

static int take_columns(struct reading *r, char *text)
{
    struct cli_suite *s = r->suite;
    while (!is_end(text)) {
        if (s->columns == SUITE_COLUMNS)
            return wrong(r, "there are too many columns");
        if (!next_word(&text, s->column[s->columns]) ||
            !cli_suite_has_column(s->column[s->columns]))
            return wrong(r, "there is no such column (sessions/suites/README.md lists them)");
        s->columns++;
    }
    return ESP_OK;
}

static int take_pivot(struct reading *r, char *text)
{
    struct cli_suite *s = r->suite;
    if (s->pivots == SUITE_SHOWN)
        return wrong(r, "there are too many pivots");
    if (!next_word(&text, s->pivot[s->pivots].across) ||
        !next_word(&text, s->pivot[s->pivots].column))
        return wrong(r, "pivot takes KEY COLUMN, and perhaps KEY=VALUE ...");
    for (char word[SUITE_WORD], *rest = text; !is_end(rest);)
        if (!next_word(&rest, word) || !strchr(word, '='))
            return wrong(r, "behind a pivot's column there may only be KEY=VALUE ...");
    return is_end(text) ? (s->pivots++, (int)ESP_OK)
                        : take_text(r, s->pivot[s->pivots++].where, SUITE_WORD, text);
}

static int take_plot(struct reading *r, char *text)
{
    struct cli_suite *s = r->suite;
    if (s->plots == SUITE_SHOWN)
        return wrong(r, "there are too many plots");
    if (!next_word(&text, s->plot[s->plots].across) ||
        !next_word(&text, s->plot[s->plots].column) || !is_end(text))
        return wrong(r, "plot takes X Y, two columns");
    s->plots++;
    return ESP_OK;
}

static int take_by(struct reading *r, char *text)
{
    r->suite->by_category = true;
    return strcmp(text, "category") == 0 ? (int)ESP_OK : wrong(r, "by takes category");
}

static int take_chain(struct reading *r, char *text)
{
    r->suite->no_chain = true;
    return strcmp(text, "off") == 0 ? (int)ESP_OK : wrong(r, "chain takes off");
}

static const struct {
    const char *name;
    int (*take)(struct reading *r, char *text);
} lines[] = {
    {"title", take_title},     {"source", take_source},
    {"prompts", take_prompts}, {"measure", take_measure},
    {"set", take_set},         {"vary", take_vary},
    {"choice", take_choice},   {"best", take_best},
    {"best_by", take_best_by}, {"columns", take_columns},
    {"pivot", take_pivot},     {"plot", take_plot},
    {"by", take_by},           {"chain", take_chain},
    {"target", take_target},   {"max_nodes", take_max_nodes},
};

static int take_line(void *user, char *line, int number, char *err, size_t errlen)
{
    struct reading *r = user;
    char word[SUITE_WORD];
    r->number = number;
    r->err = err;
    r->errlen = errlen;
    if (!next_word(&line, word))
        return wrong(r, "the line is no sentence of a suite");
    line += strspn(line, " \t");
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        if (strcmp(lines[i].name, word) == 0)
            return lines[i].take(r, line);
    return esp_fail(
        err, errlen, ESP_E_FORMAT,
        "%s, line %d: a suite has no line '%s'; sessions/suites/README.md lists them", r->path,
        number, word);
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
        "there is no suite '%s': `espalier bench --suite list` names them, and ./FILE "
        "is a file",
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
    struct reading r = {.suite = s, .path = s->path};
    status = esp_line_file_read(s->path, take_line, &r, err, errlen);
    if (status == ESP_OK && s->choices == 0)
        status =
            esp_fail(err, errlen, ESP_E_FORMAT, "%s: there is no line: choice SPEC", s->path);
    return status;
}

int cli_suite_list(void)
{
    struct cli_suite *s = malloc(sizeof *s);
    char folder[PATH_MAX], name[SUITE_WORD], err[512];
    if (!s || esp_find_data(folder, sizeof folder, "suites", "") < 0) {
        free(s);
        esp_complain("no suites were found; ESPALIER_DATA may name their folder");
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
