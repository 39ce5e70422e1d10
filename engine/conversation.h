/* conversation.h - manages the turns of a session's text.
 *
 * A turn is a user's message and the answer to it. Its positions are counted in tokens. They
 * change when the text is shortened or turns are dropped. A raw text has turns, too: each
 * prompt and its continuation.
 */
#ifndef ESP_CONVERSATION_H
#define ESP_CONVERSATION_H

#include "engine/chat/chat.h"
#include "engine/espalier.h"
#include "engine/text_token.h"

enum { ESP_CHAT_ENDS = 8 };

struct esp_conversation {
    struct esp_turn_places *turns; /* (count) */
    int count, capacity;
    struct esp_chat chat;        /* chosen by setting `chat`; the engine owns its strings */
    int32_t ends[ESP_CHAT_ENDS]; /* (end_count) tokens that end an answer in this format */
    int end_count;
};

struct esp_session;

/* Chooses the chat format according to the session's settings. */
void esp_conversation_choose(struct esp_session *session);
/* Adds the turn of a new prompt. Returns 0 or ESP_E_MEMORY. */
int esp_conversation_add(struct esp_conversation *conversation, struct esp_turn_places turn);
/* Shortens the turns to the first `count` tokens of the text. Removes turns that begin after
 * these tokens. */
void esp_conversation_cut(struct esp_conversation *conversation, int count);
/* Finds the turns of a whole text. The kind that is stored with each token shows where a turn
 * begins. Returns 0 or ESP_E_MEMORY. */
int esp_conversation_read(struct esp_session *session, const struct esp_text_token *text,
                          int count);
void esp_conversation_close(struct esp_conversation *conversation);

#endif
