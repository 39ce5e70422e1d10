/* suite_measures.c - what a suite can measure: one line each in the list at the end. */
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
#include "tui/cli/bench/suite.h"

enum { DRAWS = 4, BINS = 10, STEPS = 256, READ = 4096 };

static void add(cJSON *o, const char *name, double value)
{
    cJSON_AddNumberToObject(o, name, value);
}

static double sum_of(const cJSON *array, int index)
{
    const cJSON *number = cJSON_GetArrayItem(array, index);
    return cJSON_IsNumber(number) ? number->valuedouble : NAN;
}

static const cJSON *part(const cJSON *run, const char *name, int index)
{
    return cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(run, name), index);
}

/* ------------------------------------------------------------------ runs */

static void add_stages(cJSON *o, const struct esp_stats *s)
{
    const double *stage = s->stage_seconds;
    const double tree =
        stage[ESP_STAGE_DRAFT] - s->draft_pass_seconds + stage[ESP_STAGE_FLATTEN];
    add(o, "draft_pass", s->draft_pass_seconds);
    add(o, "tree", tree > 0 ? tree : 0);
    add(o, "verify", stage[ESP_STAGE_VERIFY]);
    add(o, "select", stage[ESP_STAGE_SELECT]);
    add(o, "other", stage[ESP_STAGE_COMMIT] + stage[ESP_STAGE_ADAPT]);
}

/* [[nodes, tried, accepted], ..] by rank. */
static void add_ranks(cJSON *o, const struct esp_acceptance *a)
{
    cJSON *ranks = cJSON_AddArrayToObject(o, "ranks");
    for (int i = 0; i < ESP_ACCEPT_RANKS && a->rank[i].nodes > 0; i++) {
        const double counts[] = {(double)a->rank[i].nodes, (double)a->rank[i].tried,
                                 (double)a->rank[i].accepted};
        cJSON_AddItemToArray(ranks, cJSON_CreateDoubleArray(counts, 3));
    }
}

/* [[tried, accepted, with q, q, with p, p], ..] by the draft's probability. */
static void add_shares(cJSON *o, const struct esp_acceptance *a)
{
    cJSON *shares = cJSON_AddArrayToObject(o, "shares");
    for (int i = 0; i < ESP_ACCEPT_BINS; i++) {
        const struct esp_trial_counts *s = &a->share[i];
        const double counts[] = {(double)s->tried,  (double)s->accepted,
                                 (double)s->with_q, s->q,
                                 (double)s->with_p, s->p};
        cJSON_AddItemToArray(shares, cJSON_CreateDoubleArray(counts, 6));
    }
}

static cJSON *figures_of(const struct cli_choice *choice)
{
    struct esp_stats s;
    const struct esp_acceptance *a = &choice->acceptance;
    cJSON *o = cJSON_CreateObject();
    esp_session_stats(choice->session, &s);
    add(o, "tokens", s.generated_tokens);
    add(o, "iterations", s.iterations);
    add(o, "drafted", (double)s.drafted_nodes);
    add(o, "accepted", (double)s.accepted_nodes);
    add(o, "deepest", (double)a->deepest);
    add(o, "most_nodes", a->most_nodes);
    add(o, "draft_passes", (double)s.draft_passes);
    add(o, "draft_rows", (double)s.draft_rows);
    add(o, "mask_blocks", (double)a->mask_blocks);
    add(o, "all_blocks", (double)(a->mask_blocks + a->prefix_blocks));
    add(o, "first", s.first_token_seconds);
    add(o, "decode", s.decode_seconds);
    add_stages(o, &s);
    add_ranks(o, a);
    add_shares(o, a);
    if (choice->steps)
        cJSON_AddItemToObject(o, "steps", cJSON_Duplicate(choice->steps, true));
    return o;
}

static int run_choice(const struct cli_case *c, struct cli_choice *choice,
                      const struct cli_prompt *prompt, char *err, size_t errlen)
{
    choice->counting = true;
    choice->acceptance = (struct esp_acceptance){0};
    return cli_choice_run(choice, prompt->text, prompt->length, c->prompt_tokens, c->tokens,
                          err, errlen);
}

static int measure_run(const struct cli_options *o, const struct cli_case *c,
                       struct cli_choice *choice, const struct cli_prompt *prompt,
                       cJSON **figures, char *err, size_t errlen)
{
    (void)o;
    int status = run_choice(c, choice, prompt, err, errlen);
    *figures = status == ESP_OK && !cli_interrupted ? figures_of(choice) : NULL;
    return status;
}

/* ------------------------------------------------------------------ nodes by rank */

/* A line for each rank: its share of the nodes, and how often it is accepted where it is tried
 * (salf-talf, fig. 2a). */
static bool fill_by_rank(struct cli_table *t, const struct cli_suite_plan *plan)
{
    bool good = cli_suite_keys(t, plan) && cli_table_column(t, "rank", "rank", 0, true) &&
                cli_table_column(t, "share", "nodes %", 1, false) &&
                cli_table_column(t, "accepted", "accepted %", 1, false);
    for (int row = 0; good && row < plan->rows; row++) {
        const char *category;
        for (int k = 0; good && (category = cli_suite_category(plan, k)); k++) {
            const struct cli_case *c = cli_suite_best(plan, row, category);
            double counts[ESP_ACCEPT_RANKS][3] = {{0}}, all = 0;
            for (int i = 0; c && i < plan->prompts->count; i++)
                for (int rank = 0; rank < ESP_ACCEPT_RANKS; rank++) {
                    const cJSON *run = cli_suite_figures(plan, c, i, category);
                    const cJSON *r = part(run, "ranks", rank);
                    for (int j = 0; r && j < 3; j++)
                        counts[rank][j] += sum_of(r, j);
                    all += r ? sum_of(r, 0) : 0;
                }
            for (int rank = 0; good && rank < ESP_ACCEPT_RANKS && counts[rank][0] > 0; rank++) {
                struct cli_cell *cell;
                good = cli_suite_begin_row(t, plan, row, category, &cell);
                if (!good)
                    break;
                cell[0].number = rank + 1;
                cell[1].number = 100 * counts[rank][0] / all;
                cell[2].number = 100 * counts[rank][2] / counts[rank][1];
            }
        }
    }
    return good;
}

/* ------------------------------------------------------------------ drafts by probability */

/* A line for each tenth of the draft's probability: the means of q and of the target's p, and
 * how often such a draft is accepted where it is tried (dyspec, fig. 2). */
static bool fill_by_share(struct cli_table *t, const struct cli_suite_plan *plan)
{
    bool good = cli_suite_keys(t, plan) && cli_table_column(t, "from", "from", 1, true) &&
                cli_table_column(t, "tried", "tried", 0, false) &&
                cli_table_column(t, "draft", "draft's probability", 3, false) &&
                cli_table_column(t, "target", "target's probability", 3, false) &&
                cli_table_column(t, "accepted", "accepted %", 1, false);
    for (int row = 0; good && row < plan->rows; row++) {
        const struct cli_case *c = cli_suite_best(plan, row, "");
        for (int bin = 0; good && c && bin < ESP_ACCEPT_BINS; bin++) {
            double sum[6] = {0};
            struct cli_cell *cell;
            for (int i = 0; i < plan->prompts->count; i++) {
                const cJSON *s = part(cli_suite_figures(plan, c, i, ""), "shares", bin);
                for (int j = 0; s && j < 6; j++)
                    sum[j] += sum_of(s, j);
            }
            if ((good = cli_suite_begin_row(t, plan, row, "", &cell))) {
                cell[0].number = (double)bin / ESP_ACCEPT_BINS;
                cell[1].number = sum[0];
                cell[2].number = sum[3] / sum[2];
                cell[3].number = sum[5] / sum[4];
                cell[4].number = 100 * sum[1] / sum[0];
            }
        }
    }
    return good;
}

/* ------------------------------------------------------------------ one iteration after
 * another */

/* A run that keeps [nodes, accepted] of every iteration. */
static int measure_steps(const struct cli_options *o, const struct cli_case *c,
                         struct cli_choice *choice, const struct cli_prompt *prompt,
                         cJSON **figures, char *err, size_t errlen)
{
    choice->steps = cJSON_CreateArray();
    int status = measure_run(o, c, choice, prompt, figures, err, errlen);
    cJSON_Delete(choice->steps);
    choice->steps = NULL;
    return status;
}

/* A line for each of the first STEPS iterations of the first prompt: how large its tree was,
 * and how much of it was accepted (dyspec, fig. 5). */
static bool fill_by_step(struct cli_table *t, const struct cli_suite_plan *plan)
{
    bool good = cli_suite_keys(t, plan) && cli_table_column(t, "step", "step", 0, true) &&
                cli_table_column(t, "nodes", "nodes", 0, false) &&
                cli_table_column(t, "accepted", "accepted", 0, false);
    for (int row = 0; good && row < plan->rows; row++) {
        const struct cli_case *c = cli_suite_best(plan, row, "");
        const cJSON *step;
        for (int i = 0; good && c && i < STEPS && (step = part(c->run[0], "steps", i)); i++) {
            struct cli_cell *cell;
            good = cli_suite_begin_row(t, plan, row, "", &cell);
            for (int j = 0; good && j < 3; j++)
                cell[j].number = j == 0 ? i + 1 : sum_of(step, j - 1);
        }
    }
    return good;
}

/* ------------------------------------------------------------------ p and q at nodes */

static cJSON *depth_json(const struct esp_depth_measure *d)
{
    const double sums[] = {(double)d->nodes, d->distance, d->ceiling};
    cJSON *o = cJSON_CreateDoubleArray(sums, 3);
    for (int i = 0; i < ESP_MEASURE_RULES; i++)
        cJSON_AddItemToArray(o, isfinite(d->rate[i]) ? cJSON_CreateNumber(d->rate[i])
                                                     : cJSON_CreateNull());
    return o;
}

/* [confidence, ..], below 0 where the guess was wrong: -1 - confidence. Six digits are enough.
 */
static cJSON *rank_json(const struct esp_rank_measure *r)
{
    cJSON *o = cJSON_CreateArray();
    for (int i = 0; i < r->count; i++) {
        const double c = r->guess[i].confidence, value = r->guess[i].right ? c : -1 - c;
        cJSON_AddItemToArray(o, cJSON_CreateNumber(round(1e6 * value) / 1e6));
    }
    return o;
}

/* A run in which every node of every tree is looked at. */
static int measure_nodes(const struct cli_options *o, const struct cli_case *c,
                         struct cli_choice *choice, const struct cli_prompt *prompt,
                         cJSON **figures, char *err, size_t errlen)
{
    struct esp_tree_measure *m = calloc(1, sizeof *m);
    (void)o;
    *figures = NULL;
    if (!m)
        return esp_fail(err, errlen, ESP_E_MEMORY, "no memory for the figures");
    m->draws = DRAWS;
    esp_session_measure(choice->session, m);
    int status = run_choice(c, choice, prompt, err, errlen);
    esp_session_measure(choice->session, NULL);
    if (status == ESP_OK && !cli_interrupted) {
        cJSON *depths = cJSON_CreateArray(), *guesses = cJSON_CreateArray();
        *figures = figures_of(choice);
        for (int i = 0; i < ESP_MEASURE_DEPTHS && m->depth[i].nodes > 0; i++)
            cJSON_AddItemToArray(depths, depth_json(&m->depth[i]));
        for (int i = 0; i < ESP_MEASURE_RANKS; i++)
            cJSON_AddItemToArray(guesses, rank_json(&m->rank[i]));
        cJSON_AddItemToObject(*figures, "depths", depths);
        cJSON_AddItemToObject(*figures, "guesses", guesses);
    }
    esp_tree_measure_free(m);
    free(m);
    return status;
}

/* Has a run a figure of verifier `index`? One whose formula does not hold for several draws, or
 * that has none, has not. */
static bool has_rule(const struct cli_suite_plan *plan, int index)
{
    for (int i = 0; i < plan->count; i++)
        for (int j = 0; j < plan->prompts->count; j++)
            if (isfinite(sum_of(part(plan->cases[i].run[j], "depths", 0), 3 + index)))
                return true;
    return false;
}

/* Columns for those verifiers. Returns how many; rule[i] is their place in the list. */
static int rule_columns(struct cli_table *t, const struct cli_suite_plan *plan,
                        int rule[ESP_MEASURE_RULES])
{
    static struct esp_item item[ESP_MEASURE_RULES];
    int count = 0;
    for (int i = 0; i < ESP_MEASURE_RULES && esp_item(ESP_VERIFIERS, i, &item[i]); i++)
        if (has_rule(plan, i) && cli_table_column(t, item[i].name, item[i].name, 3, false))
            rule[count++] = i;
    return count;
}

/* A line for each depth: L1 distance of p and q, and the acceptance rate of every verifier at
 * the same nodes (delayed-tree-expansion, fig. 1). */
static bool fill_by_depth(struct cli_table *t, const struct cli_suite_plan *plan)
{
    int rule[ESP_MEASURE_RULES];
    bool good = cli_suite_keys(t, plan) && cli_table_column(t, "depth", "depth", 0, true) &&
                cli_table_column(t, "nodes", "nodes", 0, false) &&
                cli_table_column(t, "distance", "L1 distance", 3, false);
    const int rules = rule_columns(t, plan, rule);
    good = good && cli_table_column(t, "ceiling", "ceiling", 3, false);
    for (int row = 0; good && row < plan->rows; row++) {
        const struct cli_case *c = cli_suite_best(plan, row, "");
        double sum[ESP_MEASURE_DEPTHS][3 + ESP_MEASURE_RULES] = {{0}};
        for (int i = 0; c && i < plan->prompts->count; i++)
            for (int depth = 0; depth < ESP_MEASURE_DEPTHS; depth++) {
                const cJSON *d = part(cli_suite_figures(plan, c, i, ""), "depths", depth);
                for (int j = 0; d && j < 3 + ESP_MEASURE_RULES; j++)
                    sum[depth][j] += sum_of(d, j);
            }
        for (int depth = 0; good && depth < ESP_MEASURE_DEPTHS && sum[depth][0] > 0; depth++) {
            struct cli_cell *cell;
            const double nodes = sum[depth][0];
            good = cli_suite_begin_row(t, plan, row, "", &cell);
            if (!good)
                break;
            (cell++)->number = depth;
            (cell++)->number = nodes;
            (cell++)->number = sum[depth][1] / nodes;
            for (int j = 0; j < rules; j++)
                (cell++)->number = sum[depth][3 + rule[j]] / nodes;
            cell->number = sum[depth][2] / nodes;
        }
    }
    return good;
}

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

/* A line for each rank: how often the draft's next token is right behind a first guess of this
 * rank, and the calibration error of that (salf-talf, fig. 2b). */
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

/* Plain decoding loads no draft model. */
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

static int run_alone(const struct cli_options *o, const struct cli_case *c,
                     const struct cli_prompt *prompt, cJSON **figures, char *err, size_t errlen)
{
    struct cli_options with = *o;
    struct cli_choice choice = {0};
    struct esp_session_options session = o->session;
    struct esp_engine *engine = NULL;
    struct esp_stats s;
    char path[PATH_MAX];
    leave_out_draft(&with, c, path);
    session.values = c->values;
    session.repeatable = true;
    int status = cli_open_engine(&engine, &with, err, errlen);
    if (status == ESP_OK)
        status = cli_choice_open(&choice, c->spec, engine, &session, err, errlen);
    if (status == ESP_OK)
        status = run_choice(c, &choice, prompt, err, errlen);
    if (status == ESP_OK && !cli_interrupted) {
        *figures = figures_of(&choice);
        esp_session_stats(choice.session, &s);
        add(*figures, "host", (double)s.peak_bytes);
        add(*figures, "device", (double)s.device_bytes);
    }
    cli_choice_close(&choice);
    esp_engine_close(engine);
    return status;
}

/* What the child says: figures, or a sentence. */
static void run_child(const struct cli_options *o, const struct cli_case *c,
                      const struct cli_prompt *prompt, int to)
{
    cJSON *figures = NULL;
    char err[512] = "";
    FILE *file = fdopen(to, "w");
    int status = run_alone(o, c, prompt, &figures, err, sizeof err);
    char *text = figures ? cJSON_PrintUnformatted(figures) : NULL;
    if (file)
        fprintf(file, "%s", text ? text : *err ? err : esp_status_message(status));
    _exit(file && fclose(file) == 0 && text ? 0 : 1);
}

/* Memory is that of a whole process, so every run has one of its own. */
static int measure_memory(const struct cli_options *o, const struct cli_case *c,
                          struct cli_choice *choice, const struct cli_prompt *prompt,
                          cJSON **figures, char *err, size_t errlen)
{
    int ends[2], state = 0;
    char text[READ + 1];
    size_t length = 0;
    (void)choice;
    *figures = NULL;
    if (pipe(ends) < 0)
        return esp_fail(err, errlen, ESP_E_FILE, "no pipe could be made: %s", strerror(errno));
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        run_child(o, c, prompt, ends[1]);
    }
    close(ends[1]);
    for (ssize_t n; child > 0 && length < READ;) {
        n = read(ends[0], text + length, READ - length);
        if (n == 0 || (n < 0 && errno != EINTR))
            break;
        length += n > 0 ? (size_t)n : 0;
    }
    close(ends[0]);
    text[length] = '\0';
    if (child < 0)
        return esp_fail(err, errlen, ESP_E_MEMORY, "no process could be started: %s",
                        strerror(errno));
    while (waitpid(child, &state, 0) < 0 && errno == EINTR)
        continue;
    if (cli_interrupted)
        return ESP_OK;
    *figures = WIFEXITED(state) && WEXITSTATUS(state) == 0 ? cJSON_Parse(text) : NULL;
    return *figures ? (int)ESP_OK
                    : esp_fail(err, errlen, ESP_E_MEMORY, "%s",
                               *text ? text : "a run ended without a word");
}

/* ------------------------------------------------------------------ the list */

const struct cli_suite_measure cli_suite_measures[] = {
    {"runs", false, true, measure_run, NULL},
    {"memory", true, true, measure_memory, NULL},
    {"ranks", false, false, measure_run, fill_by_rank},
    {"shares", false, false, measure_run, fill_by_share},
    {"steps", false, false, measure_steps, fill_by_step},
    {"rules", false, false, measure_nodes, fill_by_depth},
    {"guesses", false, false, measure_nodes, fill_guesses},
    {NULL, false, false, NULL, NULL},
};
