/* find_models.c - searches the places where models are stored; see find_models.h. */
#include "engine/find_models.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "engine/model/draft_head.h"
#include "engine/model/gguf_model.h"
#include "engine/model/json.h"
#include "engine/model/tokenizer.h"
#include "engine/model/translation.h"
#include "engine/support/int_map.h"
#include "engine/support/paths.h"
#include "engine/support/suggestion.h"
#include "kernels/status.h"

enum {
    DEPTH = 4,       /* maximum levels of folders that are searched below a starting folder */
    ENTRIES = 20000, /* maximum number of entries read per folder */
    FOLDERS = 20000, /* maximum number of folders searched in total */
    MANIFEST_LIMIT = 1 << 20,
};

/* Holds the state of a search. */
struct search {
    struct esp_found_models *found;
    struct esp_int_map visited; /* visited folders; the keys are hashes of device and inode */
    const char *source;
    bool failed; /* memory allocation failed */
};

/* ------------------------------------------------------------------ folders */

/* Marks a folder as visited. Returns false if it was visited before (links can form cycles), or
 * if too many folders were visited. */
static bool visit(struct search *s, const char *path)
{
    struct stat about;
    if (stat(path, &about) < 0 || !S_ISDIR(about.st_mode) || s->visited.count >= FOLDERS)
        return false;
    const uint64_t place[2] = {about.st_dev, about.st_ino};
    const uint64_t key = esp_hash(esp_hash_key(), place, sizeof place) >> 1;
    if (s->visited.mask > 0 && esp_int_map_get(&s->visited, key) != ESP_INT_MAP_NONE)
        return false;
    s->failed = s->failed || !esp_int_map_put(&s->visited, key, 0);
    return !s->failed;
}

static bool join(char path[PATH_MAX], const char *folder, const char *name)
{
    return snprintf(path, PATH_MAX, "%s/%s", folder, name) < PATH_MAX;
}

static int is_shown(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* Calls `look` for each entry of a folder, in alphabetical order, until the list is full. */
static void each_entry(struct search *s, const char *folder, const char *name,
                       void (*look)(struct search *, const char *path, const char *name,
                                    const struct dirent *entry))
{
    struct dirent **entries;
    char path[PATH_MAX];
    const int count = visit(s, folder) ? scandir(folder, &entries, is_shown, alphasort) : 0;
    for (int i = 0; i < count; i++) {
        if (i < ENTRIES && !s->found->more && join(path, folder, entries[i]->d_name))
            look(s, path, name, entries[i]);
        free(entries[i]);
    }
    if (count > 0)
        free(entries);
}

static bool is_regular(const char *path, int64_t *bytes)
{
    struct stat about;
    if (stat(path, &about) < 0 || !S_ISREG(about.st_mode))
        return false;
    *bytes = about.st_size;
    return true;
}

static bool ends_with(const char *name, const char *ending)
{
    const size_t length = strlen(name), n = strlen(ending);
    return length > n && strcasecmp(name + length - n, ending) == 0;
}

/* ------------------------------------------------------------------ models */

static struct esp_found_model *add(struct search *s, const char *name, const char *path)
{
    struct esp_found_models *found = s->found;
    if (found->count >= ESP_MODELS_MOST) {
        found->more = true;
        return NULL;
    }
    struct esp_found_model *grown =
        realloc(found->models, ((size_t)found->count + 1) * sizeof *grown);
    if (!grown) {
        s->failed = true;
        return NULL;
    }
    found->models = grown;
    struct esp_found_model *model = &grown[found->count++];
    *model = (struct esp_found_model){.source = s->source};
    snprintf(model->name, sizeof model->name, "%s", name);
    snprintf(model->path, sizeof model->path, "%s", path);
    return model;
}

static void read_family(struct esp_found_model *model)
{
    struct esp_json json = {.root = NULL};
    char err[256];
    if (esp_json_read(&json, model->path, "config.json", err, sizeof err) == ESP_OK) {
        const char *type = cJSON_GetStringValue(
            esp_json_find(json.root, "model_type|speculators_model_type", NULL, NULL));
        snprintf(model->family, sizeof model->family, "%s", type ? type : "");
    }
    esp_json_close(&json);
}

/* Returns the size of the weights in a folder, or 0 if the folder has no weights. */
static int64_t weights_of(const char *folder)
{
    struct dirent **entries;
    char path[PATH_MAX];
    int64_t all = 0, bytes;
    const int count = scandir(folder, &entries, is_shown, alphasort);
    for (int i = 0; i < count; i++) {
        if (i < ENTRIES && strncmp(entries[i]->d_name, "model", 5) == 0 &&
            ends_with(entries[i]->d_name, ".safetensors") &&
            join(path, folder, entries[i]->d_name) && is_regular(path, &bytes))
            all += bytes;
        free(entries[i]);
    }
    if (count >= 0)
        free(entries);
    return all;
}

/* Adds a folder if it is a model. */
static bool add_folder(struct search *s, const char *path, const char *name)
{
    char config[PATH_MAX];
    int64_t bytes;
    if (!join(config, path, "config.json") || !is_regular(config, &bytes))
        return false;
    bytes = weights_of(path);
    struct esp_found_model *model = bytes > 0 ? add(s, name, path) : NULL;
    if (model) {
        model->bytes = bytes;
        read_family(model);
    }
    return model != NULL;
}

/* Returns which part of a split file this is: 2 for "NAME-00002-of-00003.gguf". Returns 0 if
 * the file is not split. */
static int part_of(const char *name)
{
    int part = 0, parts = 0, end = 0;
    const size_t length = strlen(name), tail = strlen("-00001-of-00003.gguf");
    if (length < tail ||
        sscanf(name + length - tail, "-%5d-of-%5d.gguf%n", &part, &parts, &end) != 2 || !end)
        return 0;
    return part;
}

static void add_file(struct search *s, const char *path, const char *name)
{
    int64_t bytes;
    struct esp_found_model *model;
    if (part_of(path) > 1 || !is_regular(path, &bytes) || !(model = add(s, name, path)))
        return;
    model->gguf = true;
    model->bytes = bytes;
}

/* ------------------------------------------------------------------ headers of GGUF files */

/* Returns the number format that most numbers in the file's tensors have. */
static const char *most_common_type(const struct esp_gguf *g)
{
    enum { TYPES = 64 };
    double numbers[TYPES] = {0};
    uint32_t best = 0;
    for (size_t i = 0; i < g->tensor_count; i++) {
        const struct esp_gguf_tensor *t = &g->tensors[i];
        double n = 1;
        for (int k = 0; k < t->rank; k++)
            n *= (double)t->shape[k];
        if (t->type < TYPES)
            numbers[t->type] += n;
    }
    for (uint32_t type = 1; type < TYPES; type++)
        best = numbers[type] > numbers[best] ? type : best;
    return g->tensor_count > 0 ? esp_gguf_type(best)->name : "";
}

static int64_t bytes_of_parts(const struct esp_gguf *g)
{
    const struct esp_gguf_value *split = esp_gguf_find(g, "split.count");
    const double parts = split ? esp_gguf_number(split, 0) : 1;
    char path[PATH_MAX];
    int64_t all = 0, bytes;
    for (int i = 1; i <= ESP_GGUF_PARTS && i <= parts; i++)
        if (esp_gguf_part(path, g->path, i, (int)parts) && is_regular(path, &bytes))
            all += bytes;
    return all;
}

void esp_found_model_look(struct esp_found_model *model)
{
    struct esp_gguf gguf = {.header = NULL};
    struct esp_stored_set *set = model->gguf ? calloc(1, sizeof *set) : NULL;
    if (!set)
        return;
    if (esp_gguf_open_first(&gguf, set, model->path, model->problem, sizeof model->problem) ==
        ESP_OK) {
        char *name = esp_gguf_copy_text(esp_gguf_find(&gguf, "general.architecture"));
        const struct esp_gguf_architecture *known =
            name ? esp_gguf_architecture_named(name) : NULL;
        const int64_t bytes = bytes_of_parts(&gguf);
        snprintf(model->family, sizeof model->family, "%s",
                 known  ? known->model_type
                 : name ? name
                        : "");
        snprintf(model->dtype, sizeof model->dtype, "%s", most_common_type(&gguf));
        model->bytes = bytes > model->bytes ? bytes : model->bytes;
        if (!known)
            snprintf(model->problem, sizeof model->problem,
                     "general.architecture is %s, which is not supported",
                     *model->family ? model->family : "not given");
        free(name);
    }
    esp_gguf_close(&gguf);
    esp_stored_close(set);
}

/* ------------------------------------------------------------------ folders with models */

static void look_into(struct search *s, const char *folder, const char *name, int depth);

/* Returns how many folders a path is below the starting folder of the search. `name` is the
 * part of the path after the starting folder. */
static int depth_of(const char *name)
{
    int depth = *name != '\0';
    for (; *name; name++)
        depth += *name == '/';
    return depth;
}

/* A folder can have thousands of entries, and stat() can take a millisecond. Therefore stat()
 * is not called for an entry if its name and its type in the directory show that it is neither
 * a model nor a folder. */
static void look_at(struct search *s, const char *path, const char *above,
                    const struct dirent *entry)
{
    char name[PATH_MAX];
    const unsigned char type = entry->d_type;
    snprintf(name, sizeof name, "%s%s%s", above, *above ? "/" : "", entry->d_name);
    if (type != DT_DIR && ends_with(entry->d_name, ".gguf")) {
        name[strlen(name) - strlen(".gguf")] = '\0';
        add_file(s, path, name);
    }
    if (type == DT_DIR || type == DT_LNK || type == DT_UNKNOWN)
        look_into(s, path, name, depth_of(name));
}

/* Adds a folder if it is a model; otherwise searches it for models. */
static void look_into(struct search *s, const char *folder, const char *name, int depth)
{
    if (depth > DEPTH || s->failed)
        return;
    const char *last = strrchr(folder, '/');
    const bool model = add_folder(s, folder, *name ? name : last ? last + 1 : folder);
    if (!model)
        each_entry(s, folder, name, look_at);
}

static void look_through(struct search *s, const char *source, const char *folder)
{
    s->source = source;
    look_into(s, folder, "", 0);
}

/* ------------------------------------------------------------------ Hugging Face */

/* Adds a snapshot of a repository. It is either a model, or GGUF files, which are listed under
 * their own names. */
static bool add_snapshot(struct search *s, const char *snapshot, const char *name)
{
    const int before = s->found->count;
    if (!add_folder(s, snapshot, name))
        each_entry(s, snapshot, name, look_at);
    return s->found->count > before;
}

/* Searches one repository. The files of a commit are in models--ORG--NAME/snapshots/COMMIT;
 * refs/main names the newest commit. */
static void look_at_repository(struct search *s, const char *path, const char *above,
                               const struct dirent *entry)
{
    static const char PREFIX[] = "models--";
    char name[256], file[PATH_MAX], *text = NULL, err[256];
    char snapshots[PATH_MAX], snapshot[PATH_MAX];
    size_t used = 0, size = 0;
    (void)above;
    if (strncmp(entry->d_name, PREFIX, strlen(PREFIX)) != 0 ||
        !join(snapshots, path, "snapshots"))
        return;
    for (const char *c = entry->d_name + strlen(PREFIX); *c && used + 1 < sizeof name; c++) {
        const bool slash = c[0] == '-' && c[1] == '-';
        name[used++] = slash ? '/' : *c;
        c += slash;
    }
    name[used] = '\0';
    if (esp_file_read(&text, &size, file, path, "refs/main", 256, err, sizeof err) == ESP_OK) {
        text[strcspn(text, "\r\n")] = '\0';
        const bool plain = *text && !strchr(text, '/') && *text != '.';
        const bool added =
            plain && join(snapshot, snapshots, text) && add_snapshot(s, snapshot, name);
        free(text);
        if (added)
            return;
    }
    struct dirent **entries;
    const int count = scandir(snapshots, &entries, is_shown, alphasort);
    bool added = false;
    for (int i = 0; i < count; i++) {
        if (!added && i < ENTRIES && join(snapshot, snapshots, entries[i]->d_name))
            added = add_snapshot(s, snapshot, name);
        free(entries[i]);
    }
    if (count >= 0)
        free(entries);
}

/* ------------------------------------------------------------------ ollama */

/* Finds the file with the model's weights. The manifest has the digest sha256:HEX of this file,
 * and the file is blobs/sha256-HEX. */
static bool blob_of(const cJSON *manifest, const char *models, char path[PATH_MAX])
{
    const cJSON *layer;
    cJSON_ArrayForEach(layer, cJSON_GetObjectItemCaseSensitive(manifest, "layers"))
    {
        const char *type =
            cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(layer, "mediaType"));
        const char *digest =
            cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(layer, "digest"));
        if (!type || !digest || strcmp(type, "application/vnd.ollama.image.model") != 0 ||
            strncmp(digest, "sha256:", 7) != 0 || strlen(digest) != 7 + 64 ||
            strspn(digest + 7, "0123456789abcdef") != 64)
            continue;
        return snprintf(path, PATH_MAX, "%s/blobs/sha256-%s", models, digest + 7) < PATH_MAX;
    }
    return false;
}

/* Adds the model of a manifest, which is the file manifests/HOST/NAMESPACE/NAME/TAG. Its name
 * is NAMESPACE/NAME:TAG, without the namespace if that is "library". */
static void look_at_manifest(struct search *s, const char *path, const char *above,
                             const struct dirent *entry)
{
    char name[PATH_MAX], blob[PATH_MAX], models[PATH_MAX], manifest[PATH_MAX], err[256];
    struct stat about;
    snprintf(name, sizeof name, "%s%s%s", above, *above ? "/" : "", entry->d_name);
    if (stat(path, &about) < 0)
        return;
    if (S_ISDIR(about.st_mode) && depth_of(name) < DEPTH)
        each_entry(s, path, name, look_at_manifest);
    if (!S_ISREG(about.st_mode) || depth_of(name) != DEPTH || about.st_size > MANIFEST_LIMIT)
        return;
    /* The path ends with manifests/ and the name. */
    const size_t root = strlen(path) - strlen(name) - strlen("/manifests/");
    snprintf(models, sizeof models, "%.*s", (int)root, path);
    snprintf(manifest, sizeof manifest, "%.*s", (int)(strlen(path) - strlen(entry->d_name) - 1),
             path);
    struct esp_json json = {.root = NULL};
    if (esp_json_read(&json, manifest, entry->d_name, err, sizeof err) == ESP_OK &&
        blob_of(json.root, models, blob)) {
        char *last = strrchr(name, '/'), *space = strchr(name, '/');
        *last = ':';
        space++;
        if (strncmp(space, "library/", 8) == 0)
            space += 8;
        add_file(s, blob, space);
    }
    esp_json_close(&json);
}

static void look_through_ollama(struct search *s, const char *models)
{
    char manifests[PATH_MAX];
    s->source = "ollama";
    if (join(manifests, models, "manifests"))
        each_entry(s, manifests, "", look_at_manifest);
}

/* ------------------------------------------------------------------ search in all places */

/* Writes the folder that an environment variable names to `path`. If the variable is not set,
 * writes a folder below the home folder. Returns false if there is no home folder either. */
static bool place(char path[PATH_MAX], const char *variable, const char *below_variable,
                  const char *below_home)
{
    const char *value = variable ? getenv(variable) : NULL, *home = getenv("HOME");
    if (value && *value)
        return snprintf(path, PATH_MAX, "%s%s", value, below_variable) < PATH_MAX;
    return below_home && home && *home == '/' && join(path, home, below_home);
}

static void look_through_hugging_face(struct search *s)
{
    char path[PATH_MAX];
    s->source = "Hugging Face";
    if (place(path, "HF_HUB_CACHE", "", NULL) || place(path, "HF_HOME", "/hub", NULL) ||
        place(path, "XDG_CACHE_HOME", "/huggingface/hub", ".cache/huggingface/hub"))
        each_entry(s, path, "", look_at_repository);
}

static void look_through_list(struct search *s, const char *list)
{
    for (size_t n; *list; list += n + (list[n] == ':')) {
        char path[PATH_MAX];
        n = strcspn(list, ":");
        if (n > 0 && n < sizeof path) {
            snprintf(path, sizeof path, "%.*s", (int)n, list);
            look_through(s, "ESPALIER_MODELS", path);
        }
    }
}

int esp_find_models(struct esp_found_models *found)
{
    struct search s = {.found = found};
    char path[PATH_MAX];
    const char *list = getenv("ESPALIER_MODELS");
    *found = (struct esp_found_models){.models = NULL};
    if (esp_find_data(path, sizeof path, "models", "") == ESP_OK)
        look_through(&s, "built-in", path);
    if (list)
        look_through_list(&s, list);
    look_through_hugging_face(&s);
    if (place(path, NULL, NULL, ".lmstudio/models"))
        look_through(&s, "LM Studio", path);
    if (place(path, NULL, NULL, ".cache/lm-studio/models"))
        look_through(&s, "LM Studio", path);
    if (place(path, "OLLAMA_MODELS", "", ".ollama/models"))
        look_through_ollama(&s, path);
    look_through_ollama(&s, "/usr/share/ollama/.ollama/models");
    esp_int_map_free(&s.visited);
    return s.failed ? ESP_E_MEMORY : (int)ESP_OK;
}

void esp_found_models_free(struct esp_found_models *found)
{
    free(found->models);
    *found = (struct esp_found_models){.models = NULL};
}

int esp_found_model_at(struct esp_found_model *model, const char *path)
{
    struct esp_found_models found = {.models = NULL};
    struct search s = {.found = &found, .source = ""};
    const char *last = strrchr(path, '/');
    last = last && last[1] ? last + 1 : path;
    if (!add_folder(&s, path, last) && ends_with(path, ".gguf"))
        add_file(&s, path, last);
    const int status = found.count == 1 ? (int)ESP_OK : ESP_E_FILE;
    if (status == ESP_OK)
        *model = found.models[0];
    esp_found_models_free(&found);
    return status;
}

/* ------------------------------------------------------------------ names */

static const char *short_name(const char *name)
{
    const char *slash = strrchr(name, '/');
    return slash ? slash + 1 : name;
}

/* Returns how well a name fits a model. 3: it is equal to the model's name; 2: equal except for
 * case; 1: equal to the part of the model's name after the last slash; 0: it does not fit. */
static int match_of(const struct esp_found_model *model, const char *name)
{
    return strcmp(model->name, name) == 0                   ? 3
           : strcasecmp(model->name, name) == 0             ? 2
           : strcasecmp(short_name(model->name), name) == 0 ? 1
                                                            : 0;
}

static int refuse_name(const struct esp_found_models *found, const char *name, char *err,
                       size_t errlen)
{
    struct esp_suggestion suggestion;
    char meant[96];
    esp_suggestion_begin(&suggestion, name, strlen(name));
    for (int i = 0; i < found->count; i++)
        esp_suggestion_try(&suggestion, found->models[i].name);
    esp_suggestion_folders(&suggestion, name);
    return esp_fail(
        err, errlen, ESP_E_FILE,
        "there is no model '%.100s'%s: it is neither a folder or file nor a name in "
        "`espalier list models`",
        name, esp_suggestion_text(&suggestion, meant));
}

int esp_model_path(char *path, size_t size, const char *name, char *err, size_t errlen)
{
    struct esp_found_models found;
    struct stat about;
    int best = 0, status = ESP_OK, first = -1, other = -1;
    if (stat(name, &about) == 0 || *name == '/' || *name == '.') {
        if (snprintf(path, size, "%s", name) >= (int)size)
            return esp_fail(err, errlen, ESP_E_FILE, "the path of the model is too long");
        return ESP_OK; /* the call that opens the model reports the error */
    }
    if (esp_find_models(&found) < 0)
        status = esp_fail(err, errlen, ESP_E_MEMORY, "not enough memory to search for models");
    for (int i = 0; i < found.count; i++) {
        const int match = match_of(&found.models[i], name);
        if (match > best) {
            first = i;
            other = -1;
        } else if (match == best && match > 0 && other < 0 &&
                   strcmp(found.models[i].path, found.models[first].path) != 0) {
            other = i;
        }
        best = match > best ? match : best;
    }
    if (status == ESP_OK && first < 0)
        status = refuse_name(&found, name, err, errlen);
    else if (status == ESP_OK && other >= 0)
        status = esp_fail(err, errlen, ESP_E_MISMATCH,
                          "several models have the name '%.60s': %.100s (%s) and %.100s (%s); "
                          "give the whole name or the path",
                          name, found.models[first].name, found.models[first].source,
                          found.models[other].name, found.models[other].source);
    else if (status == ESP_OK &&
             snprintf(path, size, "%s", found.models[first].path) >= (int)size)
        status = esp_fail(err, errlen, ESP_E_FILE, "the path of the model is too long");
    esp_found_models_free(&found);
    return status;
}

/* ------------------------------------------------------------------ pairs */

/* Reads the vocabulary unless it was read before. On failure returns false and fills err. */
static bool read_vocabulary(struct esp_found_model *model, char *err, size_t errlen)
{
    struct esp_tokenizer *tokenizer;
    if (model->tokens > 0)
        return true;
    if (esp_tokenizer_open(&tokenizer, model->path, err, errlen) < 0)
        return false;
    model->vocabulary = esp_tokenizer_hash(tokenizer);
    model->tokens = esp_tokenizer_size(tokenizer);
    esp_tokenizer_close(tokenizer);
    return true;
}

/* Compares two vocabularies. Ignores which tokens end a text, because these tokens hardly
 * change the result. */
static bool compare_vocabularies(const struct esp_found_model *target,
                                 struct esp_found_model *draft, char *err, size_t errlen)
{
    struct esp_tokenizer *tokenizer[2] = {NULL, NULL};
    struct esp_translation t = {.begin = NULL};
    int status = esp_tokenizer_open(&tokenizer[0], target->path, err, errlen);
    if (status == ESP_OK)
        status = esp_tokenizer_open(&tokenizer[1], draft->path, err, errlen);
    if (status == ESP_OK) {
        const struct esp_language a = {tokenizer[0], esp_tokenizer_size(tokenizer[0]), NULL, 0},
                                  b = {tokenizer[1], esp_tokenizer_size(tokenizer[1]), NULL, 0};
        status = esp_translation_open(&t, &a, &b);
        if (status < 0)
            esp_fail(err, errlen, status, "%s", esp_status_message(status));
        draft->shared = t.shared;
        draft->text_share = t.text_share;
    }
    esp_translation_free(&t);
    esp_tokenizer_close(tokenizer[0]);
    esp_tokenizer_close(tokenizer[1]);
    return status == ESP_OK;
}

/* Writes how many of the target's tokens a draft model with another vocabulary has, and how
 * this changes the acceptance rate. */
static void expect(const struct esp_found_model *target, const struct esp_found_model *draft,
                   char *why, size_t size)
{
    static const struct {
        double share;
        const char *words;
    } levels[] = {
        {0.95, "nearly as good as a draft with the target's tokenizer"},
        {0.8, "fewer tokens are accepted than with the target's tokenizer"},
        {0.6, "far fewer tokens are accepted than with the target's tokenizer"},
        {0, "too few; it drafts text instead, with drafter respell"},
    };
    char family[96] = "";
    size_t level = 0;
    while (draft->text_share < levels[level].share)
        level++;
    if (strcmp(target->family, draft->family) != 0)
        snprintf(family, sizeof family, " (%s instead of %s)",
                 *draft->family ? draft->family : "unknown",
                 *target->family ? target->family : "unknown");
    snprintf(why, size,
             "another vocabulary%s with %d of the target's %d tokens, %.0f %% of the tokens "
             "of a sample text: %s",
             family, draft->shared, target->tokens, 100 * draft->text_share,
             levels[level].words);
}

/* Returns whether the draft is a draft head. If it is one, sets *fits to whether it fits this
 * target. `why` then names the kind of head or says why it does not fit. */
static bool is_head(const struct esp_found_model *target, const struct esp_found_model *draft,
                    bool *fits, char *why, size_t size)
{
    struct esp_model *head, *whole;
    char err[512] = "";
    const bool is = esp_model_open(&head, draft->path, err, sizeof err) == ESP_OK && head->head;
    if (is) {
        *fits = esp_model_open(&whole, target->path, err, sizeof err) == ESP_OK &&
                esp_draft_head_join(head, whole, err, sizeof err) == ESP_OK;
        if (*fits)
            snprintf(why, size, "a draft head (%s)", head->architecture);
        else
            snprintf(why, size, "%s", err);
        esp_model_close(whole);
    }
    esp_model_close(head);
    return is;
}

bool esp_draft_fits(struct esp_found_model *target, struct esp_found_model *draft, char *why,
                    size_t size)
{
    char err[256] = "";
    bool fits;
    const char *no = strcmp(target->path, draft->path) == 0 ? "it is the target itself"
                     : draft->bytes >= target->bytes
                         ? "its weights are as large as the target's"
                     : *draft->problem ? draft->problem
                                       : target->problem;
    snprintf(why, size, "%s", no);
    if (*no)
        return false;
    if (is_head(target, draft, &fits, why, size))
        return fits;
    const bool read =
        read_vocabulary(target, err, sizeof err) && read_vocabulary(draft, err, sizeof err);
    draft->shared = 0;
    draft->text_share = 0;
    if (read && target->vocabulary == draft->vocabulary)
        return true;
    if (!read || !compare_vocabularies(target, draft, err, sizeof err)) {
        snprintf(why, size, "%s", err);
        return false;
    }
    expect(target, draft, why, size);
    return true;
}
