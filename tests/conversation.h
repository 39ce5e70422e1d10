/* conversation.h - writes a whole conversation in a chat format. Tests compare the result with
 * the text that apply_chat_template() of the Hugging Face library writes if
 * add_generation_prompt is set. */
#ifndef ESP_TEST_CONVERSATION_H
#define ESP_TEST_CONVERSATION_H

#include <stdlib.h>
#include <string.h>

#include "engine/chat/chat_format.h"

enum chat_role { CHAT_SYSTEM, CHAT_USER, CHAT_ASSISTANT };

struct chat_message {
    enum chat_role role;
    const char *text;
    size_t length;
};

/* Writes an optional system prompt, then alternating messages of the user and the assistant.
 * Returns false if there is no memory. */
static inline bool render_chat(struct esp_chat_text *out, const struct esp_chat *chat,
                               const struct chat_message *messages, int count)
{
    const bool given = count > 0 && messages[0].role == CHAT_SYSTEM;
    char *system = given ? strndup(messages[0].text, messages[0].length) : NULL;
    int carrier = given;
    if (given && !system)
        return false;
    for (int i = given; i < count && chat->variant & ESP_CHAT_SYSTEM_IS_LAST; i++)
        if (messages[i].role == CHAT_USER)
            carrier = i;
    esp_chat_begin(out, chat, system);
    for (int i = given; i < count; i++) {
        const bool user = messages[i].role == CHAT_USER;
        esp_chat_write(out, chat, user ? ESP_AT_USER : ESP_AT_ANSWER,
                       i == carrier ? system : NULL, messages[i].text, messages[i].length);
        if (!user)
            esp_chat_close(out, chat);
    }
    esp_chat_write(out, chat, ESP_AT_CUE, NULL, "", 0);
    free(system);
    return !out->failed;
}

#endif
