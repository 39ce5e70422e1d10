/* follow.c - see follow.h. */
#include "engine/drafters/follow.h"

#include <stdlib.h>
#include <string.h>

enum { FARTHEST = 64, AGREE = 3, ANCHOR = 8 };
/* Estimated probabilities that the answer continues at a position of the expected text, while
 * fewer than three tokens agree. A position is likely if the tokens before it are also the last
 * tokens of the answer. A position is also likely if its distance from the difference equals
 * the distance of the end of the answer. */
static const float AGREED[AGREE] = {0.3F, 0.6F, 0.85F}; /* for 0, 1 or 2 tokens that agree */
static const float LEAST = 0.1F;                        /* positions with a lower
                                                           probability are not guessed */

static bool same(const int32_t *a, const int32_t *b, int count)
{
    return memcmp(a, b, (size_t)count * sizeof *a) == 0;
}

/* Reads the next token of the answer and moves the pointer. */
static void move_on(struct esp_follow *f, const struct esp_expected *e, const int32_t *text)
{
    const int32_t token = text[f->read];
    if (!f->lost && f->at < e->count && e->tokens[f->at] == token) {
        f->at++;
    } else if (!f->lost) {
        f->lost = true;
        f->lost_expected = f->at;
        f->lost_text = f->read;
    }
    f->read++;
}

/* Continues after a difference: token `expected` of the expected text matches token `place` of
 * the session's text. Reads the session's text from token `place` to f->read again. */
static void go_on(struct esp_follow *f, const struct esp_expected *e, const int32_t *text,
                  int expected, int place)
{
    const int end = f->read;
    f->lost = false;
    f->at = expected;
    f->read = place;
    while (f->read < end)
        move_on(f, e, text);
}

static bool skip(struct esp_follow *f, const struct esp_expected *e, const int32_t *text)
{
    if (f->read - f->lost_text > FARTHEST + AGREE)
        return false; /* all skips were already tried when earlier tokens were read */
    for (int both = 0; both <= FARTHEST; both++) {
        for (int of_text = 0; of_text <= both; of_text++) {
            const int at = f->lost_expected + both - of_text, place = f->lost_text + of_text;
            if (at + AGREE > e->count || place + AGREE > f->read ||
                !same(e->tokens + at, text + place, AGREE))
                continue;
            go_on(f, e, text, at, place);
            return true;
        }
    }
    return false;
}

/* Returns the first index in [from, to) at which the expected text contains these ANCHOR
 * tokens, or -1 if there is none. */
static int place_of(const struct esp_expected *e, const int32_t *tokens, int from, int to)
{
    for (int i = from; i < to; i++)
        if (e->tokens[i] == tokens[0] && same(e->tokens + i, tokens, ANCHOR))
            return i;
    return -1;
}

/* Looks for the last tokens of the answer in the expected text: first after the position where
 * the pointer was lost, then before it. */
static void find(struct esp_follow *f, const struct esp_expected *e, const int32_t *text)
{
    const int32_t *last = text + f->read - ANCHOR;
    const int places = e->count - ANCHOR + 1;
    if (f->read - f->lost_text < ANCHOR)
        return;
    int at = place_of(e, last, f->lost_expected, places);
    at = at < 0 ? place_of(e, last, 0, f->lost_expected < places ? f->lost_expected : places)
                : at;
    if (at >= 0)
        go_on(f, e, text, at, f->read - ANCHOR);
}

void esp_follow_read(struct esp_follow *f, const struct esp_expected *e, const int32_t *text,
                     int length)
{
    if (f->serial != e->serial || f->begin != e->begin || f->read > length)
        *f = (struct esp_follow){.serial = e->serial, .begin = e->begin, .read = e->begin};
    while (e->count > 0 && f->read < length) {
        move_on(f, e, text);
        if (f->lost && !skip(f, e, text))
            find(f, e, text);
    }
}

int esp_follow_place(const struct esp_follow *f, const struct esp_expected *e)
{
    return f->lost || f->at >= e->count || f->serial != e->serial ? -1 : f->at;
}

/* Returns the estimated probability that the answer continues at this position of the expected
 * text. */
static float estimate(const struct esp_follow *f, const struct esp_expected *e,
                      const int32_t *text, int place)
{
    const int written = f->read - f->lost_text;
    const int aside = abs(place - f->lost_expected - written);
    int agree = 0;
    while (agree < AGREE - 1 && agree < written && place - agree > f->lost_expected &&
           e->tokens[place - agree - 1] == text[f->read - agree - 1])
        agree++;
    return AGREED[agree] / (float)(1 + aside) / (float)(agree ? 1 : written);
}

int esp_follow_guess(const struct esp_follow *f, const struct esp_expected *e,
                     const int32_t *text, struct esp_follow_guess guesses[ESP_FOLLOW_PLACES])
{
    const int written = f->read - f->lost_text;
    int count = 0;
    if (!f->lost || f->serial != e->serial || written > FARTHEST)
        return 0;
    for (int i = f->lost_expected; i <= f->lost_expected + FARTHEST && i < e->count; i++) {
        const struct esp_follow_guess own = {i, estimate(f, e, text, i)};
        int at = count;
        if (own.q < LEAST || (count == ESP_FOLLOW_PLACES && own.q <= guesses[count - 1].q))
            continue;
        if (count == ESP_FOLLOW_PLACES)
            at--;
        else
            count++;
        for (; at > 0 && guesses[at - 1].q < own.q; at--)
            guesses[at] = guesses[at - 1];
        guesses[at] = own;
    }
    return count;
}
