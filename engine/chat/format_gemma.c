/* format_gemma.c - Gemma 1 to 3.
 *
 *     <start_of_turn>user\nTEXT<end_of_turn>\n<start_of_turn>model\nTEXT<end_of_turn>\n
 *
 * White space at the ends of a text is dropped. There is no place for a system text: it goes
 * before the first text of the user, as the template of Gemma 3 does it. The templates of
 * Gemma 1 and 2 refuse one; it is put at the same place here.
 */
#include "engine/chat/chat_format.h"

static bool recognise(const char *text)
{
    return esp_chat_has(text, "<start_of_turn>");
}

static void begin(struct esp_chat_text *out, const struct esp_chat *chat, const char *system)
{
    (void)system;
    esp_chat_put(out, chat->bos);
}

static void close(struct esp_chat_text *out, const struct esp_chat *chat)
{
    (void)chat;
    esp_chat_put(out, "<end_of_turn>\n");
}

static void user(struct esp_chat_text *out, const struct esp_chat *chat, const char *text,
                 size_t length, const char *system)
{
    esp_chat_put(out, "<start_of_turn>user\n");
    if (system) {
        esp_chat_say(out, system, strlen(system));
        esp_chat_put(out, "\n\n");
    }
    esp_chat_strip(&text, &length);
    esp_chat_say(out, text, length);
    close(out, chat);
}

static void cue(struct esp_chat_text *out, const struct esp_chat *chat)
{
    (void)chat;
    esp_chat_put(out, "<start_of_turn>model\n");
}

static void answer(struct esp_chat_text *out, const struct esp_chat *chat, const char *text,
                   size_t length)
{
    cue(out, chat);
    esp_chat_strip(&text, &length);
    esp_chat_say(out, text, length);
}

static const char *const marks[] = {"<start_of_turn>", "<end_of_turn>", NULL};
static const char *const ends[] = {"<end_of_turn>", NULL};

const struct esp_chat_format esp_chat_format_gemma = {
    .name = "gemma",
    .summary = "Gemma 1 to 3",
    .marks = marks,
    .ends = ends,
    .recognise = recognise,
    .begin = begin,
    .user = user,
    .cue = cue,
    .answer = answer,
    .close = close,
};
