/* format_mistral.c - Mistral, Mixtral, Nemo, Small.
 *
 *     [INST] TEXT [/INST] TEXT</s>
 *
 * The formats of the years differ in their blanks: the first ones have one on both sides of
 * both marks, the third (0.3) only behind [INST] and before an answer, the fourth (Tekken)
 * none. The newest have a place for the system text; before, it stood in front of the user's
 * first text, or, in the templates of the third and fourth, of the last. In a conversation that
 * goes on it always stands in the first, because text that was computed is not moved.
 */
#include "engine/chat/chat_format.h"

enum {
    BLANK_BEFORE = 1, /* " [INST]" */
    BLANK_AFTER = 2,  /* "[INST] " */
    BLANK_END = 4,    /* " [/INST]" */
    BLANK_ANSWER = 8, /* in front of an answer */
    STRIPS_ANSWER = 16,
    SYSTEM_LAST = 32,
    SYSTEM_PART = 64,
};

static bool recognise(const char *text)
{
    return esp_chat_has(text, "[INST]") && !esp_chat_has(text, "<<SYS>>");
}

static void read(struct esp_chat *chat, const char *text)
{
    const struct {
        unsigned variant;
        const char *part;
    } signs[] = {
        {BLANK_BEFORE, "' [INST]"},
        {BLANK_AFTER, "[INST] '"},
        {BLANK_END, "' [/INST]"},
        {BLANK_ANSWER, "' ' + message"},
        {BLANK_ANSWER, "' ' + content"},
        {STRIPS_ANSWER, "content'] | trim + eos"},
        {STRIPS_ANSWER, "content']|trim + eos"},
        {SYSTEM_LAST, "loop.last and system_message is defined"},
        {SYSTEM_PART, "[SYSTEM_PROMPT]"},
    };
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
        if (esp_chat_has(text, signs[i].part))
            chat->variant |= signs[i].variant;
}

static bool system_is_last(const struct esp_chat *chat)
{
    return chat->variant & SYSTEM_LAST;
}

static void begin(struct esp_chat_text *out, const struct esp_chat *chat, const char *system)
{
    esp_chat_put(out, chat->bos);
    if (!system || !(chat->variant & SYSTEM_PART))
        return;
    esp_chat_put(out, "[SYSTEM_PROMPT]");
    esp_chat_say(out, system, strlen(system));
    esp_chat_put(out, "[/SYSTEM_PROMPT]");
}

static void user(struct esp_chat_text *out, const struct esp_chat *chat, const char *text,
                 size_t length, const char *system)
{
    esp_chat_put(out, chat->variant & BLANK_BEFORE ? " [INST]" : "[INST]");
    esp_chat_put(out, chat->variant & BLANK_AFTER ? " " : "");
    if (system && !(chat->variant & SYSTEM_PART)) {
        esp_chat_say(out, system, strlen(system));
        esp_chat_put(out, "\n\n");
    }
    esp_chat_say(out, text, length);
    esp_chat_put(out, chat->variant & BLANK_END ? " [/INST]" : "[/INST]");
}

/* The model writes the blank before its answer by itself. */
static void cue(struct esp_chat_text *out, const struct esp_chat *chat)
{
    (void)out;
    (void)chat;
}

static void answer(struct esp_chat_text *out, const struct esp_chat *chat, const char *text,
                   size_t length)
{
    esp_chat_put(out, chat->variant & BLANK_ANSWER ? " " : "");
    if (chat->variant & STRIPS_ANSWER)
        esp_chat_strip(&text, &length);
    esp_chat_say(out, text, length);
}

static void close(struct esp_chat_text *out, const struct esp_chat *chat)
{
    esp_chat_put(out, *chat->eos ? chat->eos : "</s>");
}

static const char *const marks[] = {
    "[INST]", "[/INST]", "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]", "<s>", "</s>", NULL};
static const char *const ends[] = {"</s>", NULL};

const struct esp_chat_format esp_chat_format_mistral = {
    .name = "mistral",
    .summary = "Mistral, Mixtral, Nemo, Small",
    .marks = marks,
    .ends = ends,
    .recognise = recognise,
    .read = read,
    .begin = begin,
    .user = user,
    .cue = cue,
    .answer = answer,
    .close = close,
    .system_is_last = system_is_last,
};
