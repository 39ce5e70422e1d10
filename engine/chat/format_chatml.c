/* format_chatml.c - ChatML: Qwen, SmolLM2, and many models trained from others.
 *
 *     <|im_start|>ROLE\nTEXT<|im_end|>\n
 *
 * Templates differ in the system text they write where none is given, and in reasoning: some
 * drop that of earlier answers, some begin an answer with it.
 */
#include "engine/chat/chat_format.h"

enum { DROPS_REASONING = 1, BEGINS_REASONING = 2 };

static bool recognise(const char *text)
{
    return esp_chat_has(text, "<|im_start|>") && !esp_chat_has(text, "<|im_sep|>");
}

static void read(struct esp_chat *chat, const char *text)
{
    chat->system = esp_chat_between(text, "<|im_start|>system\n", "<|im_end|>");
    if (esp_chat_has(text, "</think>") && esp_chat_has(text, "split('</think>')"))
        chat->variant |= DROPS_REASONING;
    if (esp_chat_has(text, "'<think>\n'") || esp_chat_has(text, "assistant\n<think>\n'"))
        chat->variant |= BEGINS_REASONING;
}

static void begin(struct esp_chat_text *out, const struct esp_chat *chat, const char *system)
{
    const char *text = system ? system : chat->system;
    if (!text)
        return;
    esp_chat_put(out, "<|im_start|>system\n");
    esp_chat_say(out, text, strlen(text));
    esp_chat_put(out, "<|im_end|>\n");
}

static void user(struct esp_chat_text *out, const struct esp_chat *chat, const char *text,
                 size_t length, const char *system)
{
    (void)chat;
    (void)system;
    esp_chat_put(out, "<|im_start|>user\n");
    esp_chat_say(out, text, length);
    esp_chat_put(out, "<|im_end|>\n");
}

static void cue(struct esp_chat_text *out, const struct esp_chat *chat)
{
    esp_chat_put(out, "<|im_start|>assistant\n");
    if (chat->variant & BEGINS_REASONING)
        esp_chat_put(out, "<think>\n");
}

static void answer(struct esp_chat_text *out, const struct esp_chat *chat, const char *text,
                   size_t length)
{
    if (chat->variant & DROPS_REASONING)
        esp_chat_skip(&text, &length, "</think>");
    for (; chat->variant & DROPS_REASONING && length > 0 && *text == '\n'; length--)
        text++;
    esp_chat_put(out, "<|im_start|>assistant\n");
    esp_chat_say(out, text, length);
}

static void close(struct esp_chat_text *out, const struct esp_chat *chat)
{
    (void)chat;
    esp_chat_put(out, "<|im_end|>\n");
}

static const char *const marks[] = {"<|im_start|>", "<|im_end|>", NULL};
static const char *const ends[] = {"<|im_end|>", "<|endoftext|>", NULL};

const struct esp_chat_format esp_chat_format_chatml = {
    .name = "chatml",
    .summary = "ChatML, of Qwen, SmolLM2 and many others",
    .marks = marks,
    .ends = ends,
    .recognise = recognise,
    .read = read,
    .begin = begin,
    .user = user,
    .cue = cue,
    .answer = answer,
    .close = close,
};
