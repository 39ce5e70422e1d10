/* suite.h - an experiment of a paper as data: what is varied, what is measured, what is shown.
 *
 * A suite is a text file of sessions/suites/ (sessions/suites/README.md describes its lines).
 * Its choices of drafter and verifier times its varied settings are the rows of a table; equal
 * ones are run once. Rows that are the best of a grid show the best of their candidates. Plain
 * decoding and the best of several chains stand beside every suite of runs.
 *
 * A case is a choice with its settings; a run is a case on one prompt. Its figures are a JSON
 * object: a line of the journal, and what the table's columns are computed from.
 */
#ifndef ESP_CLI_SUITE_H
#define ESP_CLI_SUITE_H

#include <cJSON.h>
#include <limits.h>

#include "engine/espalier.h"
#include "tui/cli/bench/prompt_list.h"
#include "tui/cli/bench/result_table.h"

enum {
    SUITE_WORD = 256,   /* bytes of a word, NUL included */
    SUITE_KEYS = 4,     /* that vary together */
    SUITE_VALUES = 32,  /* of a varied key */
    SUITE_VARIES = 5,   /* lines that vary */
    SUITE_SETS = 16,    /* lines that set */
    SUITE_CHOICES = 64, /* lines that choose */
    SUITE_GRID = 4096,  /* cases, and choices out of one grid */
    SUITE_COLUMNS = 24,
    SUITE_SHOWN = 8, /* pivots, and plots */
};

/* Rows that others are compared with, by their labels. */
#define SUITE_PLAIN "plain decoding"
#define SUITE_CHAIN "best chain"

/* What is measured; one line each in suite_measures.c. */
struct cli_suite_measure;

struct cli_vary {
    int keys, count;
    char key[SUITE_KEYS][SUITE_WORD];
    char value[SUITE_VALUES][SUITE_KEYS][SUITE_WORD];
};

struct cli_suite_choice {
    char spec[SUITE_WORD]; /* with {..} for several, and $KEY for what varies */
    char label[SUITE_WORD];
    char with[SUITE_WORD]; /* settings of its own, "KEY=VALUE,.."; or "" */
    bool best;             /* only the best of several is shown */
};

struct cli_suite {
    char name[SUITE_WORD], path[PATH_MAX], prompts[PATH_MAX];
    char title[SUITE_WORD], source[SUITE_WORD], target[PATH_MAX];
    int most_prompts, max_nodes; /* 0: all prompts; the engine's default */
    const struct cli_suite_measure *measure;
    struct cli_vary vary[SUITE_VARIES];
    int varies;
    struct {
        char key[SUITE_WORD], value[SUITE_WORD];
    } set[SUITE_SETS];
    int sets;
    struct cli_suite_choice choice[SUITE_CHOICES];
    int choices;
    char column[SUITE_COLUMNS][SUITE_WORD];
    int columns;
    struct {
        char across[SUITE_WORD], column[SUITE_WORD];
        char where[SUITE_WORD]; /* of a pivot: "KEY=VALUE .." of its rows; "": all */
    } pivot[SUITE_SHOWN], plot[SUITE_SHOWN]; /* of a plot: its x and y */
    int pivots, plots;
    char best_by[SUITE_WORD]; /* the column that says which of a grid is the best */
    bool by_category, no_chain;
    bool counts; /* only what does not depend on the machine is shown and chosen by */
};

/* Reads a suite by its name, or by its path if it holds a '/' or ends in ".suite". Returns 0 or
 * a negative status with a sentence. */
int cli_suite_read(struct cli_suite *suite, const char *name, char *err, size_t errlen);

/* A choice of drafter and verifier with all that a run depends on. */
struct cli_case {
    char spec[SUITE_WORD];
    const char *with;       /* of its choice */
    char draft[SUITE_WORD]; /* a folder in that of --draft; "": what --draft names */
    int settings;           /* cases of equal settings have the same number */
    int tokens, prompt_tokens;
    struct esp_nominal_costs costs; /* NaN: espalier's own, or the drafter does not ask */
    struct esp_session_values values;
    cJSON **run; /* (prompts) figures, or NULL: not run yet */
};

/* A row of the table: one case, or the candidates of which the best is shown. */
struct cli_suite_row {
    int choice;              /* of the suite */
    int value[SUITE_VARIES]; /* of each varied line; -1: the row does not depend on it */
    int settings;
    struct esp_nominal_costs costs; /* NaN: not given */
    int first, count;               /* its cases: cli_suite_plan.candidate[first..] */
};

struct cli_suite_plan {
    const struct cli_suite *suite;
    const struct cli_prompts *prompts;
    struct cli_case *cases; /* (count) */
    int count;
    struct cli_suite_row *row; /* (rows) */
    int rows;
    int *candidate; /* (candidates) cases */
    int candidates;
    int settings; /* how many numbers of settings there are */
};

struct cli_options;
/* Lays out all rows and cases. Flags that were given win over the suite, which changes with
 * them. `plan` refers to suite and prompts. Returns 0 or a negative status with a sentence. */
int cli_suite_plan(struct cli_suite_plan *plan, struct cli_suite *suite,
                   const struct cli_prompts *prompts, const struct cli_options *options,
                   char *err, size_t errlen);
void cli_suite_plan_free(struct cli_suite_plan *plan);

/* ------------------------------------------------------------------ tables */

/* The table of what has been run so far. 0 or ESP_E_MEMORY. */
int cli_suite_table(struct cli_table *table, const struct cli_suite_plan *plan);
bool cli_suite_has_column(const char *name);
/* Is a column the same on every machine, as tokens per iteration are and speeds are not? */
bool cli_suite_is_counted(const char *name);
/* Can the best of several cases be found by this column? */
bool cli_suite_can_choose(const char *name);

/* For measures with tables of their own: the columns that say what a row is of, and a row of
 * them. `category` NULL: all. The cells behind them are the measure's, from `*cell` on. */
bool cli_suite_keys(struct cli_table *table, const struct cli_suite_plan *plan);
bool cli_suite_begin_row(struct cli_table *table, const struct cli_suite_plan *plan, int row,
                         const char *category, struct cli_cell **cell);
/* Category `index` of the table's rows; NULL past the last. Without `by category` there is one,
 * "", which stands for all. */
const char *cli_suite_category(const struct cli_suite_plan *plan, int index);
/* The run of a case on a prompt, if it was run and the prompt is of this category; or NULL. */
const cJSON *cli_suite_figures(const struct cli_suite_plan *plan, const struct cli_case *c,
                               int prompt, const char *category);
/* The case of a row, of several the best; NULL: nothing was run. */
const struct cli_case *cli_suite_best(const struct cli_suite_plan *plan, int row,
                                      const char *category);

/* ------------------------------------------------------------------ measures */

struct cli_choice;

struct cli_suite_measure {
    const char *name;
    bool alone;    /* every run is a process of its own, which opens its own engine */
    bool baseline; /* plain decoding and chains stand beside */
    /* Runs a case on a prompt in the choice's session (`alone`: NULL). *figures becomes an
     * object for the caller, or NULL if it was interrupted. Returns 0 or a negative status with
     * a sentence. */
    int (*run)(const struct cli_options *options, const struct cli_case *c,
               struct cli_choice *choice, const struct cli_prompt *prompt, cJSON **figures,
               char *err, size_t errlen);
    /* Fills an empty table; NULL: a line for each row, with the suite's columns. */
    bool (*fill)(struct cli_table *table, const struct cli_suite_plan *plan);
};

extern const struct cli_suite_measure cli_suite_measures[]; /* ends with a name of NULL */

/* ------------------------------------------------------------------ committed tables */

/* What a table is made of: an object for the caller with the suite, the program's version and
 * commit, the models with their hashes, the machine and all settings. `engine` may be NULL. */
cJSON *cli_suite_made(const struct cli_options *options, const struct cli_suite_plan *plan,
                      const struct esp_engine *engine);
/* Reads a table, which has an array "rows", for the caller. 0 or a negative status with a
 * sentence. */
int cli_suite_read_table(cJSON **table, const char *path, char *err, size_t errlen);
/* Reads results/NAME.json beside the suite for the caller. A negative status with a sentence if
 * there is none, or if it is of other models, prompts or settings. */
int cli_suite_committed(cJSON **committed, const struct cli_options *options,
                        const struct cli_suite_plan *plan, char *err, size_t errlen);
/* Prints a line for each cell of the table that is further from the committed one than
 * tolerated, and how many were compared. `whole`: rows that the table lacks count too. Returns
 * how many differ. */
int cli_suite_compare(const cJSON *committed, const struct cli_table *table, bool whole);

/* `espalier bench --suite`. Returns an exit code. */
int cli_suite_run(const struct cli_options *options);
/* Prints the names and titles of all suites. */
int cli_suite_list(void);

#endif
