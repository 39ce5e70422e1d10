/* format_llama3.c - Llama 3 to 3.3.
 *
 *     <|start_header_id|>ROLE<|end_header_id|>\n\nTEXT<|eot_id|>
 *
 * White space at the ends of a text is dropped. From Llama 3.1 on there is always a system part
 * that begins with two dates: of the training data, and of today (3.1: a fixed one).
 */
#include "engine/chat/chat_format.h"

enum { DATES = 1, TODAY = 2 };

static bool recognise(const char *text)
{
    return esp_chat_has(text, "<|start_header_id|>");
}

static void read(struct esp_chat *chat, const char *text)
{
    if (esp_chat_has(text, "Cutting Knowledge Date: December 2023"))
        chat->variant |= DATES;
    if (esp_chat_has(text, "strftime_now"))
        chat->variant |= TODAY;
}

static void part(struct esp_chat_text *out, const char *role, const char *before,
                 const char *text, size_t length)
{
    esp_chat_put(out, "<|start_header_id|>");
    esp_chat_put(out, role);
    esp_chat_put(out, "<|end_header_id|>\n\n");
    esp_chat_put(out, before);
    esp_chat_strip(&text, &length);
    esp_chat_say(out, text, length);
}

static void close(struct esp_chat_text *out, const struct esp_chat *chat)
{
    (void)chat;
    esp_chat_put(out, "<|eot_id|>");
}

static void begin(struct esp_chat_text *out, const struct esp_chat *chat, const char *system)
{
    char today[64] = "26 Jul 2024", dates[160] = "";
    if (chat->variant & TODAY)
        esp_chat_date(today, sizeof today, true);
    if (chat->variant & DATES)
        snprintf(dates, sizeof dates,
                 "Cutting Knowledge Date: December 2023\nToday Date: %s\n\n", today);
    esp_chat_put(out, chat->bos);
    if (!system && !(chat->variant & DATES))
        return;
    part(out, "system", dates, system ? system : "", system ? strlen(system) : 0);
    close(out, chat);
}

static void user(struct esp_chat_text *out, const struct esp_chat *chat, const char *text,
                 size_t length, const char *system)
{
    (void)system;
    part(out, "user", "", text, length);
    close(out, chat);
}

static void cue(struct esp_chat_text *out, const struct esp_chat *chat)
{
    (void)chat;
    part(out, "assistant", "", "", 0);
}

static void answer(struct esp_chat_text *out, const struct esp_chat *chat, const char *text,
                   size_t length)
{
    (void)chat;
    part(out, "assistant", "", text, length);
}

static const char *const marks[] = {"<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>",
                                    "<|begin_of_text|>",   "<|eom_id|>",        NULL};
static const char *const ends[] = {"<|eot_id|>", "<|eom_id|>", "<|end_of_text|>", NULL};

const struct esp_chat_format esp_chat_format_llama3 = {
    .name = "llama3",
    .summary = "Llama 3 to 3.3",
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
