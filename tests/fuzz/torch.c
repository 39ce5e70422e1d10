/* Fuzzes pytorch_model.bin of a draft head, which is a zip archive with a pickle. Every tensor
 * that is opened must lie inside the file, and must be completely readable. The fuzzer's input
 * is the content of the file. */
#include "engine/model/model.h"

#include <stdlib.h>
#include <string.h>

#include "engine/model/safetensors.h"
#include "kernels/model_desc.h"
#include "tests/fuzz/support/fuzz.h"

static const char config[] =
    "{\"model_type\": \"llama\", \"hidden_size\": 8, \"num_hidden_layers\": 1, "
    "\"num_attention_heads\": 2, \"num_key_value_heads\": 2, \"intermediate_size\": 8, "
    "\"vocab_size\": 16, \"rms_norm_eps\": 1e-5, \"max_position_embeddings\": 64, "
    "\"hidden_act\": \"silu\", \"draft_vocab_size\": 8}";

static void read_end(const struct esp_stored *tensor, size_t size)
{
    char end[16];
    FUZZ_REQUIRE(tensor->end >= tensor->begin && tensor->offset <= size &&
                     tensor->end - tensor->begin <= size - tensor->offset,
                 "tensor %s lies within the file", tensor->name);
    const size_t bytes = tensor->end - tensor->begin;
    if (bytes >= sizeof end)
        esp_tensor_file_read(tensor->source, tensor->offset + bytes - sizeof end, end,
                             sizeof end);
}

static void touch(const struct esp_tensor *tensor)
{
    float *row = tensor->data ? malloc((size_t)tensor->columns * sizeof *row) : NULL;
    if (row) {
        esp_tensor_read_row(tensor, 0, row);
        esp_tensor_read_row(tensor, tensor->rows - 1, row);
    }
    free(row);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    struct esp_stored_set *set;
    struct esp_model *model;
    char err[512];
    fuzz_folder_empty();
    fuzz_folder_write("pytorch_model.bin", bytes, length, 0);
    fuzz_folder_write("config.json", config, sizeof config - 1, 0);
    if (esp_safetensors_open(&set, fuzz_folder(), NULL, err, sizeof err) == 0) {
        for (size_t i = 0; i < set->count; i++)
            read_end(&set->tensors[i], set->shards[0]->size);
        esp_stored_close(set);
    }
    if (esp_model_open(&model, fuzz_folder(), err, sizeof err) < 0)
        return 0;
    touch(&model->desc.embedding);
    touch(&model->desc.head);
    touch(&model->desc.fc);
    for (int i = 0; i < model->desc.outputs && model->desc.output_token; i++)
        FUZZ_REQUIRE(model->desc.output_token[i] < model->desc.vocabulary,
                     "every row of the head has a token");
    esp_model_close(model);
    return 0;
}
