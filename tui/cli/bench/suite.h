/* suite.h - an experiment of a paper as data: which configurations are run, what is measured,
 * and which tables and plots are made.
 *
 * A suite is a text file of sessions/suites/ (sessions/suites/README.md describes its lines).
 * Every choice of drafter and verifier with every combination of varied settings is a row of
 * the table; equal cases run once. A row of a grid shows the best of its candidates. Some
 * measures also add rows for plain decoding and for the best of several chains.
 *
 * A case is a choice with its settings. A run is a case on one prompt. Its results are a JSON
 * object. The journal keeps this object, and the table's columns are computed from it.
 */
#ifndef ESP_CLI_SUITE_H
#define ESP_CLI_SUITE_H

#include <cJSON.h>
#include <limits.h>

#include "engine/espalier.h"
#include "tui/cli/bench/prompt_list.h"
#include "tui/cli/bench/result_table.h"

/* The maximum numbers of: */
enum {
    SUITE_WORD = 256,   /* bytes of a word, NUL included */
    SUITE_KEYS = 4,     /* keys that vary together, in one 'vary' line */
    SUITE_VALUES = 32,  /* values of a varied key */
    SUITE_VARIES = 5,   /* 'vary' lines */
    SUITE_SETS = 16,    /* 'set' lines */
    SUITE_CHOICES = 64, /* 'choice' and 'best' lines */
    SUITE_GRID = 4096,  /* cases; candidates; rows; combinations of values */
    SUITE_COLUMNS = 24,
    SUITE_SHOWN = 8, /* pivots; plots */
};

/* Labels of the rows that others are compared with. */
#define SUITE_PLAIN "plain decoding"
#define SUITE_CHAIN "best chain"

/* What a suite can measure; suite_measures.c has the list. */
struct cli_suite_measure;

struct cli_vary {
    int keys, count;
    char key[SUITE_KEYS][SUITE_WORD];
    char value[SUITE_VALUES][SUITE_KEYS][SUITE_WORD];
};

struct cli_suite_choice {
    char spec[SUITE_WORD]; /* {..} means several values, $KEY the value of a varied key */
    char label[SUITE_WORD];
    char with[SUITE_WORD]; /* settings of this choice, "KEY=VALUE,..", or "" */
    bool best;             /* only the best of several configurations is shown */
};

struct cli_suite {
    char name[SUITE_WORD], path[PATH_MAX], prompts[PATH_MAX];
    char title[SUITE_WORD], source[SUITE_WORD], target[PATH_MAX];
    int most_prompts, max_nodes; /* 0 means all prompts, or the engine's default */
    int ranks;                   /* 0 means as the command line says, or no ranks */
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
        char across[SUITE_WORD], column[SUITE_WORD]; /* for a plot: x and y */
        char where[SUITE_WORD]; /* for a pivot: "KEY=VALUE .." selects rows; "" means all */
    } pivot[SUITE_SHOWN], plot[SUITE_SHOWN];
    int pivots, plots;
    char best_by[SUITE_WORD]; /* the column that decides which candidate is best */
    bool by_category, no_chain;
    bool counts; /* show only columns that do not depend on the machine */
};

/* Reads a suite by its name, or by its path if that contains a '/' or ends in ".suite".
 * Returns 0 or a negative status with a message. */
int cli_suite_read(struct cli_suite *suite, const char *name, char *err, size_t errlen);

/* A drafter and verifier with everything that a run depends on. */
struct cli_case {
    char spec[SUITE_WORD];
    const char *with;       /* the choice's own settings */
    char draft[SUITE_WORD]; /* a folder inside the folder --draft; "" means --draft itself */
    int settings; /* number of the case's settings; equal settings have the same number */
    int tokens, prompt_tokens;
    char delay[32];                 /* delay of exchanges between ranks; "" if none */
    struct esp_nominal_costs costs; /* NaN means they are measured, or the drafter needs none */
    struct esp_session_values values;
    cJSON **run; /* (prompts) the results of each run; NULL means not run yet */
};

/* A row of the table: one case, or the best of several candidates. */
struct cli_suite_row {
    int choice;              /* index in the suite's choices */
    int value[SUITE_VARIES]; /* value index for each 'vary' line; -1: row is independent */
    int settings;
    struct esp_nominal_costs costs; /* NaN means not given */
    int first, count;               /* its cases: cli_suite_plan.candidate[first..] */
};

struct cli_suite_plan {
    const struct cli_suite *suite;
    const struct cli_prompts *prompts;
    struct cli_case *cases; /* (count) */
    int count;
    struct cli_suite_row *row; /* (rows) */
    int rows;
    int *candidate; /* (candidates) indices of cases */
    int candidates;
    int settings; /* number of different settings */
};

struct cli_options;
/* Lists all rows and cases. Flags that were given override the suite, which is changed
 * accordingly. `plan` refers to suite and prompts. Returns 0 or a negative status with a
 * message. */
int cli_suite_plan(struct cli_suite_plan *plan, struct cli_suite *suite,
                   const struct cli_prompts *prompts, const struct cli_options *options,
                   char *err, size_t errlen);
void cli_suite_plan_free(struct cli_suite_plan *plan);

/* ------------------------------------------------------------------ tables */

/* Fills the table from the runs so far. Returns 0 or ESP_E_MEMORY. */
int cli_suite_table(struct cli_table *table, const struct cli_suite_plan *plan);
bool cli_suite_has_column(const char *name);
/* Whether a column has the same values on every machine. For example, this holds for tokens
 * per iteration, but not for speeds. */
bool cli_suite_is_counted(const char *name);
/* Whether this column can decide which of several cases is the best. */
bool cli_suite_can_choose(const char *name);

/* Adds the key columns to a measure's own table. Returns false if there is no room. */
bool cli_suite_keys(struct cli_table *table, const struct cli_suite_plan *plan);
/* Begins a row of a measure's own table with the keys of row `row` of the plan. The other
 * cells start at `*cell`. Returns false if there is no memory. */
bool cli_suite_begin_row(struct cli_table *table, const struct cli_suite_plan *plan, int row,
                         const char *category, struct cli_cell **cell);
/* Returns category `index` of the table's rows, or NULL after the last one. Without the line
 * `by category`, the only one is "", for all prompts. */
const char *cli_suite_category(const struct cli_suite_plan *plan, int index);
/* Returns the results of a case on a prompt, or NULL if the case was not run on it or the
 * prompt has another category. */
const cJSON *cli_suite_figures(const struct cli_suite_plan *plan, const struct cli_case *c,
                               int prompt, const char *category);
/* Returns the case of a row, or its best case if there are several; NULL if none was run. */
const struct cli_case *cli_suite_best(const struct cli_suite_plan *plan, int row,
                                      const char *category);

/* ------------------------------------------------------------------ measures */

struct cli_choice;

/* A run of a case on a prompt. */
struct cli_suite_run {
    const struct cli_options *o;
    const struct cli_case *of;
    struct cli_choice *choice; /* has an open session; NULL if the measure is `alone` */
    const struct cli_prompt *prompt;
    cJSON *figures; /* the caller deletes it; NULL means not run, or interrupted */
    char *err;
    size_t errlen;
};

struct cli_suite_measure {
    const char *name;
    bool alone;    /* every run is a separate process, with its own engine */
    bool baseline; /* also measures plain decoding and chains */
    /* Runs the case and sets `figures`. Returns 0 or a negative status with a message. */
    int (*run)(struct cli_suite_run *run);
    /* Fills an empty table. If this is NULL, the table has a line for each row, with the
     * suite's columns. */
    bool (*fill)(struct cli_table *table, const struct cli_suite_plan *plan);
};

extern const struct cli_suite_measure cli_suite_measures[]; /* the last has the name NULL */

/* ------------------------------------------------------------------ committed tables */

/* Describes the origin of a table: suite, version and commit of the program, models with their
 * hashes, machine, all settings. `engine` may be NULL. The caller frees the object. */
cJSON *cli_suite_made(const struct cli_options *options, const struct cli_suite_plan *plan,
                      const struct esp_engine *engine);
/* Reads a table: an object with an array "rows". The caller frees it. Returns 0 or a negative
 * status with a message. */
int cli_suite_read_table(cJSON **table, const char *path, char *err, size_t errlen);
/* Reads results/NAME.json in the suite's folder. The caller frees it. Returns 0, or a negative
 * status with a message if there is none or if its models, prompts or settings differ. */
int cli_suite_committed(cJSON **committed, const struct cli_options *options,
                        const struct cli_suite_plan *plan, char *err, size_t errlen);
/* Prints each cell that differs from the committed table by more than the tolerance, and the
 * number of compared cells. With `whole`, a row that `table` lacks is a difference, too.
 * Returns the number of differences. */
int cli_suite_compare(const cJSON *committed, const struct cli_table *table, bool whole);

/* `espalier bench --suite`. Returns an exit code. */
int cli_suite_run(const struct cli_options *options);
/* Prints the names and titles of all suites. */
int cli_suite_list(void);

#endif
