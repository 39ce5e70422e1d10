/* Fuzzes the folder of a draft head or a whole model, which can have an MTP layer. The folder
 * has config.json, generation_config.json, espalier.json, and tensors that can contradict the
 * configuration. The input consists of these files (fuzz.h). The number after the name of a
 * .safetensors file says how many data bytes follow the header; all of them are 0. If a model
 * can be opened, each of its bytes must be readable.
 */
#include "engine/model/model.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/model_desc.h"
#include "tests/fuzz/support/fuzz.h"

static void write_part(const struct fuzz_part *part)
{
    size_t name = strlen(part->name);
    if (name < 12 || strcmp(part->name + name - 12, ".safetensors") != 0) {
        fuzz_folder_write(part->name, part->bytes, part->length, 0);
        return;
    }
    char *file = malloc(8 + part->length);
    FUZZ_REQUIRE(file, "there is memory");
    for (int i = 0; i < 8; i++)
        file[i] = (char)(part->length >> 8 * i);
    memcpy(file + 8, part->bytes, part->length);
    fuzz_folder_write(part->name, file, 8 + part->length, part->number);
    free(file);
}

/* Reads the first and the last row of a tensor, if the tensor exists. */
static void touch(const struct esp_tensor *tensor)
{
    float *row = tensor->data ? malloc((size_t)tensor->columns * sizeof *row) : NULL;
    if (row) {
        esp_tensor_read_row(tensor, 0, row);
        esp_tensor_read_row(tensor, tensor->rows - 1, row);
    }
    free(row);
}

static void touch_model(struct esp_model *model)
{
    touch(&model->desc.embedding);
    touch(&model->desc.head);
    touch(&model->desc.fc);
    touch(&model->desc.norm_embedding);
    touch(&model->desc.norm_input);
    for (int i = 0; i < model->desc.fc_norms; i++)
        touch(&model->desc.norm_fc[i]);
    for (int i = 0; i < model->desc.outputs && model->desc.output_token; i++)
        FUZZ_REQUIRE(model->desc.output_token[i] < model->desc.vocabulary,
                     "every row of a draft head's LM head has a token");
    for (int i = 0; i < model->desc.layers; i++) {
        touch(&model->desc.layer[i].query);
        touch(&model->desc.layer[i].router);
        for (int e = 0; model->desc.layer[i].router.data && e < model->desc.experts; e++)
            touch(&model->desc.layer[i].expert[e].down);
        touch(&model->desc.layer[i].key);
        touch(&model->desc.layer[i].value);
        touch(&model->desc.layer[i].conv_in);
        touch(&model->desc.layer[i].out_gate);
        touch(&model->desc.layer[i].decay);
        touch(&model->desc.layer[i].mixed);
        touch(&model->desc.layer[i].down);
    }
    esp_model_close(model);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    struct fuzz_part part;
    struct esp_model *model;
    char err[512];
    fuzz_folder_empty();
    for (size_t at = 0; fuzz_next_part(bytes, length, &at, &part);)
        write_part(&part);
    if (esp_model_open(&model, fuzz_folder(), err, sizeof err) == 0)
        touch_model(model);
    if (esp_model_open_mtp(&model, fuzz_folder(), err, sizeof err) == 0)
        touch_model(model);
    return 0;
}
