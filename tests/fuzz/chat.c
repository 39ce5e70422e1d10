/* Fuzzes a chat template and a conversation. The program need not recognise the template. Every
 * format must be able to write the conversation. The parts of the result that come from
 * messages must not overlap, and must be in order. The input has the parts chat_template.jinja,
 * tokenizer_config.json and text. */
#include "engine/chat/chat.h"

#include <stdlib.h>
#include <string.h>

#include "engine/espalier_chat.h"
#include "tests/conversation.h"
#include "tests/fuzz/support/fuzz.h"

static void write_conversation(const struct esp_chat *chat, const char *text, size_t length)
{
    const struct chat_message messages[] = {
        {CHAT_SYSTEM, text, length},
        {CHAT_USER, text, length},
        {CHAT_ASSISTANT, text, length},
        {CHAT_USER, text, length},
    };
    struct esp_chat_text out = {.bytes = NULL};
    render_chat(&out, chat, messages, 4);
    FUZZ_REQUIRE(!out.failed, "there is memory");
    int32_t before = 0;
    for (int32_t i = 0; i < out.said.count; i++) {
        const struct esp_span span = out.said.items[i];
        FUZZ_REQUIRE(span.start >= before && span.end > span.start &&
                         (size_t)span.end <= out.length,
                     "part %d is inside the result, after the previous part", (int)i);
        before = span.end;
    }
    esp_chat_text_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    struct esp_chat own, chat;
    struct fuzz_part part;
    char err[512];
    size_t size;
    fuzz_folder_empty();
    for (size_t at = 0; fuzz_next_part(bytes, length, &at, &part);)
        fuzz_folder_write(part.name, part.bytes, part.length, 0);
    if (esp_chat_open(&own, fuzz_folder(), err, sizeof err) == 0) {
        char *text = fuzz_part_text(bytes, length, "text", &size);
        for (int choice = 0; choice < ESP_CHAT_CHOICES; choice++) {
            esp_chat_choose(&chat, &own, choice);
            if (chat.format)
                write_conversation(&chat, text, size);
        }
        free(text);
    }
    esp_chat_free(&own);
    return 0;
}
