/* suite_run.c - runs a suite, stores every run in a journal, and writes the results.
 *
 * With -o FOLDER every completed run becomes a line of FOLDER/NAME.runs.jsonl. The first line
 * of this file identifies the models, the measure and the prompts. --resume reads the runs and
 * continues with the missing runs. At the end, or after Ctrl-C, tables and plots of all runs
 * are written.
 *
 * For each prompt, all cases with the same settings run one after another. Only then does the
 * next prompt begin. Therefore, if the machine slows down, it slows down all these cases.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/espalier_ranks.h"
#include "engine/support/hash.h"
#include "engine/support/open_file.h"
#include "engine/support/write_file.h"
#include "kernels/clock.h"
#include "kernels/status.h"
#include "tui/cli/bench/choice.h"
#include "tui/cli/cli.h"
#include "tui/cli/json_object.h"
#include "tui/cli/prompt.h"
#include "tui/cli/bench/suite.h"
#include "viz/export.h"
#include "viz/safe.h"

/* The maximum number of open sessions, and the maximum number of bytes of a line. */
enum { TOGETHER = 24, LONGEST = 1 << 20 };

struct running {
    const struct cli_options *o;
    struct cli_options own; /* copy of *o with the engine options of the suite and the case */
    char draft[PATH_MAX];   /* draft of the open engine, if the cases name drafts */
    struct cli_suite suite;
    struct cli_prompts prompts;
    struct cli_suite_plan plan;
    struct esp_engine *engine;
    int journal;         /* file descriptor, or -1 */
    int all, done, kept; /* run counts; `kept` of the `done` runs are from the journal */
    double start;
    cJSON *committed; /* the table that --check compares with, or NULL */
    int differ;       /* number of cells that differ from that table */
    char *err;
    size_t errlen;
};

/* ------------------------------------------------------------------ the journal */

static void name_file(const struct running *r, const char *ending, char path[PATH_MAX])
{
    snprintf(path, PATH_MAX, "%s/%s%s", r->o->output, r->suite.name, ending);
}

/* Writes a hash of the models, the measure and the prompts. --resume uses this hash to
 * recognise a journal that has runs of the same kind. */
static void identify(const struct running *r, char text[32])
{
    const struct esp_engine_options *e = &r->o->engine;
    struct esp_hash_key key = {{1, 2}}; /* fixed, because the hash is stored */
    char models[2 * PATH_MAX + SUITE_WORD];
    const int n =
        snprintf(models, sizeof models, "%s|%s|%d|%d|%s", e->target ? e->target : "",
                 e->draft ? e->draft : "", e->width, e->layers, r->suite.measure->name);
    key.word[0] = esp_hash(key, models, (size_t)n);
    for (int i = 0; i < r->prompts.count; i++)
        key.word[0] = esp_hash(key, r->prompts.prompt[i].text, r->prompts.prompt[i].length);
    snprintf(text, 32, "%016llx", (unsigned long long)key.word[0]);
}

/* Writes a description of a case's settings, without its drafter and verifier. */
static void describe(const struct cli_case *c, char text[SUITE_WORD])
{
    char value[64];
    int used = snprintf(text, SUITE_WORD, "%d %d", c->tokens, c->prompt_tokens);
    for (int i = 0; i < ESP_VALUES && used < SUITE_WORD; i++) {
        esp_value_print(&c->values, i, value, sizeof value);
        used += snprintf(text + used, (size_t)(SUITE_WORD - used), " %s", value);
    }
    if (isfinite(c->costs.row) && used < SUITE_WORD)
        used += snprintf(text + used, (size_t)(SUITE_WORD - used), " %g %g", c->costs.row,
                         c->costs.draft);
    if (*c->delay && used < SUITE_WORD)
        snprintf(text + used, (size_t)(SUITE_WORD - used), " %s", c->delay);
}

/* Writes an object as a line of the journal, and deletes the object. */
static int write_line(struct running *r, cJSON *o)
{
    char *text = cJSON_PrintUnformatted(o);
    const bool written = text && esp_write_all(r->journal, text, strlen(text)) &&
                         esp_write_all(r->journal, "\n", 1);
    free(text);
    cJSON_Delete(o);
    return written ? (int)ESP_OK
                   : esp_fail(r->err, r->errlen, ESP_E_FILE,
                              "%s/%s.runs.jsonl cannot be written: %s", r->o->output,
                              r->suite.name, strerror(errno));
}

static int write_run(struct running *r, const struct cli_case *c, int prompt)
{
    char settings[SUITE_WORD];
    if (r->journal < 0)
        return ESP_OK;
    describe(c, settings);
    cJSON *o = cli_object(CLI_TEXT("choice", c->spec), CLI_TEXT("settings", settings),
                          CLI_NUMBER("prompt", prompt));
    cJSON_AddItemReferenceToObject(o, "figures", c->run[prompt]);
    return write_line(r, o);
}

/* Stores the results from a line of the journal. Ignores a case that the suite no longer has.
 * Returns false if `o` is not a line of a journal. */
static bool take_run(struct running *r, cJSON *o)
{
    const cJSON *choice = cJSON_GetObjectItemCaseSensitive(o, "choice");
    const cJSON *settings = cJSON_GetObjectItemCaseSensitive(o, "settings");
    const cJSON *prompt = cJSON_GetObjectItemCaseSensitive(o, "prompt");
    const cJSON *figures = cJSON_GetObjectItemCaseSensitive(o, "figures");
    char text[SUITE_WORD];
    if (!cJSON_IsString(choice) || !cJSON_IsString(settings) || !cJSON_IsNumber(prompt) ||
        !cJSON_IsObject(figures) || prompt->valuedouble < 0 ||
        prompt->valuedouble >= r->prompts.count)
        return false;
    for (int i = 0; i < r->plan.count; i++) {
        cJSON **run = &r->plan.cases[i].run[(int)prompt->valuedouble];
        describe(&r->plan.cases[i], text);
        if (*run || strcmp(r->plan.cases[i].spec, choice->valuestring) != 0 ||
            strcmp(text, settings->valuestring) != 0)
            continue;
        *run = cJSON_DetachItemFromObjectCaseSensitive(o, "figures");
        r->kept++;
        break;
    }
    return true;
}

/* Reads a journal. If its last line is incomplete, removes that line. */
static int read_journal(struct running *r, const char *path, const char *id)
{
    FILE *file = fdopen(dup(r->journal), "r");
    char *line = NULL;
    size_t room = 0;
    off_t whole = 0;
    int status = ESP_OK, number = 0;
    for (ssize_t n; file && status == ESP_OK && (n = getline(&line, &room, file)) > 0;) {
        cJSON *o = n <= LONGEST ? cJSON_ParseWithLength(line, (size_t)n) : NULL;
        const cJSON *runs_of = cJSON_GetObjectItemCaseSensitive(o, "runs_of");
        number++;
        if (line[n - 1] != '\n') {
            cJSON_Delete(o);
            break;
        }
        if (number == 1 && (!cJSON_IsString(runs_of) || strcmp(runs_of->valuestring, id) != 0))
            status =
                esp_fail(r->err, r->errlen, ESP_E_MISMATCH,
                         "%s has runs of other models or prompts, or is not a journal: name "
                         "another folder with -o",
                         path);
        else if (number > 1 && !take_run(r, o))
            status = esp_fail(r->err, r->errlen, ESP_E_FORMAT,
                              "%s, line %d: this is not a run; remove the line, or the file",
                              path, number);
        whole += n;
        cJSON_Delete(o);
    }
    free(line);
    if (file)
        fclose(file);
    if (status == ESP_OK &&
        (ftruncate(r->journal, whole) < 0 || lseek(r->journal, whole, SEEK_SET) < 0))
        status = esp_fail(r->err, r->errlen, ESP_E_FILE, "%s cannot be written: %s", path,
                          strerror(errno));
    return status == ESP_OK && whole == 0 ? 1 : status;
}

static int open_journal(struct running *r)
{
    char path[PATH_MAX], id[32];
    const char *wrong;
    const int more = r->o->resume ? 0 : r->o->force ? O_TRUNC : O_EXCL;
    if (!r->o->output)
        return ESP_OK;
    if (strlen(r->o->output) + strlen(r->suite.name) + 32 > PATH_MAX)
        return esp_fail(r->err, r->errlen, ESP_E_ARGUMENT, "the path after -o is too long");
    name_file(r, ".runs.jsonl", path);
    esp_make_folders(path);
    r->journal = esp_open_regular(path, O_RDWR | O_CREAT | more, 0666, &wrong);
    if (r->journal < 0)
        return esp_fail(r->err, r->errlen, ESP_E_FILE,
                        "%s cannot be opened: %s (--resume continues with its runs, --force "
                        "starts over)",
                        path, wrong);
    identify(r, id);
    int status = r->o->resume ? read_journal(r, path, id) : 1;
    if (status < 1)
        return status;
    return write_line(r, cli_object(CLI_TEXT("runs_of", id), CLI_TEXT("suite", r->suite.name)));
}

/* ------------------------------------------------------------------ progress */

/* Shows the progress on one line of the terminal. Clips a line that is longer than the
 * terminal, so the next line covers it completely. */
static void tell(const struct running *r, const char *doing, const char *what)
{
    char left[64] = "";
    if (!isatty(STDERR_FILENO))
        return;
    const int now = r->done - r->kept, rest = r->all - r->done;
    if (now > 0) {
        const double seconds = (esp_clock() - r->start) / now * rest;
        snprintf(left, sizeof left, seconds < 90 ? ", %.0f s left" : ", %.0f min left",
                 seconds < 90 ? seconds : seconds / 60);
    }
    fputs("\033[?7l", stderr);
    cli_draw_bar(stderr, r->all > 0 ? (double)r->done / r->all : 1);
    esp_safe_print(stderr, "%d of %d runs%s: %s%s", r->done, r->all, left, doing, what);
    fputs("\033[K\033[?7h", stderr);
    fflush(stderr);
}

/* ------------------------------------------------------------------ runs */

static int run_case(struct running *r, struct cli_case *c, struct cli_choice *choice,
                    int prompt)
{
    tell(r, "", c->spec);
    struct cli_suite_run run = {&r->own, c,      choice,   &r->prompts.prompt[prompt],
                                NULL,    r->err, r->errlen};
    int status = r->suite.measure->run(&run);
    c->run[prompt] = run.figures;
    if (status < 0 || !run.figures)
        return status;
    r->done++;
    return write_run(r, c, prompt);
}

static bool is_missing(const struct running *r, const struct cli_case *c)
{
    for (int i = 0; i < r->prompts.count; i++)
        if (!c->run[i])
            return true;
    return false;
}

/* Opens the engine with the draft of a case. Does nothing if that engine is already open. */
static int open_engine(struct running *r, const struct cli_case *c)
{
    char path[PATH_MAX] = "";
    if (*c->draft)
        snprintf(path, sizeof path, "%s/%s", r->o->engine.draft, c->draft);
    if (r->engine && strcmp(path, r->draft) == 0)
        return ESP_OK;
    esp_engine_close(r->engine);
    r->engine = NULL;
    strcpy(r->draft, path);
    r->own.engine.draft = *path ? r->draft : r->o->engine.draft;
    return cli_open_engine(&r->engine, &r->own, r->err, r->errlen);
}

static int open_cases(struct running *r, struct cli_case **c, struct cli_choice *choice,
                      int count)
{
    const bool alone = r->suite.measure->alone;
    int status = alone ? (int)ESP_OK : open_engine(r, c[0]);
    if (status == ESP_OK && *c[0]->delay)
        status = esp_engine_set_delay(r->engine, c[0]->delay, r->err, r->errlen);
    for (int i = 0; i < count && status == ESP_OK && !alone; i++) {
        struct esp_session_options session = r->o->session;
        session.values = c[i]->values;
        session.repeatable = true;
        session.nominal = isfinite(c[i]->costs.row) ? &c[i]->costs : NULL;
        char doing[64];
        snprintf(doing, sizeof doing, "warming up, %d of %d: ", i + 1, count);
        tell(r, doing, c[i]->spec);
        status =
            cli_choice_open(&choice[i], c[i]->spec, r->engine, &session, r->err, r->errlen);
        for (int j = 0; j < r->o->warmup && status == ESP_OK && !cli_interrupted; j++)
            status = cli_choice_run(&choice[i], r->prompts.prompt[0].text,
                                    r->prompts.prompt[0].length, c[i]->prompt_tokens,
                                    c[i]->tokens, r->err, r->errlen);
    }
    return status;
}

/* Runs cases that have the same settings. The sessions of all of them are open at the same
 * time. */
static int run_together(struct running *r, struct cli_case **c, int count)
{
    struct cli_choice *choice = calloc((size_t)count, sizeof *choice);
    if (!choice)
        return esp_fail(r->err, r->errlen, ESP_E_MEMORY, "not enough memory for the sessions");
    int status = open_cases(r, c, choice, count);
    for (int prompt = 0; prompt < r->prompts.count; prompt++)
        for (int i = 0; i < count && status == ESP_OK && !cli_interrupted; i++)
            if (!c[i]->run[prompt])
                status = run_case(r, c[i], &choice[i], prompt);
    for (int i = 0; i < count; i++)
        cli_choice_close(&choice[i]);
    free(choice);
    return status;
}

static int run_all(struct running *r)
{
    struct cli_case *c[TOGETHER];
    int status = ESP_OK;
    r->start = esp_clock();
    for (int settings = 0; settings < r->plan.settings; settings++)
        for (int i = 0, count = 0; i <= r->plan.count; i++) {
            const bool mine = i < r->plan.count && r->plan.cases[i].settings == settings;
            if (mine && is_missing(r, &r->plan.cases[i]))
                c[count++] = &r->plan.cases[i];
            if (count == 0 || (count < TOGETHER && i < r->plan.count))
                continue;
            if (status == ESP_OK && !cli_interrupted)
                status = run_together(r, c, count);
            count = 0;
        }
    cli_clear_bar(isatty(STDERR_FILENO));
    return status;
}

/* ------------------------------------------------------------------ results */

/* Prints the conditions of a pivot. Leaves out conditions with an empty value. */
static void print_where(const char *where, FILE *file)
{
    char word[SUITE_WORD];
    int used;
    for (; sscanf(where, "%255s%n", word, &used) == 1; where += used)
        if (word[strlen(word) - 1] != '=') {
            fputs(", ", file);
            cli_markdown_text(file, word);
        }
}

static void print_pivot(const struct cli_table *t, const char *across, const char *name,
                        const char *where, FILE *file)
{
    const int column = cli_table_find(t, name);
    struct cli_table part;
    if (column < 0 || !cli_table_part(&part, t, where))
        return;
    if (part.rows > 0) {
        cli_markdown_text(file, t->column[column].heading);
        print_where(where, file);
        fputs(":\n\n", file);
        cli_table_pivot(&part, across, name, file);
        fputc('\n', file);
    }
    free(part.cell);
}

static void print_markdown(const struct running *r, const struct cli_table *t, FILE *file)
{
    const struct cli_suite *s = &r->suite;
    fputs("# ", file);
    cli_markdown_text(file, *s->title ? s->title : s->name);
    fputs("\n\n", file);
    cli_markdown_text(file, s->source);
    fputs(*s->source ? "\n\nSuite " : "Suite ", file);
    cli_markdown_text(file, s->name);
    fprintf(file, ", %d prompt%s%s.\n\n", r->prompts.count, r->prompts.count == 1 ? "" : "s",
            r->done < r->all ? "; it was interrupted, and some runs are missing" : "");
    for (int i = 0; i < s->pivots; i++)
        print_pivot(t, s->pivot[i].across, s->pivot[i].column, s->pivot[i].where, file);
    cli_table_markdown(t, file);
}

/* Writes a plot in the format of --format. */
static int write_plot(const struct running *r, const struct cli_table *t, int plot)
{
    const char *name = r->o->format ? r->o->format : "svg";
    const int format = esp_export_find(name);
    struct esp_drawing drawing = {.latex = format == ESP_EXPORT_TIKZ};
    char path[PATH_MAX], ending[SUITE_WORD], *bytes = NULL;
    size_t length = 0;
    if (r->suite.plots > 1)
        snprintf(ending, sizeof ending, "-%d.%s", plot + 1, name);
    else
        snprintf(ending, sizeof ending, ".%s", name);
    name_file(r, ending, path);
    cli_table_plot(t, r->suite.title, r->suite.plot[plot].across, r->suite.plot[plot].column,
                   SUITE_PLAIN, &drawing);
    int status = esp_export_drawing(&drawing, format, &bytes, &length, r->err, r->errlen);
    if (status == ESP_OK)
        status = esp_write_file(path, bytes, length, true, r->err, r->errlen);
    esp_drawing_free(&drawing);
    free(bytes);
    return status;
}

static void print_csv(const struct running *r, const struct cli_table *t, FILE *file)
{
    (void)r;
    cli_table_csv(t, file);
}

static void print_json(const struct running *r, const struct cli_table *t, FILE *file)
{
    cJSON *o = cli_suite_made(r->o, &r->plan, r->engine);
    cli_add(o, CLI_NUMBER("runs", r->done), CLI_NUMBER("missing", r->all - r->done),
            CLI_ITEM("rows", cli_table_json(t)));
    char *json = cJSON_Print(o);
    if (json)
        esp_safe_json(file, json, strlen(json));
    fputc('\n', file);
    free(json);
    cJSON_Delete(o);
}

static const struct form {
    const char *ending;
    void (*print)(const struct running *r, const struct cli_table *t, FILE *file);
} forms[] = {{".md", print_markdown}, {".csv", print_csv}, {".json", print_json}};

enum { MARKDOWN, CSV, JSON, FORMS };

/* Writes the table in one format, to a file in the folder or to standard output. */
static int write_form(const struct running *r, const struct cli_table *t,
                      const struct form *form, bool to_file)
{
    char path[PATH_MAX], *text = NULL;
    size_t length = 0;
    FILE *file = open_memstream(&text, &length);
    int status = ESP_OK;
    if (!file)
        return esp_fail(r->err, r->errlen, ESP_E_MEMORY, "not enough memory for the results");
    form->print(r, t, file);
    fclose(file);
    name_file(r, form->ending, path);
    if (to_file)
        status = esp_write_file(path, text, length, true, r->err, r->errlen);
    else
        esp_safe_write(stdout, text, length);
    free(text);
    return status;
}

static int write_results(struct running *r)
{
    struct cli_table t;
    int status = cli_suite_table(&t, &r->plan);
    for (int i = 0; i < FORMS && status == ESP_OK && r->o->output; i++)
        status = write_form(r, &t, &forms[i], true);
    for (int i = 0; i < r->suite.plots && status == ESP_OK && r->o->output; i++)
        if (cli_table_find(&t, r->suite.plot[i].column) >= 0)
            status = write_plot(r, &t, i);
    if (status == ESP_OK && r->o->check && !cli_interrupted)
        r->differ = cli_suite_compare(r->committed, &t, r->o->argument_count == 0);
    else if (status == ESP_OK)
        status = write_form(r, &t, &forms[r->o->json ? JSON : MARKDOWN], false);
    cli_table_free(&t);
    return status;
}

/* ------------------------------------------------------------------ the suite */

/* If the user named choices as arguments, removes all other choices. */
static int keep_named(struct running *r)
{
    struct cli_suite *s = &r->suite;
    const int count = r->o->argument_count;
    bool named[SUITE_CHOICES] = {false};
    int kept = 0;
    for (int i = 0; i < count; i++) {
        bool found = false;
        for (int j = 0; j < s->choices; j++)
            if (strcmp(s->choice[j].label, r->o->arguments[i]) == 0)
                found = named[j] = true;
        if (!found)
            return esp_fail(r->err, r->errlen, ESP_E_ARGUMENT,
                            "suite %s has no row '%s': use the names in its table", s->name,
                            r->o->arguments[i]);
    }
    for (int i = 0; i < s->choices && count > 0; i++)
        if (named[i])
            s->choice[kept++] = s->choice[i];
    s->choices = count > 0 ? kept : s->choices;
    return ESP_OK;
}

/* Removes all columns that depend on the machine. */
static void count_alone(struct cli_suite *s)
{
    s->counts = true;
    if (!cli_suite_is_counted(s->best_by))
        strcpy(s->best_by, "tokens_per_iteration");
}

/* Inserts plain decoding, and the best of several chains, before the choices of the suite. */
static int add_baseline(struct running *r)
{
    static const struct cli_suite_choice added[] = {
        {.spec = "ar", .label = SUITE_PLAIN},
        {.spec = "linear:K={1..8}", .label = SUITE_CHAIN, .best = true},
    };
    struct cli_suite *s = &r->suite;
    const int count = !s->measure->baseline ? 0 : s->no_chain ? 1 : 2;
    if (s->choices + count > SUITE_CHOICES)
        return esp_fail(r->err, r->errlen, ESP_E_FORMAT, "%s: there are too many choices",
                        s->path);
    memmove(s->choice + count, s->choice, (size_t)s->choices * sizeof *s->choice);
    memcpy(s->choice, added, (size_t)count * sizeof *s->choice);
    s->choices += count;
    return ESP_OK;
}

static int read_prompts(struct running *r)
{
    char *text = NULL;
    size_t length = 0;
    const char *path = r->o->prompt_file ? r->o->prompt_file : r->suite.prompts;
    const char *given = r->o->prompt_file ? NULL : r->o->prompt;
    if (!*path && !given)
        return esp_fail(r->err, r->errlen, ESP_E_ARGUMENT,
                        "%s names no prompts: add a line `prompts FILE`, or give -f FILE",
                        r->suite.path);
    if (given)
        return cli_prompts_take(&r->prompts, given, strlen(given), "-p", r->err, r->errlen);
    if (cli_read_text(strcmp(path, "-") == 0 ? NULL : path, &text, &length) != EXIT_DONE)
        return ESP_E_FILE;
    int status = cli_prompts_take(&r->prompts, text, length, path, r->err, r->errlen);
    free(text);
    if (status == ESP_OK)
        cli_prompts_keep(&r->prompts, r->o->most_prompts);
    if (status == ESP_OK && r->suite.most_prompts > 0)
        cli_prompts_keep(&r->prompts, r->suite.most_prompts);
    return status;
}

static int check_format(struct running *r)
{
    const char *format = r->o->format;
    if (!format || esp_export_draws(esp_export_find(format)))
        return ESP_OK;
    return esp_fail(r->err, r->errlen, ESP_E_ARGUMENT,
                    "plots have the formats svg, png, pdf and tikz, not '%.40s'", format);
}

static int read_suite(struct running *r)
{
    const int status = cli_suite_read(&r->suite, r->o->suite, r->err, r->errlen);
    r->own.engine.max_nodes =
        r->o->engine.max_nodes ? r->o->engine.max_nodes : r->suite.max_nodes;
    if (r->own.engine.ranks < 2 && !r->own.engine.hosts)
        r->own.engine.ranks = r->suite.ranks;
    return status;
}

static int plan(struct running *r)
{
    if (r->o->counts || r->o->check)
        count_alone(&r->suite);
    int status = cli_suite_plan(&r->plan, &r->suite, &r->prompts, r->o, r->err, r->errlen);
    if (status == ESP_OK && r->o->check)
        status = cli_suite_committed(&r->committed, r->o, &r->plan, r->err, r->errlen);
    return status;
}

static int run_suite(struct running *r)
{
    static int (*const steps[])(struct running * r) = {
        check_format, read_suite, read_prompts, add_baseline, keep_named, plan, open_journal};
    int status = ESP_OK;
    for (size_t i = 0; i < sizeof steps / sizeof *steps && status == ESP_OK; i++)
        status = steps[i](r);
    r->all = r->plan.count * r->prompts.count;
    r->done = r->kept;
    if (status < 0)
        return status;
    cli_catch_interrupt();
    status = run_all(r);
    const int written = r->done > 0 ? write_results(r) : (int)ESP_OK;
    return status < 0 ? status : written;
}

int cli_suite_run(const struct cli_options *o)
{
    char err[1024] = "";
    struct running *r = calloc(1, sizeof *r);
    if (!r)
        return cli_fail("not enough memory for the suite");
    if (strcmp(o->suite, "list") == 0) {
        free(r);
        return cli_suite_list();
    }
    r->o = o;
    r->own = *o;
    r->journal = -1;
    r->err = err;
    r->errlen = sizeof err;
    int status = run_suite(r);
    int code = status >= 0 ? EXIT_DONE : *err ? cli_fail(err) : EXIT_BAD;
    if (code == EXIT_DONE && cli_interrupted) {
        esp_complain("interrupted after %d of %d runs%s", r->done, r->all,
                     o->output ? "; --resume continues" : "");
        code = EXIT_INTERRUPTED;
    }
    if (code == EXIT_DONE && r->differ > 0)
        code = EXIT_BAD;
    if (r->journal >= 0)
        close(r->journal);
    cJSON_Delete(r->committed);
    cli_suite_plan_free(&r->plan);
    cli_prompts_free(&r->prompts);
    esp_engine_close(r->engine);
    free(r);
    return code;
}
