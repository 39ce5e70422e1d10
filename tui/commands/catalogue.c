/* catalogue.c - writes the tables of keys and commands as text; see catalogue.h. */
#include "tui/commands/catalogue.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tui/commands/command.h"
#include "tui/commands/settings.h"

/* Lists the key of a binding, and the keys of the bindings after it that have no help text.
 * They share the help text of this binding. */
static const char *keys_of(const struct esp_binding *binding, char *keys, size_t size)
{
    size_t used = (size_t)snprintf(keys, size, "%s", binding->key);
    while ((++binding)->key && !binding->help[0] && used < size)
        used += (size_t)snprintf(keys + used, size - used, " %s", binding->key);
    return keys;
}

static const char replay_heading[] = "In a replay";

/* Returns whether this is the first binding that works only in replays. In the table, all such
 * bindings are next to each other. */
static bool begins_replay(const struct esp_binding *binding)
{
    return binding->when == ESP_WHEN_REPLAY && binding[-1].when != ESP_WHEN_REPLAY;
}

static bool is_of(enum esp_place place, bool replay)
{
    return place == ESP_IN_BOTH || (place == ESP_IN_REPLAY) == replay;
}

/* Adds keys to the help. If `of_replay` is true, adds the keys that work only in replays;
 * otherwise adds all other keys. If `replay` is true, the help is for a replay, and keys that
 * work only in a live session are left out. */
static void add_keys(FILE *out, bool of_replay, bool replay)
{
    char keys[64];
    for (const struct esp_binding *b = esp_bindings; b->key; b++) {
        bool live =
            b->when == ESP_WHEN_LIVE || b->when == ESP_WHEN_BRANCH || b->when == ESP_WHEN_STEP;
        if (b->help[0] && (b->when == ESP_WHEN_REPLAY) == of_replay && !(replay && live))
            fprintf(out, "  %-18s %s\n", keys_of(b, keys, sizeof keys), b->help);
    }
}

static void add_commands(FILE *out, bool replay)
{
    fputs("Commands\n", out);
    for (int i = 0; esp_command(i); i++) {
        const struct esp_command_ops *command = esp_command(i);
        char usage[64];
        if (!is_of(command->in, replay))
            continue;
        snprintf(usage, sizeof usage, ":%s %s", command->name, command->usage);
        fprintf(out, "  %-32s %s\n", usage, command->summary);
    }
}

static void add_settings(FILE *out, bool replay)
{
    fputc('\n', out);
    fputs(replay ? "Settings, as :speed 2 or :set speed=2\n"
                 : "Settings, as :temp 0.8 or :set temp=0.8, in addition to the drafter's "
                   "parameters\n",
          out);
    for (int i = 0; esp_setting(i); i++) {
        char usage[64];
        if (!is_of(esp_setting_place(esp_setting(i)), replay))
            continue;
        snprintf(usage, sizeof usage, "%s %s", esp_setting(i)->key, esp_setting(i)->values);
        fprintf(out, "  %-32s %s\n", usage, esp_setting(i)->summary);
    }
}

/* Splits a text into an array of lines with NULL at the end. To free the text, free the first
 * line. */
static char **split(char *text)
{
    size_t count = 0;
    for (const char *at = text; (at = strchr(at, '\n')); at++)
        count++;
    char **lines = calloc(count + 1, sizeof *lines);
    for (size_t i = 0; lines && i < count; i++) {
        char *end = strchr(text, '\n');
        *end = '\0';
        lines[i] = text;
        text = end + 1;
    }
    if (!lines)
        free(text);
    return lines;
}

char **esp_catalogue_help(bool replay)
{
    static const char prompts[] =
        "\nPrompts\n"
        "  Enter submits the line as a prompt; on an empty line it continues the text.\n"
        "  A prompt starts a new paragraph; with a leading space it continues the line.\n"
        "  : starts a command, and / starts a search; but /SETTING VALUE means "
        ":SETTING VALUE.\n"
        "  C-j or M-Enter starts a new line; C-x C-e opens your editor; Esc stops the "
        "generation.\n"
        "  Editing keys are those of GNU readline (~/.inputrc); Up and Down recall earlier "
        "lines.\n";
    static const char text[] =
        "\nIn the text\n"
        "  dim: the prompt      underlined: drafted and accepted      plain: from the target "
        "itself\n"
        "In the tree\n"
        "  bold with a mark: accepted      dim with a cross: rejected      dashed: cut, not "
        "verified\n"
        "In a comparison\n"
        "  two trees that start at the same position; below the text, each side's iterations\n"
        "  Left Right: to the next iteration of either side      PgUp PgDn: to the next "
        "common start\n\n";
    char *all = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&all, &length);
    if (!out)
        return NULL;
    if (replay) {
        fprintf(out, "%s\n", replay_heading);
        add_keys(out, true, true);
        fputc('\n', out);
    }
    fputs("Keys\n", out);
    add_keys(out, false, replay);
    fprintf(out, "%s%s", replay ? "" : prompts, text);
    add_commands(out, replay);
    add_settings(out, replay);
    if (fclose(out) == 0)
        return split(all);
    free(all);
    return NULL;
}

void esp_catalogue_free(char **lines)
{
    if (lines)
        free(*lines);
    free(lines);
}

/* ------------------------------------------------------------------ the manual */

/* Prints a text for a manual page. Escapes backslashes. Also escapes a full stop at the start,
 * because it would begin a macro. */
static void print_text(FILE *file, const char *text)
{
    if (*text == '.')
        fputs("\\&", file);
    for (; *text; text++)
        fputs(*text == '\\' ? "\\e" : (char[]){*text, '\0'}, file);
    fputc('\n', file);
}

/* Prints "Up Down" as "Up , Down". Escapes punctuation, which mdoc would read as a
 * delimiter. */
static void print_keys(FILE *file, char *keys)
{
    char *rest = NULL;
    fputs(".It", file);
    for (char *key = strtok_r(keys, " ", &rest), *next; key; key = next) {
        next = strtok_r(NULL, " ", &rest);
        fprintf(file, " Ic %s%s%s", strlen(key) == 1 ? "\\&" : "", key, next ? " ," : "");
    }
    fputc('\n', file);
}

void esp_catalogue_mdoc(FILE *file)
{
    char keys[64], action[32];
    fputs(".Sh KEYS\nThe name in parentheses is the action, for\n.Ic :bind .\n.Bl -tag -width "
          "Ds\n",
          file);
    for (const struct esp_binding *b = esp_bindings; b->key; b++) {
        if (begins_replay(b))
            fprintf(file, ".El\n.Ss \\&%s\n.Bl -tag -width Ds\n", replay_heading);
        if (b->help[0]) {
            keys_of(b, keys, sizeof keys);
            print_keys(file, keys);
            print_text(file, b->help);
            if (b->action != ESP_ACTION_NONE)
                fprintf(file, ".Pq Cm %s\n", esp_action_name(b->action, action));
        }
    }
    fputs(".El\n.Sh COMMANDS\n.Bl -tag -width Ds\n", file);
    for (int i = 0; esp_command(i); i++) {
        const struct esp_command_ops *command = esp_command(i);
        fprintf(file, ".It Ic :%s%s%s\n", command->name, *command->usage ? " Ar " : "",
                command->usage);
        print_text(file, command->summary);
    }
    fputs(".El\n.Sh SETTINGS\nChange a setting by its name\n.Pq Ql :temp 0.8\nor with\n.Ic "
          ":set .\nParameters of the current drafter can only be changed with\n.Ic :set .\n.Bl "
          "-tag -width Ds\n",
          file);
    for (int i = 0; esp_setting(i); i++) {
        const struct esp_setting *setting = esp_setting(i);
        fprintf(file, ".It Cm %s Ar %s\n", setting->key, setting->values);
        print_text(file, setting->summary);
    }
    fputs(".El\n", file);
}
