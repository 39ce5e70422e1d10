/* chat_text.c - writes the text of a conversation in a chat format; see chat_format.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/chat/chat_format.h"
#include "engine/model/normalize.h"

/* ------------------------------------------------------------------ text */

static void append(struct esp_chat_text *out, const char *text, size_t length)
{
    if (out->failed || length > INT32_MAX - 1 - out->length) {
        out->failed = true;
        return;
    }
    const size_t needed = out->length + length + 1;
    if (needed > out->capacity) {
        char *grown = realloc(out->bytes, 2 * needed);
        if (!grown) {
            out->failed = true;
            return;
        }
        out->bytes = grown;
        out->capacity = 2 * needed;
    }
    memcpy(out->bytes + out->length, text, length);
    out->length += length;
    out->bytes[out->length] = '\0';
}

/* Adds text that comes from the chat template. */
static void put(struct esp_chat_text *out, const char *text)
{
    if (text)
        append(out, text, strlen(text));
}

void esp_chat_say(struct esp_chat_text *out, const char *text, size_t length)
{
    const size_t start = out->length;
    append(out, text, length);
    if (!out->failed && length > 0 &&
        !esp_spans_add(&out->said, (int32_t)start, (int32_t)out->length, 0))
        out->failed = true;
}

void esp_chat_text_free(struct esp_chat_text *text)
{
    free(text->bytes);
    esp_spans_free(&text->said);
    *text = (struct esp_chat_text){.bytes = NULL};
}

/* ------------------------------------------------------------------ contents of pieces */

/* Returns the bytes of the character at the start of a text if Python's str.isspace() counts
 * it as white space. Returns 0 otherwise. */
static size_t space_at(const char *text, size_t length)
{
    return length > 0 && *text >= 0x1C && *text <= 0x1F ? 1 : esp_white_space(text, length);
}

/* Adds text without the white space at its ends, as Python's str.strip() does. */
static void say_stripped(struct esp_chat_text *out, const char *text, size_t length)
{
    for (size_t n; (n = space_at(text, length)) > 0; length -= n)
        text += n;
    while (length > 0) {
        size_t start = length - 1;
        while (start > 0 && (text[start] & 0xC0) == 0x80)
            start--;
        if (space_at(text + start, length - start) != length - start)
            break;
        length = start;
    }
    esp_chat_say(out, text, length);
}

void esp_chat_date(char *text, size_t size, bool in_words)
{
    static const char *const months[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                         "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    const time_t now = time(NULL);
    struct tm day = {.tm_mday = 1};
    localtime_r(&now, &day);
    if (in_words)
        snprintf(text, size, "%02d %s %d", day.tm_mday, months[day.tm_mon], 1900 + day.tm_year);
    else
        snprintf(text, size, "%d-%02d-%02d", 1900 + day.tm_year, day.tm_mon + 1, day.tm_mday);
}

/* Removes the model's reasoning, and line breaks, from the start of an earlier answer. Removes
 * each of them only if the variant requires it. */
static void drop_reasoning(unsigned variant, const char **text, size_t *length)
{
    static const char mark[] = "</think>";
    const size_t size = sizeof mark - 1;
    size_t from = variant & ESP_CHAT_DROPS_REASONING ? *length : 0;
    while (from > 0 && (from < size || memcmp(*text + from - size, mark, size) != 0))
        from--;
    while (variant & ESP_CHAT_DROPS_LINES && from < *length && (*text)[from] == '\n')
        from++;
    *text += from;
    *length -= from;
}

/* Returns the text that the chat template itself inserts for this content. Returns NULL
 * if it inserts none. */
static const char *put_by(const struct esp_chat *chat, enum esp_chat_content content,
                          char day[64])
{
    if (content == ESP_PUT_BOS)
        return chat->bos;
    if (content == ESP_PUT_EOS)
        return *chat->eos ? chat->eos : chat->format->ends[0];
    if (content != ESP_PUT_DAY && content != ESP_PUT_DAY_IN_WORDS)
        return NULL;
    esp_chat_date(day, 64, content == ESP_PUT_DAY_IN_WORDS);
    return day;
}

void esp_chat_write(struct esp_chat_text *out, const struct esp_chat *chat, unsigned at,
                    const char *system, const char *text, size_t length)
{
    if (at == ESP_AT_ANSWER)
        drop_reasoning(chat->variant, &text, &length);
    if (system && !*system && chat->variant & ESP_CHAT_OMITS_EMPTY)
        system = NULL;
    for (const struct esp_chat_piece *piece = chat->format->pieces; piece->at; piece++) {
        const enum esp_chat_content content = piece->content;
        const bool own = content == ESP_SAY_SYSTEM || content == ESP_SAY_STRIPPED_SYSTEM;
        const char *said = own ? system : text;
        char day[64];
        if (!(piece->at & at) || !said || (chat->variant & piece->needs) != piece->needs ||
            chat->variant & piece->lacks)
            continue;
        put(out, piece->before);
        put(out, put_by(chat, content, day));
        if (content == ESP_SAY_TEXT || content == ESP_SAY_SYSTEM)
            esp_chat_say(out, said, own ? strlen(said) : length);
        if (content == ESP_SAY_STRIPPED_TEXT || content == ESP_SAY_STRIPPED_SYSTEM)
            say_stripped(out, said, own ? strlen(said) : length);
        put(out, piece->after);
    }
}
