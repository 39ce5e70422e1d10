/* catalogue.c - the tables of keys and commands as text; see catalogue.h. */
#include "tui/commands/catalogue.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "tui/commands/command.h"
#include "tui/commands/settings.h"

struct lines {
    char **line; /* (count), then NULL */
    int count;
    bool failed;
};

static void add_line(struct lines *lines, char *line)
{
    size_t size = ((size_t)lines->count + 2) * sizeof *lines->line;
    char **grown = line ? realloc(lines->line, size) : NULL;
    if (!grown) {
        free(line);
        lines->failed = true;
        return;
    }
    lines->line = grown;
    grown[lines->count++] = line;
    grown[lines->count] = NULL;
}

__attribute__((format(printf, 2, 3))) static void add(struct lines *lines, const char *format,
                                                      ...)
{
    char *line = NULL;
    va_list args;
    va_start(args, format);
    int length = vasprintf(&line, format, args);
    va_end(args);
    add_line(lines, length < 0 ? NULL : line);
}

/* The key of a binding, and the following keys without help of their own. */
static const char *keys_of(const struct esp_binding *binding, char *keys, size_t size)
{
    size_t used = (size_t)snprintf(keys, size, "%s", binding->key);
    while ((++binding)->key && !binding->help[0] && used < size)
        used += (size_t)snprintf(keys + used, size - used, " %s", binding->key);
    return keys;
}

static const char replay_heading[] = "In a replay";

/* Whether it is the first binding for replays only. The table groups them. */
static bool begins_replay(const struct esp_binding *binding)
{
    return binding->when == ESP_WHEN_REPLAY && binding[-1].when != ESP_WHEN_REPLAY;
}

static bool is_of(enum esp_place place, bool replay)
{
    return place == ESP_IN_BOTH || (place == ESP_IN_REPLAY) == replay;
}

/* Adds the keys for replays only, or those that work there too, or all others. */
static void add_keys(struct lines *lines, bool of_replay, bool replay)
{
    char keys[64];
    for (const struct esp_binding *b = esp_bindings; b->key; b++) {
        bool live = b->when == ESP_WHEN_LIVE || b->when == ESP_WHEN_STEP;
        if (b->help[0] && (b->when == ESP_WHEN_REPLAY) == of_replay && !(replay && live))
            add(lines, "  %-18s %s", keys_of(b, keys, sizeof keys), b->help);
    }
}

static void add_commands(struct lines *lines, bool replay)
{
    add(lines, "Commands");
    for (int i = 0; esp_command(i); i++) {
        const struct esp_command_ops *command = esp_command(i);
        char usage[64];
        if (!is_of(command->in, replay))
            continue;
        snprintf(usage, sizeof usage, ":%s %s", command->name, command->usage);
        add(lines, "  %-32s %s", usage, command->summary);
    }
}

static void add_settings(struct lines *lines, bool replay)
{
    add(lines, "%s", "");
    add(lines, replay ? "Settings, as :speed 2 or :set speed=2"
                      : "Settings, as :temp 0.8 or :set temp=0.8, besides parameters of the "
                        "drafter");
    for (int i = 0; esp_setting(i); i++) {
        char usage[64];
        if (!is_of(esp_setting_place(esp_setting(i)), replay))
            continue;
        snprintf(usage, sizeof usage, "%s %s", esp_setting(i)->key, esp_setting(i)->values);
        add(lines, "  %-32s %s", usage, esp_setting(i)->summary);
    }
}

static void add_texts(struct lines *lines, const char *const *texts)
{
    for (; *texts; texts++)
        add(lines, "%s", *texts);
}

char **esp_catalogue_help(bool replay)
{
    static const char *const prompts[] = {
        "",
        "Prompts",
        "  Enter submits the line as a prompt; on an empty line it continues the text.",
        "  A prompt starts a new paragraph; with a leading space it continues the line.",
        "  A line that starts with : is a command, one with / a search; /SETTING VALUE means "
        ":SETTING VALUE.",
        "  C-j or M-Enter starts a new line; C-x C-e opens your editor; Esc stops the "
        "generation.",
        "  Editing keys are those of GNU readline (~/.inputrc); Up and Down recall earlier "
        "lines.",
        NULL,
    };
    static const char *const text[] = {
        "",
        "In the text",
        "  dim: the prompt      underlined: drafted and accepted      plain: from the target "
        "itself",
        "In the tree",
        "  bold with a mark: accepted      dim with a cross: rejected      dashed: cut, not "
        "verified",
        "In a comparison",
        "  two trees from the same place in the text; below the text, the iterations of each",
        "  Left Right: to the next start of either one      PgUp PgDn: to the next start of "
        "both",
        "",
        NULL,
    };
    struct lines lines = {.count = 0};
    if (replay) {
        add(&lines, "%s", replay_heading);
        add_keys(&lines, true, true);
        add(&lines, "%s", "");
    }
    add(&lines, "Keys");
    add_keys(&lines, false, replay);
    if (!replay)
        add_texts(&lines, prompts);
    add_texts(&lines, text);
    add_commands(&lines, replay);
    add_settings(&lines, replay);
    if (!lines.failed)
        return lines.line;
    esp_catalogue_free(lines.line);
    return NULL;
}

void esp_catalogue_free(char **lines)
{
    for (char **line = lines; line && *line; line++)
        free(*line);
    free(lines);
}

/* ------------------------------------------------------------------ the manual */

/* Escapes a backslash, and a full stop at the start of a line (a macro). */
static void print_text(FILE *file, const char *text)
{
    if (*text == '.')
        fputs("\\&", file);
    for (; *text; text++)
        fputs(*text == '\\' ? "\\e" : (char[]){*text, '\0'}, file);
    fputc('\n', file);
}

/* Prints "Up Down" as "Up , Down"; escapes punctuation, which would be a delimiter. */
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
