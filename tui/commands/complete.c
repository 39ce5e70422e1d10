/* complete.c - completes names from lists, values and paths; see complete.h. */
#include "tui/commands/complete.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "engine/find_models.h"

void esp_choices_offer(struct esp_choices *choices, const char *text, const char *summary)
{
    if (strncmp(text, choices->word, strlen(choices->word)) == 0)
        esp_choices_add(choices, text, summary);
}

void esp_complete_words(const char *words, struct esp_choices *choices)
{
    while (words && *words) {
        char value[64];
        size_t length = strcspn(words, "|");
        snprintf(value, sizeof value, "%.*s", (int)length, words);
        if (!isupper((unsigned char)*value))
            esp_choices_offer(choices, value, NULL);
        words += length + (words[length] == '|');
    }
}

void esp_complete_value(const struct esp_param_info *param, struct esp_choices *choices)
{
    choices->append = '\0';
    esp_complete_words(strcmp(param->type, "flag") == 0 ? "on|off" : param->choices, choices);
}

/* If `before` ends with the name of a parameter and '=', finds this parameter. Returns false if
 * there is none. */
static bool named_param(enum esp_list list, const char *item, const char *before,
                        struct esp_param_info *param)
{
    size_t end = strlen(before), start;
    if (end == 0 || before[end - 1] != '=')
        return false;
    for (start = --end; start > 0 && !strchr(",: ", before[start - 1]);)
        start--;
    for (int i = 0; esp_item_param(list, item, i, param); i++)
        if (strlen(param->name) == end - start &&
            strncmp(param->name, before + start, end - start) == 0)
            return true;
    return false;
}

void esp_complete_spec(enum esp_list list, const char *before, struct esp_choices *choices)
{
    char item[64];
    struct esp_item entry;
    struct esp_param_info param;
    size_t length = strcspn(before, ":");
    if (before[length] == '\0') {
        for (int i = 0; esp_item(list, i, &entry); i++)
            esp_choices_offer(choices, entry.name, entry.summary);
        return;
    }
    snprintf(item, sizeof item, "%.*s", (int)length, before);
    choices->append = '=';
    if (named_param(list, item, before, &param))
        esp_complete_value(&param, choices);
    else
        for (int i = 0; esp_item_param(list, item, i, &param); i++)
            esp_choices_offer(choices, param.name, param.help);
}

/* ------------------------------------------------------------------ paths */

/* Returns the start of the last word of `before`. It begins after the last blank that has no
 * backslash before it. */
static const char *path_start(const char *before)
{
    const char *start = before;
    for (const char *at = before; *at; at++)
        if (*at == ' ' && (at == before || at[-1] != '\\'))
            start = at + 1;
    return start;
}

void esp_typed_path(char *path, size_t size, const char *typed)
{
    const char *home = getenv("HOME");
    const bool below = typed[0] == '~' && typed[1] == '/' && home;
    size_t used = (size_t)snprintf(path, size, "%s", below ? home : "");
    for (typed += below; *typed && used + 1 < size; typed++) {
        typed += typed[0] == '\\' && typed[1];
        path[used++] = *typed;
    }
    path[used < size ? used : size - 1] = '\0';
}

static bool is_gguf(const char *name)
{
    size_t length = strlen(name);
    return length > 5 && strcmp(name + length - 5, ".gguf") == 0;
}

/* Adds an entry of a folder as a completion of the word. */
static void offer_entry(const char *folder, const char *name, const char *typed, size_t skip,
                        bool models, struct esp_choices *choices)
{
    char path[1300], text[1300];
    struct stat status;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    bool is_folder = stat(path, &status) == 0 && S_ISDIR(status.st_mode);
    if (models && !is_folder && !is_gguf(name))
        return;
    size_t used = (size_t)snprintf(text, sizeof text, "%.*s", (int)skip, typed);
    for (; *name && used + 3 < sizeof text; name++) {
        if (*name == ' ' || *name == '\\')
            text[used++] = '\\';
        text[used++] = *name;
    }
    if (is_folder)
        text[used++] = '/';
    text[used] = '\0';
    size_t before = strlen(typed) - strlen(choices->word);
    if (strncmp(text, typed, before) == 0)
        esp_choices_offer(choices, text + before, NULL);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(((const struct esp_choice *)a)->text, ((const struct esp_choice *)b)->text);
}

void esp_complete_path(bool models, struct esp_choices *choices)
{
    char typed[1024], above[1024], folder[1024];
    const int first = choices->count;
    int length =
        snprintf(typed, sizeof typed, "%s%s", path_start(choices->before), choices->word);
    choices->append = '\0';
    if (length >= (int)sizeof typed)
        return;
    const char *slash = strrchr(typed, '/');
    size_t skip = slash ? (size_t)(slash - typed) + 1 : 0;
    snprintf(above, sizeof above, "%.*s", (int)skip, typed);
    esp_typed_path(folder, sizeof folder, skip > 0 ? above : ".");
    DIR *entries = opendir(folder);
    struct dirent *entry;
    while (entries && (entry = readdir(entries)))
        if (entry->d_name[0] != '.' || typed[skip] == '.')
            offer_entry(folder, entry->d_name, typed, skip, models, choices);
    if (entries)
        closedir(entries);
    qsort(choices->choice + first, (size_t)(choices->count - first), sizeof *choices->choice,
          by_text);
}

void esp_complete_file(const struct esp_control *control, struct esp_choices *choices)
{
    (void)control;
    esp_complete_path(false, choices);
}

/* Returns whether a name can be typed as one word. */
static bool is_word(const char *name)
{
    for (; *name; name++)
        if (*name == ' ' || *name == '\\' || (unsigned char)*name < ' ' || *name == 0x7F)
            return false;
    return true;
}

/* Writes the description that a model has in a list of completions. */
static void describe_model(struct esp_found_model *model, struct esp_found_model *target,
                           int *checked, char *text, size_t size)
{
    enum { CHECKED = 12 }; /* largest number of vocabularies to read; each can take 0.1 s */
    char why[300] = "";
    bool fits = false;
    if (target && (model->bytes >= target->bytes || (*checked)++ < CHECKED))
        fits = esp_draft_fits(target, model, why, sizeof why);
    if (fits || *why)
        snprintf(text, size, "%s%s%s", fits ? "fits as a draft" : "no draft", *why ? ": " : "",
                 why);
    else
        snprintf(text, size, "%s, %.0f MB%s%s", model->source, (double)model->bytes / 1e6,
                 *model->family ? ", " : "", model->family);
}

void esp_complete_model(const char *target_name, struct esp_choices *choices)
{
    struct esp_found_models found;
    struct esp_found_model target;
    char path[PATH_MAX], text[400], err[512];
    int checked = 0;
    const bool paired = target_name &&
                        esp_model_path(path, sizeof path, target_name, err, sizeof err) == 0 &&
                        esp_found_model_at(&target, path) == 0;
    struct esp_found_model mtp;
    if (paired && esp_found_mtp(&mtp, &target))
        esp_choices_offer(choices, ESP_MTP, "fits as a draft: the target's MTP layer");
    if (paired)
        esp_choices_offer(choices, "self", "fits as a draft: a quantised copy of the target");
    if (esp_find_models(&found) == 0) {
        for (int i = 0; i < found.count; i++) {
            struct esp_found_model *model = &found.models[i];
            if (!is_word(model->name) ||
                strncmp(model->name, choices->word, strlen(choices->word)) != 0)
                continue;
            describe_model(model, paired ? &target : NULL, &checked, text, sizeof text);
            esp_choices_offer(choices, model->name, text);
        }
    }
    esp_found_models_free(&found);
}
