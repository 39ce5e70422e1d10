/* suite.h - a suite describes an experiment of a paper: which configurations are run, what is
 * measured, and which tables and plots are made.
 *
 * A suite is a text file in sessions/suites/ (sessions/suites/README.md describes its lines).
 * The table has a row for every choice of drafter and verifier with every combination of the
 * varied settings. Rows that need the same case share it, and the case runs once. If a choice
 * stands for several candidates, its row shows the best of them. Some measures also add rows
 * for plain decoding and for the best of several chains.
 *
 * A case is a choice with its settings. A run is a case on one prompt. The results of a run are
 * a JSON object. This object is stored in the journal, and the table's columns are computed
 * from it.
 */
#ifndef ESP_CLI_SUITE_H
#define ESP_CLI_SUITE_H

#include <cJSON.h>
#include <limits.h>

#include "engine/espalier.h"
#include "tui/cli/bench/prompt_list.h"
#include "tui/cli/bench/result_table.h"

/* Each constant is a limit. Its comment says what the constant limits. */
enum {
    SUITE_WORD = 256,   /* bytes of a word, NUL included */
    SUITE_KEYS = 4,     /* keys that vary together, in one 'vary' line */
    SUITE_VALUES = 32,  /* values of a varied key */
    SUITE_VARIES = 5,   /* 'vary' lines */
    SUITE_SETS = 16,    /* 'set' lines */
    SUITE_CHOICES = 64, /* 'choice' and 'best' lines */
    SUITE_GRID = 4096,  /* cases, candidates, rows or combinations of values */
    SUITE_COLUMNS = 24,
    SUITE_SHOWN = 8, /* pivots or plots */
};

/* Defines the labels of the rows with which all other rows are compared. */
#define SUITE_PLAIN "plain decoding"
#define SUITE_CHAIN "best chain"

/* Describes something that a suite can measure. The list of measures is in suite_measures.c. */
struct cli_suite_measure;

struct cli_vary {
    int keys, count;
    char key[SUITE_KEYS][SUITE_WORD];
    char value[SUITE_VALUES][SUITE_KEYS][SUITE_WORD];
};

struct cli_suite_choice {
    char spec[SUITE_WORD]; /* {..} lists several values, $KEY is the value of a varied key */
    char label[SUITE_WORD];
    char with[SUITE_WORD]; /* settings only of this choice, "KEY=VALUE,..", or "" */
    bool best;             /* true: only the best of several configurations is shown */
};

struct cli_suite {
    char name[SUITE_WORD], path[PATH_MAX], prompts[PATH_MAX];
    char title[SUITE_WORD], source[SUITE_WORD], target[PATH_MAX];
    int most_prompts; /* maximum number of prompts; 0: all prompts */
    int max_nodes;    /* maximum number of nodes; 0: the engine's default */
    int ranks;        /* number of ranks; 0: as --ranks says, or no ranks */
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
        char across[SUITE_WORD], column[SUITE_WORD]; /* for a plot: the columns of x and y */
        char where[SUITE_WORD]; /* for a pivot: "KEY=VALUE .." selects rows; "": all */
    } pivot[SUITE_SHOWN], plot[SUITE_SHOWN];
    int pivots, plots;
    char best_by[SUITE_WORD]; /* the best candidate has the best value in this column */
    bool by_category, no_chain;
    bool counts; /* true: show only columns that do not depend on the machine */
};

/* Reads the suite `name`. A name that contains a '/' or ends in ".suite" is the path of a file.
 * Returns 0 or a negative status with a message. */
int cli_suite_read(struct cli_suite *suite, const char *name, char *err, size_t errlen);

/* Describes a case: a drafter and a verifier, with all settings on which the results of a run
 * depend. */
struct cli_case {
    char spec[SUITE_WORD];
    const char *with;       /* the choice's own settings */
    char draft[SUITE_WORD]; /* a folder inside the folder --draft; "": --draft itself */
    int settings;           /* identifies the settings; equal settings have the same number */
    int tokens, prompt_tokens;
    char delay[32];                 /* delay of exchanges between ranks; "" if none */
    struct esp_nominal_costs costs; /* NaN: measured, or not needed by the drafter */
    struct esp_session_values values;
    cJSON **run; /* (prompts) the results for each prompt; NULL: not run yet */
};

/* Describes a row of the table. It shows one case, or the best of several candidates. */
struct cli_suite_row {
    int choice;              /* index in the suite's choices */
    int value[SUITE_VARIES]; /* index of the value of each 'vary' line; -1: not used */
    int settings;
    struct esp_nominal_costs costs; /* NaN means not given */
    int first, count;               /* its cases are in cli_suite_plan.candidate[first..] */
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
/* Lists all rows and cases of a suite. Flags that the user gave override the suite, and `suite`
 * is changed accordingly. `plan` points to `suite` and `prompts`. Returns 0, or a negative
 * status with a message. */
int cli_suite_plan(struct cli_suite_plan *plan, struct cli_suite *suite,
                   const struct cli_prompts *prompts, const struct cli_options *options,
                   char *err, size_t errlen);
void cli_suite_plan_free(struct cli_suite_plan *plan);

/* ------------------------------------------------------------------ tables */

/* Fills the table from the runs that are done. Returns 0 or ESP_E_MEMORY. */
int cli_suite_table(struct cli_table *table, const struct cli_suite_plan *plan);
bool cli_suite_has_column(const char *name);
/* Returns whether a column has the same values on every machine. For example, this holds for
 * tokens per iteration, but not for speeds. */
bool cli_suite_is_counted(const char *name);
/* Returns whether this column can decide which of several cases is the best. */
bool cli_suite_can_choose(const char *name);

/* Adds the key columns to a table that a measure fills itself. Returns false if there is no
 * room. */
bool cli_suite_keys(struct cli_table *table, const struct cli_suite_plan *plan);
/* Adds a row to a table that a measure fills itself. Copies the keys of row `row` of the plan,
 * and sets *cell to the first cell after them. Returns false if there is no memory. */
bool cli_suite_begin_row(struct cli_table *table, const struct cli_suite_plan *plan, int row,
                         const char *category, struct cli_cell **cell);
/* Returns category `index` of the table's rows, or NULL after the last one. Without the line
 * `by category`, the only category is "", which all prompts have. */
const char *cli_suite_category(const struct cli_suite_plan *plan, int index);
/* Returns the results of a case on a prompt. Returns NULL if the case was not run on this
 * prompt, or if the prompt has another category. */
const cJSON *cli_suite_figures(const struct cli_suite_plan *plan, const struct cli_case *c,
                               int prompt, const char *category);
/* Returns the case of a row, or its best case if there are several. Returns NULL if no case was
 * run. */
const struct cli_case *cli_suite_best(const struct cli_suite_plan *plan, int row,
                                      const char *category);

/* ------------------------------------------------------------------ measures */

struct cli_choice;

/* Describes a run: a case continues one prompt. */
struct cli_suite_run {
    const struct cli_options *o;
    const struct cli_case *of;
    struct cli_choice *choice; /* its session is open; NULL if the measure is `alone` */
    const struct cli_prompt *prompt;
    cJSON *figures; /* the results, which the caller deletes; NULL: none */
    char *err;
    size_t errlen;
};

struct cli_suite_measure {
    const char *name;
    bool alone;    /* true: every run is a separate process, with its own engine */
    bool baseline; /* true: plain decoding and chains are also measured */
    /* Runs the case and sets `figures`. Returns 0 or a negative status with a message. */
    int (*run)(struct cli_suite_run *run);
    /* Fills an empty table. If this is NULL, the table has a line for each row of the plan,
     * with the columns that the suite names. */
    bool (*fill)(struct cli_table *table, const struct cli_suite_plan *plan);
};

extern const struct cli_suite_measure cli_suite_measures[]; /* the last has the name NULL */

/* ------------------------------------------------------------------ committed tables */

/* Returns an object that says how a table was made: the suite, the version and commit of the
 * program, the models with their hashes, the machine, and all settings. `engine` can be NULL.
 * The caller frees the object. */
cJSON *cli_suite_made(const struct cli_options *options, const struct cli_suite_plan *plan,
                      const struct esp_engine *engine);
/* Reads a table: an object with an array "rows". The caller frees it. Returns 0 or a negative
 * status with a message. */
int cli_suite_read_table(cJSON **table, const char *path, char *err, size_t errlen);
/* Reads results/NAME.json in the suite's folder. The caller frees it. Returns 0, or a negative
 * status with a message if there is none or if its models, prompts or settings differ. */
int cli_suite_committed(cJSON **committed, const struct cli_options *options,
                        const struct cli_suite_plan *plan, char *err, size_t errlen);
/* Prints each cell that differs from the committed table by more than the tolerance. Also
 * prints how many cells were compared. If `whole` is true, a row that `table` lacks is a
 * difference, too. Returns the number of differences. */
int cli_suite_compare(const cJSON *committed, const struct cli_table *table, bool whole);

/* Runs `espalier bench --suite`. Returns an exit code. */
int cli_suite_run(const struct cli_options *options);
/* Prints the names and titles of all suites. */
int cli_suite_list(void);

#endif
