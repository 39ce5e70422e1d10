/* way_times.c - reads and writes the file of times; see way_times.h. */
#include "engine/way_times.h"

#include <cJSON.h>
#include <string.h>

#include "engine/support/paths.h"

enum { FILE_SIZE = 1 << 16 };

/* Maximum plausible time, in nanoseconds, for a block of 32 by 32 weights. */
static const double LONGEST = 1e7;

/* Reads one list: how long each of the two ways takes for each number of rows. The file has two
 * such lists for each type of weights that was measured: one for activations of 16 bits and one
 * for 8 bits. */
static void read_sizes(const cJSON *list, double ns[ESP_WAY_SIZES][ESP_WAYS])
{
    for (int i = 0; i < ESP_WAY_SIZES; i++)
        for (int way = 0; way < ESP_WAYS; way++) {
            const cJSON *time = cJSON_GetArrayItem(cJSON_GetArrayItem(list, i), way);
            const bool sound =
                cJSON_IsNumber(time) && time->valuedouble > 0 && time->valuedouble < LONGEST;
            ns[i][way] = sound ? time->valuedouble : 0;
        }
}

static void read_times(const char *file, const char *key, struct esp_way_times *times)
{
    cJSON *root = esp_state_object(file, FILE_SIZE, key);
    for (int t = 0; t < ESP_DTYPE_COUNT && root; t++) {
        const cJSON *type = cJSON_GetObjectItem(root, esp_dtype_name((enum esp_dtype)t));
        for (int bytes = 0; bytes < 2; bytes++)
            read_sizes(cJSON_GetArrayItem(type, bytes), times->ns[t][bytes]);
    }
    cJSON_Delete(root);
}

static cJSON *sizes_list(const double ns[ESP_WAY_SIZES][ESP_WAYS])
{
    cJSON *list = cJSON_CreateArray();
    for (int i = 0; i < ESP_WAY_SIZES && ns[i][0] > 0; i++)
        cJSON_AddItemToArray(list, cJSON_CreateDoubleArray(ns[i], ESP_WAYS));
    return list;
}

static void write_times(const char *file, const char *key, const struct esp_way_times *times)
{
    cJSON *root = cJSON_CreateObject();
    cJSON_AddStringToObject(root, "key", key);
    for (int t = 0; t < ESP_DTYPE_COUNT; t++) {
        if (!(times->ns[t][0][0][0] > 0 || times->ns[t][1][0][0] > 0))
            continue;
        cJSON *type = cJSON_AddArrayToObject(root, esp_dtype_name((enum esp_dtype)t));
        for (int bytes = 0; bytes < 2; bytes++)
            cJSON_AddItemToArray(type, sizes_list(times->ns[t][bytes]));
    }
    esp_state_write_object(file, root); /* if this fails, the next run measures again */
}

void esp_way_times_use(struct esp_backend *backend, struct esp_weights *const weights[],
                       int count)
{
    const struct esp_backend_ops *ops = backend->ops;
    const char *key = ops->way_key ? ops->way_key(backend) : "";
    struct esp_way_times times = {0};
    char file[64];
    int measured = 0;
    if (!*key)
        return;
    esp_state_name(file, sizeof file, "products", key);
    read_times(file, key, &times);
    for (int i = 0; i < count; i++)
        measured += weights[i] ? ops->measure_ways(weights[i], &times) : 0;
    if (measured > 0)
        write_times(file, key, &times);
}
