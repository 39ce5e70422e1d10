/* options.c - flags: one table feeds parsing and help; a command takes the flags it names.
 *
 * Settings of a session (espalier_settings.h) are flags by their names, with - for _. A command
 * that names "settings" takes all of them but those it chooses itself.
 */
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "engine/support/byte_size.h"
#include "engine/support/suggestion.h"
#include "tui/cli/cli.h"
#include "tui/model/player.h"
#include "sessions/recording.h"
#include "viz/safe.h"

enum flag {
    TARGET = 256,
    DRAFT,
    DRAFTER,
    VERIFIER,
    WITH,
    WITH_VERIFIER,
    BACKEND,
    THREADS,
    DEVICE,
    EXACT,
    MAX_NODES,
    CONTEXT,
    TRIALS,
    WARMUP,
    SECONDS,
    WRITE,
    PROMPT_TOKENS,
    SUITE,
    COUNTS,
    CHECK,
    PROMPTS,
    TYPE,
    PERPLEXITY,
    WIDTH,
    LAYERS,
    PASS,
    TEXT,
    LOSS,
    PIECES,
    EPOCHS,
    GOAL,
    RATE,
    BATCH,
    LENGTH,
    RESUME,
    JSON,
    STATS,
    RECORD,
    EXPLAIN,
    FORCE,
    MDOC,
    ASCII,
    THEME,
    CONFIG,
    NO_CONFIG,
    SPEED,
    IDLE,
    PLAIN,
    ITERATION,
    FORMAT,
    HTML,
    CHART,
    FIGURE,
    ASPECT,
    CAPTION,
    NODES,
    ASCIICAST,
    SIZE,
    MEMORY,
    GPU_MEMORY,
    SYSTEM,
    SETTINGS, /* the first of them; the others follow */
    HELP = 'h',
    VERSION = 'V',
    PROMPT = 'p',
    FILE_ = 'f',
    TOKENS = 'n',
    OUTPUT = 'o',
};

enum { SUMMARY_COLUMN = 42, MOST_TOKENS = 1 << 24 };

struct cli_flag {
    const char *name;
    int flag; /* enum flag; a setting: SETTINGS and its index */
    const char *argument, *help;
};

static const struct cli_flag fixed[] = {
    {"prompt", PROMPT, "TEXT", "the prompt"},
    {"file", FILE_, "FILE", "read the prompt from a file; - is standard input"},
    {"tokens", TOKENS, "N", "new tokens at most (default 256); end-of-text ends earlier"},
    {"target", TARGET, "MODEL",
     "target: a folder, a GGUF file or a name of `espalier list models` (default: the built-in "
     "pair)"},
    {"draft", DRAFT, "MODEL",
     "draft, likewise: a model of the target's vocabulary, or an EAGLE head for it"},
    {"drafter", DRAFTER, "NAME[:K=V,...]",
     "how trees are drafted (default: the pair's preset, or dynatree)"},
    {"verifier", VERIFIER, "NAME[:K=V,...]",
     "how tokens are accepted (default: the best lossless one)"},
    {"with", WITH, "NAME[:K=V,...]", "the second drafter (default: as the first)"},
    {"with-verifier", WITH_VERIFIER, "NAME[:K=V,...]",
     "the second verifier (default: the best lossless one)"},
    {"system", SYSTEM, "TEXT", "system text of conversations (default: the template's own)"},
    {"settings", SETTINGS, NULL, NULL}, /* stands for all of them */
    {"backend", BACKEND, "NAME", "auto, or one of `espalier list backends`"},
    {"threads", THREADS, "N", "processor threads (default: one per core)"},
    {"memory", MEMORY, "SIZE",
     "take about 600M, 2G ... of memory: what of the target does not fit is read from disk for "
     "every pass"},
    {"gpu-memory", GPU_MEMORY, "SIZE",
     "take about 600M, 2G ... of a GPU's memory: what of the target does not fit is copied "
     "there "
     "for every pass"},
    {"device", DEVICE, "N", "which GPU, numbered from 0 (default: 0)"},
    {"exact", EXACT, NULL,
     "on a GPU the same sums for every size of tree; on the processor 16 bits of activations, "
     "not 8, beside weights of 4 to 6 bits"},
    {"max-nodes", MAX_NODES, "N", "memory for trees of N nodes (default 256)"},
    {"context", CONTEXT, "N", "tokens of context (default: what the target allows)"},
    {"trials", TRIALS, "N", "continuations that are sampled per pair (default 200)"},
    {"prompt-tokens", PROMPT_TOKENS, "N", "only the first N tokens of each prompt"},
    {"suite", SUITE, "NAME|FILE",
     "run an experiment that is a file; list: show which there are"},
    {"counts", COUNTS, NULL,
     "only columns that do not depend on the machine; the best has most tokens per iteration"},
    {"check", CHECK, NULL,
     "compare the counts with the suite's table in results/ beside it; exit code 1: some "
     "differ"},
    {"prompts", PROMPTS, "N", "only the first N prompts"},
    {"warmup", WARMUP, "N", "uncounted rounds over the first prompt (default 1)"},
    {"seconds", SECONDS, "N", "measure for about N seconds (default 60)"},
    {"write", WRITE, NULL, "write the preset to espalier.json in the target's folder"},
    {"type", TYPE, "NAME",
     "how numbers are stored: q8_0, q6_k, q5_k, q4_k, q4_0, mxfp4, bf16, f16, f32"},
    {"perplexity", PERPLEXITY, "FILE", "also measure how well the target predicts this text"},
    {"width", WIDTH, "N", "make the target N times as wide: 1, 2, 4, ... 64 (default 1)"},
    {"layers", LAYERS, "N", "give the target N layers in all (default: as many as it has)"},
    {"pass", PASS, "MS",
     "make the target so large that a pass takes MS milliseconds; 0: as it is"},
    {"text", TEXT, "FILE", "text to learn from; more files may follow"},
    {"loss", LOSS, "NAME[:K=V,...]", "what is minimised (default talf)"},
    {"pieces", PIECES, "N", "texts that the target writes, 8 samples each (default 1600)"},
    {"epochs", EPOCHS, "N", "times that all samples are gone through"},
    {"goal", GOAL, "speed|tokens|cheap-rows",
     "what is chosen for: tokens per second, per iteration, or per second where a row costs "
     "little"},
    {"rate", RATE, "X", "the largest learning rate (default 0.0003)"},
    {"batch", BATCH, "N", "pieces of text in a step (default 8)"},
    {"length", LENGTH, "N", "tokens of a piece (default 512, or what the models allow)"},
    {"resume", RESUME, NULL, "go on with what was interrupted"},
    {"json", JSON, NULL, "print one JSON object instead of text"},
    {"stats", STATS, NULL, "print statistics on standard error at the end"},
    {"record", RECORD, "FILE", "record the session, to be replayed and exported later"},
    {"explain", EXPLAIN, NULL, "record what the rule's formulas say of each node; slower"},
    {"force", FORCE, NULL, "overwrite a file that exists"},
    {"mdoc", MDOC, NULL, "print the list as the source of a manual page"},
    {"ascii", ASCII, NULL, "draw with ASCII characters only"},
    {"theme", THEME, "NAME",
     "colours: one of `espalier list themes`, or ./FILE; of a picture light or dark"},
    {"config", CONFIG, "FILE",
     "settings to start with (default: the user's, if there are any)"},
    {"no-config", NO_CONFIG, NULL, "start with the settings that the program has by itself"},
    {"speed", SPEED, "X",
     "0.25 to 16 times as fast as an eye can follow (default 1), or recorded: as it was"},
    {"idle", IDLE, "S",
     "play no pause longer than S seconds (default 2); 0: as long as it was"},
    {"plain", PLAIN, NULL, "print every iteration's screen as text; needs no terminal"},
    {"iteration", ITERATION, "N|A-B", "which iteration, or from which to which"},
    {"format", FORMAT, "FORMAT",
     "dot, svg, png, pdf, tikz, txt, json or html (default: as the file of -o ends)"},
    {"html", HTML, NULL,
     "the whole recording as one page that plays in a browser; as --format html"},
    {"output", OUTPUT, "FILE", "write to a file instead of standard output"},
    {"asciicast", ASCIICAST, "FILE",
     "write the whole replay for terminal players (asciicast v2)"},
    {"size", SIZE, "WxH", "columns and rows of the replay (default: as recorded)"},
    {"nodes", NODES, "N", "nodes of a picture at most; 0: all (default: as fit on a slide)"},
    {"chart", CHART, "NAME",
     "thresholds, acceptance or stages: a chart of all iterations, or of A-B"},
    {"figure", FIGURE, "NAME",
     "mask, timeline, iteration or tree: a figure of one iteration, for a paper"},
    {"aspect", ASPECT, "W:H",
     "shape of a picture, as 16:9 or 4:3 (default: as large as the tree)"},
    {"caption", CAPTION, "NAME", "words around a picture: full (default), short or none"},
    {"help", HELP, NULL, "show this help"},
    {"version", VERSION, NULL, "show the version"},
};

enum { FLAG_COUNT = sizeof fixed / sizeof *fixed - 1 + ESP_VALUES, NAME_SIZE = 32 };

/* All flags: those of the table above, and the settings. */
static struct cli_flag flags[FLAG_COUNT];

static struct cli_flag setting_flag(int index)
{
    static char names[ESP_VALUES][NAME_SIZE];
    struct esp_value_info info;
    char *name = names[index];
    esp_value_info(index, &info);
    snprintf(name, NAME_SIZE, "%s", info.name);
    for (char *c = name; *c; c++)
        if (*c == '_')
            *c = '-';
    const bool is_switch = strcmp(info.kind, "flag") == 0;
    return (struct cli_flag){name, SETTINGS + index, is_switch ? NULL : info.values, info.help};
}

static void list_flags(void)
{
    int count = 0;
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++) {
        if (fixed[i].flag != SETTINGS)
            flags[count++] = fixed[i];
        for (int j = 0; fixed[i].flag == SETTINGS && j < ESP_VALUES; j++)
            flags[count++] = setting_flag(j);
    }
}

/* Is `name` one of the space-separated names in `list`? */
static bool listed(const char *list, const char *name)
{
    size_t n = strlen(name);
    for (const char *at = list; (at = strstr(at, name)); at += n)
        if ((at == list || at[-1] == ' ') && (at[n] == ' ' || at[n] == '\0'))
            return true;
    return false;
}

static bool is_setting(int flag)
{
    return flag >= SETTINGS && flag < SETTINGS + ESP_VALUES;
}

static bool takes(const struct cli_command *command, int i)
{
    if (is_setting(flags[i].flag))
        return command->flags && listed(command->flags, "settings") &&
               !(command->chooses && listed(command->chooses, flags[i].name));
    return flags[i].flag == HELP || flags[i].flag == VERSION ||
           (command->flags && listed(command->flags, flags[i].name));
}

static void print_names(const char *title, enum esp_list list)
{
    struct esp_item item;
    printf("\n%s:", title);
    for (int i = 0; esp_item(list, i, &item); i++)
        printf(" %s", item.name);
    putchar('\n');
}

void cli_help(const struct cli_command *command)
{
    list_flags();
    if (!command) {
        printf("espalier %s: tree-based speculative decoding that shows its trees\n\n"
               "usage:\n",
               ESP_VERSION);
        for (int i = 0; cli_commands[i]; i++) {
            int used = printf("  espalier %s%s%s", i ? cli_commands[i]->name : "", i ? " " : "",
                              cli_commands[i]->arguments);
            printf("%s%*s%s\n", used < SUMMARY_COLUMN ? "" : "\n",
                   used < SUMMARY_COLUMN ? SUMMARY_COLUMN - used : SUMMARY_COLUMN, "",
                   cli_commands[i]->summary);
        }
        printf("\n`espalier COMMAND --help` says more about a command. Options without a "
               "command:\n");
        command = cli_commands[0];
    } else {
        printf("usage: espalier %s %s\n\n%s\n\n", command->name, command->arguments,
               command->summary);
    }
    for (int i = 0; i < FLAG_COUNT; i++) {
        if (!takes(command, i))
            continue;
        char left[128], letter[8] = "    ";
        if (flags[i].flag < 256)
            snprintf(letter, sizeof letter, "-%c, ", (char)flags[i].flag);
        snprintf(left, sizeof left, "%s--%s %s", letter, flags[i].name,
                 flags[i].argument ? flags[i].argument : "");
        printf("  %-32s %s\n", left, flags[i].help);
    }
    if (command->flags && listed(command->flags, "drafter")) {
        print_names("Drafters", ESP_DRAFTERS);
        print_names("Verifiers", ESP_VERIFIERS);
        printf(
            "`espalier list drafters` and `espalier list verifiers` show their parameters.\n");
    }
    if (command->details)
        printf("\n%s\n", command->details);
}

static int usage(const struct cli_command *command, const char *what, const char *value)
{
    bool plain = command == cli_commands[0];
    esp_complain("%s%s%s%s; try espalier %s%s--help", what, value ? " '" : "",
                 value ? value : "", value ? "'" : "", plain ? "" : command->name,
                 plain ? "" : " ");
    return EXIT_USAGE;
}

/* An option that the command does not take, or the beginning of several. */
static int unknown(const struct cli_command *command, const char *typed)
{
    struct esp_suggestion guess;
    char what[200];
    const char *name = typed + strspn(typed, "-");
    esp_suggestion_begin(&guess, name, strcspn(name, "="));
    for (int i = 0; i < FLAG_COUNT && strncmp(typed, "--", 2) == 0; i++)
        if (takes(command, i))
            esp_suggestion_try(&guess, flags[i].name);
    snprintf(what, sizeof what, "unknown or ambiguous option '%.40s'%s%s", typed,
             guess.best[0] ? " (did you mean --" : "", guess.best);
    if (guess.best[0])
        strcat(what, "?)");
    return usage(command, what, NULL);
}

/* A flag's number; on failure prints a sentence and returns false. */
static bool number(const char *flag, const char *text, double low, double high, bool whole,
                   double *value)
{
    char *end;
    errno = 0;
    *value = strtod(text, &end);
    if (end != text && !*end && *value >= low && *value <= high &&
        (!whole || *value == floor(*value)))
        return true;
    esp_complain("--%s takes a %snumber from %.10g to %.10g, not '%s'", flag,
                 whole ? "whole " : "", low, high, text);
    return false;
}

static bool whole_number(const char *flag, const char *text, int low, int high, int *value)
{
    double x;
    if (!number(flag, text, low, high, true, &x))
        return false;
    *value = (int)x;
    return true;
}

static bool memory_size(const char *flag, const char *text, size_t *bytes)
{
    char err[256];
    if (esp_byte_size_parse(bytes, flag, text, err, sizeof err) == ESP_OK)
        return true;
    esp_complain("%s", err);
    return false;
}

/* A setting of the session; a flag without a value turns it on. */
static bool setting(struct cli_options *o, int index, const char *text)
{
    char called[NAME_SIZE + 2], err[256];
    snprintf(called, sizeof called, "--%s", setting_flag(index).name);
    o->session.repeatable = o->session.repeatable || index == ESP_VALUE_OF_seed;
    if (esp_value_parse(&o->session.values, index, called, text ? text : "on", err,
                        sizeof err) == ESP_OK)
        return true;
    esp_complain("%s", err);
    return false;
}

static bool speed(const char *text, double *value)
{
    char err[128];
    if (esp_speed_parse(text, value, err, sizeof err) == 0)
        return true;
    esp_complain("--%s", err);
    return false;
}

static bool size(const char *text, int *columns, int *rows)
{
    int end = 0;
    if (sscanf(text, "%dx%d%n", columns, rows, &end) == 2 && !text[end] && *columns >= 20 &&
        *columns <= 500 && *rows >= 5 && *rows <= 200)
        return true;
    esp_complain("--size takes WxH, from 20x5 to 500x200, not '%s'", text);
    return false;
}

/* Where the text of a flag goes; NULL: it takes none. */
static const char **text_of(struct cli_options *o, int flag)
{
    switch (flag) {
    case TYPE:
        return &o->type;
    case PERPLEXITY:
        return &o->perplexity;
    case PROMPT:
        return &o->prompt;
    case FILE_:
        return &o->prompt_file;
    case TARGET:
        return &o->engine.target;
    case DRAFT:
        return &o->engine.draft;
    case DRAFTER:
        return &o->session.drafter;
    case VERIFIER:
        return &o->session.verifier;
    case SYSTEM:
        return &o->session.system;
    case WITH:
        return &o->with;
    case WITH_VERIFIER:
        return &o->with_verifier;
    case BACKEND:
        return &o->engine.backend;
    case RECORD:
        return &o->record;
    case THEME:
        return &o->theme;
    case CONFIG:
        return &o->config;
    case ITERATION:
        return &o->iteration;
    case FORMAT:
        return &o->format;
    case OUTPUT:
        return &o->output;
    case ASCIICAST:
        return &o->asciicast;
    case CHART:
        return &o->chart;
    case FIGURE:
        return &o->figure;
    case ASPECT:
        return &o->aspect;
    case CAPTION:
        return &o->caption;
    case SUITE:
        return &o->suite;
    case TEXT:
        return &o->text;
    case LOSS:
        return &o->loss;
    case GOAL:
        return &o->goal;
    }
    return NULL;
}

/* What a flag without a value turns on; NULL: none such. */
static bool *switch_of(struct cli_options *o, int flag)
{
    switch (flag) {
    case EXACT:
        return &o->engine.exact;
    case JSON:
        return &o->json;
    case EXPLAIN:
        return &o->explain;
    case FORCE:
        return &o->force;
    case STATS:
        return &o->stats;
    case ASCII:
        return &o->ascii;
    case NO_CONFIG:
        return &o->no_config;
    case PLAIN:
        return &o->plain;
    case MDOC:
        return &o->mdoc;
    case WRITE:
        return &o->write;
    case RESUME:
        return &o->resume;
    case COUNTS:
        return &o->counts;
    case CHECK:
        return &o->check;
    case HTML:
        return &o->html;
    }
    return NULL;
}

static bool set(struct cli_options *o, int flag, const char *value)
{
    const char **text = text_of(o, flag);
    bool *on = switch_of(o, flag);
    if (flag == TEXT && o->text) {
        esp_complain("--text is given twice; name all files behind one: --text %s %s", o->text,
                     value);
        return false;
    }
    if (text)
        *text = value;
    if (on)
        *on = true;
    if (text || on)
        return true;
    if (is_setting(flag))
        return setting(o, flag - SETTINGS, value);
    switch (flag) {
    case TOKENS:
        return whole_number("tokens", value, 1, MOST_TOKENS, &o->tokens);
    case THREADS:
        return whole_number("threads", value, 1, 1024, &o->engine.threads);
    case MEMORY:
        return memory_size("--memory", value, &o->engine.memory);
    case GPU_MEMORY:
        return memory_size("--gpu-memory", value, &o->engine.gpu_memory);
    case DEVICE:
        return whole_number("device", value, 0, 1023, &o->engine.device);
    case WIDTH:
        return whole_number("width", value, 1, 64, &o->engine.width);
    case LAYERS:
        return whole_number("layers", value, 1, 1000, &o->engine.layers);
    case PASS:
        return number("pass", value, 0, 10000, false, &o->pass);
    case PIECES:
        return whole_number("pieces", value, 1, 1000000, &o->pieces);
    case EPOCHS:
        return whole_number("epochs", value, 1, 1000, &o->epochs);
    case BATCH:
        return whole_number("batch", value, 1, 4096, &o->batch);
    case LENGTH:
        return whole_number("length", value, 8, 1 << 16, &o->length);
    case RATE:
        return number("rate", value, 1e-9, 1, false, &o->rate);
    case MAX_NODES:
        return whole_number("max-nodes", value, 1, ESP_MAX_NODES, &o->engine.max_nodes);
    case CONTEXT:
        return whole_number("context", value, 2, MOST_TOKENS, &o->engine.context);
    case TRIALS:
        return whole_number("trials", value, 1, MOST_TOKENS, &o->trials);
    case PROMPT_TOKENS:
        return whole_number("prompt-tokens", value, 1, MOST_TOKENS, &o->prompt_tokens);
    case PROMPTS:
        return whole_number("prompts", value, 1, MOST_TOKENS, &o->most_prompts);
    case WARMUP:
        return whole_number("warmup", value, 0, 1000, &o->warmup);
    case SECONDS:
        return number("seconds", value, 1, 86400, false, &o->seconds);
    case SPEED:
        return speed(value, &o->speed);
    case IDLE:
        return number("idle", value, 0, ESP_IDLE_MOST, false, &o->idle);
    case SIZE:
        return size(value, &o->columns, &o->rows);
    case NODES:
        return whole_number("nodes", value, 0, ESP_RECORDING_NODES, &o->nodes);
    }
    return false;
}

/* Each name once. */
static void note_given(struct cli_options *o, int flag)
{
    size_t used = strlen(o->given);
    for (int i = 0; i < FLAG_COUNT; i++)
        if (flags[i].flag == flag && !listed(o->given, flags[i].name))
            snprintf(o->given + used, sizeof o->given - used, " %s ", flags[i].name);
}

/* A seed that can be typed again. */
static uint64_t drawn_seed(void)
{
    enum { SEEDS = 1000000 };
    uint32_t bits = 0;
    if (getrandom(&bits, sizeof bits, GRND_NONBLOCK) < (ssize_t)sizeof bits)
        bits = (uint32_t)time(NULL);
    return bits % SEEDS;
}

int cli_parse(struct cli_options *o, const struct cli_command *command, int argc, char **argv)
{
    struct option table[FLAG_COUNT + 1] = {{0}};
    char letters[2 * FLAG_COUNT + 2] = ":";
    size_t n = 1;
    int count = 0, flag;
    list_flags();
    for (int i = 0; i < FLAG_COUNT; i++) {
        if (!takes(command, i))
            continue;
        bool has_value = flags[i].argument != NULL;
        table[count++] = (struct option){flags[i].name, has_value, NULL, flags[i].flag};
        if (flags[i].flag < 256) {
            letters[n++] = (char)flags[i].flag;
            if (has_value)
                letters[n++] = ':';
        }
    }
    letters[n] = '\0';
    o->tokens = 256;
    o->trials = 200;
    o->warmup = 1;
    o->seconds = 60;
    o->prompt_tokens = MOST_TOKENS;
    o->most_prompts = MOST_TOKENS;
    o->pieces = 1600;
    o->speed = 1;
    o->idle = ESP_IDLE_DEFAULT;
    o->nodes = -1;
    o->session.values.temperature = command->temperature;
    opterr = 0;
    while ((flag = getopt_long(argc, argv, letters, table, NULL)) != -1) {
        if (flag == ':')
            return usage(command, "a value is missing after", argv[optind - 1]);
        if (flag == '?')
            return unknown(command, argv[optind - 1]);
        if (flag == HELP) {
            cli_help(command == cli_commands[0] ? NULL : command);
            return EXIT_DONE;
        }
        if (flag == VERSION) {
            printf("espalier %s\n", ESP_VERSION);
            return EXIT_DONE;
        }
        if (!set(o, flag, optarg))
            return EXIT_BAD;
        note_given(o, flag);
    }
    if (command->draws_seed && !listed(o->given, "seed"))
        o->session.values.seed = drawn_seed();
    o->arguments = (const char **)argv + optind;
    o->argument_count = argc - optind;
    if (o->argument_count > command->most && command->most > 2) {
        esp_complain("%s takes at most %d arguments, not %d", command->name, command->most,
                     o->argument_count);
        return EXIT_USAGE;
    }
    if (o->argument_count > command->most)
        return usage(command, "unexpected argument", o->arguments[command->most]);
    if (o->argument_count < command->least)
        return usage(command, "something is missing; it takes", command->arguments);
    return -1;
}
