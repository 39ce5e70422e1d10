/* suite_committed.c - writes how a suite's table was made, and compares the table with the
 * committed one.
 *
 * A committed table is results/NAME.json next to NAME.suite. `--counts --json` writes it. It
 * has counts and no speeds. Sessions of suites are repeatable: the same program on the same
 * instruction set gives exactly the same counts. Another instruction set can add numbers in
 * a different order. If two tokens are nearly equally likely, this can change which of them is
 * chosen, and then the text after it changes. The tolerance allows for this.
 */
#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/support/hash.h"
#include "engine/support/open_file.h"
#include "engine/support/paths.h"
#include "kernels/status.h"
#include "kernels/version.h"
#include "tui/cli/cli.h"
#include "tui/cli/prompt.h"
#include "tui/cli/session_json.h"
#include "tui/cli/bench/suite.h"
#include "viz/safe.h"

#ifndef ESP_COMMIT
#define ESP_COMMIT ""
#endif

enum { PIECE = 1 << 20, LARGEST_TABLE = 1 << 24 };
/* Two cells count as different if their difference is larger than `tolerated` and also larger
 * than the fraction `tolerated_share` of the committed value. */
static const double tolerated_share = 0.1, tolerated = 0.05;

/* ------------------------------------------------------------------ hashes */

/* Adds the bytes of a file to a hash. Returns false if the file cannot be read. */
static bool hash_file(const char *path, struct esp_hash_key *key)
{
    const char *wrong;
    const int file = esp_open_regular(path, O_RDONLY, 0, &wrong);
    char *piece = malloc(PIECE);
    ssize_t n = -1;
    while (file >= 0 && piece && (n = read(file, piece, PIECE)) > 0)
        key->word[0] = esp_hash(*key, piece, (size_t)n);
    free(piece);
    if (file >= 0)
        close(file);
    return n == 0;
}

/* Returns whether a file is part of the model. A README is not. A selector (nde-*) is not
 * either, because only drafter nde uses it. */
static int is_model_file(const struct dirent *entry)
{
    const char *end = strrchr(entry->d_name, '.');
    return end && strncmp(entry->d_name, "nde-", 4) != 0 &&
           (strcmp(end, ".safetensors") == 0 || strcmp(end, ".json") == 0 ||
            strcmp(end, ".bin") == 0 || strcmp(end, ".gguf") == 0);
}

/* Writes the hash of a model as text. It is a hash of the model's file, or of the names and
 * contents of the files in its folder. Writes "" if one of them cannot be read. */
static void hash_model(const char *path, char text[32])
{
    struct esp_hash_key key = {{1, 2}}; /* fixed, because the hash is stored */
    struct dirent **entry = NULL;
    struct stat info;
    char name[PATH_MAX];
    bool good = stat(path, &info) == 0;
    const int count =
        good && S_ISDIR(info.st_mode) ? scandir(path, &entry, is_model_file, alphasort) : 0;
    if (good && !S_ISDIR(info.st_mode))
        good = hash_file(path, &key);
    for (int i = 0; i < count; i++) {
        good = good && snprintf(name, sizeof name, "%s/%s", path, entry[i]->d_name) < PATH_MAX;
        key.word[0] = esp_hash(key, entry[i]->d_name, strlen(entry[i]->d_name));
        good = good && hash_file(name, &key);
        free(entry[i]);
    }
    free(entry);
    snprintf(text, 32, "%016llx", (unsigned long long)key.word[0]);
    if (!good || count < 0)
        *text = '\0';
}

static void add_model(cJSON *to, const char *kind, const char *path, const char *builtin)
{
    char found[PATH_MAX], hash[32];
    if (!path && builtin && esp_find_data(found, sizeof found, "models", builtin) == ESP_OK)
        path = found;
    if (!path) {
        cJSON_AddNullToObject(to, kind);
        return;
    }
    const char *name = strrchr(path, '/');
    cJSON *o = cJSON_AddObjectToObject(to, kind);
    hash_model(path, hash);
    cli_add(o, CLI_TEXT("name", name && name[1] ? name + 1 : path), CLI_TEXT("hash", hash));
}

/* ------------------------------------------------------------------ how a table was made */

/* Adds the settings that are the same for all runs. Settings that vary are in the rows. */
static void add_settings(cJSON *to, const struct cli_suite_plan *plan)
{
    const struct cli_suite *s = plan->suite;
    const struct cli_case *c = &plan->cases[0];
    cli_add(to, CLI_NUMBER("prompts", plan->prompts->count), CLI_NUMBER("tokens", c->tokens),
            CLI_NUMBER("prompt_tokens", c->prompt_tokens));
    if (isfinite(plan->row[0].costs.row))
        cli_add(to, CLI_NUMBER("row_cost", plan->row[0].costs.row),
                CLI_NUMBER("draft_cost", plan->row[0].costs.draft));
    cli_json_settings(to, &c->values);
    cJSON *settings = cJSON_GetObjectItemCaseSensitive(to, "settings");
    for (int i = 0; i < s->varies; i++)
        for (int j = 0; j < s->vary[i].keys; j++) {
            cJSON_DeleteItemFromObjectCaseSensitive(to, s->vary[i].key[j]);
            cJSON_DeleteItemFromObjectCaseSensitive(settings, s->vary[i].key[j]);
        }
}

/* If the key `draft` is varied, adds the draft models that its values name. */
static void add_drafts(cJSON *to, const struct cli_options *o, const struct cli_suite *s)
{
    cJSON *drafts = NULL;
    for (int i = 0; i < s->varies; i++)
        for (int j = 0; j < s->vary[i].keys; j++)
            for (int k = 0; strcmp(s->vary[i].key[j], "draft") == 0 && k < s->vary[i].count;
                 k++) {
                const char *name = s->vary[i].value[k][j];
                char path[PATH_MAX];
                snprintf(path, sizeof path, "%s/%s", o->engine.draft, name);
                drafts = drafts ? drafts : cJSON_AddObjectToObject(to, "drafts");
                add_model(drafts, name, path, NULL);
            }
}

cJSON *cli_suite_made(const struct cli_options *o, const struct cli_suite_plan *plan,
                      const struct esp_engine *engine)
{
    const struct cli_suite *s = plan->suite;
    const bool builtin = !o->engine.target;
    cJSON *made = cli_object(CLI_TEXT("suite", s->name), CLI_TEXT("title", s->title),
                             CLI_TEXT("source", s->source), CLI_TEXT("version", ESP_VERSION),
                             CLI_TEXT("commit", ESP_COMMIT));
    if (engine)
        cJSON_AddStringToObject(made, "device", esp_engine_device(engine));
    add_model(made, "target", o->engine.target, "fairytale-target");
    add_model(made, "draft", o->engine.draft, builtin ? "fairytale-draft" : NULL);
    cli_add(made, CLI_NUMBER("width", o->engine.width > 1 ? o->engine.width : 1),
            CLI_NUMBER("layers", o->engine.layers), CLI_NUMBER("warmup", o->warmup));
    add_settings(made, plan);
    add_drafts(made, o, s);
    return made;
}

/* ------------------------------------------------------------------ comparing */

static bool is_same(const cJSON *one, const cJSON *other)
{
    char *a = cJSON_PrintUnformatted(one), *b = cJSON_PrintUnformatted(other);
    const bool same = a && b && strcmp(a, b) == 0;
    free(a);
    free(b);
    return same;
}

/* Returns whether a setting has its default value. A table that was made before the
 * setting existed does not have the setting. This also means the default. */
static bool is_default(const cJSON *setting)
{
    const struct esp_session_values none = {.baseline = false};
    const int index = esp_value_find(setting->string);
    cJSON *o = cJSON_CreateObject();
    if (index >= 0)
        cli_json_setting(o, setting->string, &none, index);
    const bool same = is_same(setting, cJSON_GetObjectItemCaseSensitive(o, setting->string));
    cJSON_Delete(o);
    return same;
}

/* Compares how two tables were made, but only by the members that affect the runs. Returns the
 * name of the first member that differs, or NULL if none does. */
static const char *other(const cJSON *committed, const cJSON *made)
{
    static const char *const same[] = {"target",   "draft",      "drafts", "width",
                                       "layers",   "prompts",    "tokens", "prompt_tokens",
                                       "row_cost", "draft_cost", "warmup"};
    const cJSON *settings = cJSON_GetObjectItemCaseSensitive(committed, "settings"), *now;
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        const cJSON *a = cJSON_GetObjectItemCaseSensitive(committed, same[i]);
        const cJSON *b = cJSON_GetObjectItemCaseSensitive(made, same[i]);
        if ((a || b) && !cJSON_Compare(a, b, true))
            return same[i];
    }
    cJSON_ArrayForEach(now, cJSON_GetObjectItemCaseSensitive(made, "settings"))
    {
        const cJSON *then = cJSON_GetObjectItemCaseSensitive(settings, now->string);
        if (then ? !is_same(then, now) : !is_default(now))
            return now->string;
    }
    return NULL;
}

int cli_suite_read_table(cJSON **table, const char *path, char *err, size_t errlen)
{
    const char *wrong;
    const int file = esp_open_regular(path, O_RDONLY, 0, &wrong);
    *table = NULL;
    if (file < 0)
        return esp_fail(err, errlen, ESP_E_FILE,
                        "%s cannot be opened: %s (--counts --json makes a table to check "
                        "against)",
                        path, wrong);
    char *text;
    size_t length;
    cli_read_all(file, LARGEST_TABLE, &text, &length);
    close(file);
    *table = text ? cJSON_ParseWithLength(text, length) : NULL;
    free(text);
    if (cJSON_IsArray(cJSON_GetObjectItemCaseSensitive(*table, "rows")))
        return ESP_OK;
    cJSON_Delete(*table);
    *table = NULL;
    return esp_fail(err, errlen, ESP_E_FORMAT,
                    "%s is not a suite's table: make a new one with --counts --json", path);
}

int cli_suite_committed(cJSON **committed, const struct cli_options *o,
                        const struct cli_suite_plan *plan, char *err, size_t errlen)
{
    const struct cli_suite *s = plan->suite;
    const char *slash = strrchr(s->path, '/');
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%.*sresults/%s.json",
                 slash ? (int)(slash - s->path) + 1 : 0, s->path, s->name) >= PATH_MAX)
        return esp_fail(err, errlen, ESP_E_ARGUMENT, "%s: the path is too long", s->path);
    int status = cli_suite_read_table(committed, path, err, errlen);
    if (status < 0)
        return status;
    cJSON *made = cli_suite_made(o, plan, NULL);
    const char *what = other(*committed, made);
    if (what)
        status = esp_fail(
            err, errlen, ESP_E_MISMATCH,
            "%s was made with a different value of %s: run without flags that change it, or "
            "make a new table (tests/figures/run --write)",
            path, what);
    cJSON_Delete(made);
    return status;
}

static const struct cli_cell *cell_at(const struct cli_table *t, int row, int column)
{
    return &t->cell[row * t->columns + column];
}

/* Returns whether a cell has this value. */
static bool is_cell(const struct cli_cell *cell, const cJSON *value)
{
    if (isfinite(cell->number))
        return cJSON_IsNumber(value) && fabs(value->valuedouble - cell->number) < 1e-9;
    return cell->text ? cJSON_IsString(value) && strcmp(value->valuestring, cell->text) == 0
                      : !value || cJSON_IsNull(value);
}

/* Returns the row of the committed table that has the same keys as row `row` of `t`, or
 * NULL. */
static const cJSON *find_row(const cJSON *rows, const struct cli_table *t, int row)
{
    const cJSON *other_row;
    cJSON_ArrayForEach(other_row, rows)
    {
        bool same = true;
        for (int i = 0; i < t->columns && same; i++)
            same = !t->column[i].key ||
                   is_cell(cell_at(t, row, i),
                           cJSON_GetObjectItemCaseSensitive(other_row, t->column[i].name));
        if (same)
            return other_row;
    }
    return NULL;
}

static void print_keys(const struct cli_table *t, int row)
{
    const char *between = "";
    for (int i = 0; i < t->columns; i++) {
        const struct cli_cell *cell = cell_at(t, row, i);
        if (!t->column[i].key || (!cell->text && !isfinite(cell->number)))
            continue;
        printf("%s", between);
        if (i > 0)
            esp_safe_print(stdout, "%s ", t->column[i].name);
        if (cell->text)
            esp_safe_print(stdout, "%s", cell->text);
        else
            printf("%g", cell->number);
        between = ", ";
    }
}

int cli_suite_compare(const cJSON *committed, const struct cli_table *t, bool whole)
{
    const cJSON *rows = cJSON_GetObjectItemCaseSensitive(committed, "rows");
    int compared = 0, differ = 0, found = 0;
    for (int row = 0; row < t->rows; row++) {
        const cJSON *then = find_row(rows, t, row);
        found += then != NULL;
        if (!then) {
            print_keys(t, row);
            puts(": the committed table has no such row");
            differ++;
        }
        for (int i = 0; i < t->columns && then; i++) {
            const cJSON *value = cJSON_GetObjectItemCaseSensitive(then, t->column[i].name);
            const double now = cell_at(t, row, i)->number;
            if (t->column[i].key || !cJSON_IsNumber(value))
                continue;
            const double was = value->valuedouble, room = tolerated_share * fabs(was);
            compared++;
            if (fabs(now - was) <= (room > tolerated ? room : tolerated))
                continue;
            print_keys(t, row);
            printf(": %s %.6g, committed %.6g\n", t->column[i].name, now, was);
            differ++;
        }
    }
    const int missing = whole ? cJSON_GetArraySize(rows) - found : 0;
    if (missing > 0)
        printf("%d rows of the committed table are missing\n", missing);
    if (compared == 0)
        puts("there was nothing to compare");
    printf("%d counts compared, %d differ by more than %g %% and by more than %g\n", compared,
           differ, 100 * tolerated_share, tolerated);
    return differ + (missing > 0 ? missing : 0) + (compared == 0);
}
