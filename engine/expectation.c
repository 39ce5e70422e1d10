/* expectation.c - see expectation.h. The file is untrusted. It may contain any bytes, its size
 * is limited, and it is opened so that reading never blocks. */
#include "engine/expectation.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/session_parts.h"
#include "engine/support/open_file.h"
#include "kernels/status.h"

int esp_expectation_read(struct esp_expectation *e, const char *path, char *err, size_t errlen)
{
    const char *wrong;
    *e = (struct esp_expectation){.file = path};
    if (!path)
        return ESP_OK;
    const int file = esp_open_regular(path, O_RDONLY, 0, &wrong);
    if (file < 0)
        return esp_fail(err, errlen, ESP_E_FILE, "cannot read the expected text %.300s: %s",
                        path, wrong);
    char *text = malloc(ESP_EXPECT_BYTES + 1);
    const size_t length = text ? esp_read_at(file, text, ESP_EXPECT_BYTES + 1, 0) : 0;
    close(file);
    if (!text)
        return esp_fail(err, errlen, ESP_E_MEMORY,
                        "not enough memory for the expected text %.300s", path);
    if (length > ESP_EXPECT_BYTES) {
        free(text);
        return esp_fail(err, errlen, ESP_E_FILE,
                        "the expected text %.300s is larger than %d MB; give the part that the "
                        "answer will resemble",
                        path, ESP_EXPECT_BYTES >> 20);
    }
    char *less = realloc(text, length + 1);
    e->text = less ? less : text;
    e->length = length;
    return ESP_OK;
}

void esp_expectation_close(struct esp_expectation *e)
{
    free(e->text);
    free(e->tokens);
    memset(e, 0, sizeof *e);
}

/* Tokenizes a text; the caller frees the tokens. Returns the number of tokens, or a negative
 * status. */
static int tokenize(const struct esp_session *s, const char *text, size_t length,
                    int32_t **tokens)
{
    const int count = esp_tokenize(s->engine, text, length, NULL, 0);
    *tokens = count < 0 ? NULL : calloc((size_t)count + 1, sizeof **tokens);
    return count < 0 ? count
           : *tokens ? esp_tokenize(s->engine, text, length, *tokens, count)
                     : (int)ESP_E_MEMORY;
}

/* Tokenizes the text of token `after` followed by the file, and returns the tokens that follow
 * `after`. If the joined text does not begin with this token, the file is tokenized alone. */
static int tokenize_after(const struct esp_session *s, const struct esp_expectation *e,
                          int32_t after, int32_t **tokens)
{
    size_t length = 0;
    const char *bytes = esp_token_bytes(s->engine, after, &length);
    char *joined = bytes ? malloc(length + e->length) : NULL;
    *tokens = NULL;
    if (joined) {
        memcpy(joined, bytes, length);
        memcpy(joined + length, e->text, e->length);
        const int count = tokenize(s, joined, length + e->length, tokens);
        free(joined);
        if (count > 0 && (*tokens)[0] == after) {
            memmove(*tokens, *tokens + 1, (size_t)(count - 1) * sizeof **tokens);
            return count - 1;
        }
        free(*tokens);
    }
    return tokenize(s, e->text, e->length, tokens);
}

/* Returns how many tokens of the text come before the last answer. */
static int answer_of(const struct esp_session *s)
{
    const struct esp_conversation *c = &s->conversation;
    const int begin = c->count > 0 ? c->turns[c->count - 1].answer : 0;
    return begin < s->length ? begin : s->length;
}

void esp_expectation_begin(struct esp_session *s)
{
    struct esp_expectation *e = &s->expectation;
    const int begin = answer_of(s);
    s->draft_context.expected = e->length > 0 ? &e->expected : NULL;
    if (e->length == 0 || begin == 0 || !s->engine->tokenizer)
        return;
    const int32_t after = s->text[begin - 1];
    e->expected.begin = begin;
    if (e->tokens && e->after == after)
        return;
    free(e->tokens);
    const int count = tokenize_after(s, e, after, &e->tokens);
    e->after = after;
    e->expected.tokens = e->tokens;
    e->expected.count = count > 0 ? count : 0;
    e->expected.serial = ++s->expected_serial;
}
