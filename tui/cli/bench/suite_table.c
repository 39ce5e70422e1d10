/* suite_table.c - makes the table of a suite's runs; see suite.h. The columns are listed
 * below. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/status.h"
#include "tui/cli/bench/choice.h"
#include "tui/cli/bench/suite.h"

enum kind { RATIO, COUNT, SPEED, DEVIATION, LARGEST, AT_COST, OVER_PLAIN, OVER_CHAIN };

/* Each kind of column is computed from the runs as follows. RATIO: scale * sum of `top` / sum
 * of `bottom`; if `bottom` is NULL, the divisor is the number of runs. SPEED: mean of top /
 * bottom. COUNT: number of runs. LARGEST: largest `top`. AT_COST: sum of `top` / cost of all
 * passes, computed with the costs that the row assumes. OVER_...: column `top` / the same
 * column of plain decoding or of the best chain. */
static const struct column {
    const char *name, *heading;
    enum kind kind;
    const char *top, *bottom;
    double scale;
    int digits;
    bool counted; /* the column does not depend on the machine */
} columns[] = {
    {"speed", "tokens/s", SPEED, "tokens", "decode", 1, 1, false},
    {"deviation", "+-", DEVIATION, "tokens", "decode", 1, 1, false},
    {"speedup", "speedup", OVER_PLAIN, "speed", NULL, 1, 2, false},
    {"chain", "over chain", OVER_CHAIN, "speed", NULL, 1, 2, false},
    {"tokens_per_iteration", "tokens/iteration", RATIO, "tokens", "iterations", 1, 2, true},
    {"chain_tokens", "tokens/iteration over chain", OVER_CHAIN, "tokens_per_iteration", NULL, 1,
     2, true},
    {"path", "path", RATIO, "accepted", "iterations", 1, 2, true},
    {"path_share", "path/depth %", RATIO, "accepted", "deepest", 100, 1, true},
    {"depth", "depth", RATIO, "deepest", "iterations", 1, 2, true},
    {"breadth", "breadth", RATIO, "drafted", "deepest", 1, 2, true},
    {"speedup_at_cost", "speedup at these costs", AT_COST, "tokens", NULL, 1, 2, true},
    {"accepted", "accepted %", RATIO, "accepted", "drafted", 100, 1, true},
    {"nodes", "nodes", RATIO, "drafted", "iterations", 1, 1, true},
    {"most_nodes", "most nodes", LARGEST, "most_nodes", NULL, 1, 0, true},
    {"draft_passes", "draft passes", RATIO, "draft_passes", "iterations", 1, 2, true},
    {"iterations", "iterations", RATIO, "iterations", NULL, 1, 1, true},
    {"tokens_made", "tokens made", RATIO, "tokens", NULL, 1, 1, true},
    {"prompts", "prompts", COUNT, "tokens", NULL, 1, 0, true},
    {"ttft_ms", "TTFT ms", RATIO, "first", NULL, 1e3, 2, false},
    {"tpot_ms", "TPOT ms", RATIO, "decode", "tokens", 1e3, 3, false},
    {"iteration_ms", "iteration ms", RATIO, "decode", "iterations", 1e3, 3, false},
    {"draft_ms", "draft model ms", RATIO, "draft_pass", "iterations", 1e3, 3, false},
    {"tree_ms", "tree ms", RATIO, "tree", "iterations", 1e3, 3, false},
    {"verify_ms", "target ms", RATIO, "verify", "iterations", 1e3, 3, false},
    {"select_ms", "verifier ms", RATIO, "select", "iterations", 1e3, 3, false},
    {"other_ms", "rest ms", RATIO, "other", "iterations", 1e3, 3, false},
    {"draft_share", "draft model %", RATIO, "draft_pass", "decode", 100, 1, false},
    {"tree_share", "tree %", RATIO, "tree", "decode", 100, 1, false},
    {"verify_share", "target %", RATIO, "verify", "decode", 100, 1, false},
    {"select_share", "verifier %", RATIO, "select", "decode", 100, 1, false},
    {"other_share", "rest %", RATIO, "other", "decode", 100, 1, false},
    {"mask_blocks", "blocks", RATIO, "mask_blocks", "iterations", 1, 2, true},
    {"all_blocks", "blocks with prefix", RATIO, "all_blocks", "iterations", 1, 1, true},
    {"state_steps", "state steps", RATIO, "state_steps", "iterations", 1, 1, true},
    {"state_read_mb", "states read MB", RATIO, "state_read", "iterations", 1e-6, 4, true},
    {"state_written_mb", "states written MB", RATIO, "state_written", "iterations", 1e-6, 4,
     true},
    {"state_copies_mb", "a copy per node MB", RATIO, "state_copies", "iterations", 1e-6, 4,
     true},
    {"host_mb", "host MB", LARGEST, "host", NULL, 1e-6, 1, false},
    {"device_mb", "device MB", LARGEST, "device", NULL, 1e-6, 1, false},
    {"memory_over_plain", "memory over plain", OVER_PLAIN, "host_mb", NULL, 1, 3, false},
};

enum { COLUMNS = sizeof columns / sizeof *columns };

static const char *const usual[] = {
    "speed",      "deviation", "speedup", "chain", "tokens_per_iteration",
    "path_share", "accepted",  "nodes",   NULL};

static const struct column *find(const char *name)
{
    for (int i = 0; i < COLUMNS; i++)
        if (strcmp(columns[i].name, name) == 0)
            return &columns[i];
    return NULL;
}

bool cli_suite_has_column(const char *name)
{
    return find(name) != NULL;
}

bool cli_suite_is_counted(const char *name)
{
    const struct column *column = find(name);
    return column && column->counted;
}

bool cli_suite_can_choose(const char *name)
{
    const struct column *column = find(name);
    return column && column->kind != OVER_PLAIN && column->kind != OVER_CHAIN;
}

/* ------------------------------------------------------------------ runs */

const char *cli_suite_category(const struct cli_suite_plan *plan, int index)
{
    const struct cli_prompts *list = plan->prompts;
    if (!plan->suite->by_category)
        return index == 0 ? "" : NULL;
    for (int i = 0; i < list->count; i++) {
        int earlier = 0;
        while (strcmp(list->prompt[earlier].category, list->prompt[i].category) != 0)
            earlier++;
        if (earlier == i && index-- == 0)
            return list->prompt[i].category;
    }
    return NULL;
}

const cJSON *cli_suite_figures(const struct cli_suite_plan *plan, const struct cli_case *c,
                               int prompt, const char *category)
{
    const bool taken = !plan->suite->by_category ||
                       strcmp(plan->prompts->prompt[prompt].category, category) == 0;
    return taken ? c->run[prompt] : NULL;
}

static double member(const cJSON *run, const char *name)
{
    const cJSON *number = cJSON_GetObjectItemCaseSensitive(run, name);
    return cJSON_IsNumber(number) ? number->valuedouble : 0;
}

/* Returns the cost of all passes of a run. A target pass over one row costs 1. */
static double cost_of(const cJSON *run, const struct esp_nominal_costs *costs)
{
    const double passes = member(run, "draft_passes");
    return member(run, "iterations") + costs->row * member(run, "drafted") +
           costs->draft * (passes + costs->row * (member(run, "draft_rows") - passes));
}

static double ratio(const struct cli_suite_plan *plan, int row, const struct cli_case *c,
                    const struct column *column, const char *category)
{
    double top = 0, bottom = 0, largest = NAN;
    struct cli_series series = {0};
    for (int i = 0; i < plan->prompts->count; i++) {
        const cJSON *run = cli_suite_figures(plan, c, i, category);
        if (!run)
            continue;
        const double t = member(run, column->top);
        const double b = column->kind == AT_COST ? cost_of(run, &plan->row[row].costs)
                         : column->bottom        ? member(run, column->bottom)
                                                 : 1;
        top += t;
        bottom += b;
        largest = !(t <= largest) ? t : largest;
        if (b > 0)
            cli_count(&series, t / b);
    }
    if (column->kind == LARGEST)
        return column->scale * largest;
    if (column->kind == COUNT)
        return series.count;
    if (column->kind == RATIO || column->kind == AT_COST)
        return bottom > 0 ? column->scale * top / bottom : NAN;
    if (series.count == 0)
        return NAN;
    return column->kind == SPEED ? cli_mean(&series) : cli_deviation(&series);
}

/* Returns the standard deviation of the runs, or 0 for a column that is not a mean. */
static double spread(const struct cli_suite_plan *plan, const struct cli_case *c,
                     const struct column *column, const char *category)
{
    struct cli_series series = {0};
    if (column->kind != RATIO && column->kind != SPEED)
        return 0;
    for (int i = 0; i < plan->prompts->count; i++) {
        const cJSON *run = cli_suite_figures(plan, c, i, category);
        const double under = run && column->bottom ? member(run, column->bottom) : 1;
        if (run && under > 0)
            cli_count(&series, column->scale * member(run, column->top) / under);
    }
    return cli_deviation(&series);
}

const struct cli_case *cli_suite_best(const struct cli_suite_plan *plan, int row,
                                      const char *category)
{
    const struct cli_suite_row *r = &plan->row[row];
    const struct column *by = find(plan->suite->best_by);
    const struct cli_case *best = NULL;
    double most = 0;
    for (int i = 0; i < r->count; i++) {
        const struct cli_case *c = &plan->cases[plan->candidate[r->first + i]];
        const double value = ratio(plan, row, c, by, category);
        bool any = false;
        for (int j = 0; j < plan->prompts->count && !any; j++)
            any = cli_suite_figures(plan, c, j, category) != NULL;
        if (any && (!best || value > most)) {
            best = c;
            most = value;
        }
    }
    return best;
}

/* Returns the row that has the same settings, and a choice with this label. Returns -1 if there
 * is none. */
static int row_of(const struct cli_suite_plan *plan, int row, const char *label)
{
    for (int i = 0; i < plan->rows; i++)
        if (plan->row[i].settings == plan->row[row].settings &&
            strcmp(plan->suite->choice[plan->row[i].choice].label, label) == 0)
            return i;
    return -1;
}

static double figure(const struct cli_suite_plan *plan, int row, const struct cli_case *c,
                     const struct column *column, const char *category)
{
    if (column->kind != OVER_PLAIN && column->kind != OVER_CHAIN)
        return ratio(plan, row, c, column, category);
    const int other = row_of(plan, row, column->kind == OVER_PLAIN ? SUITE_PLAIN : SUITE_CHAIN);
    const struct cli_case *base = other < 0 ? NULL : cli_suite_best(plan, other, category);
    const struct column *of = find(column->top);
    const double under = base ? ratio(plan, other, base, of, category) : NAN;
    return under > 0 ? ratio(plan, row, c, of, category) / under : NAN;
}

/* Returns the standard deviation of figure(). If the figure is a ratio to the mean of another
 * choice, assumes that this mean is exact. */
static double figure_spread(const struct cli_suite_plan *plan, int row,
                            const struct cli_case *c, const struct column *column,
                            const char *category)
{
    if (column->kind != OVER_PLAIN && column->kind != OVER_CHAIN)
        return spread(plan, c, column, category);
    const struct column *of = find(column->top);
    const double above = ratio(plan, row, c, of, category);
    return above > 0
               ? spread(plan, c, of, category) * figure(plan, row, c, column, category) / above
               : 0;
}

/* ------------------------------------------------------------------ keys */

/* Returns whether any row shows the best of several cases. */
static bool has_grid(const struct cli_suite_plan *plan)
{
    for (int i = 0; i < plan->rows; i++)
        if (plan->row[i].count > 1)
            return true;
    return false;
}

bool cli_suite_keys(struct cli_table *t, const struct cli_suite_plan *plan)
{
    const struct cli_suite *s = plan->suite;
    bool room = cli_table_column(t, "choice", "choice", 0, true);
    if (has_grid(plan))
        room = room && cli_table_column(t, "best", "which is the best", 0, false);
    for (int i = 0; i < s->varies; i++)
        for (int j = 0; j < s->vary[i].keys; j++)
            room = room && cli_table_column(t, s->vary[i].key[j], s->vary[i].key[j], 3, true);
    if (s->by_category)
        room = room && cli_table_column(t, "category", "category", 0, true);
    return room;
}

/* Sets the text of a cell to a value. If the value is a number, also sets the number of the
 * cell, because plots need numbers. */
static bool put(struct cli_cell *cell, const char *value)
{
    char *end;
    const double number = strtod(value, &end);
    cell->number = end != value && !*end ? number : NAN;
    return cli_cell_text(cell, value);
}

bool cli_suite_begin_row(struct cli_table *t, const struct cli_suite_plan *plan, int row,
                         const char *category, struct cli_cell **cell)
{
    const struct cli_suite *s = plan->suite;
    const struct cli_suite_row *r = &plan->row[row];
    const struct cli_suite_choice *c = &s->choice[r->choice];
    const struct cli_case *best = cli_suite_best(plan, row, category);
    bool good = (*cell = cli_table_row(t)) != NULL;
    good = good && cli_cell_text((*cell)++, c->label);
    if (good && has_grid(plan))
        good = cli_cell_text((*cell)++, best && r->count > 1 ? best->spec : "");
    for (int i = 0; i < s->varies; i++)
        for (int j = 0; j < s->vary[i].keys; j++, (*cell)++)
            if (r->value[i] >= 0)
                good = good && put(*cell, s->vary[i].value[r->value[i]][j]);
    if (s->by_category)
        good = good && cli_cell_text((*cell)++, category);
    return good;
}

static bool fill(struct cli_table *t, const struct cli_suite_plan *plan)
{
    const struct cli_suite *s = plan->suite;
    const struct column *shown[SUITE_COLUMNS];
    int count = 0;
    bool good = cli_suite_keys(t, plan);
    for (int i = 0; s->columns > 0 ? i < s->columns : usual[i] != NULL; i++) {
        const struct column *column = find(s->columns > 0 ? s->column[i] : usual[i]);
        if (column->counted || !s->counts)
            shown[count++] = column;
    }
    for (int i = 0; i < count; i++)
        good = good &&
               cli_table_column(t, shown[i]->name, shown[i]->heading, shown[i]->digits, false);
    for (int row = 0; row < plan->rows; row++) {
        const char *category;
        for (int k = 0; good && (category = cli_suite_category(plan, k)); k++) {
            const struct cli_case *c = cli_suite_best(plan, row, category);
            struct cli_cell *cell;
            if (!c)
                continue;
            good = cli_suite_begin_row(t, plan, row, category, &cell);
            for (int i = 0; good && i < count; i++) {
                cell[i].number = figure(plan, row, c, shown[i], category);
                cell[i].spread = figure_spread(plan, row, c, shown[i], category);
            }
        }
    }
    return good;
}

int cli_suite_table(struct cli_table *t, const struct cli_suite_plan *plan)
{
    const struct cli_suite_measure *m = plan->suite->measure;
    *t = (struct cli_table){0};
    return (m->fill ? m->fill : fill)(t, plan) ? (int)ESP_OK : (int)ESP_E_MEMORY;
}
