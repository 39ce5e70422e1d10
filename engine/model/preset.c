/* preset.c - writes espalier.json; see preset.h.
 *
 * model.c reads it. What is there is parsed first, so that a file that is no JSON, or that is
 * something else, is refused and not written over.
 */
#include "engine/model/preset.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/model/json.h"
#include "engine/support/write_file.h"
#include "kernels/status.h"

static const char NAME[] = "espalier.json";

static bool set_member(cJSON *root, const char *key, const char *value)
{
    cJSON *item = value ? cJSON_CreateString(value) : NULL;
    if (!value)
        return true;
    if (!item)
        return false;
    bool done = cJSON_GetObjectItemCaseSensitive(root, key)
                    ? cJSON_ReplaceItemInObjectCaseSensitive(root, key, item)
                    : cJSON_AddItemToObject(root, key, item);
    if (!done)
        cJSON_Delete(item);
    return done;
}

int esp_preset_write(const char *folder, const char *drafter, const char *sampling_drafter,
                     char *err, size_t errlen)
{
    struct esp_json json = {.root = NULL};
    int status = ESP_OK;
    if (esp_file_exists(folder, NAME))
        status = esp_json_read(&json, folder, NAME, err, errlen);
    else if (snprintf(json.path, sizeof json.path, "%s/%s", folder, NAME) >= PATH_MAX)
        status = esp_fail(err, errlen, ESP_E_FILE,
                          "the path of %s in the model folder is too long", NAME);
    if (status < 0)
        return status;
    if (!json.root)
        json.root = cJSON_CreateObject();
    char *text = NULL;
    if (json.root && set_member(json.root, "drafter", drafter) &&
        set_member(json.root, "sampling_drafter", sampling_drafter))
        text = cJSON_Print(json.root);
    size_t length = text ? strlen(text) : 0;
    if (text) {
        text[length] = '\n'; /* in place of the NUL: the file ends with a whole line */
        status = esp_write_file(json.path, text, length + 1, true, err, errlen);
    } else {
        status = esp_fail(err, errlen, ESP_E_MEMORY, "not enough memory for %s", json.path);
    }
    free(text);
    esp_json_close(&json);
    return status;
}
