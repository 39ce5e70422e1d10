/* conversation.c - manages the turns of a session's text and its chat format; see
 * conversation.h. */
#include "engine/conversation.h"

#include <stdlib.h>
#include <string.h>

#include "engine/chat/chat_format.h"
#include "engine/session_parts.h"
#include "kernels/status.h"

/* ------------------------------------------------------------------ turns */

void esp_conversation_choose(struct esp_session *s)
{
    struct esp_conversation *c = &s->conversation;
    const struct esp_tokenizer *tokenizer = s->engine->tokenizer;
    esp_chat_choose(&c->chat, &s->engine->chat, s->set.values.chat);
    c->end_count = 0;
    for (int i = 0; c->chat.format && c->chat.format->ends[i] && i < ESP_CHAT_ENDS; i++) {
        const char *name = c->chat.format->ends[i];
        const int32_t token =
            tokenizer ? esp_tokenizer_find(tokenizer, name, strlen(name)) : -1;
        if (token >= 0)
            c->ends[c->end_count++] = token;
    }
}

int esp_conversation_add(struct esp_conversation *c, struct esp_turn_places turn)
{
    if (c->count == c->capacity) {
        const int capacity = c->capacity ? 2 * c->capacity : 16;
        struct esp_turn_places *grown = realloc(c->turns, (size_t)capacity * sizeof *grown);
        if (!grown)
            return ESP_E_MEMORY;
        c->turns = grown;
        c->capacity = capacity;
    }
    c->turns[c->count++] = turn;
    return ESP_OK;
}

void esp_conversation_cut(struct esp_conversation *c, int count)
{
    while (c->count > 0 && c->turns[c->count - 1].before >= count)
        c->count--;
    if (c->count == 0)
        return;
    struct esp_turn_places *last = &c->turns[c->count - 1];
    last->answer = last->answer < count ? last->answer : count;
    last->said_end = last->said_end < count ? last->said_end : count;
    last->said = last->said < count ? last->said : count;
}

static int skip(const struct esp_text_token *text, int count, int at, int kind)
{
    while (at < count && text[at].kind == kind)
        at++;
    return at;
}

/* Returns the end of the answer that begins at `at`. The token that ends the answer is
 * included. */
static int skip_answer(const struct esp_session *s, const struct esp_text_token *text,
                       int count, int at)
{
    const int begin = at;
    while (at < count && text[at].kind != ESP_TEXT_PROMPT && text[at].kind != ESP_TEXT_MARK)
        at++;
    return at > begin && at < count && text[at].kind == ESP_TEXT_MARK &&
                   esp_session_is_end(s, text[at].token)
               ? at + 1
               : at;
}

int esp_conversation_read(struct esp_session *s, const struct esp_text_token *text, int count)
{
    int status = ESP_OK;
    s->conversation.count = 0;
    for (int at = 0; at < count && status == ESP_OK;) {
        struct esp_turn_places turn = {.before = at};
        turn.said = skip(text, count, at, ESP_TEXT_MARK);
        turn.said_end = skip(text, count, turn.said, ESP_TEXT_PROMPT);
        turn.answer = skip(text, count, turn.said_end, ESP_TEXT_MARK);
        at = skip_answer(s, text, count, turn.answer);
        status = esp_conversation_add(&s->conversation, turn);
    }
    return status;
}

void esp_conversation_close(struct esp_conversation *c)
{
    free(c->turns);
    *c = (struct esp_conversation){.turns = NULL};
}

bool esp_session_turn(const struct esp_session *s, int index, struct esp_turn_places *turn)
{
    if (index < 0 || index >= s->conversation.count)
        return false;
    *turn = s->conversation.turns[index];
    return true;
}

const char *esp_session_chat(const struct esp_session *s)
{
    return s->conversation.chat.format ? s->conversation.chat.format->name : "";
}

bool esp_session_is_end(const struct esp_session *s, int32_t token)
{
    for (int i = 0; i < s->conversation.end_count; i++)
        if (s->conversation.ends[i] == token)
            return true;
    return esp_token_is_end(s->engine, token);
}
