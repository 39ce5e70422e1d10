/* Fuzzes the tokenizer.json of a target and the tokenizer.json of a draft with another
 * vocabulary. Whatever the files contain, every token of the target must be translated to
 * tokens of the draft. A token of the draft may be shared with only one token of the target
 * (engine/model/translation.h). The input has the parts target and draft. */
#include "engine/model/translation.h"

#include <stdlib.h>

#include "tests/fuzz/support/fuzz.h"

static struct esp_tokenizer *open_part(const uint8_t *bytes, size_t length, const char *name)
{
    struct esp_tokenizer *tokenizer;
    char err[512];
    size_t size;
    char *text = fuzz_part_text(bytes, length, name, &size);
    fuzz_folder_empty();
    fuzz_folder_write("tokenizer.json", text, size, 0);
    free(text);
    return esp_tokenizer_open(&tokenizer, fuzz_folder(), err, sizeof err) < 0 ? NULL
                                                                              : tokenizer;
}

static void check(const struct esp_translation *t, const struct esp_language *draft)
{
    unsigned char *used = calloc((size_t)draft->vocabulary + 1, 1);
    FUZZ_REQUIRE(used, "there is memory");
    for (int32_t token = 0; token < t->tokens; token++) {
        const int32_t *spelled;
        const int count = esp_translation_spell(t, token, &spelled);
        FUZZ_REQUIRE(count >= 1 && count <= ESP_SPELLED_MOST, "token %d is %d", (int)token,
                     count);
        for (int i = 0; i < count; i++)
            FUZZ_REQUIRE(spelled[i] >= 0 && spelled[i] < draft->vocabulary,
                         "each part is a draft token");
    }
    for (int i = 0; i < t->shared; i++) {
        FUZZ_REQUIRE(i == 0 || t->output_token[i] > t->output_token[i - 1],
                     "shared target tokens ascend");
        FUZZ_REQUIRE(t->output_token[i] >= 0 && t->output_token[i] < t->tokens,
                     "a shared token is a target token");
        FUZZ_REQUIRE(t->output_row[i] >= 0 && t->output_row[i] < draft->vocabulary,
                     "the row of a shared token is a draft token");
        FUZZ_REQUIRE(!used[t->output_row[i]]++,
                     "draft token %d is shared with one target token only",
                     (int)t->output_row[i]);
    }
    free(used);
}

static void translate(const struct esp_tokenizer *target, const struct esp_tokenizer *draft)
{
    const int32_t end[2] = {0, 1};
    const struct esp_language a = {target, esp_tokenizer_size(target) + 1, end, 1},
                              b = {draft, esp_tokenizer_size(draft) + 1, end, 2};
    struct esp_translation t;
    if (esp_translation_open(&t, &a, &b) == 0)
        check(&t, &b);
    esp_translation_free(&t);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    struct esp_tokenizer *target = open_part(bytes, length, "target");
    struct esp_tokenizer *draft = open_part(bytes, length, "draft");
    if (target && draft) {
        translate(target, draft);
        translate(draft, target);
    }
    esp_tokenizer_close(target);
    esp_tokenizer_close(draft);
    return 0;
}
