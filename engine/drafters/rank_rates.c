/* rank_rates.c - counts tried and accepted children, and stores the counts in a file; see
 * rank_rates.h. The file is untrusted. */
#include "engine/drafters/rank_rates.h"

#include <cJSON.h>
#include <stdio.h>
#include <string.h>

#include "engine/support/paths.h"

enum { PRIOR_WEIGHT = 16, REMEMBERED = 1000, FILE_SIZE = 8192 };

double esp_rank_rate(const struct esp_rank_rates *r, int k)
{
    double prior = 0.6 / ((k + 1) * (k + 1));
    return (r->accepted[k] + PRIOR_WEIGHT * prior) / (r->tried[k] + PRIOR_WEIGHT);
}

void esp_rank_rates_learn(struct esp_rank_rates *r, const struct esp_iteration *it)
{
    const struct esp_tree *tree = &it->tree;
    for (int i = 0; i <= it->path_length; i++) {
        int32_t parent = i == 0 ? 0 : it->path[i - 1];
        for (int u = parent + 1; u < tree->count; u++) {
            const struct esp_node *node = &tree->nodes[u];
            if (node->parent != parent || node->verdict == ESP_CUT || node->rank >= ESP_RANKS)
                continue;
            r->tried[node->rank] += 1;
            r->accepted[node->rank] += i < it->path_length && it->path[i] == u;
            r->learned = true;
        }
    }
    bool many = r->tried[0] > REMEMBERED;
    for (int k = 0; k < ESP_RANKS && many; k++) {
        r->tried[k] /= 2;
        r->accepted[k] /= 2;
    }
}

/* Reads the counts from the file if it is valid and belongs to this key. Otherwise all counts
 * become 0. */
static void load(struct esp_rank_rates *r)
{
    double tried[ESP_RANKS], accepted[ESP_RANKS];
    memset(r->tried, 0, sizeof r->tried);
    memset(r->accepted, 0, sizeof r->accepted);
    cJSON *root = esp_state_object(r->file, FILE_SIZE, r->key);
    bool sound = esp_state_numbers(cJSON_GetObjectItem(root, "tried"), tried, ESP_RANKS) &&
                 esp_state_numbers(cJSON_GetObjectItem(root, "accepted"), accepted, ESP_RANKS);
    for (int k = 0; k < ESP_RANKS && sound; k++)
        sound = accepted[k] <= tried[k];
    if (sound) {
        memcpy(r->tried, tried, sizeof tried);
        memcpy(r->accepted, accepted, sizeof accepted);
    }
    cJSON_Delete(root);
}

void esp_rank_rates_save(struct esp_rank_rates *r)
{
    if (!r->learned || !*r->file)
        return;
    cJSON *root = cJSON_CreateObject();
    cJSON_AddStringToObject(root, "key", r->key);
    cJSON_AddItemToObject(root, "tried", cJSON_CreateDoubleArray(r->tried, ESP_RANKS));
    cJSON_AddItemToObject(root, "accepted", cJSON_CreateDoubleArray(r->accepted, ESP_RANKS));
    if (esp_state_write_object(r->file, root))
        r->learned = false;
}

void esp_rank_rates_turn(struct esp_rank_rates *r, const char *key)
{
    if (key && strcmp(key, r->key) == 0)
        return;
    esp_rank_rates_save(r);
    if (!key) {
        memset(r, 0, sizeof *r);
        return;
    }
    snprintf(r->key, sizeof r->key, "%s", key);
    esp_state_name(r->file, sizeof r->file, "sequoia", r->key);
    load(r);
    r->learned = false;
}
