/* settings.c - the table of settings, and the functions that set and read them; see
 * settings.h. */
#include "tui/commands/settings.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tui/commands/complete.h"
#include "kernels/status.h"
#include "kernels/system.h"
#include "engine/find_models.h"
#include "engine/support/suggestion.h"
#include "tui/commands/replay.h"

/* ------------------------------------------------------------------ interface settings */

static void limit_tokens(struct esp_control *control)
{
    ESP_WORKER_POST(control->worker, LIMIT, .number = {control->settings.tokens});
}

static void go_private(struct esp_control *control)
{
    if (control->settings.keeps)
        ESP_WORKER_POST(control->worker, KEEP, .text = {"", control->settings.options.library},
                        .flag = control->settings.private);
}

static int set_theme(struct esp_control *control, const char *value, char *err, size_t errlen)
{
    char path[PATH_MAX];
    esp_typed_path(path, sizeof path, value);
    return esp_control_theme(control, path, err, errlen);
}

static void complete_theme(struct esp_choices *choices)
{
    char name[64];
    if (strchr(choices->before, '/') || strchr(choices->word, '/')) {
        esp_complete_path(false, choices);
        return;
    }
    for (int i = 0; esp_theme_list(i, name, sizeof name) == 0; i++)
        esp_choices_offer(choices, name, NULL);
}

static int set_pace(struct esp_control *control, const char *value, char *err, size_t errlen)
{
    char *end;
    double pace = strtod(value, &end);
    if (strcmp(value, "full") == 0)
        pace = 0;
    else if (end == value || *end || !(pace > 0 && pace <= 1e6))
        return esp_fail(err, errlen, ESP_E_ARGUMENT,
                        "pace takes a number of iterations per second, or full, not '%.40s'",
                        value);
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

/* Reads the names of the hidden panes, which are separated by commas. "none" means no pane. */
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
        return esp_fail(err, errlen, ESP_E_ARGUMENT, "text and tree cannot both be hidden");
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

static void complete_hidden(struct esp_choices *choices)
{
    esp_choices_offer(choices, "none", "all panes are shown");
    for (int i = 0; i < ESP_PANES; i++)
        if (i != ESP_PANE_help)
            esp_choices_offer(choices, esp_panes[i]->name, esp_panes[i]->summary);
    choices->append = '\0';
}

/* ------------------------------------------------------------------ replay settings */

static int set_speed(struct esp_control *control, const char *value, char *err, size_t errlen)
{
    int status = esp_speed_parse(value, &control->settings.options.speed, err, errlen);
    if (status == 0 && control->player)
        esp_replay_speed(control, control->settings.options.speed);
    return status;
}

static void get_speed(const struct esp_control *control, char *value, size_t size)
{
    if (control->settings.options.speed > 0)
        snprintf(value, size, "%g", control->settings.options.speed);
    else
        snprintf(value, size, "recorded");
}

static void limit_pauses(struct esp_control *control)
{
    if (control->player)
        esp_replay_idle(control, control->settings.options.idle);
}

/* ------------------------------------------------------------------ model settings */

/* Copies the next word of *text and sets *text to the end of the word. A backslash before a
 * blank makes the blank part of the word. Returns false if there is no word. */
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

/* Writes the path of the model that a word names. The model is the draft model if `draft` is
 * true, and the target otherwise. */
static int model_path(const char *word, bool draft, char *path, size_t size, char *err,
                      size_t errlen)
{
    const char *home = getenv("HOME");
    if (word[0] != '~' || word[1] != '/' || !home)
        return (draft ? esp_draft_path : esp_model_path)(path, size, word, err, errlen);
    snprintf(path, size, "%s%s", home, word + 1);
    return ESP_OK;
}

/* Limits the number of threads to the number of processors. More threads than processors would
 * only wait for each other. */
static void limit_threads(struct esp_control *control, int *threads)
{
    const int cores = esp_cores_all();
    if (*threads <= cores)
        return;
    *threads = cores;
    esp_answer(control,
               "%d processor%s, so this many threads are used; more would not be faster", cores,
               cores == 1 ? " is free" : "s are free");
}

/* Sets an engine option. If models are already loaded, loads them again with the new value. The
 * value "0" means auto. If the value is a string, the options store a pointer to `value`. */
static int set_option(struct esp_control *control, const char *key, const char *value,
                      char *err, size_t errlen)
{
    struct esp_engine_options *options = &control->settings.options.engine;
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
        ESP_WORKER_POST(control->worker, LOAD, .text = {key, now});
    return ESP_OK;
}

static void get_option(const struct esp_control *control, const char *key, char *value,
                       size_t size)
{
    const struct esp_value_info *option = esp_engine_option_find(key);
    struct esp_engine_options now = control->settings.options.engine;
    esp_value_check(option, &now, value, size);
    esp_value_write(option, &now, value, size);
}

static int set_model(struct esp_control *control, const char *value, char *err, size_t errlen)
{
    char word[1024], folder[2][1200] = {"", ""};
    int count = 0;
    while (count < 2 && next_word(&value, word, sizeof word)) {
        int status = model_path(word, count > 0, folder[count], sizeof *folder, err, errlen);
        count++;
        if (status < 0)
            return status;
    }
    if (count == 0 || next_word(&value, word, sizeof word))
        return esp_fail(err, errlen, ESP_E_ARGUMENT,
                        "model takes a target and, optionally, a draft, by name or path");
    if (!control->worker) {
        snprintf(control->settings.target, sizeof control->settings.target, "%s", folder[0]);
        snprintf(control->settings.draft, sizeof control->settings.draft, "%s", folder[1]);
        control->settings.options.engine.target = control->settings.target;
        control->settings.options.engine.draft =
            *control->settings.draft ? control->settings.draft : "auto";
        return ESP_OK;
    }
    struct esp_engine_options *options = &control->settings.options.engine;
    options->context = options->width = options->layers = 0; /* these belong to the old model */
    ESP_WORKER_POST(control->worker, LOAD,
                    .text = {"target", folder[0], *folder[1] ? folder[1] : "auto"});
    return ESP_OK;
}

/* Makes a path absolute, puts a backslash before each blank, and appends it to `value`. Returns
 * the new length of `value`. */
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

/* Sets another draft model. The target stays the same. */
static int set_draft(struct esp_control *control, const char *value, char *err, size_t errlen)
{
    char word[1024], folder[1200];
    if (!next_word(&value, word, sizeof word) || *value)
        return esp_fail(err, errlen, ESP_E_ARGUMENT,
                        "draft takes a model, mtp (the target's MTP layer), self (a quantised "
                        "copy of the target), none or auto");
    int status = model_path(word, true, folder, sizeof folder, err, errlen);
    if (status < 0)
        return status;
    if (control->worker) {
        ESP_WORKER_POST(control->worker, LOAD, .text = {"draft", folder});
        return ESP_OK;
    }
    snprintf(control->settings.draft, sizeof control->settings.draft, "%s", folder);
    control->settings.options.engine.draft = control->settings.draft;
    return ESP_OK;
}

static void get_draft(const struct esp_control *control, char *value, size_t size)
{
    const char *draft = control->state.loaded.draft_folder;
    add_path(value, size, 0, *draft ? draft : "none");
}

static void complete_draft(struct esp_choices *choices)
{
    if (*choices->before)
        return;
    esp_choices_offer(choices, ESP_MTP, "the target's MTP layer");
    esp_choices_offer(choices, "self", "a quantised copy of the target");
    esp_choices_offer(choices, "none", "no draft model");
    esp_choices_offer(choices, "auto",
                      "mtp if the target has an MTP layer, otherwise self if self is likely to "
                      "be faster");
    esp_complete_path(true, choices);
    esp_complete_model(NULL, choices);
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

static void complete_model(struct esp_choices *choices)
{
    esp_complete_path(true, choices);
    char target[1024];
    const char *rest = choices->before;
    if (!next_word(&rest, target, sizeof target))
        esp_complete_model(NULL, choices);
    else if (*rest == ' ' && rest[strspn(rest, " ")] == '\0')
        esp_complete_model(target, choices);
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
    snprintf(control->settings.backend, sizeof control->settings.backend, "%s", value);
    control->settings.options.engine.device = 0;
    return set_option(control, "backend", control->settings.backend, err, errlen);
}

static void get_backend(const struct esp_control *control, char *value, size_t size)
{
    snprintf(value, size, "%s",
             *control->state.loaded.backend ? control->state.loaded.backend
                                            : control->settings.backend);
}

static void complete_backend(struct esp_choices *choices)
{
    struct esp_item item;
    esp_choices_offer(choices, "auto", "the fastest available one");
    for (int i = 0; esp_item(ESP_BACKENDS, i, &item); i++)
        esp_choices_offer(choices, item.name, item.summary);
}

/* ------------------------------------------------------------------ session settings */

static void complete_drafter(struct esp_choices *choices)
{
    if (!*choices->before)
        esp_choices_offer(choices, "auto", "the default for the loaded models");
    esp_complete_spec(ESP_DRAFTERS, choices->before, choices);
}

static void complete_verifier(struct esp_choices *choices)
{
    if (!*choices->before)
        esp_choices_offer(choices, "auto", "the best lossless verifier");
    esp_complete_spec(ESP_VERIFIERS, choices->before, choices);
}

/* ------------------------------------------------------------------ the table */

#define FIELD(type, member, least, most)                                                       \
    .field = {.kind = ESP_KIND_##type,                                                         \
              .minimum = least,                                                                \
              .maximum = most,                                                                 \
              .offset = offsetof(struct esp_control, member)}
#define TEXT(member) .text = offsetof(struct esp_control, member)

static const struct esp_setting settings[] = {
    {"model", "TARGET [DRAFT]", "target and draft model: names, folders or GGUF files",
     ESP_SETTING_MODELS, .set = set_model, .get = get_model, .complete = complete_model},
    {"draft", "mtp|self|none|auto|MODEL",
     "draft model; mtp: the target's MTP layer; self: a quantised copy of the target",
     ESP_SETTING_MODELS, .set = set_draft, .get = get_draft, .complete = complete_draft},
    {"backend", "auto|NAME", "compute backend", ESP_SETTING_MODELS, .set = set_backend,
     .get = get_backend, .complete = complete_backend},
#define X(group, kind_of, member, name, minimum, maximum, value, words, help)                  \
    {name, words, help, .kind = ESP_SETTING_MODELS},
    ESP_ENGINE_VALUES(X)
#undef X
        {"drafter", "NAME[:key=value,...]", "how trees are drafted", ESP_SETTING_SESSION,
         TEXT(state.loaded.drafter), .complete = complete_drafter},
    {"verifier", "NAME[:key=value,...]", "how trees are verified", ESP_SETTING_SESSION,
     TEXT(state.loaded.verifier), .complete = complete_verifier},
    {"n", "NUMBER", "new tokens per prompt", ESP_SETTING_PROMPT,
     FIELD(whole, settings.tokens, 1, 1000000), .changed = limit_tokens},
#define X(kind_of, member, name, minimum, maximum, value, words, help)                         \
    {name, words, help, .kind = ESP_SETTING_SESSION},
    ESP_SESSION_SETTINGS(X)
#undef X
        {"pace", "NUMBER|full",
         "largest number of iterations per second, to follow them by eye; full: no limit",
         ESP_SETTING_PROMPT, .set = set_pace, .get = get_pace},
    {"theme", "NAME|FILE", "the colours", ESP_SETTING_INTERFACE, .set = set_theme,
     TEXT(settings.theme_name), .complete = complete_theme},
    {"layout", "beside|stacked", "where the tree is shown: beside the text or below it",
     ESP_SETTING_INTERFACE, FIELD(either, ui.layout.stacked, 0, 1)},
    {"tree", "indented|right", "how trees are drawn: as indented rows, or growing to the right",
     ESP_SETTING_INTERFACE, FIELD(either, ui.look.grows_right, 0, 1)},
    {"heat", "off|surprisal|entropy|rank|origin",
     "how the tokens of the text are coloured: by the target's probabilities, or by origin",
     ESP_SETTING_INTERFACE, FIELD(choice, ui.look.heat, 0, ESP_HEATS - 1)},
    {"hidden", "PANE,...|none", "panes to hide", ESP_SETTING_INTERFACE, .set = set_hidden,
     .get = get_hidden, .complete = complete_hidden},
    {"mouse", "on|off", "on: a click focuses a pane, the wheel scrolls", ESP_SETTING_INTERFACE,
     FIELD(flag, settings.mouse, 0, 1)},
    {"private", "on|off",
     "on: this session is not kept (espalier sessions), and what was already kept is deleted",
     ESP_SETTING_PROMPT, FIELD(flag, settings.private, 0, 1), .changed = go_private},
    {"speed", "NUMBER|recorded",
     "speed of a replay, 0.25 to 16; 1: as recorded, but at most twelve iterations a second",
     ESP_SETTING_REPLAY, .set = set_speed, .get = get_speed},
    {"idle", "SECONDS", "longest pause of a replay, in seconds; 0: no limit",
     ESP_SETTING_REPLAY, FIELD(real, settings.options.idle, 0, ESP_IDLE_MOST),
     .changed = limit_pauses},
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

/* Returns whether the engine thread sets this setting and answers later. */
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

static struct esp_value_info field_of(const struct esp_setting *setting)
{
    struct esp_value_info field = setting->field;
    field.name = setting->key;
    field.values = setting->values;
    return field;
}

static int set_field(struct esp_control *control, const struct esp_setting *setting,
                     const char *value, char *err, size_t errlen)
{
    const struct esp_value_info field = field_of(setting);
    int status = esp_value_read(&field, control, setting->key, value, err, errlen);
    if (status == ESP_OK && setting->changed)
        setting->changed(control);
    return status;
}

/* Writes the value of a string setting as the user gave it. Writes "" if the value does not fit
 * on a line of the configuration file. */
static void get_text(const struct esp_control *control, int index, char *value, size_t size)
{
    struct esp_session_values given = control->settings.options.session.values;
    struct esp_value_info info;
    esp_value_info(esp_value_find(settings[index].key), &info);
    if (control->settings.said[index])
        *esp_value_text(&info, &given) = control->settings.said[index];
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

/* Returns whether the value of the setting is the path of a file. */
static bool names_file(int index)
{
    return is_text(index) && strstr(settings[index].values, "FILE");
}

void esp_setting_get(const struct esp_control *control, int index, char *value, size_t size)
{
    const struct esp_value_info field = field_of(&settings[index]);
    *value = '\0';
    if (settings[index].get)
        settings[index].get(control, value, size);
    else if (settings[index].text > 0)
        snprintf(value, size, "%s", (const char *)control + settings[index].text);
    else if (field.offset > 0)
        esp_value_write(&field, control, value, size);
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

/* Checks that `key` is a setting or a parameter that is allowed here. If `of_file` is true, the
 * key comes from a configuration file, where settings for live sessions and for replays are
 * both allowed. */
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
        return esp_fail(err, errlen, ESP_E_ARGUMENT, "%s %s", key,
                        control->player ? "needs models, and a replay has none"
                                        : "works only in a replay");
    return ESP_OK;
}

int esp_setting_change(struct esp_control *control, const char *key, const char *value,
                       const char *origin, char *err, size_t errlen)
{
    char path[PATH_MAX];
    int index = esp_setting_find(key, strlen(key));
    int status = check_key(control, index, key, origin != NULL, err, errlen);
    if (status < 0)
        return status;
    if (control->player && (index < 0 || esp_setting_place(&settings[index]) == ESP_IN_LIVE))
        return 0;
    control->settings.chosen[index < 0 ? esp_setting_find("drafter", 7) : index] =
        index < 0 || strcmp(value, "auto") != 0; /* "auto" undoes the user's choice */
    control->requests.changed = true;
    if (index >= 0 && settings[index].set)
        return settings[index].set(control, value, err, errlen);
    if (index >= 0 && settings[index].field.offset > 0)
        return set_field(control, &settings[index], value, err, errlen);
    if (index >= 0 && settings[index].kind == ESP_SETTING_MODELS)
        return set_option(control, key, value, err, errlen);
    if (names_file(index)) {
        esp_typed_path(path, sizeof path, value);
        value = path;
    }
    if (is_text(index)) {
        free(control->settings.said[index]);
        control->settings.said[index] = strdup(value);
    }
    esp_worker_set(control->worker, key, value, origin);
    return ESP_OK;
}

/* Shows the value of a setting. If `key` is a parameter of the drafter, asks the engine thread
 * to show it. */
static int say_value(struct esp_control *control, int index, const char *key)
{
    char now[1200];
    if (index < 0) {
        ESP_WORKER_POST(control->worker, ASK, .text = {key});
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

/* Writes the name of the drafter without its parameters. */
static void drafter_name(const struct esp_control *control, char *name, size_t size)
{
    const char *drafter = control->state.loaded.drafter;
    snprintf(name, size, "%.*s", (int)strcspn(drafter, ":"), drafter);
}

void esp_setting_complete_value(const struct esp_control *control, const char *key,
                                struct esp_choices *choices)
{
    char drafter[64];
    struct esp_param_info param;
    int index = esp_setting_find(key, strlen(key));
    if (index >= 0 && settings[index].complete)
        settings[index].complete(choices);
    else if (index >= 0 && !*choices->before)
        esp_complete_words(settings[index].values, choices);
    if (names_file(index))
        esp_complete_path(false, choices);
    drafter_name(control, drafter, sizeof drafter);
    for (int i = 0; index < 0 && esp_item_param(ESP_DRAFTERS, drafter, i, &param); i++)
        if (strcmp(param.name, key) == 0)
            esp_complete_value(&param, choices);
}

void esp_setting_complete(const struct esp_control *control, struct esp_choices *choices)
{
    char drafter[64];
    struct esp_param_info param;
    if (*choices->before) {
        char key[64];
        size_t length = strcspn(choices->before, " =");
        snprintf(key, sizeof key, "%.*s", (int)length, choices->before);
        choices->before += length + strspn(choices->before + length, " =");
        esp_setting_complete_value(control, key, choices);
        return;
    }
    choices->append = '=';
    for (int i = 0; i < SETTINGS; i++)
        if (esp_control_is_in(control, esp_setting_place(&settings[i])))
            esp_choices_offer(choices, settings[i].key, settings[i].summary);
    drafter_name(control, drafter, sizeof drafter);
    for (int i = 0; !control->player && esp_item_param(ESP_DRAFTERS, drafter, i, &param); i++)
        esp_choices_offer(choices, param.name, param.help);
}
