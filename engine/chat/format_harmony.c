/* format_harmony.c - harmony, of gpt-oss.
 *
 *     <|start|>ROLE<|message|>TEXT<|end|>
 *
 * The first part is the template's own and says the date and the channels of answers; the
 * system text follows as that of a "developer". An answer consists of several messages: the
 * reasoning in channel "analysis", which ends with <|end|>, and the text in channel "final",
 * which ends with <|return|>. Of earlier answers the template keeps the text; here the
 * reasoning stays with it as it was written.
 */
#include "engine/chat/chat_format.h"

static bool recognise(const char *text)
{
    return esp_chat_has(text, "<|start|>") && esp_chat_has(text, "<|channel|>");
}

static void begin(struct esp_chat_text *out, const struct esp_chat *chat, const char *system)
{
    char today[32], first[160];
    (void)chat;
    esp_chat_date(today, sizeof today, false);
    snprintf(first, sizeof first, "Knowledge cutoff: 2024-06\nCurrent date: %s\n\n", today);
    esp_chat_put(out, "<|start|>system<|message|>");
    esp_chat_put(out, "You are ChatGPT, a large language model trained by OpenAI.\n");
    esp_chat_put(out, first);
    esp_chat_put(out, "Reasoning: medium\n\n");
    esp_chat_put(out, "# Valid channels: analysis, commentary, final. "
                      "Channel must be included for every message.<|end|>");
    if (!system || !*system)
        return;
    esp_chat_put(out, "<|start|>developer<|message|># Instructions\n\n");
    esp_chat_say(out, system, strlen(system));
    esp_chat_put(out, "\n\n<|end|>");
}

static void user(struct esp_chat_text *out, const struct esp_chat *chat, const char *text,
                 size_t length, const char *system)
{
    (void)chat;
    (void)system;
    esp_chat_put(out, "<|start|>user<|message|>");
    esp_chat_say(out, text, length);
    esp_chat_put(out, "<|end|>");
}

static void cue(struct esp_chat_text *out, const struct esp_chat *chat)
{
    (void)chat;
    esp_chat_put(out, "<|start|>assistant");
}

static void answer(struct esp_chat_text *out, const struct esp_chat *chat, const char *text,
                   size_t length)
{
    cue(out, chat);
    esp_chat_put(out, "<|channel|>final<|message|>");
    esp_chat_say(out, text, length);
}

static void close(struct esp_chat_text *out, const struct esp_chat *chat)
{
    (void)chat;
    esp_chat_put(out, "<|end|>");
}

static const char *const marks[] = {"<|start|>",     "<|end|>",    "<|message|>", "<|channel|>",
                                    "<|constrain|>", "<|return|>", "<|call|>",    NULL};
/* <|end|> also ends the reasoning, so it does not end an answer. */
static const char *const ends[] = {"<|return|>", "<|call|>", NULL};

const struct esp_chat_format esp_chat_format_harmony = {
    .name = "harmony",
    .summary = "harmony, of gpt-oss",
    .marks = marks,
    .ends = ends,
    .recognise = recognise,
    .begin = begin,
    .user = user,
    .cue = cue,
    .answer = answer,
    .close = close,
};
