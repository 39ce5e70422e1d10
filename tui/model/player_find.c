/* player_find.c - searches the whole text of a recorded session; see player.h.
 *
 * It uses only the recording's index, which has the text that each event added. It reads no
 * file and does not change the state.
 */
#include "tui/model/player.h"

#include <stdlib.h>
#include <string.h>

#include "viz/search.h"

/* The last bytes of the text that was searched so far. They are needed because a match can span
 * several events. */
struct tail {
    const char *wanted;
    size_t length; /* length of `wanted` */
    char *bytes;   /* (count) at most length - 1 earlier bytes, then the bytes of this event */
    size_t count, capacity;
};

static int add_bytes(struct tail *tail, const char *bytes, size_t length)
{
    if (tail->count + length > tail->capacity) {
        size_t capacity = 2 * (tail->count + length);
        char *grown = realloc(tail->bytes, capacity);
        if (!grown)
            return ESP_E_MEMORY;
        tail->bytes = grown;
        tail->capacity = capacity;
    }
    memcpy(tail->bytes + tail->count, bytes, length);
    tail->count += length;
    return 0;
}

static int add_tokens(struct esp_player *player, struct tail *tail,
                      const struct esp_text_token *tokens, int count)
{
    int status = count < 0 ? count : 0;
    for (int i = 0; i < count && status == 0; i++) {
        size_t length = 0;
        const char *bytes =
            esp_recording_token_text(player->recording, tokens[i].token, &length);
        if (bytes && length > 0)
            status = add_bytes(tail, bytes, length);
    }
    return status;
}

/* Visits the text that event `event` added. Returns 1 if a match ends there. */
static int look_at(struct esp_player *player, struct tail *tail, int event)
{
    const struct esp_text_token *tokens;
    int type = esp_recording_entry(player->recording, event).type, count, status;
    if (type == ESP_EVENT_REWIND || type == ESP_EVENT_CLEAR || type == ESP_EVENT_DROP) {
        tail->count = 0;
        count = esp_recording_text(player->recording, event, &tokens);
        return add_tokens(player, tail, tokens, count);
    }
    if (tail->count >= tail->length) {
        size_t kept = tail->length - 1;
        memmove(tail->bytes, tail->bytes + tail->count - kept, kept);
        tail->count = kept;
    }
    count = esp_recording_added(player->recording, event, &tokens);
    status = add_tokens(player, tail, tokens, count);
    if (status < 0 || count == 0 || tail->count < tail->length)
        return status;
    return esp_search_forward(tail->bytes, tail->count, 0, tail->wanted) >= 0;
}

int esp_player_find(struct esp_player *player, const char *text, int direction)
{
    struct tail tail = {.wanted = text, .length = strlen(text)};
    int events = esp_recording_events(player->recording), found = 0;
    /* `here` is the next match in this direction. `beyond` is the match that a search finds
     * after it has continued at the other end of the recording. */
    int here = -1, beyond = -1;
    for (int i = 0; tail.length > 0 && i < events && found >= 0; i++) {
        found = look_at(player, &tail, i);
        if (found != 1)
            continue;
        int at = i + 1;
        if (direction > 0 ? at > player->at && here < 0 : at < player->at)
            here = at;
        if (direction < 0 || beyond < 0)
            beyond = at;
    }
    free(tail.bytes);
    return found < 0 ? -2 : here >= 0 ? here : beyond;
}
