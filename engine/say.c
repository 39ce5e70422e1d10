/* say.c - adds turns of a conversation to the text, and drops the oldest turns to make room.
 *
 * A turn adds its tokens at the end, so no row of a conversation is computed twice. The answer
 * stays as the model wrote it. A chat template might write an earlier answer differently, for
 * example without its reasoning, or without blanks at its ends.
 *
 * When the context is full, the oldest turns are dropped: the tokens from the first user
 * message up to the message of a later turn. The remaining text is a conversation that begins
 * with that turn and has the same system prompt. This text is computed again, because its
 * positions have changed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/chat/chat_format.h"
#include "engine/session_parts.h"
#include "kernels/status.h"

/* The oldest turns are dropped until 1/ROOM of the context is free for an answer. If that would
 * drop the whole conversation, it is enough that 1/LEAST of the context is free. */
enum { ROOM = 4, LEAST = 16, MARKUP = 32 /* tokens; more than the markup of a turn */ };

/* ------------------------------------------------------------------ room */

/* Returns how many of the oldest turns must be dropped to make room for `tokens` more tokens
 * and, if possible, to leave half of the context free. The result is at most `most`. Returns 0
 * if there is not enough room even after dropping `most` turns. */
static int turns_to_drop(const struct esp_session *s, int most, int tokens)
{
    const struct esp_conversation *c = &s->conversation;
    const int context = s->context;
    int best = 0;
    for (int k = 1; k <= most; k++) {
        const int next = k < c->count ? c->turns[k].said : s->length;
        const int left = s->length - (next - c->turns[0].said) + tokens;
        if (left < context)
            best = k;
        if (left <= context / 2)
            break;
    }
    return best;
}

/* Removes tokens [start, end) from the text. */
static int take_out(struct esp_session *s, int start, int end, char *err, size_t errlen)
{
    const int left = s->length - (end - start);
    memmove(s->text + start, s->text + end, (size_t)(s->length - end) * sizeof *s->text);
    esp_session_shorten(s, start);
    s->length = left;
    esp_session_emit(s, (struct esp_event){.type = ESP_EVENT_DROP,
                                           .token_start = start,
                                           .token_count = end - start});
    const int status = left > 1 ? esp_session_prefill(s) : (int)ESP_OK;
    if (status == ESP_OK)
        return ESP_OK;
    esp_session_rewind(s, start);
    return esp_fail(err, errlen, status, "prefill of the remaining text failed: %s",
                    esp_session_failure(s, status));
}

static int drop_oldest(struct esp_session *s, int count, char *err, size_t errlen)
{
    struct esp_conversation *c = &s->conversation;
    const bool all = count == c->count;
    const int start = all ? c->turns[0].before : c->turns[0].said;
    const int end = all ? s->length : c->turns[count].said;
    const int moved = end - start;
    const struct esp_turn_places first = c->turns[0];
    memmove(c->turns, c->turns + count, (size_t)(c->count - count) * sizeof *c->turns);
    c->count -= count;
    for (int i = 0; i < c->count; i++) {
        struct esp_turn_places *turn = &c->turns[i];
        turn->before -= moved;
        turn->said -= moved;
        turn->said_end -= moved;
        turn->answer -= moved;
    }
    if (!all)
        c->turns[0].before = first.before;
    return take_out(s, start, end, err, errlen);
}

int esp_session_make_room(struct esp_session *s, int tokens, char *err, size_t errlen)
{
    const struct esp_conversation *c = &s->conversation;
    const int context = s->context, left = context - s->length - tokens;
    if (left > (c->chat.format ? context / ROOM : 0))
        return 0;
    /* If no new tokens are added, the last turn will be continued, so it is not dropped. */
    const int count = turns_to_drop(s, tokens > 0 ? c->count : c->count - 1, tokens);
    if (count <= 0 || (count == c->count && left > context / LEAST))
        return 0; /* if the turn does not fit, adding it reports the error */
    const int status = drop_oldest(s, count, err, errlen);
    return status < 0 ? status : count;
}

/* ------------------------------------------------------------------ adding a turn */

/* Tokenizes the first `length` bytes of a text in the chat format. Returns the number of
 * tokens, or a negative status. The caller frees *tokens; if `tokens` is NULL, they are only
 * counted. */
static int encode(const struct esp_session *s, const struct esp_chat_text *text, size_t length,
                  int32_t **tokens)
{
    const struct esp_tokenizer *tokenizer = s->engine->tokenizer;
    const struct esp_literals literals = {text->said.items, text->said.count,
                                          s->conversation.chat.format->marks};
    int count =
        esp_tokenizer_encode_literal(tokenizer, text->bytes, length, &literals, NULL, 0);
    if (!tokens || count < 0)
        return count;
    *tokens = calloc((size_t)count + 1, sizeof **tokens);
    if (!*tokens)
        return ESP_E_MEMORY;
    return esp_tokenizer_encode_literal(tokenizer, text->bytes, length, &literals, *tokens,
                                        count);
}

/* Writes the text of a turn. Bytes *start to *end - 1 of this text are the user's message. */
static int write_turn(const struct esp_session *s, struct esp_chat_text *out, const char *text,
                      size_t length, size_t *start, size_t *end)
{
    const struct esp_conversation *c = &s->conversation;
    const char *system = s->set.values.system;
    const bool first = s->length == 0;
    if (first)
        esp_chat_begin(out, &c->chat, system);
    else
        esp_chat_close(out, &c->chat);
    const int32_t before = out->said.count;
    const size_t written = out->length;
    esp_chat_turn(out, &c->chat, first, system, text, length);
    if (out->failed)
        return ESP_E_MEMORY;
    const bool empty = out->said.count == before;
    *start = empty ? written : (size_t)out->said.items[out->said.count - 1].start;
    *end = empty ? written : (size_t)out->said.items[out->said.count - 1].end;
    return ESP_OK;
}

/* Prepares a text for new tokens if its last token ends an answer. If the new tokens begin
 * with the same token, the text already has this token. Otherwise, this token is removed from
 * the text. Returns how many of the new tokens are already in the text. */
static int join(struct esp_session *s, const int32_t *tokens, int count)
{
    const int32_t last = s->length > 0 ? s->text[s->length - 1] : -1;
    if (last < 0 || count == 0 || !esp_session_is_end(s, last))
        return 0;
    if (tokens[0] == last)
        return 1;
    esp_session_rewind(s, s->length - 1);
    return 0;
}

static int say(struct esp_session *s, const char *text, size_t length, char *err, size_t errlen)
{
    struct esp_chat_text turn = {.bytes = NULL};
    int32_t *tokens = NULL;
    size_t start = 0, end = 0;
    int status = write_turn(s, &turn, text, length, &start, &end);
    int count = status < 0 ? status : encode(s, &turn, turn.length, &tokens);
    int said = count < 0 ? count : encode(s, &turn, start, NULL);
    int said_end = said < 0 ? said : encode(s, &turn, end, NULL);
    status = said_end < 0 ? said_end : (int)ESP_OK;
    if (status < 0) {
        esp_fail(err, errlen, status, "the prompt cannot be tokenized: %s",
                 esp_status_message(status));
    } else {
        const int there = join(s, tokens, count), new = count - there;
        said = said > there ? said - there : 0;
        said_end = said_end > there ? said_end - there : 0;
        status = esp_session_append(s, tokens + there, new, false, said < new ? said : new,
                                    said_end < new ? said_end : new, err, errlen);
    }
    free(tokens);
    esp_chat_text_free(&turn);
    return status;
}

int esp_session_say(struct esp_session *s, const char *text, size_t length, char *err,
                    size_t errlen)
{
    const struct esp_conversation *c = &s->conversation;
    if (!c->chat.format || !s->engine->tokenizer)
        return esp_session_prompt_text(s, text, length, 0, err, errlen);
    if (esp_session_is_far_too_long(s, text, length))
        return esp_fail(err, errlen, ESP_E_CONTEXT,
                        "the prompt is far longer than the context of %d tokens; shorten it",
                        s->context);
    const int tokens = esp_tokenize(s->engine, text, length, NULL, 0);
    if (tokens < 0)
        return esp_fail(err, errlen, tokens, "the prompt cannot be tokenized: %s",
                        esp_status_message(tokens));
    const int status = esp_session_make_room(s, tokens + MARKUP, err, errlen);
    return status < 0 ? status : say(s, text, length, err, errlen);
}

/* ------------------------------------------------------------------ copying to other models
 */

static int add_bytes(struct esp_chat_text *out, const struct esp_session *s, int start, int end)
{
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    for (int i = start; stream && i < end; i++) {
        size_t length = 0;
        const char *bytes = esp_token_bytes(s->engine, s->text[i], &length);
        if (bytes && !esp_token_is_special(s->engine, s->text[i]))
            fwrite(bytes, 1, length, stream);
    }
    if (!stream || fclose(stream) != 0)
        out->failed = true;
    else
        esp_chat_say(out, text, size);
    free(text);
    return out->failed ? ESP_E_MEMORY : (int)ESP_OK;
}

/* Adds one turn of `from`, including the answer, to the text of `to`. */
static int retell(struct esp_session *to, const struct esp_session *from, int index, char *err,
                  size_t errlen)
{
    const struct esp_conversation *c = &from->conversation;
    const struct esp_turn_places *turn = &c->turns[index];
    const int end = index + 1 < c->count ? c->turns[index + 1].before : from->length;
    struct esp_chat_text said = {.bytes = NULL}, answer = {.bytes = NULL};
    int32_t *tokens = NULL;
    int status = add_bytes(&said, from, turn->said, turn->said_end);
    if (status == ESP_OK)
        status = add_bytes(&answer, from, turn->answer, end);
    if (status == ESP_OK)
        status = esp_session_say(to, said.bytes ? said.bytes : "", said.length, err, errlen);
    if (status == ESP_OK && answer.length > 0) {
        const int count = encode(to, &answer, answer.length, &tokens);
        const struct esp_turn_places kept = to->conversation.turns[to->conversation.count - 1];
        status = count < 0
                     ? count
                     : esp_session_append(to, tokens, count, false, 0, count, err, errlen);
        if (status == ESP_OK) /* the answer belongs to the turn of the message, so it is not
                                 added as a turn */
            to->conversation.turns[--to->conversation.count - 1] = kept;
    }
    free(tokens);
    esp_chat_text_free(&said);
    esp_chat_text_free(&answer);
    return status;
}

int esp_session_retell(struct esp_session *to, const struct esp_session *from, char *err,
                       size_t errlen)
{
    int status = ESP_OK;
    for (int i = 0; i < from->conversation.count && status == ESP_OK; i++)
        status = retell(to, from, i, err, errlen);
    return status;
}

int esp_session_continue(struct esp_session *to, const struct esp_session *from, char *err,
                         size_t errlen)
{
    int status =
        esp_session_append(to, from->text, from->length, false, 0, from->length, err, errlen);
    if (status < 0)
        return status;
    to->conversation.count = 0;
    for (int i = 0; i < from->conversation.count && status == ESP_OK; i++)
        status = esp_conversation_add(&to->conversation, from->conversation.turns[i]);
    return status;
}
