/* Fuzzes tokenizer.json and a text that the tokenizer encodes. Every resulting token must
 * exist, and the number of tokens must not depend on the capacity of the result. The input has
 * the parts tokenizer.json and text. */
#include "engine/model/tokenizer.h"

#include <stdlib.h>

#include "tests/fuzz/support/fuzz.h"

enum { LITTLE_ROOM = 4 };

static void encode(const struct esp_tokenizer *tokenizer, const char *text, size_t length)
{
    int32_t few[LITTLE_ROOM];
    int count = esp_tokenizer_encode(tokenizer, text, length, few, LITTLE_ROOM);
    if (count < 0)
        return;
    int32_t *tokens = malloc((size_t)(count ? count : 1) * sizeof *tokens);
    FUZZ_REQUIRE(tokens, "there is memory");
    int again = esp_tokenizer_encode(tokenizer, text, length, tokens, count);
    FUZZ_REQUIRE(again == count, "%d tokens, but %d with enough capacity", count, again);
    for (int i = 0; i < count; i++) {
        size_t bytes;
        FUZZ_REQUIRE(tokens[i] >= 0 && tokens[i] < esp_tokenizer_size(tokenizer),
                     "there is a token %d", (int)tokens[i]);
        FUZZ_REQUIRE(i >= LITTLE_ROOM || tokens[i] == few[i],
                     "token %d does not depend on the capacity", i);
        FUZZ_REQUIRE(esp_tokenizer_bytes(tokenizer, tokens[i], &bytes), "token %d has bytes",
                     (int)tokens[i]);
    }
    free(tokens);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    struct esp_tokenizer *tokenizer;
    struct fuzz_part part;
    char err[512];
    size_t size;
    fuzz_folder_empty();
    for (size_t at = 0; fuzz_next_part(bytes, length, &at, &part);)
        fuzz_folder_write(part.name, part.bytes, part.length, 0);
    if (esp_tokenizer_open(&tokenizer, fuzz_folder(), err, sizeof err) < 0)
        return 0;
    char *text = fuzz_part_text(bytes, length, "text", &size);
    encode(tokenizer, text, size);
    free(text);
    for (int32_t token = -1; token <= esp_tokenizer_size(tokenizer) && token < 1000; token++) {
        const char *its = esp_tokenizer_bytes(tokenizer, token, &size);
        if (its)
            esp_tokenizer_find(tokenizer, its, size);
    }
    esp_tokenizer_hash(tokenizer);
    esp_tokenizer_prefix(tokenizer);
    esp_tokenizer_close(tokenizer);
    return 0;
}
