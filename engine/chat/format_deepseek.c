/* format_deepseek.c - DeepSeek V2 to V3.1, R1 and the models distilled from it.
 *
 *     <｜User｜>TEXT<｜Assistant｜>TEXT<｜end▁of▁sentence｜>
 *     User: TEXT\n\nAssistant: TEXT<｜end▁of▁sentence｜>        V2
 *
 * The system text stands in front without a mark. R1 begins answers with <think>, V3.1 with
 * </think> where it is not to reason; templates drop the reasoning of earlier answers.
 */
#include "engine/chat/chat_format.h"

enum { WORDS = 1, BEGINS_REASONING = 2, SKIPS_REASONING = 4, DROPS_REASONING = 8 };

#define USER "<｜User｜>"
#define ASSISTANT "<｜Assistant｜>"
#define END "<｜end▁of▁sentence｜>"

static bool recognise(const char *text)
{
    return esp_chat_has(text, ASSISTANT) ||
           (esp_chat_has(text, "'User: '") && esp_chat_has(text, "'Assistant: '"));
}

static void read(struct esp_chat *chat, const char *text)
{
    if (*text && !esp_chat_has(text, ASSISTANT))
        chat->variant |= WORDS;
    if (esp_chat_has(text, ASSISTANT "<think>\n'"))
        chat->variant |= BEGINS_REASONING;
    if (esp_chat_has(text, "{{'</think>'}}"))
        chat->variant |= SKIPS_REASONING;
    if (esp_chat_has(text, "split('</think>'"))
        chat->variant |= DROPS_REASONING;
}

static void begin(struct esp_chat_text *out, const struct esp_chat *chat, const char *system)
{
    esp_chat_put(out, chat->bos);
    if (!system)
        return;
    esp_chat_say(out, system, strlen(system));
    esp_chat_put(out, chat->variant & WORDS ? "\n\n" : "");
}

static void user(struct esp_chat_text *out, const struct esp_chat *chat, const char *text,
                 size_t length, const char *system)
{
    (void)system;
    esp_chat_put(out, chat->variant & WORDS ? "User: " : USER);
    esp_chat_say(out, text, length);
    esp_chat_put(out, chat->variant & WORDS ? "\n\n" : "");
}

static void cue(struct esp_chat_text *out, const struct esp_chat *chat)
{
    esp_chat_put(out, chat->variant & WORDS ? "Assistant:" : ASSISTANT);
    if (chat->variant & SKIPS_REASONING)
        esp_chat_put(out, "</think>");
    else if (chat->variant & BEGINS_REASONING)
        esp_chat_put(out, "<think>\n");
}

static void answer(struct esp_chat_text *out, const struct esp_chat *chat, const char *text,
                   size_t length)
{
    if (chat->variant & DROPS_REASONING)
        esp_chat_skip(&text, &length, "</think>");
    esp_chat_put(out, chat->variant & WORDS ? "Assistant: " : ASSISTANT);
    if (chat->variant & SKIPS_REASONING)
        esp_chat_put(out, "</think>");
    esp_chat_say(out, text, length);
}

static void close(struct esp_chat_text *out, const struct esp_chat *chat)
{
    esp_chat_put(out, *chat->eos ? chat->eos : END);
}

static const char *const marks[] = {USER, ASSISTANT, END, "<｜begin▁of▁sentence｜>", NULL};
static const char *const ends[] = {END, NULL};

const struct esp_chat_format esp_chat_format_deepseek = {
    .name = "deepseek",
    .summary = "DeepSeek V2 to V3.1, R1 and its distilled models",
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
