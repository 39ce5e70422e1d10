/* fork.c - replaces a session's text by one of its branches, or replaces a branch by the
 * original text.
 *
 * The rows of the longest common prefix stay in the caches. Only the other rows are computed,
 * in one pass if they fit in a batch. Therefore the cost of a branch does not depend on the
 * length of the text.
 */
#include <string.h>

#include "engine/session_parts.h"
#include "engine/text_token.h"
#include "kernels/status.h"

static int common_prefix(const struct esp_session *s, const struct esp_text_token *text,
                         int count)
{
    int common = 0;
    while (common < count && common < s->length && s->text[common] == text[common].token)
        common++;
    return common;
}

static int check_text(const struct esp_session *s, const struct esp_text_token *text, int count,
                      char *err, size_t errlen)
{
    if (count < 0 || count > s->context)
        return esp_fail(err, errlen, ESP_E_CONTEXT,
                        "the text has %d tokens, but the context holds only %d", count,
                        s->context);
    for (int i = 0; i < count; i++)
        if (text[i].token < 0 || text[i].token >= s->engine->target->desc.vocabulary)
            return esp_fail(err, errlen, ESP_E_ARGUMENT, "the model has no token %d",
                            text[i].token);
    return ESP_OK;
}

/* Reports tokens [from, to) as appended. Tokens [said, said_end) are the user's message. */
static void report(struct esp_session *s, int from, int to, int said, int said_end)
{
    if (from >= to)
        return;
    said = said > from ? said : from;
    said_end = said_end > said ? said_end : said;
    esp_session_emit(s, (struct esp_event){.type = ESP_EVENT_PROMPT,
                                           .tokens = s->text + from,
                                           .token_count = to - from,
                                           .marks = said - from,
                                           .marks_after = to - said_end});
}

/* Reports the tokens from `common` on, turn by turn: the user's message, then the answer. */
static void report_turns(struct esp_session *s, int common)
{
    struct esp_turn_places turn, next;
    for (int i = 0; esp_session_turn(s, i, &turn); i++) {
        const int end = esp_session_turn(s, i + 1, &next) ? next.before : s->length;
        const bool ended = end > turn.answer && s->conversation.chat.format &&
                           esp_session_is_end(s, s->text[end - 1]);
        report(s, common > turn.before ? common : turn.before, turn.answer, turn.said,
               turn.said_end);
        report(s, common > turn.answer ? common : turn.answer, end, turn.answer, end - ended);
    }
}

/* Appends the tokens from `common` on, and computes the rows that are missing. */
static int write_text(struct esp_session *s, const struct esp_text_token *text, int count)
{
    const double start = esp_clock();
    for (int i = s->length; i < count; i++)
        s->text[i] = text[i].token;
    s->length = count;
    int status = count > 1 ? esp_session_prefill(s) : (int)ESP_OK;
    s->stats.prefill_seconds += esp_clock() - start;
    return status < 0 ? status : esp_conversation_read(s, text, count);
}

int esp_session_fork(struct esp_session *s, const struct esp_text_token *text, int count,
                     char *err, size_t errlen)
{
    int status = check_text(s, text, count, err, errlen);
    if (status == ESP_OK && esp_session_text_room(s, count + 1) < 0)
        status = esp_fail(err, errlen, ESP_E_MEMORY,
                          "not enough memory for a text of %d tokens", count);
    if (status < 0)
        return status;
    const int common = common_prefix(s, text, count), length = s->length;
    esp_session_keep_rows(s, common, count > common ? common : common - 1);
    s->allowed = 0;
    s->end = "";
    status = write_text(s, text, count);
    if (status < 0) {
        esp_session_shorten(s, common);
        esp_conversation_read(s, text, common);
        esp_fail(err, errlen, status, "prefill of the branch failed: %s",
                 esp_session_failure(s, status));
    }
    if (common < length)
        esp_session_emit(s,
                         (struct esp_event){.type = ESP_EVENT_REWIND, .token_count = common});
    if (status < 0)
        return status;
    report_turns(s, common);
    return common;
}
