/* options.c - reads the flags that flags.def lists, and shows their help. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernels/system.h"
#include "engine/support/suggestion.h"
#include "tui/cli/cli.h"
#include "tui/model/player.h"
#include "viz/safe.h"

enum { SUMMARY_COLUMN = 42, NAME_SIZE = ESP_FLAG_NAME, OPTION = 256 /* above any letter */ };

/* The default values of the flags. For engine options and session settings, the value 0 stands
 * for the default. */
static const struct cli_options defaults = {
#define FLAG(group, letter, kind, field, name, minimum, maximum, value, ...) .field = value,
#include "tui/cli/flags.def"
};

static void print_names(const char *title, enum esp_list list)
{
    struct esp_item item;
    printf("\n%s:", title);
    for (int i = 0; esp_item(list, i, &item); i++)
        printf(" %s", item.name);
    putchar('\n');
}

static void print_flag(const struct cli_flag *flag)
{
    char left[192], name[NAME_SIZE], letter[8] = "    ";
    if (flag->letter)
        snprintf(letter, sizeof letter, "-%c, ", flag->letter);
    snprintf(left, sizeof left, "%s--%s %s", letter, esp_value_flag(&flag->info, name),
             flag->info.kind == ESP_KIND_flag ? "" : flag->info.values);
    printf("  %-32s %s\n", left, flag->info.help);
}

void cli_help(const struct cli_command *command)
{
    if (!command) {
        printf("espalier %s: tree-based speculative decoding, shown step by step\n\n"
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
    for (int i = 0; i < CLI_FLAGS; i++)
        if (cli_takes(command, i))
            print_flag(&cli_flags[i]);
    if (command->flags & CLI(DRAFTER)) {
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

/* Reports an option that is unknown, or that abbreviates several options. */
static int unknown(const struct cli_command *command, const char *typed)
{
    struct esp_suggestion guess;
    char what[200], flag[NAME_SIZE];
    const char *name = typed + strspn(typed, "-");
    esp_suggestion_begin(&guess, name, strcspn(name, "="));
    for (int i = 0; i < CLI_FLAGS && strncmp(typed, "--", 2) == 0; i++)
        if (cli_takes(command, i))
            esp_suggestion_try(&guess, esp_value_flag(&cli_flags[i].info, flag));
    snprintf(what, sizeof what, "unknown or ambiguous option '%.40s'%s%s", typed,
             guess.best[0] ? " (did you mean --" : "", guess.best);
    if (guess.best[0])
        strcat(what, "?)");
    return usage(command, what, NULL);
}

static bool speed(const char *text, double *value)
{
    char err[128];
    if (esp_speed_parse(text, value, err, sizeof err) == 0)
        return true;
    esp_complain("--%s", err);
    return false;
}

static bool set(struct cli_options *o, int i, const char *text)
{
    char name[NAME_SIZE], called[NAME_SIZE + 2], err[256];
    if (i == CLI_FLAG_text && o->text) {
        esp_complain(
            "--text is given twice; list all files after a single --text: --text %s %s",
            o->text, text);
        return false;
    }
    o->given[i] = true;
    o->session.repeatable = o->given[CLI_FLAG_seed];
    if (i == CLI_FLAG_speed)
        return speed(text, &o->speed);
    snprintf(called, sizeof called, "--%s", esp_value_flag(&cli_flags[i].info, name));
    if (i == CLI_FLAG_kept && !text)
        text = "";
    if (esp_value_read(&cli_flags[i].info, o, called, text ? text : "on", err, sizeof err) <
        0) {
        esp_complain("%s", err);
        return false;
    }
    return true;
}

/* Returns a random seed that is short enough for a user to type. */
static uint64_t drawn_seed(void)
{
    enum { SEEDS = 1000000 };
    uint32_t bits = 0;
    if (!esp_random_bytes(&bits, sizeof bits))
        bits = (uint32_t)time(NULL);
    return bits % SEEDS;
}

/* Holds the flags of a command in the form that getopt_long() needs. */
struct getopt_table {
    struct option option[CLI_FLAGS + 1];
    char names[CLI_FLAGS][NAME_SIZE], letters[2 * CLI_FLAGS + 2];
};

static void list_flags(const struct cli_command *command, struct getopt_table *table)
{
    int count = 0, n = 0;
    *table = (struct getopt_table){.letters = ""};
    table->letters[n++] = ':';
    for (int i = 0; i < CLI_FLAGS; i++) {
        if (!cli_takes(command, i))
            continue;
        const int has_value = i == CLI_FLAG_kept                        ? optional_argument
                              : cli_flags[i].info.kind != ESP_KIND_flag ? required_argument
                                                                        : no_argument;
        table->option[count++] = (struct option){
            esp_value_flag(&cli_flags[i].info, table->names[i]), has_value, NULL, OPTION + i};
        if (cli_flags[i].letter)
            table->letters[n++] = cli_flags[i].letter;
        if (cli_flags[i].letter && has_value)
            table->letters[n++] = ':';
    }
}

static int of_letter(int letter)
{
    int i = 0;
    while (cli_flags[i].letter != letter)
        i++;
    return i;
}

/* Checks the number of arguments, not counting flags. */
static int check_arguments(const struct cli_options *o, const struct cli_command *command)
{
    if (o->argument_count > command->most && command->most > 2) {
        esp_complain("%s takes at most %d arguments, not %d", command->name, command->most,
                     o->argument_count);
        return EXIT_USAGE;
    }
    if (o->argument_count > command->most)
        return usage(command, "unexpected argument", o->arguments[command->most]);
    if (o->argument_count < command->least)
        return usage(command, "an argument is missing; it takes", command->arguments);
    return -1;
}

int cli_parse(struct cli_options *o, const struct cli_command *command, int argc, char **argv)
{
    struct getopt_table table;
    int flag;
    list_flags(command, &table);
    *o = defaults;
    o->session.values.temperature = command->temperature;
    opterr = 0;
    while ((flag = getopt_long(argc, argv, table.letters, table.option, NULL)) != -1) {
        if (flag == ':')
            return usage(command, "a value is missing after", argv[optind - 1]);
        if (flag == '?')
            return unknown(command, argv[optind - 1]);
        if (flag == OPTION + CLI_FLAG_kept && !optarg && optind < argc &&
            argv[optind][0] != '-')
            optarg = argv[optind++]; /* getopt takes an optional value only after '=' */
        if (!set(o, flag < OPTION ? of_letter(flag) : flag - OPTION, optarg))
            return EXIT_BAD;
        if (o->help)
            cli_help(command == cli_commands[0] ? NULL : command);
        if (o->version)
            printf("espalier %s\n", ESP_VERSION);
        if (o->help || o->version)
            return EXIT_DONE;
    }
    if (command->draws_seed && !o->given[CLI_FLAG_seed])
        o->session.values.seed = drawn_seed();
    o->arguments = (const char **)argv + optind;
    o->argument_count = argc - optind;
    return check_arguments(o, command);
}
