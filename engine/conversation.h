/* conversation.h - the turns of a session's text.
 *
 * A turn is what a user said and the answer to it. Its places are counted in tokens; they
 * follow the text when it is shortened or when turns are dropped. A raw text has turns, too:
 * each prompt and its continuation.
 */
#ifndef ESP_CONVERSATION_H
#define ESP_CONVERSATION_H

#include "engine/chat/chat.h"
#include "engine/espalier.h"
#include "kernels/kernels.h"

enum { ESP_CHAT_ENDS = 8 };

struct esp_conversation {
    struct esp_turn_places *turns; /* (count) */
    int count, capacity;
    struct esp_chat chat;        /* as the setting `chat` and the model have it; strings are the
                                    engine's */
    int32_t ends[ESP_CHAT_ENDS]; /* (end_count) tokens that end an answer in this format */
    int end_count;
};

struct esp_session;

/* Makes the format what the session's settings say. */
void esp_conversation_choose(struct esp_session *session);
/* A prompt was added to the text. Returns 0 or ESP_E_MEMORY. */
int esp_conversation_add(struct esp_conversation *conversation, struct esp_turn_places turn);
/* The text has `count` tokens now: forgets turns that begin behind it. */
void esp_conversation_cut(struct esp_conversation *conversation, int count);
void esp_conversation_close(struct esp_conversation *conversation);

#endif
