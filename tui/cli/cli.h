/* cli.h - the command line: one cli_command per subcommand, one X(name) line each in
 * subcommands.def. */
#ifndef ESP_CLI_H
#define ESP_CLI_H

#include <limits.h>
#include <signal.h>
#include <stdio.h>

#include "engine/espalier.h"

enum { EXIT_DONE = 0, EXIT_BAD = 1, EXIT_USAGE = 2, EXIT_INTERRUPTED = 130 };

/* Everything that flags can say; each command names the flags it takes. */
struct cli_options {
    struct esp_engine_options engine;
    struct esp_session_options session;
    char target[PATH_MAX], draft[PATH_MAX]; /* where the named models are */
    const char *prompt, *prompt_file;       /* "-": stdin */
    int tokens;                             /* -n */
    int trials;
    int warmup;                     /* rounds of a bench that are not counted */
    double seconds;                 /* that a tuning takes */
    bool write;                     /* its preset, to a file */
    int prompt_tokens;              /* of each of its prompts at most */
    double pass;                    /* ms that one of a race's target takes; 0: as it is */
    const char *type;               /* of the file that quantize writes */
    const char *perplexity;         /* FILE that inspect measures */
    const char *text, *loss, *goal; /* of a training */
    int pieces, epochs, batch, length;
    double rate;
    bool resume;
    const char *suite; /* of a bench */
    bool counts, check; /* of a suite: only what does not depend on the machine; compare that */
    int most_prompts;
    bool json, stats, mdoc, ascii, explain;
    const char *theme, *config;
    bool no_config;
    char given[512];    /* names of the flags that were given, a space before and after each */
    double speed, idle; /* of a replay (player.h) */
    bool plain;
    const char *iteration, *format, *output, *asciicast; /* of an export */
    bool html;
    const char *chart, *figure, *aspect, *caption;
    int nodes, columns, rows;
    const char *with, *with_verifier; /* the second choice to compare */
    const char *record;               /* file to record to */
    bool force;                       /* overwrite it */
    const char **arguments;           /* what is not a flag */
    int argument_count;
};

struct cli_command {
    const char *name, *arguments, *summary;
    const char *flags; /* names of the long flags it takes, space-separated; "settings" stands
                          for those of a session */
    const char
        *chooses;      /* settings that it chooses itself, so that they are no flags; or NULL */
    int least, most;   /* number of arguments */
    bool names_models; /* its arguments are a target and a draft, besides "-" */
    bool draws_seed;   /* where --seed is not given, instead of 0, so that texts differ */
    double temperature;                      /* where --temp is not given */
    const char *details;                     /* more help, or NULL */
    int (*run)(struct cli_options *options); /* an exit code */
};

extern const struct cli_command *const cli_commands[]; /* NULL-terminated */

/* Reads the flags that `command` takes. Returns -1, or the exit code of a program that is done
 * (help, wrong usage). */
int cli_parse(struct cli_options *options, const struct cli_command *command, int argc,
              char **argv);

void cli_help(const struct cli_command *command); /* NULL: the program's own */

/* From now on Ctrl-C, SIGTERM and SIGHUP remove the files that are half written
 * (engine/support/part_file.h), say so, and end the program. */
void cli_clean_up_at_end(void);
/* From now on Ctrl-C only sets cli_interrupted to the signal's number; a second one ends the
 * program. */
void cli_catch_interrupt(void);
/* The same for SIGTERM and SIGHUP, too: for commands that keep what they have reached. */
void cli_catch_end(void);
extern volatile sig_atomic_t cli_interrupted;

/* Prints "espalier: sentence" on stderr and returns EXIT_BAD. */
int cli_fail(const char *sentence);
struct esp_recording;
/* Says so on standard error if a recording was cut off. */
void cli_tell_cut(const struct esp_recording *recording, const char *path);
/* Opens the engine that the options ask for. Standard error gets a bar if it is a terminal and
 * loading takes long, and a line if a device that is there cannot be used. */
int cli_open_engine(struct esp_engine **engine, const struct cli_options *options, char *err,
                    size_t errlen);
/* Draws a bar from the start of a terminal's line on; a text may follow it. */
void cli_draw_bar(FILE *file, double share);
/* A bar for work that takes long, in the form of an esp_progress; `user` is a struct
 * cli_loading. If `shown` is set at the end, the line is to be cleared. */
struct cli_loading {
    double start; /* esp_clock() */
    bool shown;
};
bool cli_progress(void *user, const char *what, size_t done, size_t total);
/* Says on standard error what of a session's settings there is no room for. */
void cli_note(const struct esp_session *session);
/* Makes arguments but "-" the target and the draft; the others stay. Returns -1, or an exit
 * code after printing a sentence. */
int cli_take_models(struct cli_options *options);
/* Finds the target and the draft by their names, and puts their paths in the place of them.
 * `later`: names of which there is no model stay, and who opens them says so. Returns as above.
 */
int cli_find_models(struct cli_options *options, bool later);
/* The same for a command whose first argument is a model to be read. Returns false after
 * printing a sentence. */
bool cli_find_source(struct cli_options *options);
/* Says on standard error that the model's chat template is not known, if that matters. */
void cli_note_chat(const struct esp_engine *engine, const struct esp_session *session);

#endif
