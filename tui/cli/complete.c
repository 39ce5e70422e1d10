/* complete.c - `espalier complete`: prints completions for a shell.
 *
 * The completion scripts for bash, zsh and fish (tui/package/) call this command and show what
 * it prints. Each line has a word, a tab and what the word means. Where a file name is
 * expected, the command prints nothing, and the shell completes file names.
 */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "engine/find_models.h"
#include "engine/support/paths.h"
#include "sessions/library.h"
#include "tui/cli/cli.h"
#include "tui/commands/complete.h"
#include "tui/lessons/lesson.h"
#include "tui/view/theme.h"
#include "viz/safe.h"

/* Returns the command with this name. If there is none, returns the first command, which runs
 * when the user names no command. */
static const struct cli_command *command_of(const char *name,
                                            const struct cli_command *const *commands)
{
    for (int i = 1; commands[i]; i++)
        if (strcmp(commands[i]->name, name) == 0)
            return commands[i];
    return commands[0];
}

/* ------------------------------------------------------------------ completing one word */

static void offer_items(enum esp_list list, struct esp_choices *choices)
{
    struct esp_item item;
    for (int i = 0; esp_item(list, i, &item); i++)
        esp_choices_offer(choices, item.name, item.summary);
}

/* Completes "NAME:K=V,...". Each completion begins with the part that the user has typed. */
static void offer_spec(enum esp_list list, struct esp_choices *choices)
{
    struct esp_choices rest = {.append = ' '};
    const char *word = choices->word, *end = word + strlen(word);
    char before[256], text[512];
    while (end > word && !strchr(":,=", end[-1]))
        end--;
    snprintf(before, sizeof before, "%.*s", (int)(end - word), word);
    rest.word = end;
    esp_complete_spec(list, before, &rest);
    for (int i = 0; i < rest.count; i++) {
        snprintf(text, sizeof text, "%s%s%s", before, rest.choice[i].text,
                 rest.append == '=' ? "=" : "");
        esp_choices_add(choices, text, rest.choice[i].summary);
    }
    esp_choices_clear(&rest);
}

static void offer_themes(struct esp_choices *choices)
{
    char name[256];
    for (int i = 0; esp_theme_list(i, name, sizeof name) == ESP_OK; i++)
        esp_choices_offer(choices, name, NULL);
}

static void offer_lessons(struct esp_choices *choices)
{
    char name[256], title[200];
    for (int i = 0; esp_lesson_list(i, name, sizeof name, title, sizeof title); i++)
        esp_choices_offer(choices, name, title);
}

static void offer_suites(struct esp_choices *choices)
{
    char folder[PATH_MAX], name[256];
    esp_choices_offer(choices, "list", "list the suites");
    if (esp_find_data(folder, sizeof folder, "suites", "") < 0)
        return;
    for (int i = 0; esp_list_folder(folder, ".suite", i, name, sizeof name) == 0; i++)
        esp_choices_offer(choices, name, NULL);
}

/* ------------------------------------------------------------------ flags */

/* Returns the flag whose value is the word after `text`, or -1. */
static int flag_before(const struct cli_command *command, const char *text)
{
    char name[ESP_FLAG_NAME];
    for (int i = 0; i < CLI_FLAGS; i++) {
        const struct cli_flag *flag = &cli_flags[i];
        const bool is_long = strncmp(text, "--", 2) == 0 &&
                             strcmp(text + 2, esp_value_flag(&flag->info, name)) == 0;
        const bool is_short = text[0] == '-' && text[1] && text[1] == flag->letter && !text[2];
        if (flag->info.kind != ESP_KIND_flag && (is_long || is_short) && cli_takes(command, i))
            return i;
    }
    return -1;
}

static void offer_flags(const struct cli_command *command, struct esp_choices *choices)
{
    char name[ESP_FLAG_NAME], text[ESP_FLAG_NAME + 2];
    for (int i = 0; i < CLI_FLAGS; i++) {
        snprintf(text, sizeof text, "--%s", esp_value_flag(&cli_flags[i].info, name));
        if (cli_takes(command, i))
            esp_choices_offer(choices, text, cli_flags[i].info.help);
    }
}

static int offer_session(void *user, const struct esp_kept_session *session)
{
    char number[32];
    snprintf(number, sizeof number, "%lld", (long long)session->id);
    esp_choices_offer(user, *session->name ? session->name : number, session->words);
    return 0;
}

static void offer_sessions(struct esp_choices *choices)
{
    struct esp_library *library;
    char path[PATH_MAX], err[512];
    if (esp_library_path(path, sizeof path) < 0 ||
        esp_library_open(&library, path, ESP_LIBRARY_READ, err, sizeof err) < 0)
        return;
    esp_library_list(library, offer_session, choices, err, sizeof err);
    esp_library_close(library);
}

static void offer_values(int flag, struct esp_choices *choices)
{
    switch (flag) {
    case CLI_FLAG_draft:
        esp_choices_offer(choices, ESP_MTP, "the target's MTP layer");
        esp_choices_offer(choices, "self", "a quantised copy of the target");
        esp_choices_offer(choices, "none", "no draft model");
        esp_choices_offer(
            choices, "auto",
            "mtp if the target has an MTP layer, otherwise self if self is likely to be "
            "faster");
        esp_complete_model(NULL, choices);
        return;
    case CLI_FLAG_target:
        esp_complete_model(NULL, choices);
        return;
    case CLI_FLAG_drafter:
    case CLI_FLAG_with:
        offer_spec(ESP_DRAFTERS, choices);
        return;
    case CLI_FLAG_verifier:
    case CLI_FLAG_with_verifier:
        offer_spec(ESP_VERIFIERS, choices);
        return;
    case CLI_FLAG_backend:
        esp_choices_offer(choices, "auto", "the fastest available backend");
        offer_items(ESP_BACKENDS, choices);
        return;
    case CLI_FLAG_suite:
        offer_suites(choices);
        return;
    case CLI_FLAG_theme:
        offer_themes(choices);
        return;
    case CLI_FLAG_kept:
        offer_sessions(choices);
        return;
    case CLI_FLAG_expect: /* a file name, which the shell completes */
        return;
    default:
        esp_complete_words(cli_flags[flag].info.values, choices);
    }
}

/* ------------------------------------------------------------------ arguments */

static void offer_arguments(const struct cli_command *command, int index,
                            struct esp_choices *choices)
{
    char words[128];
    if (strcmp(command->name, "bench") == 0)
        offer_spec(ESP_DRAFTERS, choices);
    else if (strcmp(command->name, "learn") == 0)
        offer_lessons(choices);
    else if (strcmp(command->name, "list") == 0 && index > 0)
        esp_complete_model(NULL, choices);
    else if (strcmp(command->name, "sessions") == 0 && index == 1)
        offer_sessions(choices);
    else if (command->names_models)
        esp_complete_model(NULL, choices);
    else { /* "drafters|verifiers|...": the alternatives for the first argument */
        snprintf(words, sizeof words, "%.*s", (int)strcspn(command->arguments, " ["),
                 command->arguments);
        if (index == 0 && strchr(words, '|'))
            esp_complete_words(words, choices);
    }
}

/* Completes the last of the `count` words that follow the program's name. */
static void complete(const char *const *words, int count,
                     const struct cli_command *const *commands, struct esp_choices *choices)
{
    const struct cli_command *command = command_of(count > 1 ? words[0] : "", commands);
    const int flag = count > 1 ? flag_before(command, words[count - 2]) : -1;
    int index = command == commands[0] ? 0 : -1;
    for (int i = 0; i < count - 1; i++) /* counts the arguments before the word */
        index += words[i][0] != '-' && (i == 0 || flag_before(command, words[i - 1]) < 0);
    choices->word = words[count - 1];
    if (flag >= 0)
        offer_values(flag, choices);
    else if (choices->word[0] == '-')
        offer_flags(command, choices);
    else {
        for (int i = 1; command == commands[0] && index == 0 && commands[i]; i++)
            esp_choices_offer(choices, commands[i]->name, commands[i]->summary);
        offer_arguments(command, index, choices);
    }
}

static int run(struct cli_options *o)
{
    struct esp_choices choices = {.append = ' '};
    if (o->argument_count > 0)
        complete(o->arguments, o->argument_count, o->commands, &choices);
    for (int i = 0; i < choices.count; i++)
        esp_safe_print(stdout, "%s\t%s\n", choices.choice[i].text,
                       choices.choice[i].summary ? choices.choice[i].summary : "");
    esp_choices_clear(&choices);
    return EXIT_DONE;
}

const struct cli_command cli_complete = {
    .name = "complete",
    .arguments = "-- WORD...",
    .summary = "print completions of the last WORD, for a shell",
    .details = "The completion scripts for bash, zsh and fish call this command. It prints one "
               "word per line,\nthen a tab and what the word means. Where a file name is "
               "expected, it prints nothing.",
    .most = INT_MAX,
    .run = run,
};
