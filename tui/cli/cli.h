/* cli.h - declares what the subcommands of the command line share. Each subcommand is a
 * cli_command and has a line X(name) in subcommands.def. */
#ifndef ESP_CLI_H
#define ESP_CLI_H

#include <limits.h>
#include <signal.h>
#include <stdio.h>

#include "engine/espalier.h"

enum { EXIT_DONE = 0, EXIT_BAD = 1, EXIT_USAGE = 2, EXIT_INTERRUPTED = 130 };

/* Groups of flags. A command takes all flags of some groups. Every command takes the group ALL.
 * The group SETTINGS has the settings of a session, except those that the command chooses
 * itself. */
enum cli_group {
    CLI_GROUP_ALL,
    CLI_GROUP_PROMPT,
    CLI_GROUP_FILE,
    CLI_GROUP_TOKENS,
    CLI_GROUP_MODELS,
    CLI_GROUP_DRAFTER,
    CLI_GROUP_VERIFIER,
    CLI_GROUP_WITH,
    CLI_GROUP_SETTINGS,
    CLI_GROUP_DEVICE,
    CLI_GROUP_MEMORY,
    CLI_GROUP_PRECISION,
    CLI_GROUP_NODES,
    CLI_GROUP_CONTEXT,
    CLI_GROUP_SIZE,
    CLI_GROUP_CHECK,
    CLI_GROUP_PROMPT_TOKENS,
    CLI_GROUP_SUITE,
    CLI_GROUP_TUNE,
    CLI_GROUP_TYPE,
    CLI_GROUP_PERPLEXITY,
    CLI_GROUP_PASS,
    CLI_GROUP_TRAIN,
    CLI_GROUP_RESUME,
    CLI_GROUP_JSON,
    CLI_GROUP_STATS,
    CLI_GROUP_RECORD,
    CLI_GROUP_FORCE,
    CLI_GROUP_LIST,
    CLI_GROUP_LOOKS,
    CLI_GROUP_CONFIG,
    CLI_GROUP_SPEED,
    CLI_GROUP_PLAIN,
    CLI_GROUP_EXPORT,
    CLI_GROUP_FORMAT,
    CLI_GROUP_OUTPUT,
    CLI_GROUP_KEPT,
};

#define CLI(group) (UINT64_C(1) << CLI_GROUP_##group)
/* The groups of flags that a command needs to open an engine, or an engine and a session. */
#define CLI_ENGINE (CLI(MODELS) | CLI(DEVICE) | CLI(MEMORY) | CLI(PRECISION))
#define CLI_SESSION (CLI_ENGINE | CLI(NODES) | CLI(CONTEXT) | CLI(SETTINGS))

/* Indices of the flags. */
enum cli_flag_index {
#define FLAG(group, letter, kind, field, ...) CLI_FLAG_##field,
#define CHOICE(group, field, ...) CLI_FLAG_##field,
#define ENGINE(group, kind, field, ...) CLI_FLAG_##field,
#define SETTING(kind, field, ...) CLI_FLAG_##field,
#include "tui/cli/flags.def"
    CLI_FLAGS /* the number of flags */
};

/* Holds the values of all flags. flags.def lists the flags. */
struct cli_options {
    struct esp_engine_options engine;
    struct esp_session_options session;
#define FLAG(group, letter, kind, field, ...) ESP_VALUE_##kind field;
#include "tui/cli/flags.def"
    bool given[CLI_FLAGS];                  /* true for each flag that was given */
    char target[PATH_MAX], draft[PATH_MAX]; /* paths of the named models */
    const char **arguments;                 /* the arguments that are not flags */
    int argument_count;
    const struct cli_command *const *commands; /* points to cli_commands */
};

struct cli_command {
    const char *name, *arguments, *summary;
    uint64_t flags;      /* the groups of flags that the command takes: CLI(PROMPT) | ... */
    uint64_t chooses;    /* settings that the command chooses itself, so they have no flags */
    int least, most;     /* smallest and largest number of arguments */
    bool names_models;   /* the arguments other than "-" are a target and a draft */
    bool draws_seed;     /* without --seed, the seed is random instead of 0 */
    double temperature;  /* the temperature without --temp */
    const char *details; /* more help, or NULL */
    int (*run)(struct cli_options *options); /* returns an exit code */
};

#define CLI_SETTING(field) (UINT64_C(1) << ESP_VALUE_OF_##field)

extern const struct cli_command *const cli_commands[]; /* NULL-terminated */

/* Reads the flags that `command` takes. Returns -1 if the command should run, or an exit code
 * after printing help or a usage error. */
int cli_parse(struct cli_options *options, const struct cli_command *command, int argc,
              char **argv);

struct cli_flag {
    struct esp_value_info info; /* describes a member of struct cli_options */
    uint64_t group;
    char letter; /* the short form; 0 if none */
};

extern const struct cli_flag cli_flags[CLI_FLAGS];

/* Returns whether a command takes the flag with this index. */
bool cli_takes(const struct cli_command *command, int flag);

/* Returns the flag with this name, or NULL. In names, - and _ mean the same. */
const struct esp_value_info *cli_flag(const char *name);
/* Returns whether the flag with this name was given. */
bool cli_is_given(const struct cli_options *options, const char *name);

/* Prints the help of a command. If `command` is NULL, prints the help of the whole program. */
void cli_help(const struct cli_command *command);

struct esp_interface_options;
/* Opens the interface with the options `with` and with the flags for models and appearance.
 * Returns the exit code. */
int cli_open_interface(struct esp_interface_options *with, const struct cli_options *options);

/* Opens the interface with the kept session `which`. If `which` is the path of a recording,
 * first adds the recording to the library. Uses the session's models and settings, unless flags
 * give others. If these models no longer exist, replays the session. Returns the exit code. */
int cli_resume(struct esp_interface_options *with, const struct cli_options *options,
               const char *which);

/* Adds a recording to the library of kept sessions at the path `library`. Returns 0, or a
 * negative status with a message. */
int cli_import(const char *library, const char *file, char *err, size_t errlen);

/* After this call, Ctrl-C, SIGTERM and SIGHUP remove incomplete files
 * (engine/support/part_file.h), print a message and end the program. */
void cli_clean_up_at_end(void);
/* After this call, Ctrl-C only sets cli_interrupted to the signal's number. A second Ctrl-C
 * ends the program. */
void cli_catch_interrupt(void);
/* Does the same as cli_catch_interrupt(), but also for SIGTERM and SIGHUP. Commands call this
 * if they store partial results. */
void cli_catch_end(void);
extern volatile sig_atomic_t cli_interrupted;

/* Prints "espalier: sentence" on stderr and returns EXIT_BAD. */
int cli_fail(const char *sentence);
/* Returns the exit code for `status`. If `status` is negative, also prints `err`. If `err` is
 * empty, prints what the status means. */
int cli_code(int status, const char *err);
struct esp_recording;
/* If a recording is incomplete, prints a message on standard error. */
void cli_tell_cut(const struct esp_recording *recording, const char *path);
/* Opens the engine with the options of the command line. If loading takes long, shows a bar on
 * standard error, but only if that is a terminal. If an existing device cannot be used, prints
 * a line. */
int cli_open_engine(struct esp_engine **engine, const struct cli_options *options, char *err,
                    size_t errlen);
/* If a target is named but no draft, lets the engine choose the draft: the target's MTP layer,
 * a smaller copy of the target, or none. Does nothing if the drafter needs no draft model. Also
 * does nothing with --seed, because a seed must give the same text on every computer. */
void cli_choose_draft(struct cli_options *options);
/* Draws a progress bar at the start of the terminal's line. `share` (0 to 1) is the fraction
 * that is filled. The caller can print text after it. */
void cli_draw_bar(FILE *file, double share);
/* If `shown` is true, clears the line of the bar. */
void cli_clear_bar(bool shown);
/* A progress function (esp_progress) that shows a bar on a terminal if the work takes long.
 * `user` is a struct cli_loading. When the work is done, call cli_clear_bar() with its member
 * `shown`. */
struct cli_loading {
    double start; /* when the work started, as a time of esp_clock() */
    bool shown;
};
bool cli_progress(void *user, const char *what, size_t done, size_t total);
/* If a session has a "notice" (esp_session_get), prints it on standard error. */
void cli_note(const struct esp_session *session);
/* Takes the arguments other than "-" as target and draft. Returns -1, or an exit code after
 * printing a message. */
int cli_take_models(struct cli_options *options);
/* Replaces the names of target and draft by their paths. If `later` is true, does not change an
 * unknown name, because opening the model will report the error. Returns -1, or an exit code
 * after printing a message. */
int cli_find_models(struct cli_options *options, bool later);
/* Replaces the name of a model in the first argument by its path. Returns false after printing
 * a message. */
bool cli_find_source(struct cli_options *options);
/* Prints a warning on standard error if the session should use the model's chat template, but
 * espalier does not know this template. */
void cli_note_chat(const struct esp_engine *engine, const struct esp_session *session);

#endif
