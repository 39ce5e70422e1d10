/* Fuzzes a GGUF file: its values and tensors, and the model and tokenizer made from it. The
 * input is the header; the data after it are zeros. Each byte of an opened file must be
 * readable, and encoding a text must give only tokens of the vocabulary. */
#include "engine/model/gguf.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/model/model.h"
#include "engine/model/tokenizer.h"
#include "kernels/model_desc.h"
#include "tests/fuzz/support/fuzz.h"

enum { ZEROS = 1 << 17, MOST_READ = 64 /* elements or tensors */, ROOM = 64 /* tokens */ };

static void read_value(const struct esp_gguf_value *value)
{
    const unsigned char *at = NULL;
    struct esp_gguf_text text;
    uint64_t texts = 0;
    volatile char last;
    for (uint64_t i = 0; i < value->count && i < MOST_READ; i++)
        esp_gguf_number(value, i);
    FUZZ_REQUIRE(isnan(esp_gguf_number(value, value->count)), "no element follows the last one");
    for (; esp_gguf_next_text(value, &at, &text); texts++)
        if (text.length > 0)
            last = text.bytes[text.length - 1]; /* the last byte must be readable */
    (void)last;
    FUZZ_REQUIRE(value->kind != ESP_GGUF_TEXT || texts == value->count,
                 "%llu of %llu elements are texts", (unsigned long long)texts,
                 (unsigned long long)value->count);
    char *copy = esp_gguf_copy_text(value);
    FUZZ_REQUIRE(!copy || !value->array, "only a single text is copied");
    free(copy);
}

static void read_container(const char *path)
{
    char err[512];
    struct esp_gguf gguf;
    struct esp_stored_set *set = calloc(1, sizeof *set);
    FUZZ_REQUIRE(set, "there is memory");
    if (esp_gguf_open_first(&gguf, set, path, err, sizeof err) == 0) {
        for (size_t i = 0; i < gguf.value_count; i++)
            read_value(&gguf.values[i]);
        for (size_t i = 0; i < gguf.tensor_count && i < MOST_READ; i++) {
            const struct esp_gguf_tensor *tensor = &gguf.tensors[i];
            FUZZ_REQUIRE(tensor->offset + tensor->bytes <= gguf.shard->size,
                         "tensor %zu ends within the file", i);
        }
        FUZZ_REQUIRE(!gguf.shard->source.failed, "all data could be read");
    }
    esp_gguf_close(&gguf);
    esp_stored_close(set);
}

/* Reads the first and the last row of a tensor, if the tensor exists. */
static void touch(const struct esp_tensor *tensor)
{
    float *row = tensor->data ? malloc((size_t)tensor->columns * sizeof *row) : NULL;
    if (row) {
        esp_tensor_read_row(tensor, 0, row);
        esp_tensor_read_row(tensor, tensor->rows - 1, row);
        FUZZ_REQUIRE(!tensor->source->failed, "the rows of a tensor can be read");
    }
    free(row);
}

static void read_model(const char *path, bool mtp)
{
    char err[512];
    struct esp_model *model;
    if ((mtp ? esp_model_open_mtp : esp_model_open)(&model, path, err, sizeof err) < 0)
        return;
    touch(&model->desc.fc);
    touch(&model->desc.norm_embedding);
    touch(&model->desc.embedding);
    touch(&model->desc.head);
    for (int i = 0; i < model->desc.layers; i++) {
        touch(&model->desc.layer[i].query);
        touch(&model->desc.layer[i].router);
        for (int e = 0; model->desc.layer[i].router.data && e < model->desc.experts; e++)
            touch(&model->desc.layer[i].expert[e].down);
        touch(&model->desc.layer[i].key_bias);
        touch(&model->desc.layer[i].value);
        touch(&model->desc.layer[i].down);
    }
    const char *template = model->chat_template;
    FUZZ_REQUIRE(!template || strlen(template) <= ZEROS, "a template ends");
    esp_model_close(model);
}

static void read_tokenizer(const char *path)
{
    static const char text[] = "There was a king, who had 3 sons.\n <|im_end|>\xFF";
    char err[512];
    int32_t tokens[ROOM];
    struct esp_tokenizer *tokenizer;
    if (esp_tokenizer_open(&tokenizer, path, err, sizeof err) < 0)
        return;
    int count = esp_tokenizer_encode(tokenizer, text, sizeof text - 1, tokens, ROOM);
    for (int i = 0; i < count && i < ROOM; i++) {
        size_t length;
        FUZZ_REQUIRE(esp_tokenizer_bytes(tokenizer, tokens[i], &length), "token %d has bytes",
                     (int)tokens[i]);
    }
    esp_tokenizer_close(tokenizer);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    char path[PATH_MAX];
    fuzz_folder_empty();
    fuzz_folder_write("model.gguf", bytes, length, ZEROS);
    snprintf(path, sizeof path, "%s/model.gguf", fuzz_folder());
    read_container(path);
    read_model(path, false);
    read_model(path, true);
    read_tokenizer(path);
    return 0;
}
