/* settings.c - the table of settings, and how each is set and read; see settings.h. */
#include "tui/commands/settings.h"

#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tui/commands/complete.h"
#include "kernels/status.h"
#include "engine/find_models.h"
#include "engine/support/suggestion.h"
#include "tui/commands/replay.h"

/* ------------------------------------------------------------------ of the interface */

static int set_n(struct esp_control *control, const char *value, char *err, size_t errlen)
{
    char *end;
    long tokens = strtol(value, &end, 10);
    if (end == value || *end || tokens < 1 || tokens > 1000000)
        return esp_fail(err, errlen, ESP_E_ARGUMENT,
                        "n takes a whole number from 1 to 1000000, not '%.40s'", value);
    control->tokens = (int)tokens;
    esp_worker_limit(control->worker, control->tokens);
    return ESP_OK;
}

static void get_n(const struct esp_control *control, char *value, size_t size)
{
    snprintf(value, size, "%d", control->tokens);
}

static int set_theme(struct esp_control *control, const char *value, char *err, size_t errlen)
{
    char path[PATH_MAX];
    esp_typed_path(path, sizeof path, value);
    return esp_control_theme(control, path, err, errlen);
}

static void get_theme(const struct esp_control *control, char *value, size_t size)
{
    snprintf(value, size, "%s", control->theme_name);
}

static void complete_theme(const char *before, const char *word, struct esp_choices *choices)
{
    char name[64];
    if (strchr(before, '/') || strchr(word, '/')) {
        esp_complete_path(before, word, false, choices);
        return;
    }
    for (int i = 0; esp_theme_list(i, name, sizeof name) == 0; i++)
        esp_choices_offer(choices, word, name, NULL);
}

static int set_pace(struct esp_control *control, const char *value, char *err, size_t errlen)
{
    char *end;
    double pace = strtod(value, &end);
    if (strcmp(value, "full") == 0)
        pace = 0;
    else if (end == value || *end || !(pace > 0 && pace <= 1e6))
        return esp_fail(err, errlen, ESP_E_ARGUMENT,
                        "pace takes iterations per second, or full, not '%.40s'", value);
    esp_control_pace(control, pace);
    return ESP_OK;
}

static void get_pace(const struct esp_control *control, char *value, size_t size)
{
    if (control->ui.pace > 0)
        snprintf(value, size, "%g", control->ui.pace);
    else
        snprintf(value, size, "full");
}

/* Which of two words a value is: sets `second`. */
static int choose(bool *second, const char *key, const char *first_word,
                  const char *second_word, const char *value, char *err, size_t errlen)
{
    const bool chosen = strcmp(value, second_word) == 0;
    if (!chosen && strcmp(value, first_word) != 0)
        return esp_fail(err, errlen, ESP_E_ARGUMENT, "%s is %s or %s, not '%.40s'", key,
                        first_word, second_word, value);
    *second = chosen;
    return ESP_OK;
}

static int set_layout(struct esp_control *control, const char *value, char *err, size_t errlen)
{
    return choose(&control->ui.layout.stacked, "layout", "beside", "stacked", value, err,
                  errlen);
}

static void get_layout(const struct esp_control *control, char *value, size_t size)
{
    snprintf(value, size, "%s", control->ui.layout.stacked ? "stacked" : "beside");
}

static int set_tree(struct esp_control *control, const char *value, char *err, size_t errlen)
{
    return choose(&control->ui.look.grows_right, "tree", "indented", "right", value, err,
                  errlen);
}

static void get_tree(const struct esp_control *control, char *value, size_t size)
{
    snprintf(value, size, "%s", control->ui.look.grows_right ? "right" : "indented");
}

/* Names of panes, separated by commas, or "none". */
static int set_hidden(struct esp_control *control, const char *value, char *err, size_t errlen)
{
    bool hidden[ESP_PANES] = {false};
    char names[128], *rest = NULL;
    snprintf(names, sizeof names, "%s", strcmp(value, "none") == 0 ? "" : value);
    for (char *name = strtok_r(names, ", ", &rest); name; name = strtok_r(NULL, ", ", &rest)) {
        int pane = esp_pane_find(name);
        if (pane < 0)
            return esp_fail(err, errlen, ESP_E_ARGUMENT,
                            "there is no pane '%.40s'; Tab after :set hidden= lists them",
                            name);
        hidden[pane] = true;
    }
    if (hidden[ESP_PANE_text] && hidden[ESP_PANE_tree])
        return esp_fail(err, errlen, ESP_E_ARGUMENT,
                        "text and tree cannot both be hidden: one of them is to be seen");
    memcpy(control->ui.layout.hidden, hidden, sizeof hidden);
    return ESP_OK;
}

static void get_hidden(const struct esp_control *control, char *value, size_t size)
{
    size_t used = 0;
    snprintf(value, size, "none");
    for (int i = 0; i < ESP_PANES; i++)
        if (control->ui.layout.hidden[i] && used < size)
            used += (size_t)snprintf(value + used, size - used, "%s%s", used ? "," : "",
                                     esp_panes[i]->name);
}

static void complete_hidden(const char *before, const char *word, struct esp_choices *choices)
{
    (void)before;
    esp_choices_offer(choices, word, "none", "all panes are shown");
    for (int i = 0; i < ESP_PANES; i++)
        if (i != ESP_PANE_help)
            esp_choices_offer(choices, word, esp_panes[i]->name, esp_panes[i]->summary);
    choices->append = '\0';
}

static int set_mouse(struct esp_control *control, const char *value, char *err, size_t errlen)
{
    return choose(&control->mouse, "mouse", "off", "on", value, err, errlen);
}

static void get_mouse(const struct esp_control *control, char *value, size_t size)
{
    snprintf(value, size, "%s", control->mouse ? "on" : "off");
}

/* ------------------------------------------------------------------ of a replay */

static int set_speed(struct esp_control *control, const char *value, char *err, size_t errlen)
{
    int status = esp_speed_parse(value, &control->options.speed, err, errlen);
    if (status == 0 && control->player)
        esp_replay_speed(control, control->options.speed);
    return status;
}

static void get_speed(const struct esp_control *control, char *value, size_t size)
{
    if (control->options.speed > 0)
        snprintf(value, size, "%g", control->options.speed);
    else
        snprintf(value, size, "recorded");
}

static int set_idle(struct esp_control *control, const char *value, char *err, size_t errlen)
{
    char *end;
    double seconds = strtod(value, &end);
    if (end == value || *end || !(seconds >= 0 && seconds <= ESP_IDLE_MOST))
        return esp_fail(err, errlen, ESP_E_ARGUMENT,
                        "idle takes seconds from 0 (no limit) to %g, not '%.40s'",
                        ESP_IDLE_MOST, value);
    control->options.idle = seconds;
    if (control->player)
        esp_replay_idle(control, seconds);
    return ESP_OK;
}

static void get_idle(const struct esp_control *control, char *value, size_t size)
{
    snprintf(value, size, "%g", control->options.idle);
}

/* ------------------------------------------------------------------ of the models */

/* Takes the next word off `text`; backslashes keep blanks in it. */
static bool next_word(const char **text, char *word, size_t size)
{
    size_t used = 0;
    const char *at = *text + strspn(*text, " ");
    if (!*at)
        return false;
    for (; *at && *at != ' ' && used + 1 < size; at++) {
        if (*at == '\\' && at[1])
            at++;
        word[used++] = *at;
    }
    word[used] = '\0';
    *text = at;
    return true;
}

/* The path of the model that a word names. */
static int model_path(const char *word, char *path, size_t size, char *err, size_t errlen)
{
    const char *home = getenv("HOME");
    if (word[0] != '~' || word[1] != '/' || !home)
        return esp_model_path(path, size, word, err, errlen);
    snprintf(path, size, "%s%s", home, word + 1);
    return ESP_OK;
}

/* As many threads as there are processors, at most: more would only take turns. */
static void limit_threads(struct esp_control *control, int *threads)
{
    cpu_set_t cpus;
    const int cores =
        sched_getaffinity(0, sizeof cpus, &cpus) == 0 ? CPU_COUNT(&cpus) : *threads;
    if (*threads <= cores)
        return;
    *threads = cores;
    esp_answer(control, "%d processor%s: as many threads; more would only take turns", cores,
               cores == 1 ? " is free" : "s are free");
}

/* An option of the engine: before anything is loaded what is loaded, later loads anew. 0 is
 * auto, as in the options. The options keep a text that is given. */
static int set_option(struct esp_control *control, const char *key, const char *value,
                      char *err, size_t errlen)
{
    struct esp_engine_options *options = &control->options.engine;
    const struct esp_value_info *option = esp_engine_option_find(key);
    const bool zero =
        strcmp(value, "0") == 0 && strncmp(option->values, "auto|", strlen("auto|")) == 0;
    char now[64];
    int status = esp_value_read(option, options, key, zero ? "auto" : value, err, errlen);
    if (status < 0)
        return status;
    if (option == esp_engine_option(ESP_OPTION_OF_threads))
        limit_threads(control, &options->threads);
    esp_value_write(option, options, now, sizeof now);
    if (control->worker)
        esp_worker_load(control->worker, &(struct esp_models_change){key, now, NULL});
    return ESP_OK;
}

static void get_option(const struct esp_control *control, const char *key, char *value,
                       size_t size)
{
    const struct esp_value_info *option = esp_engine_option_find(key);
    struct esp_engine_options now = control->options.engine;
    esp_value_check(option, &now, value, size);
    esp_value_write(option, &now, value, size);
}

static int set_model(struct esp_control *control, const char *value, char *err, size_t errlen)
{
    char word[1024], folder[2][1200] = {"", ""};
    int count = 0;
    while (count < 2 && next_word(&value, word, sizeof word)) {
        int status = model_path(word, folder[count++], sizeof *folder, err, errlen);
        if (status < 0)
            return status;
    }
    if (count == 0 || next_word(&value, word, sizeof word))
        return esp_fail(err, errlen, ESP_E_ARGUMENT,
                        "model takes a target and perhaps a draft, by name or path");
    if (!control->worker) {
        snprintf(control->target, sizeof control->target, "%s", folder[0]);
        snprintf(control->draft, sizeof control->draft, "%s", folder[1]);
        control->options.engine.target = control->target;
        control->options.engine.draft = *control->draft ? control->draft : NULL;
        return ESP_OK;
    }
    esp_worker_load(control->worker, &(struct esp_models_change){
                                         "target", folder[0], *folder[1] ? folder[1] : NULL});
    return ESP_OK;
}

/* A path that holds in other folders, too; blanks in it get a backslash. */
static size_t add_path(char *value, size_t size, size_t used, const char *folder)
{
    char whole[PATH_MAX];
    const char *path = *folder && realpath(folder, whole) ? whole : folder;
    for (; *path && used + 2 < size; path++) {
        if (*path == ' ' || *path == '\\')
            value[used++] = '\\';
        value[used++] = *path;
    }
    value[used] = '\0';
    return used;
}

static void get_model(const struct esp_control *control, char *value, size_t size)
{
    const struct esp_setup *loaded = &control->state.loaded;
    size_t used = add_path(value, size, 0, loaded->target_folder);
    if (*loaded->draft_folder && used + 2 < size) {
        value[used++] = ' ';
        add_path(value, size, used, loaded->draft_folder);
    }
}

static void complete_model(const char *before, const char *word, struct esp_choices *choices)
{
    esp_complete_path(before, word, true, choices);
    char target[1024];
    const char *rest = before;
    if (!next_word(&rest, target, sizeof target))
        esp_complete_model(NULL, word, choices);
    else if (*rest == ' ' && rest[strspn(rest, " ")] == '\0')
        esp_complete_model(target, word, choices);
}

static int set_backend(struct esp_control *control, const char *value, char *err, size_t errlen)
{
    struct esp_item item;
    bool known = strcmp(value, "auto") == 0;
    for (int i = 0; !known && esp_item(ESP_BACKENDS, i, &item); i++)
        known = strcmp(value, item.name) == 0;
    if (!known)
        return esp_fail(err, errlen, ESP_E_ARGUMENT,
                        "there is no backend '%.40s'; see espalier list backends", value);
    snprintf(control->backend, sizeof control->backend, "%s", value);
    control->options.engine.device = 0;
    return set_option(control, "backend", control->backend, err, errlen);
}

static void get_backend(const struct esp_control *control, char *value, size_t size)
{
    snprintf(value, size, "%s",
             *control->state.loaded.backend ? control->state.loaded.backend : control->backend);
}

static void complete_backend(const char *before, const char *word, struct esp_choices *choices)
{
    struct esp_item item;
    (void)before;
    esp_choices_offer(choices, word, "auto", "the fastest there is");
    for (int i = 0; esp_item(ESP_BACKENDS, i, &item); i++)
        esp_choices_offer(choices, word, item.name, item.summary);
}

/* ------------------------------------------------------------------ of the session */

static void get_drafter(const struct esp_control *control, char *value, size_t size)
{
    snprintf(value, size, "%s", control->state.loaded.drafter);
}

static void complete_drafter(const char *before, const char *word, struct esp_choices *choices)
{
    if (!*before)
        esp_choices_offer(choices, word, "auto", "what suits the models");
    esp_complete_spec(ESP_DRAFTERS, before, word, choices);
}

static void get_verifier(const struct esp_control *control, char *value, size_t size)
{
    snprintf(value, size, "%s", control->state.loaded.verifier);
}

static void complete_verifier(const char *before, const char *word, struct esp_choices *choices)
{
    if (!*before)
        esp_choices_offer(choices, word, "auto", "the best that changes nothing");
    esp_complete_spec(ESP_VERIFIERS, before, word, choices);
}

/* ------------------------------------------------------------------ the table */

static const struct esp_setting settings[] = {
    {"model", "TARGET [DRAFT]", "target and draft: names of models, folders or GGUF files",
     ESP_SETTING_MODELS, set_model, get_model, complete_model},
    {"backend", "auto|NAME", "what computes", ESP_SETTING_MODELS, set_backend, get_backend,
     complete_backend},
#define X(group, kind, field, name, minimum, maximum, value, values, help)                     \
    {name, values, help, ESP_SETTING_MODELS, NULL, NULL, NULL},
    ESP_ENGINE_VALUES(X)
#undef X
        {"drafter", "NAME[:key=value,...]", "how trees are drafted", ESP_SETTING_SESSION, NULL,
         get_drafter, complete_drafter},
    {"verifier", "NAME[:key=value,...]", "the rule that accepts tokens", ESP_SETTING_SESSION,
     NULL, get_verifier, complete_verifier},
    {"n", "NUMBER", "new tokens per prompt", ESP_SETTING_PROMPT, set_n, get_n, NULL},
#define X(kind, field, name, minimum, maximum, value, values, help)                            \
    {name, values, help, ESP_SETTING_SESSION, NULL, NULL, NULL},
    ESP_SESSION_SETTINGS(X)
#undef X
        {"pace", "NUMBER|full",
         "iterations per second at most: slower, so that an eye can follow, or full: faster",
         ESP_SETTING_PROMPT, set_pace, get_pace, NULL},
    {"theme", "NAME|FILE", "the colours", ESP_SETTING_INTERFACE, set_theme, get_theme,
     complete_theme},
    {"layout", "beside|stacked", "the tree beside the text or below it", ESP_SETTING_INTERFACE,
     set_layout, get_layout, NULL},
    {"tree", "indented|right", "how trees are drawn: as indented rows, or growing to the right",
     ESP_SETTING_INTERFACE, set_tree, get_tree, NULL},
    {"hidden", "PANE,...|none", "panes that are not shown", ESP_SETTING_INTERFACE, set_hidden,
     get_hidden, complete_hidden},
    {"mouse", "on|off", "click to focus, wheel to scroll", ESP_SETTING_INTERFACE, set_mouse,
     get_mouse, NULL},
    {"speed", "NUMBER|recorded",
     "of a replay: 0.25 to 16 times what an eye can follow, or as it was", ESP_SETTING_REPLAY,
     set_speed, get_speed, NULL},
    {"idle", "SECONDS", "of a replay: the longest pause that is played; 0: any",
     ESP_SETTING_REPLAY, set_idle, get_idle, NULL},
};

enum { SETTINGS = sizeof settings / sizeof *settings };

_Static_assert((int)SETTINGS <= (int)ESP_MOST_SETTINGS, "control.h has room for all settings");

const struct esp_setting *esp_setting(int index)
{
    return index >= 0 && index < SETTINGS ? &settings[index] : NULL;
}

enum esp_place esp_setting_place(const struct esp_setting *setting)
{
    return setting->kind == ESP_SETTING_INTERFACE ? ESP_IN_BOTH
           : setting->kind == ESP_SETTING_REPLAY  ? ESP_IN_REPLAY
                                                  : ESP_IN_LIVE;
}

/* Does the engine's thread answer, later? */
static bool waits(const struct esp_setting *setting)
{
    return setting->kind == ESP_SETTING_MODELS || setting->kind == ESP_SETTING_SESSION;
}

int esp_setting_find(const char *key, size_t length)
{
    for (int i = 0; i < SETTINGS; i++)
        if (strlen(settings[i].key) == length && strncmp(settings[i].key, key, length) == 0)
            return i;
    return -1;
}

/* A text as it was given: "" if a line of the configuration cannot have it. */
static void get_text(const struct esp_control *control, int index, char *value, size_t size)
{
    struct esp_session_values given = control->options.session.values;
    struct esp_value_info info;
    esp_value_info(esp_value_find(settings[index].key), &info);
    if (control->said[index])
        *esp_value_text(&info, &given) = control->said[index];
    esp_value_write(&info, &given, value, size);
    const char *text = *esp_value_text(&info, &given);
    if (text && (strlen(text) >= size || strchr(text, '\n')))
        *value = '\0';
}

static bool is_text(int index)
{
    struct esp_value_info info;
    return index >= 0 && esp_value_info(esp_value_find(settings[index].key), &info) &&
           info.kind == ESP_KIND_text;
}

void esp_setting_get(const struct esp_control *control, int index, char *value, size_t size)
{
    *value = '\0';
    if (settings[index].get)
        settings[index].get(control, value, size);
    else if (settings[index].kind == ESP_SETTING_MODELS)
        get_option(control, settings[index].key, value, size);
    else if (is_text(index))
        get_text(control, index, value, size);
    else if (control->state.ready)
        esp_value_print(&control->state.loaded.values, esp_value_find(settings[index].key),
                        value, size);
}

/* ------------------------------------------------------------------ changing */

static bool is_drafter_parameter(const char *key)
{
    struct esp_item item;
    struct esp_param_info param;
    for (int i = 0; esp_item(ESP_DRAFTERS, i, &item); i++)
        for (int j = 0; esp_item_param(ESP_DRAFTERS, item.name, j, &param); j++)
            if (strcmp(param.name, key) == 0)
                return true;
    return false;
}

/* Is it a setting, or a parameter, that has a meaning here? A file is for both places. */
static int check_key(const struct esp_control *control, int index, const char *key,
                     bool of_file, char *err, size_t errlen)
{
    if (index < 0 && !is_drafter_parameter(key)) {
        struct esp_suggestion guess;
        char meant[96];
        esp_suggestion_begin(&guess, key, strlen(key));
        for (int i = 0; i < SETTINGS; i++)
            esp_suggestion_try(&guess, settings[i].key);
        return esp_fail(err, errlen, ESP_E_ARGUMENT,
                        "there is no setting '%.40s'%s; Tab after :set lists them", key,
                        esp_suggestion_text(&guess, meant));
    }
    enum esp_place in = index < 0 ? ESP_IN_LIVE : esp_setting_place(&settings[index]);
    if (!of_file && !esp_control_is_in(control, in))
        return esp_fail(err, errlen, ESP_E_ARGUMENT, "%s needs %s", key,
                        control->player ? "models, and a replay has none"
                                        : "a recording that is replayed");
    return ESP_OK;
}

int esp_setting_change(struct esp_control *control, const char *key, const char *value,
                       const char *origin, char *err, size_t errlen)
{
    int index = esp_setting_find(key, strlen(key));
    int status = check_key(control, index, key, origin != NULL, err, errlen);
    if (status < 0)
        return status;
    if (control->player && (index < 0 || esp_setting_place(&settings[index]) == ESP_IN_LIVE))
        return 0;
    control->chosen[index < 0 ? esp_setting_find("drafter", 7) : index] =
        index < 0 || strcmp(value, "auto") != 0; /* that is what nobody's choice gives */
    control->changed = true;
    if (index >= 0 && settings[index].set)
        return settings[index].set(control, value, err, errlen);
    if (index >= 0 && settings[index].kind == ESP_SETTING_MODELS)
        return set_option(control, key, value, err, errlen);
    if (is_text(index)) {
        free(control->said[index]);
        control->said[index] = strdup(value);
    }
    esp_worker_set(control->worker, key, value, origin);
    return ESP_OK;
}

/* Says what a setting is; of a parameter, the engine's thread does. */
static int say_value(struct esp_control *control, int index, const char *key)
{
    char now[1200];
    if (index < 0) {
        esp_worker_ask(control->worker, key);
        return ESP_OK;
    }
    esp_setting_get(control, index, now, sizeof now);
    return esp_answer(control, "%s = %s", key, now);
}

int esp_setting_type(struct esp_control *control, const char *key, const char *value)
{
    char err[512];
    int index = esp_setting_find(key, strlen(key));
    int status = *value ? esp_setting_change(control, key, value, NULL, err, sizeof err)
                        : check_key(control, index, key, false, err, sizeof err);
    if (status < 0)
        return esp_refuse(control, "%s", err);
    if (!*value || (index >= 0 && !waits(&settings[index])))
        return say_value(control, index, key);
    return ESP_OK;
}

/* ------------------------------------------------------------------ completion */

/* The name of the drafter, for its parameters. */
static void drafter_name(const struct esp_control *control, char *name, size_t size)
{
    const char *drafter = control->state.loaded.drafter;
    snprintf(name, size, "%.*s", (int)strcspn(drafter, ":"), drafter);
}

void esp_setting_complete_value(const struct esp_control *control, const char *key,
                                const char *before, const char *word,
                                struct esp_choices *choices)
{
    char drafter[64];
    struct esp_param_info param;
    int index = esp_setting_find(key, strlen(key));
    if (index >= 0 && settings[index].complete)
        settings[index].complete(before, word, choices);
    else if (index >= 0 && !*before)
        esp_complete_words(settings[index].values, word, choices);
    drafter_name(control, drafter, sizeof drafter);
    for (int i = 0; index < 0 && esp_item_param(ESP_DRAFTERS, drafter, i, &param); i++)
        if (strcmp(param.name, key) == 0)
            esp_complete_value(&param, word, choices);
}

void esp_setting_complete(const struct esp_control *control, const char *before,
                          const char *word, struct esp_choices *choices)
{
    char drafter[64];
    struct esp_param_info param;
    if (*before) {
        char key[64];
        size_t length = strcspn(before, " =");
        snprintf(key, sizeof key, "%.*s", (int)length, before);
        before += length + strspn(before + length, " =");
        esp_setting_complete_value(control, key, before, word, choices);
        return;
    }
    choices->append = '=';
    for (int i = 0; i < SETTINGS; i++)
        if (esp_control_is_in(control, esp_setting_place(&settings[i])))
            esp_choices_offer(choices, word, settings[i].key, settings[i].summary);
    drafter_name(control, drafter, sizeof drafter);
    for (int i = 0; !control->player && esp_item_param(ESP_DRAFTERS, drafter, i, &param); i++)
        esp_choices_offer(choices, word, param.name, param.help);
}
