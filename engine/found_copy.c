/* found_copy.c - describes the drafts that a target's own files contain: its quantised copy
 * and its MTP layer; see find_models.h. */
#include <stdio.h>
#include <string.h>

#include "engine/find_models.h"
#include "engine/model/mtp.h"
#include "engine/model/own_copy.h"
#include "kernels/status.h"

bool esp_is_mtp(const char *draft)
{
    return draft && strcmp(draft, ESP_MTP) == 0;
}

int esp_draft_path(char *path, size_t size, const char *name, char *err, size_t errlen)
{
    if (!esp_is_own_copy(name) && !esp_is_mtp(name) && strcmp(name, "auto") != 0 &&
        strcmp(name, "none") != 0)
        return esp_model_path(path, size, name, err, errlen);
    if (snprintf(path, size, "%s", name) >= (int)size)
        return esp_fail(err, errlen, ESP_E_ARGUMENT, "there is no copy '%.40s...'", name);
    return ESP_OK;
}

void esp_found_copy(struct esp_found_model *copy, const struct esp_found_model *target)
{
    struct esp_model *model, *made;
    char err[512];
    *copy = (struct esp_found_model){.name = "self", .path = "self", .source = "its own copy"};
    snprintf(copy->family, sizeof copy->family, "%s", target->family);
    if (esp_model_open(&model, target->path, err, sizeof err) < 0)
        return;
    if (esp_own_copy_open(&made, model, "self", err, sizeof err) == ESP_OK) {
        copy->bytes = (int64_t)made->bytes;
        snprintf(copy->dtype, sizeof copy->dtype, "%s", made->dtype);
        esp_model_close(made);
    }
    esp_model_close(model);
}

bool esp_copy_fits(const struct esp_found_model *target, char *why, size_t size)
{
    struct esp_model *model, *made = NULL;
    *why = '\0';
    if (esp_model_open(&model, target->path, why, size) < 0)
        return false;
    if (model->head)
        snprintf(why, size, "it is a draft head");
    const bool fits =
        !model->head && esp_own_copy_open(&made, model, "self", why, size) == ESP_OK;
    if (fits && !esp_own_copy_pays(model))
        snprintf(why, size,
                 "it works, but gains little for a small or quantised model or a mixture of "
                 "experts");
    esp_model_close(made);
    esp_model_close(model);
    return fits;
}

bool esp_found_mtp(struct esp_found_model *head, const struct esp_found_model *target)
{
    struct esp_model *model, *mtp = NULL;
    char err[512];
    *head = (struct esp_found_model){
        .name = ESP_MTP, .path = ESP_MTP, .source = "its MTP layer", .gguf = target->gguf};
    snprintf(head->family, sizeof head->family, "%s", target->family);
    if (esp_model_open(&model, target->path, err, sizeof err) < 0)
        return false;
    const bool there =
        !model->head && (esp_mtp_open(&mtp, model, err, sizeof err) == ESP_OK ||
                         model->mtp); /* if the layer is damaged, the call that loads it reports
                                         the reason */
    if (mtp) {
        head->bytes = (int64_t)mtp->bytes;
        snprintf(head->dtype, sizeof head->dtype, "%s", mtp->dtype);
    }
    esp_model_close(mtp);
    esp_model_close(model);
    return there;
}

bool esp_mtp_fits(const struct esp_found_model *target, char *why, size_t size)
{
    struct esp_model *model, *mtp = NULL;
    *why = '\0';
    if (esp_model_open(&model, target->path, why, size) < 0)
        return false;
    const bool fits = esp_mtp_open(&mtp, model, why, size) == ESP_OK;
    esp_model_close(mtp);
    esp_model_close(model);
    return fits;
}
