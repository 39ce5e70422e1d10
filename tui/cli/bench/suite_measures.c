/* suite_measures.c - runs the measures of suites. The list of measures is at the end. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/support/paths.h"
#include "engine/tree_measure.h"
#include "kernels/status.h"
#include "tui/cli/bench/choice.h"
#include "tui/cli/cli.h"
#include "tui/cli/json_object.h"
#include "tui/cli/prompt.h"
#include "tui/cli/bench/suite.h"

enum { DRAWS = 4, BINS = 10, PLACES = 256, READ = 1 << 16 };

static double number_at(const cJSON *array, int index)
{
    const cJSON *number = cJSON_GetArrayItem(array, index);
    return cJSON_IsNumber(number) ? number->valuedouble : NAN;
}

static const cJSON *part(const cJSON *run, const char *name, int index)
{
    return cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(run, name), index);
}

/* ------------------------------------------------------------------ runs */

/* Returns [[nodes, tried, accepted], ..] with an entry for each rank. */
static cJSON *ranks_json(const struct esp_acceptance *a)
{
    cJSON *ranks = cJSON_CreateArray();
    for (int i = 0; i < ESP_ACCEPT_RANKS && a->rank[i].nodes > 0; i++) {
        const double counts[] = {(double)a->rank[i].nodes, (double)a->rank[i].tried,
                                 (double)a->rank[i].accepted};
        cJSON_AddItemToArray(ranks, cJSON_CreateDoubleArray(counts, 3));
    }
    return ranks;
}

/* Returns [[tried, accepted, with_q, q, with_p, p], ..] with an entry for each range of the
 * draft's probability. The numbers are the members of struct esp_trial_counts. */
static cJSON *shares_json(const struct esp_acceptance *a)
{
    cJSON *shares = cJSON_CreateArray();
    for (int i = 0; i < ESP_ACCEPT_BINS; i++) {
        const struct esp_trial_counts *s = &a->share[i];
        const double counts[] = {(double)s->tried,  (double)s->accepted,
                                 (double)s->with_q, s->q,
                                 (double)s->with_p, s->p};
        cJSON_AddItemToArray(shares, cJSON_CreateDoubleArray(counts, 6));
    }
    return shares;
}

static cJSON *figures_of(const struct cli_choice *choice)
{
    struct esp_stats s;
    const struct esp_acceptance *a = &choice->acceptance;
    esp_session_stats(choice->session, &s);
    const double *stage = s.stage_seconds;
    const double tree =
        stage[ESP_STAGE_DRAFT] - s.draft_pass_seconds + stage[ESP_STAGE_FLATTEN];
    cJSON *o = cli_object(
        CLI_NUMBER("tokens", s.generated_tokens), CLI_NUMBER("iterations", s.iterations),
        CLI_NUMBER("drafted", s.drafted_nodes), CLI_NUMBER("accepted", s.accepted_nodes),
        CLI_NUMBER("deepest", a->deepest), CLI_NUMBER("most_nodes", a->most_nodes),
        CLI_NUMBER("draft_passes", s.draft_passes), CLI_NUMBER("draft_rows", s.draft_rows),
        CLI_NUMBER("state_steps", s.state_steps), CLI_NUMBER("state_read", s.state_read),
        CLI_NUMBER("state_written", s.state_written),
        CLI_NUMBER("state_copies", s.state_copies), CLI_NUMBER("mask_blocks", a->mask_blocks),
        CLI_NUMBER("all_blocks", a->mask_blocks + a->prefix_blocks),
        CLI_NUMBER("first", s.first_token_seconds), CLI_NUMBER("decode", s.decode_seconds),
        CLI_NUMBER("draft_pass", s.draft_pass_seconds), CLI_NUMBER("tree", tree > 0 ? tree : 0),
        CLI_NUMBER("verify", stage[ESP_STAGE_VERIFY]),
        CLI_NUMBER("select", stage[ESP_STAGE_SELECT]),
        CLI_NUMBER("other", stage[ESP_STAGE_COMMIT] + stage[ESP_STAGE_ADAPT]),
        CLI_ITEM("ranks", ranks_json(a)), CLI_ITEM("shares", shares_json(a)));
    if (choice->steps)
        cJSON_AddItemToObject(o, "steps", cJSON_Duplicate(choice->steps, true));
    return o;
}

static int run_choice(struct cli_suite_run *run)
{
    run->choice->counting = true;
    run->choice->acceptance = (struct esp_acceptance){0};
    return cli_choice_run(run->choice, run->prompt->text, run->prompt->length,
                          run->of->prompt_tokens, run->of->tokens, run->err, run->errlen);
}

static int measure_run(struct cli_suite_run *run)
{
    int status = run_choice(run);
    if (status == ESP_OK && !cli_interrupted)
        run->figures = figures_of(run->choice);
    return status;
}

/* ------------------------------------------------------------------ steps, p and q at
 * nodes */

/* Runs a case and stores [nodes, accepted] for every iteration. */
static int measure_steps(struct cli_suite_run *run)
{
    run->choice->steps = cJSON_CreateArray();
    int status = measure_run(run);
    cJSON_Delete(run->choice->steps);
    run->choice->steps = NULL;
    return status;
}

static cJSON *depth_json(const struct esp_depth_measure *d)
{
    const double sums[] = {(double)d->nodes, d->distance, d->ceiling};
    cJSON *o = cJSON_CreateDoubleArray(sums, 3);
    for (int i = 0; i < ESP_MEASURE_RULES; i++)
        cJSON_AddItemToArray(o, isfinite(d->rate[i]) ? cJSON_CreateNumber(d->rate[i])
                                                     : cJSON_CreateNull());
    return o;
}

/* Returns [number, ..] with a number for each guess. This number is the confidence of the guess
 * or, if the guess was wrong, -1 - confidence. Six digits are enough. */
static cJSON *rank_json(const struct esp_rank_measure *r)
{
    cJSON *o = cJSON_CreateArray();
    for (int i = 0; i < r->count; i++) {
        const double c = r->guess[i].confidence, value = r->guess[i].right ? c : -1 - c;
        cJSON_AddItemToArray(o, cJSON_CreateNumber(round(1e6 * value) / 1e6));
    }
    return o;
}

/* Runs a case and measures p and q at every node of every tree. */
static int measure_nodes(struct cli_suite_run *run)
{
    struct esp_tree_measure *m = calloc(1, sizeof *m);
    if (!m)
        return esp_fail(run->err, run->errlen, ESP_E_MEMORY,
                        "not enough memory for the results");
    m->draws = DRAWS;
    esp_session_measure(run->choice->session, m);
    int status = measure_run(run);
    esp_session_measure(run->choice->session, NULL);
    if (run->figures) {
        cJSON *depths = cJSON_CreateArray(), *guesses = cJSON_CreateArray();
        for (int i = 0; i < ESP_MEASURE_DEPTHS && m->depth[i].nodes > 0; i++)
            cJSON_AddItemToArray(depths, depth_json(&m->depth[i]));
        for (int i = 0; i < ESP_MEASURE_RANKS; i++)
            cJSON_AddItemToArray(guesses, rank_json(&m->rank[i]));
        cli_add(run->figures, CLI_ITEM("depths", depths), CLI_ITEM("guesses", guesses));
    }
    esp_tree_measure_free(m);
    free(m);
    return status;
}

/* ------------------------------------------------------------------ tables with a line for
 * each place */

/* A table has a line for each place. Depending on the measure, a place is a rank, a depth, a
 * step or a range of q. A cell of the line is scale * top / bottom. Each of `top` and `bottom`
 * is the index of one of the place's sums, or one of these constants. ONE is 1, PLACE is the
 * place's number, ALL is the total of the sum with index 0 over all places, and BINS_OF_Q is
 * the number of bins of q. */
enum { ONE = -1, PLACE = -2, ALL = -3, BINS_OF_Q = -4 };
/* VERIFIERS as `top` means a column for each verifier that has results. */
enum { VERIFIERS = -5 };

struct column {
    const char *name, *heading;
    int digits;
    double scale;
    int top, bottom;
};

/* A line for each rank shows its fraction of the nodes, and how often a node of this rank is
 * accepted if the verifier tries it (salf-talf, fig. 2a). */
static const struct column rank_columns[] = {{"rank", "rank", 0, 1, PLACE, ONE},
                                             {"share", "nodes %", 1, 100, 0, ALL},
                                             {"accepted", "accepted %", 1, 100, 2, 1},
                                             {.name = NULL}};
/* The table has a row for each interval of the draft's probability q: 0 to 0.1, 0.1 to 0.2,
 * and so on. A row shows the means of q and of the target's p, and how often a draft in this
 * interval is accepted if the verifier tries it (dyspec, fig. 2). */
static const struct column share_columns[] = {{"from", "from", 1, 1, PLACE, BINS_OF_Q},
                                              {"tried", "tried", 0, 1, 0, ONE},
                                              {"draft", "draft's probability", 3, 1, 3, 2},
                                              {"target", "target's probability", 3, 1, 5, 4},
                                              {"accepted", "accepted %", 1, 100, 1, 0},
                                              {.name = NULL}};
/* A line for each iteration shows the size of its tree, and how many nodes were accepted
 * (dyspec, fig. 5). */
static const struct column step_columns[] = {{"step", "step", 0, 1, PLACE, ONE},
                                             {"nodes", "nodes", 0, 1, 0, ONE},
                                             {"accepted", "accepted", 0, 1, 1, ONE},
                                             {.name = NULL}};
/* A line for each depth shows the L1 distance of p and q, and the acceptance rate of every
 * verifier at the same nodes (delayed-tree-expansion, fig. 1). */
static const struct column depth_columns[] = {
    {"depth", "depth", 0, 1, PLACE, ONE},    {"nodes", "nodes", 0, 1, 0, ONE},
    {"distance", "L1 distance", 3, 1, 1, 0}, {"", "", 3, 1, VERIFIERS, 0},
    {"ceiling", "ceiling", 3, 1, 2, 0},      {.name = NULL}};

/* The results of a run have an array `name` with `width` numbers for each place (a rank, a
 * depth, ...). The table has a line for each place. Its numbers are summed over the prompts.
 */
static const struct lines {
    const char *measure, *name;
    int width, first; /* `first` is the number of the first place */
    bool one_prompt;  /* use only the first prompt */
    const struct column *columns;
} all_lines[] = {
    {"ranks", "ranks", 3, 1, false, rank_columns},
    {"shares", "shares", 6, 0, false, share_columns},
    {"steps", "steps", 2, 1, true, step_columns},
    {"rules", "depths", 3 + ESP_MEASURE_RULES, 0, false, depth_columns},
};

/* Returns whether a run has results of verifier `index`. A verifier has none if it has no
 * formula for its acceptance rate, or if the formula is not valid for several draws. */
static bool has_rule(const struct cli_suite_plan *plan, int index)
{
    for (int i = 0; i < plan->count; i++)
        for (int j = 0; j < plan->prompts->count; j++)
            if (isfinite(number_at(part(plan->cases[i].run[j], "depths", 0), 3 + index)))
                return true;
    return false;
}

/* Lists the columns of a table, except the key columns. Returns their number. */
static int list_columns(const struct cli_suite_plan *plan, const struct lines *lines,
                        struct column all[6 + ESP_MEASURE_RULES])
{
    struct esp_item item;
    int count = 0;
    for (const struct column *c = lines->columns; c->name; c++) {
        if (c->top != VERIFIERS)
            all[count++] = *c;
        for (int i = 0; c->top == VERIFIERS && esp_item(ESP_VERIFIERS, i, &item); i++)
            if (i < ESP_MEASURE_RULES && has_rule(plan, i))
                all[count++] = (struct column){item.name, item.name, c->digits, 1, 3 + i, 0};
    }
    return count;
}

struct place {
    double sum[3 + ESP_MEASURE_RULES];
    int number;
};

static double value_of(int what, const struct place *place, double all)
{
    return what == ONE         ? 1
           : what == PLACE     ? place->number
           : what == ALL       ? all
           : what == BINS_OF_Q ? ESP_ACCEPT_BINS
                               : place->sum[what];
}

/* Adds up the numbers of a case over the prompts of a category, separately for each place.
 * Returns the number of places. Sets *all to the total of the sum with index 0 over all
 * places. */
static int add_places(const struct cli_suite_plan *plan, const struct cli_case *c,
                      const char *category, const struct lines *lines,
                      struct place place[PLACES], double *all)
{
    int count = 0;
    *all = 0;
    memset(place, 0, PLACES * sizeof *place);
    for (int i = 0; c && i < (lines->one_prompt ? 1 : plan->prompts->count); i++) {
        const cJSON *run = cli_suite_figures(plan, c, i, category), *at;
        for (int n = 0; n < PLACES && (at = part(run, lines->name, n)); n++) {
            for (int j = 0; j < lines->width; j++)
                place[n].sum[j] += number_at(at, j);
            place[n].number = lines->first + n;
            *all += number_at(at, 0);
            count = n < count ? count : n + 1;
        }
    }
    return count;
}

static bool fill_lines(struct cli_table *t, const struct cli_suite_plan *plan)
{
    const struct lines *lines = all_lines;
    while (strcmp(lines->measure, plan->suite->measure->name) != 0)
        lines++;
    struct column column[6 + ESP_MEASURE_RULES];
    struct place place[PLACES];
    struct cli_cell *cell;
    const char *category;
    double all;
    const int columns = list_columns(plan, lines, column);
    bool good = cli_suite_keys(t, plan);
    for (int i = 0; i < columns; i++)
        good = good &&
               cli_table_column(t, column[i].name, column[i].heading, column[i].digits, i == 0);
    for (int row = 0; row < plan->rows; row++)
        for (int k = 0; good && (category = cli_suite_category(plan, k)); k++) {
            const struct cli_case *c = cli_suite_best(plan, row, category);
            const int places = add_places(plan, c, category, lines, place, &all);
            for (int n = 0; good && n < places; n++) {
                good = cli_suite_begin_row(t, plan, row, category, &cell);
                for (int i = 0; good && i < columns; i++)
                    cell[i].number = column[i].scale * value_of(column[i].top, &place[n], all) /
                                     value_of(column[i].bottom, &place[n], all);
            }
        }
    return good;
}

/* ------------------------------------------------------------------ guesses */

static bool collect_guesses(struct esp_rank_measure *r, const cJSON *guesses)
{
    const int count = cJSON_GetArraySize(guesses);
    struct esp_next_guess *guess =
        realloc(r->guess, ((size_t)r->count + (size_t)count + 1) * sizeof *guess);
    const cJSON *number;
    if (!guess)
        return false;
    r->guess = guess;
    cJSON_ArrayForEach(number, guesses)
    {
        const double v = number->valuedouble;
        r->guess[r->count++] =
            (struct esp_next_guess){.confidence = (float)(v < 0 ? -1 - v : v), .right = v >= 0};
    }
    return true;
}

/* Adds a line for each rank that the first guess can have. The line shows how often the draft's
 * next token is right after this guess, and the calibration error of the draft's confidence
 * (salf-talf, fig. 2b). */
static bool fill_guesses(struct cli_table *t, const struct cli_suite_plan *plan)
{
    bool good = cli_suite_keys(t, plan) && cli_table_column(t, "rank", "rank", 0, true) &&
                cli_table_column(t, "guesses", "guesses", 0, false) &&
                cli_table_column(t, "accuracy", "accuracy", 3, false) &&
                cli_table_column(t, "error", "calibration error", 3, false);
    for (int row = 0; good && row < plan->rows; row++) {
        const struct cli_case *c = cli_suite_best(plan, row, "");
        for (int rank = 0; good && c && rank < ESP_MEASURE_RANKS; rank++) {
            struct esp_rank_measure r = {0};
            struct cli_cell *cell;
            for (int i = 0; good && i < plan->prompts->count; i++)
                good = collect_guesses(
                    &r, part(cli_suite_figures(plan, c, i, ""), "guesses", rank));
            if (good && r.count > 0 && (good = cli_suite_begin_row(t, plan, row, "", &cell))) {
                cell[0].number = rank + 1;
                cell[1].number = r.count;
                cell[2].number = esp_rank_accuracy(&r);
                cell[3].number = esp_rank_error(&r, BINS);
            }
            free(r.guess);
        }
    }
    return good;
}

/* ------------------------------------------------------------------ memory */

/* Removes the draft model from the options if the case is plain decoding, which needs none. */
static void leave_out_draft(struct cli_options *o, const struct cli_case *c,
                            char path[PATH_MAX])
{
    if (strcmp(c->spec, "ar") != 0)
        return;
    o->engine.draft = NULL;
    if (!o->engine.target &&
        esp_find_data(path, PATH_MAX, "models", "fairytale-target") == ESP_OK)
        o->engine.target = path;
}

static int run_alone(struct cli_suite_run *run)
{
    struct cli_options with = *run->o;
    struct cli_choice choice = {0};
    struct esp_session_options session = run->o->session;
    struct esp_engine *engine = NULL;
    struct esp_stats s;
    char path[PATH_MAX];
    leave_out_draft(&with, run->of, path);
    session.values = run->of->values;
    session.repeatable = true;
    run->choice = &choice;
    int status = cli_open_engine(&engine, &with, run->err, run->errlen);
    if (status == ESP_OK)
        status =
            cli_choice_open(&choice, run->of->spec, engine, &session, run->err, run->errlen);
    if (status == ESP_OK)
        status = measure_run(run);
    if (run->figures) {
        esp_session_stats(choice.session, &s);
        cli_add(run->figures, CLI_NUMBER("host", s.peak_bytes),
                CLI_NUMBER("device", s.device_bytes));
    }
    cli_choice_close(&choice);
    esp_engine_close(engine);
    return status;
}

/* Runs in the child process. Writes the results or an error message to the pipe `to`. */
static void run_child(struct cli_suite_run run, int to)
{
    char err[512] = "";
    FILE *file = fdopen(to, "w");
    run.err = err;
    run.errlen = sizeof err;
    int status = run_alone(&run);
    char *text = run.figures ? cJSON_PrintUnformatted(run.figures) : NULL;
    if (file)
        fprintf(file, "%s", text ? text : *err ? err : esp_status_message(status));
    _exit(file && fclose(file) == 0 && text ? 0 : 1);
}

/* Measures the memory of a run. Every run is a separate process, because the memory of a whole
 * process is measured. */
static int measure_memory(struct cli_suite_run *run)
{
    int ends[2], state = 0;
    char *text = NULL;
    size_t length = 0;
    if (pipe(ends) < 0)
        return esp_fail(run->err, run->errlen, ESP_E_FILE, "cannot make a pipe: %s",
                        strerror(errno));
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        run_child(*run, ends[1]);
    }
    close(ends[1]);
    if (child < 0) {
        close(ends[0]);
        return esp_fail(run->err, run->errlen, ESP_E_MEMORY, "cannot start a process: %s",
                        strerror(errno));
    }
    cli_read_all(ends[0], READ, &text, &length);
    close(ends[0]);
    while (waitpid(child, &state, 0) < 0 && errno == EINTR)
        continue;
    if (!cli_interrupted && text && WIFEXITED(state) && WEXITSTATUS(state) == 0)
        run->figures = cJSON_ParseWithLength(text, length);
    int status = ESP_OK;
    if (!cli_interrupted && !run->figures && length == 0)
        status = esp_fail(run->err, run->errlen, ESP_E_MEMORY, "a run ended without a result");
    else if (!cli_interrupted && !run->figures)
        status = esp_fail(run->err, run->errlen, ESP_E_MEMORY, "%.*s", (int)length, text);
    free(text);
    return status;
}

/* ------------------------------------------------------------------ the list of measures */

const struct cli_suite_measure cli_suite_measures[] = {
    {"runs", false, true, measure_run, NULL},
    {"memory", true, true, measure_memory, NULL},
    {"ranks", false, false, measure_run, fill_lines},
    {"shares", false, false, measure_run, fill_lines},
    {"steps", false, false, measure_steps, fill_lines},
    {"rules", false, false, measure_nodes, fill_lines},
    {"guesses", false, false, measure_nodes, fill_guesses},
    {NULL, false, false, NULL, NULL},
};
