/* suite_plan.c - lists the rows and cases of a suite; see suite.h.
 *
 * A varied key is `tokens`, `prompt_tokens`, a cost, a setting of sessions, or a name that
 * choices use as $NAME. A choice that does not use $NAME has a single row for all values of
 * NAME. If a drafter does not use costs, its case runs once for all costs, but there is a row
 * for each cost.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/status.h"
#include "tui/cli/cli.h"
#include "tui/cli/bench/suite.h"

enum { MOST_COST = 100 };

struct planning {
    struct cli_suite_plan *plan;
    const struct cli_suite *suite;
    const struct cli_options *options;
    int value[SUITE_VARIES];
    struct cli_case settings; /* settings from the current values; no choice is applied yet */
    int without_costs;        /* number of these settings; the same for all costs */
    struct cli_suite_row *row;
    char *err;
    size_t errlen;
};

static bool is_cost(const char *key)
{
    return strcmp(key, "row_cost") == 0 || strcmp(key, "draft_cost") == 0;
}

/* Returns whether this key changes the run no matter which drafter is used. */
static bool is_setting(const char *key)
{
    return strcmp(key, "tokens") == 0 || strcmp(key, "prompt_tokens") == 0 ||
           strcmp(key, "draft") == 0 || strcmp(key, "delay") == 0 || esp_value_find(key) >= 0;
}

static bool has(const struct cli_vary *v, bool (*is)(const char *key))
{
    for (int i = 0; i < v->keys; i++)
        if (is(v->key[i]))
            return true;
    return false;
}

static int no_memory(const struct planning *p)
{
    return esp_fail(p->err, p->errlen, ESP_E_MEMORY, "not enough memory for the suite");
}

static int too_long(const struct planning *p)
{
    return esp_fail(p->err, p->errlen, ESP_E_FORMAT, "%s: a choice is too long",
                    p->suite->path);
}

/* ------------------------------------------------------------------ flags */

/* Returns whether a key was given as a flag. Returns false for `draft`, because --draft names
 * the folder that contains the varied drafts, and for `delay`, which has no flag. */
static bool was_given(const struct cli_options *o, const char *key)
{
    return strcmp(key, "draft") != 0 && strcmp(key, "delay") != 0 && is_setting(key) &&
           cli_is_given(o, key);
}

/* If a key was also given as a flag, replaces its values by the value of the flag. */
static void follow_flags(struct cli_suite *s, const struct cli_options *o)
{
    for (int i = 0; i < s->varies; i++)
        for (int j = 0; j < s->vary[i].keys; j++) {
            if (!was_given(o, s->vary[i].key[j]))
                continue;
            s->vary[i].count = 1;
            esp_value_write(cli_flag(s->vary[i].key[j]), o, s->vary[i].value[0][j], SUITE_WORD);
        }
    for (int i = 0; i < s->sets; i++)
        if (was_given(o, s->set[i].key))
            esp_value_write(cli_flag(s->set[i].key), o, s->set[i].value, SUITE_WORD);
}

/* ------------------------------------------------------------------ settings */

static int set(const struct planning *p, struct cli_case *c, const char *key, const char *value)
{
    const bool tokens = strcmp(key, "tokens") == 0;
    char *end, called[2 * SUITE_WORD];
    if (tokens || strcmp(key, "prompt_tokens") == 0) {
        const long number = strtol(value, &end, 10);
        if (*end || end == value || number < 1 || number > 1 << 24)
            return esp_fail(p->err, p->errlen, ESP_E_ARGUMENT,
                            "%s: %s takes a whole number of at least 1, not '%s'",
                            p->suite->path, key, value);
        *(tokens ? &c->tokens : &c->prompt_tokens) = (int)number;
        return ESP_OK;
    }
    if (strcmp(key, "draft") == 0) {
        snprintf(c->draft, sizeof c->draft, "%s", value);
        return p->options->engine.draft
                   ? (int)ESP_OK
                   : esp_fail(p->err, p->errlen, ESP_E_ARGUMENT,
                              "%s measures your own drafts: use --draft to name the folder "
                              "that '%s' is in",
                              p->suite->name, value);
    }
    if (strcmp(key, "delay") == 0) {
        snprintf(c->delay, sizeof c->delay, "%s", value);
        return ESP_OK;
    }
    if (is_cost(key)) {
        const double share = strtod(value, &end);
        if (*end || end == value || !(share >= 0 && share <= MOST_COST))
            return esp_fail(p->err, p->errlen, ESP_E_ARGUMENT,
                            "%s: %s takes a fraction of a pass, from 0 to %d, not '%s'",
                            p->suite->path, key, MOST_COST, value);
        *(strcmp(key, "row_cost") == 0 ? &c->costs.row : &c->costs.draft) = share;
        return ESP_OK;
    }
    if (esp_value_find(key) < 0)
        return esp_fail(p->err, p->errlen, ESP_E_ARGUMENT,
                        "%s: there is no setting '%s': it must be tokens, prompt_tokens, "
                        "draft, delay, row_cost, draft_cost or one of `espalier list settings`",
                        p->suite->path, key);
    snprintf(called, sizeof called, "%s: %s", p->suite->name, key);
    return esp_value_parse(&c->values, esp_value_find(key), called, value, p->err, p->errlen);
}

/* Applies the current values of the varied keys as settings, and gives these settings a number.
 * Combinations of values that differ only in the $NAMEs get the same number. */
static int apply_values(struct planning *p)
{
    const struct cli_suite *s = p->suite;
    int status = ESP_OK, number = 0;
    p->without_costs = 0;
    p->settings = (struct cli_case){.tokens = p->options->tokens,
                                    .prompt_tokens = p->options->prompt_tokens,
                                    .costs = {NAN, NAN},
                                    .values = p->options->session.values};
    for (int i = 0; i < s->sets && status == ESP_OK; i++)
        status = set(p, &p->settings, s->set[i].key, s->set[i].value);
    for (int i = 0; i < s->varies; i++) {
        const struct cli_vary *v = &s->vary[i];
        for (int j = 0; j < v->keys && status == ESP_OK; j++)
            if (is_setting(v->key[j]) || is_cost(v->key[j]))
                status = set(p, &p->settings, v->key[j], v->value[p->value[i]][j]);
        if (!has(v, is_setting) && !has(v, is_cost))
            continue;
        number = number * v->count + p->value[i];
        p->without_costs = p->without_costs * v->count + (has(v, is_setting) ? p->value[i] : 0);
    }
    if (status == ESP_OK &&
        isfinite(p->settings.costs.row) != isfinite(p->settings.costs.draft))
        status = esp_fail(p->err, p->errlen, ESP_E_ARGUMENT,
                          "%s: row_cost and draft_cost must be given together", s->path);
    p->settings.settings = number;
    p->plan->settings = number >= p->plan->settings ? number + 1 : p->plan->settings;
    return status;
}

/* ------------------------------------------------------------------ choices */

/* Replaces each $NAME in `spec` by its value. Sets used[i] to whether a value of vary line i
 * was used. */
static int substitute(const struct planning *p, const char *spec, char out[SUITE_WORD],
                      bool used[SUITE_VARIES])
{
    const struct cli_suite *s = p->suite;
    size_t length = 0;
    while (*spec) {
        const char *value = NULL;
        size_t longest = 0;
        for (int i = 0; *spec == '$' && i < s->varies; i++)
            for (int j = 0; j < s->vary[i].keys; j++) {
                const char *key = s->vary[i].key[j];
                const size_t n = strlen(key);
                if (n > longest && strncmp(spec + 1, key, n) == 0) {
                    longest = n;
                    value = s->vary[i].value[p->value[i]][j];
                    used[i] = true;
                }
            }
        if (*spec == '$' && !value)
            return esp_fail(p->err, p->errlen, ESP_E_FORMAT,
                            "%s: '%s' does not name a key of a vary line", s->path, spec);
        const size_t n = value ? strlen(value) : 1;
        if (length + n >= SUITE_WORD)
            return too_long(p);
        memcpy(out + length, value ? value : spec, n);
        length += n;
        spec += value ? longest + 1 : 1;
    }
    out[length] = '\0';
    return ESP_OK;
}

/* Applies the settings that a choice lists after 'with'. */
static int set_own(const struct planning *p, struct cli_case *c, const char *with)
{
    char text[SUITE_WORD];
    int status = ESP_OK;
    snprintf(text, sizeof text, "%s", with);
    for (char *key = text, *next; key && *key && status == ESP_OK; key = next) {
        char *value = strchr(key, '=');
        if ((next = strchr(key, ',')))
            *next++ = '\0';
        if (!value || (next && value >= next))
            return esp_fail(p->err, p->errlen, ESP_E_FORMAT,
                            "%s: 'with' takes one or more KEY=VALUE, not '%s'", p->suite->path,
                            key);
        *value++ = '\0';
        status = set(p, c, key, value);
    }
    return status;
}

static int check_case(const struct planning *p, const char *spec)
{
    char drafter[SUITE_WORD], why[512];
    strcpy(drafter, spec);
    char *plus = strchr(drafter, '+');
    if (plus)
        *plus = '\0';
    if (esp_choice_check(drafter, plus ? plus + 1 : NULL, p->settings.values.temperature, true,
                         why, sizeof why) == ESP_OK)
        return ESP_OK;
    return esp_fail(p->err, p->errlen, ESP_E_ARGUMENT, "%s: %s at temperature %g: %s",
                    p->suite->path, spec, p->settings.values.temperature, why);
}

/* Returns whether the trees of a choice depend on the costs of passes. */
static bool weighs_costs(const char *spec)
{
    const size_t length = strcspn(spec, ":+");
    struct esp_item item;
    for (int i = 0; esp_item(ESP_DRAFTERS, i, &item); i++)
        if (strlen(item.name) == length && strncmp(item.name, spec, length) == 0)
            return item.weighs_costs;
    return false;
}

/* Adds a case to the current row. If an equal case exists, the rows share it. */
static int add_case(struct planning *p, const char *spec)
{
    struct cli_suite_plan *plan = p->plan;
    const char *with = p->suite->choice[p->row->choice].with;
    const bool costs = weighs_costs(spec);
    const int settings = costs ? p->settings.settings : p->without_costs;
    int at = 0;
    while (at < plan->count &&
           (plan->cases[at].settings != settings || strcmp(plan->cases[at].with, with) != 0 ||
            strcmp(plan->cases[at].spec, spec) != 0))
        at++;
    if (at == SUITE_GRID || plan->candidates == SUITE_GRID)
        return esp_fail(p->err, p->errlen, ESP_E_ARGUMENT,
                        "%s: there are more than %d cases in the grid", p->suite->path,
                        SUITE_GRID);
    if (at == plan->count) {
        int status = check_case(p, spec);
        if (status < 0)
            return status;
        plan->cases[at] = p->settings;
        plan->cases[at].settings = settings;
        if (!costs)
            plan->cases[at].costs = (struct esp_nominal_costs){NAN, NAN};
        plan->cases[at].with = with;
        strcpy(plan->cases[at].spec, spec);
        status = set_own(p, &plan->cases[at], with);
        if (status < 0)
            return status;
        plan->cases[at].run = calloc((size_t)plan->prompts->count, sizeof(cJSON *));
        if (!plan->cases[at].run)
            return no_memory(p);
        plan->count++;
    }
    plan->candidate[plan->candidates++] = at;
    p->row->count++;
    return ESP_OK;
}

/* Adds every case that a spec with {a,b} or {1..8} describes. */
static int add_grid(struct planning *p, const char *spec)
{
    const char *open = strchr(spec, '{'), *close = open ? strchr(open, '}') : NULL;
    char one[SUITE_WORD], part[SUITE_WORD];
    int from, to, end = 0, status = ESP_OK;
    if (!open)
        return add_case(p, spec);
    if (!close)
        return esp_fail(p->err, p->errlen, ESP_E_FORMAT, "%s: a { has no } in '%s'",
                        p->suite->path, spec);
    const int before = (int)(open - spec);
    snprintf(part, sizeof part, "%.*s", (int)(close - open) - 1, open + 1);
    if (sscanf(part, "%d..%d%n", &from, &to, &end) == 2 && !part[end]) {
        for (int i = from; i <= to && status == ESP_OK; i++)
            status =
                snprintf(one, sizeof one, "%.*s%d%s", before, spec, i, close + 1) < SUITE_WORD
                    ? add_grid(p, one)
                    : too_long(p);
        return status;
    }
    for (char *at = part, *next; at && status == ESP_OK; at = next) {
        next = strchr(at, ',');
        if (next)
            *next++ = '\0';
        status = snprintf(one, sizeof one, "%.*s%s%s", before, spec, at, close + 1) < SUITE_WORD
                     ? add_grid(p, one)
                     : too_long(p);
    }
    return status;
}

/* ------------------------------------------------------------------ rows */

static bool is_there(const struct cli_suite_plan *plan, const struct cli_suite_row *row)
{
    for (int i = 0; i < plan->rows; i++)
        if (plan->row[i].choice == row->choice && plan->row[i].settings == row->settings &&
            memcmp(plan->row[i].value, row->value, sizeof row->value) == 0)
            return true;
    return false;
}

static int add_row(struct planning *p, int choice)
{
    struct cli_suite_plan *plan = p->plan;
    const struct cli_suite_choice *c = &p->suite->choice[choice];
    bool used[SUITE_VARIES] = {false};
    char spec[SUITE_WORD];
    struct cli_suite_row row = {.choice = choice,
                                .settings = p->settings.settings,
                                .costs = p->settings.costs,
                                .first = plan->candidates};
    int status = substitute(p, c->spec, spec, used);
    if (status < 0)
        return status;
    for (int i = 0; i < p->suite->varies; i++)
        row.value[i] =
            used[i] || has(&p->suite->vary[i], is_setting) || has(&p->suite->vary[i], is_cost)
                ? p->value[i]
                : -1;
    if (is_there(plan, &row))
        return ESP_OK;
    if (plan->rows == SUITE_GRID)
        return esp_fail(p->err, p->errlen, ESP_E_ARGUMENT, "%s: there are more than %d rows",
                        p->suite->path, SUITE_GRID);
    p->row = &row;
    status = add_grid(p, spec);
    if (status == ESP_OK && row.count > 1 && !c->best)
        status =
            esp_fail(p->err, p->errlen, ESP_E_FORMAT,
                     "%s: '%s' stands for several choices; use a 'best' line, or vary a $NAME",
                     p->suite->path, c->spec);
    plan->row[plan->rows++] = row;
    return status;
}

static bool next_values(struct planning *p)
{
    for (int i = p->suite->varies - 1; i >= 0; i--) {
        if (++p->value[i] < p->suite->vary[i].count)
            return true;
        p->value[i] = 0;
    }
    return false;
}

/* Returns an error if there are too many combinations of values. All combinations are visited,
 * even if no choice depends on them. */
static int check_combinations(const struct planning *p)
{
    int combinations = 1;
    for (int i = 0; i < p->suite->varies && combinations <= SUITE_GRID; i++)
        combinations *= p->suite->vary[i].count;
    if (combinations > SUITE_GRID)
        return esp_fail(p->err, p->errlen, ESP_E_ARGUMENT,
                        "%s: the 'vary' lines have more than %d combinations", p->suite->path,
                        SUITE_GRID);
    return ESP_OK;
}

int cli_suite_plan(struct cli_suite_plan *plan, struct cli_suite *suite,
                   const struct cli_prompts *prompts, const struct cli_options *options,
                   char *err, size_t errlen)
{
    struct planning p = {
        .plan = plan, .suite = suite, .options = options, .err = err, .errlen = errlen};
    *plan = (struct cli_suite_plan){.suite = suite, .prompts = prompts};
    plan->cases = calloc(SUITE_GRID, sizeof *plan->cases);
    plan->row = calloc(SUITE_GRID, sizeof *plan->row);
    plan->candidate = calloc(SUITE_GRID, sizeof *plan->candidate);
    if (!plan->cases || !plan->row || !plan->candidate)
        return no_memory(&p);
    follow_flags(suite, options);
    int status = check_combinations(&p);
    if (status < 0)
        return status;
    do {
        status = apply_values(&p);
        for (int i = 0; i < suite->choices && status == ESP_OK; i++)
            status = add_row(&p, i);
    } while (status == ESP_OK && next_values(&p));
    return status;
}

void cli_suite_plan_free(struct cli_suite_plan *plan)
{
    for (int i = 0; i < plan->count; i++) {
        for (int j = 0; j < plan->prompts->count; j++)
            cJSON_Delete(plan->cases[i].run[j]);
        free(plan->cases[i].run);
    }
    free(plan->cases);
    free(plan->row);
    free(plan->candidate);
    *plan = (struct cli_suite_plan){0};
}
