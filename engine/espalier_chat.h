/* espalier_chat.h - lists the chat formats. A chat format says how a conversation is written as
 * text for a model.
 *
 * Each format has one line, X(name). The file engine/chat/format_NAME.c defines it as
 * `esp_chat_format_NAME`. Setting `chat` (espalier_settings.h) takes these names.
 */
#ifndef ESPALIER_CHAT_H
#define ESPALIER_CHAT_H

#define ESP_CHAT_FORMATS(X)                                                                    \
    X(chatml)                                                                                  \
    X(llama3)                                                                                  \
    X(gemma)                                                                                   \
    X(mistral)                                                                                 \
    X(phi)                                                                                     \
    X(harmony)                                                                                 \
    X(deepseek)

/* The values of setting `chat`: auto (the format of the model's own template), none (raw text),
 * or the name of a format. */
#define ESP_CHAT_NAME(name) "|" #name
#define ESP_CHAT_NAMES "auto|none" ESP_CHAT_FORMATS(ESP_CHAT_NAME)

enum esp_chat_choice {
    ESP_CHAT_AUTO,
    ESP_CHAT_NONE,
#define ESP_CHAT_CHOICE(name) ESP_CHAT_CHOICE_##name,
    ESP_CHAT_FORMATS(ESP_CHAT_CHOICE)
#undef ESP_CHAT_CHOICE
        ESP_CHAT_CHOICES /* number of values */
};

#endif
