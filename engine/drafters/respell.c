/* respell.c - lets the draft model write text in its own tokens, and encodes this text with the
 * target's tokenizer.
 *
 * This is for draft models whose vocabulary shares too few tokens with the target's
 * (string-level exact match; Timor et al., arXiv 2502.05202, 2025, algorithm 2). The draft
 * model predicts up to K of its own tokens, always the likeliest. The bytes of these tokens are
 * appended to the bytes of the text's last tokens, and all bytes are encoded with the target's
 * tokenizer. The tokens after the end of the text become a chain. The draft model has no
 * distribution over these tokens, so the drafter is lossless only with verifiers for
 * ESP_DRAW_TOPK.
 *
 * If the new bytes would change the last tokens of the text, which are already committed, the
 * new bytes are encoded alone. Bytes of an unfinished character are left out. A token that
 * ends the draft's text becomes a token that ends the target's text.
 *
 * If both models have the same vocabulary, or share so many tokens that the draft model can
 * draft shared tokens directly, nothing is encoded again. The tree is then a plain chain.
 */
#include "engine/drafters/respell.h"

#include <string.h>

#include "engine/drafters/drafter.h"

enum { K };

enum { LONGEST = 32, LOOK_BEHIND = 8, BYTES = 1 << 12, TOKENS = BYTES + 16 };

static const struct esp_param params[] = {
    [K] = {"K", ESP_INT, 1, LONGEST, 6, .help = "tokens of the draft per iteration"},
    {0},
};

struct state {
    int32_t token[LONGEST]; /* tokens that the draft model predicted, in its vocabulary */
    float q[LONGEST];
    int at[LONGEST]; /* where the bytes of each token begin in `bytes` */
    int count;
    char bytes[BYTES];       /* the text's last tokens, then the draft's tokens, as bytes */
    int begin, length;       /* where the draft's bytes begin; number of bytes */
    bool ends;               /* the last of the draft's tokens ends the text */
    int32_t encoded[TOKENS]; /* all bytes as tokens of the target */
    int tokens;
    struct esp_encoder *encoder; /* opened by the first iteration */
};

/* Appends the bytes of a token. Returns false if they do not fit. */
static bool put(struct state *s, const struct esp_language *language, int32_t token)
{
    size_t n = 0;
    const char *bytes = esp_tokenizer_bytes(language->tokenizer, token, &n);
    if (!bytes || n > (size_t)(BYTES - s->length))
        return false;
    memcpy(s->bytes + s->length, bytes, n);
    s->length += (int)n;
    return true;
}

/* Writes the bytes of the last tokens of the text. Stops at a special token, which is not
 * included. */
static void write_past(struct state *s, const struct esp_draft *d)
{
    const struct esp_language *target = &d->context->respelling->target;
    int first = d->text_length;
    size_t bytes = 0, n = 0;
    while (first > 0 && d->text_length - first < LOOK_BEHIND &&
           !esp_tokenizer_is_special(target->tokenizer, d->text[first - 1]) &&
           esp_tokenizer_bytes(target->tokenizer, d->text[first - 1], &n) &&
           bytes + n <= BYTES / 2) {
        bytes += n;
        first--;
    }
    s->length = 0;
    for (; first < d->text_length; first++)
        put(s, target, d->text[first]);
    s->begin = s->length;
}

static bool is_end(const struct esp_language *language, int32_t token)
{
    int i = 0;
    while (i < language->end_count && language->end[i] != token)
        i++;
    return i < language->end_count;
}

/* Appends the bytes of the draft's tokens that come before a special token or the end of the
 * text, and drops the other tokens, except one that ends the text. */
static void write_drafted(struct state *s, const struct esp_draft *d)
{
    const struct esp_language *draft = &d->context->respelling->draft;
    int i = 0;
    s->ends = false;
    for (; i < s->count; i++) {
        s->at[i] = s->length;
        s->ends = is_end(draft, s->token[i]);
        if (s->ends || esp_tokenizer_is_special(draft->tokenizer, s->token[i]) ||
            !put(s, draft, s->token[i]))
            break;
    }
    s->count = i + s->ends;
}

/* Removes the bytes of an unfinished UTF-8 character from the end. */
static void hold_back(struct state *s)
{
    for (int n = 1; n <= 3 && n <= s->length - s->begin; n++) {
        const unsigned char c = (unsigned char)s->bytes[s->length - n];
        const int needed = c >= 0xF0 ? 4 : c >= 0xE0 ? 3 : c >= 0xC0 ? 2 : 1;
        if (c < 0x80 || (c >= 0xC0 && needed <= n))
            return;
        if (c >= 0xC0) {
            s->length -= n;
            return;
        }
    }
}

/* Returns how many encoded tokens come before the draft's bytes. Returns -1 if a token has
 * bytes of both the text and the draft. `extra` is the number of bytes that the tokenizer has
 * added before the text. */
static int tokens_before(const struct state *s, const struct esp_language *target, int extra)
{
    int at = 0, i = 0;
    for (size_t n; i < s->tokens && at < s->begin + extra; i++, at += (int)n)
        if (!esp_tokenizer_bytes(target->tokenizer, s->encoded[i], &n))
            return -1;
    return at == s->begin + extra ? i : -1;
}

static int length_of(const struct state *s, const struct esp_language *target)
{
    int length = 0;
    size_t n;
    for (int i = 0; i < s->tokens; i++)
        if (esp_tokenizer_bytes(target->tokenizer, s->encoded[i], &n))
            length += (int)n;
    return length;
}

/* Encodes the bytes. Returns the index of the first token after the text, or a negative
 * status. */
static int encode(struct state *s, const struct esp_language *target)
{
    s->tokens = esp_encoder_encode(s->encoder, target->tokenizer, s->bytes, (size_t)s->length,
                                   s->encoded, TOKENS);
    if (s->tokens < 0 || s->tokens > TOKENS)
        return s->tokens < 0 ? s->tokens : ESP_E_ARGUMENT;
    const int extra = length_of(s, target) - s->length;
    const int before = extra == 0 || extra == 1 ? tokens_before(s, target, extra) : -1;
    if (before >= 0)
        return before;
    s->tokens = esp_encoder_spell(s->encoder, target->tokenizer, s->bytes + s->begin,
                                  (size_t)(s->length - s->begin), s->encoded, TOKENS);
    return s->tokens < 0 ? s->tokens : 0;
}

/* Returns the product of q over the draft's tokens whose bytes begin in [begin, end). */
static double q_of(const struct state *s, int begin, int end)
{
    double q = 1;
    for (int i = 0; i < s->count; i++)
        if (s->at[i] >= begin && s->at[i] < end)
            q *= (double)s->q[i];
    return q;
}

/* Adds the encoded tokens to the tree, beginning with index `first`. They form a chain. */
static void add_chain(struct state *s, struct esp_draft *d, int first)
{
    const struct esp_language *target = &d->context->respelling->target;
    int parent = 0, at = s->begin;
    for (int i = first; i < s->tokens && i - first < d->max_depth && parent >= 0; i++) {
        size_t n = 0;
        esp_tokenizer_bytes(target->tokenizer, s->encoded[i], &n);
        parent = esp_tree_add(d->tree, parent, s->encoded[i], q_of(s, at, at + (int)n));
        at += (int)n;
    }
    if (s->ends && target->end_count > 0 && parent >= 0 &&
        d->tree->tree.nodes[parent].depth < d->max_depth)
        parent =
            esp_tree_add(d->tree, parent, target->end[0], q_of(s, s->length, s->length + 1));
    if (parent > 0)
        d->tree->tree.nodes[parent].reason = ESP_REASON_DEPTH;
}

static int draft(struct esp_draft *d)
{
    struct state *s = d->state;
    const int k = (int)esp_param(d->params, K);
    int width[ESP_MAX_LEVELS];
    const struct esp_path_rule chain = {.width = width, .levels = esp_chain_widths(width, k)};
    if (!d->context->respelling)
        return esp_draft_paths(d, &chain);
    if (!s->encoder && !(s->encoder = esp_encoder_open()))
        return ESP_E_MEMORY;
    const int count = esp_draft_own(d, d->context->respelling, k, s->token, s->q);
    if (count < 0)
        return count;
    s->count = count;
    write_past(s, d);
    write_drafted(s, d);
    hold_back(s);
    const int first = encode(s, &d->context->respelling->target);
    if (first < 0)
        return first;
    add_chain(s, d, first);
    esp_draft_layer_done(d);
    return ESP_OK;
}

static void close_encoder(void *state)
{
    struct state *s = state;
    esp_encoder_close(s->encoder);
}

const struct esp_drafter_ops esp_drafter_respell = {
    .name = "respell",
    .summary = "text of a draft model with another vocabulary, encoded as target tokens",
    .source = "Timor et al. 2025, alg. 2",
    .differs =
        "only the last 8 tokens of the text are encoded again, and the chain is always the "
        "draft's likeliest tokens",
    .draws = ESP_DRAW_TOPK,
    .asks = ESP_ASK_TEXT,
    .params = params,
    .state_size = sizeof(struct state),
    .close = close_encoder,
    .draft = draft,
};
