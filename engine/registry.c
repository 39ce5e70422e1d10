/* registry.c - defines the lists of drafters and verifiers, and the public functions that
 * describe them. */
#include <stdio.h>
#include <string.h>

#include "kernels/backends.h"
#include "engine/drafters/drafter.h"
#include "engine/verifiers/verifier.h"

#define X(name) extern const struct esp_drafter_ops esp_drafter_##name;
#include "engine/drafters/drafters.def"
#define X(name) extern const struct esp_verifier_ops esp_verifier_##name;
#include "engine/verifiers/verifiers.def"

const struct esp_drafter_ops *const esp_drafters[] = {
#define X(name) &esp_drafter_##name,
#include "engine/drafters/drafters.def"
    NULL,
};

const struct esp_verifier_ops *const esp_verifiers[] = {
#define X(name) &esp_verifier_##name,
#include "engine/verifiers/verifiers.def"
    NULL,
};

const struct esp_param esp_verifier_params[] = {
    {"lossy", ESP_CHOICE, 0, 1, 0, .choices = "refuse|allow",
     .help = "what to do if the verifier would change the output distribution"},
    {0},
};

/* Returns the entry with this name in a NULL-terminated list of structs that begin with their
 * name. */
static const void *find(const void *const *list, const char *name)
{
    while (*list && strcmp(*(const char *const *)*list, name) != 0)
        list++;
    return *list;
}

const struct esp_drafter_ops *esp_drafter_find(const char *name)
{
    return find((const void *const *)esp_drafters, name);
}

const struct esp_verifier_ops *esp_verifier_find(const char *name)
{
    return find((const void *const *)esp_verifiers, name);
}

static const char *draws_text(unsigned draws)
{
    static const char *const text[] = {
        "", "topk", "iid", "topk, iid", "swor", "topk, swor", "iid, swor", "topk, iid, swor",
    };
    return text[draws & 7];
}

/* Returns whether a NULL-terminated list has an entry at this index. */
static bool has(const void *const *list, int index)
{
    for (int i = 0; i <= index; i++)
        if (!list[i])
            return false;
    return index >= 0;
}

static struct esp_item item_of_verifier(const struct esp_verifier_ops *ops)
{
    return (struct esp_item){.name = ops->name,
                             .summary = ops->summary,
                             .source = ops->source,
                             .differs = ops->differs ? ops->differs : "",
                             .draws = draws_text(ops->lossless),
                             .formula = ops->formula,
                             .numbers = ops->numbers,
                             .where = ops->where};
}

static struct esp_item item_of_drafter(const struct esp_drafter_ops *ops)
{
    return (struct esp_item){.name = ops->name,
                             .summary = ops->summary,
                             .source = ops->source,
                             .differs = ops->differs ? ops->differs : "",
                             .draws = draws_text(ops->draws),
                             .weighs_costs = ops->asks & ESP_ASK_COSTS};
}

bool esp_item(enum esp_list list, int index, struct esp_item *item)
{
    const void *const *const lists[] = {
        [ESP_DRAFTERS] = (const void *const *)esp_drafters,
        [ESP_VERIFIERS] = (const void *const *)esp_verifiers,
        [ESP_BACKENDS] = (const void *const *)esp_backends,
    };
    if (!has(lists[list], index))
        return false;
    *item = list == ESP_DRAFTERS    ? item_of_drafter(esp_drafters[index])
            : list == ESP_VERIFIERS ? item_of_verifier(esp_verifiers[index])
                                    : (struct esp_item){.name = esp_backends[index]->name,
                                                        .summary = esp_backends[index]->summary,
                                                        .source = "",
                                                        .differs = "",
                                                        .draws = ""};
    return true;
}

int esp_backend_probe(const char *name, int device, char *text, size_t size)
{
    struct esp_backend *backend;
    int status = esp_backend_open(&backend, name, 0, device, text, size);
    if (status < 0)
        return status;
    snprintf(text, size, "%s", backend->ops->device(backend));
    backend->ops->close(backend);
    return ESP_OK;
}

bool esp_item_param(enum esp_list list, const char *name, int index,
                    struct esp_param_info *info)
{
    const struct esp_drafter_ops *drafter =
        list == ESP_DRAFTERS ? esp_drafter_find(name) : NULL;
    const struct esp_verifier_ops *verifier =
        list == ESP_VERIFIERS ? esp_verifier_find(name) : NULL;
    const struct esp_param *table = drafter    ? drafter->params
                                    : verifier ? esp_verifier_params
                                               : NULL;
    return esp_params_info(table, index, info);
}

const char *esp_reason_text(int reason)
{
    static const char *const text[] = {
#define X(name, words) [ESP_REASON_##name] = words,
        ESP_REASON(X)
#undef X
    };
    return reason >= 0 && reason < (int)(sizeof text / sizeof *text) ? text[reason] : "";
}

/* Lists two texts for each source of drafted tokens: a word for tables, and a phrase for
 * sentences. */
static const char *const sources[ESP_SOURCES][2] = {
#define X(name, of_table, of_sentence) [ESP_SOURCE_##name] = {of_table, of_sentence},
    ESP_SOURCE(X)
#undef X
};

const char *esp_source_word(int source)
{
    return source >= 0 && source < ESP_SOURCES ? sources[source][0] : "";
}

const char *esp_source_text(int source)
{
    return source >= 0 && source < ESP_SOURCES ? sources[source][1] : "";
}

const char *esp_stage_name(int stage)
{
    static const char *const name[ESP_STAGES] = {"draft",  "flatten", "verify",
                                                 "select", "commit",  "adapt"};
    return stage >= 0 && stage < ESP_STAGES ? name[stage] : "";
}
