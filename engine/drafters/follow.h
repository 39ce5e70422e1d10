/* follow.h - follows the expected text while the answer is generated.
 *
 * The expected text is a text that the answer probably resembles. A pointer marks the token of
 * the expected text that should come next. It advances while committed tokens equal the
 * expected ones. At a difference (an inserted, deleted or changed line), it skips i expected
 * tokens and j tokens of the answer, such that the next three tokens agree. It uses the
 * smallest i + j, which must be at most 64. If there are no such i and j, the pointer moves
 * to the place where the expected text contains the last eight tokens of the answer.
 *
 * Until three tokens agree, the pointer has no position, and likely positions are guessed.
 * After a changed word, the likeliest position has the same distance in tokens from the
 * difference as the end of the answer. A position is likelier if one or two tokens before it
 * agree with the end of the answer.
 *
 * The feature "predicted outputs" of OpenAI and two designs for llama.cpp (pull requests 12127,
 * 14739) follow a text in this way.
 */
#ifndef ESP_FOLLOW_H
#define ESP_FOLLOW_H

#include <stdbool.h>
#include <stdint.h>

/* A text that the answer is expected to resemble. */
struct esp_expected {
    const int32_t *tokens; /* (count) */
    int count;             /* 0 means nothing is expected */
    int begin;             /* length of the session's text before the answer, in tokens */
    unsigned serial;       /* changes whenever the tokens change; 0: no expected text yet */
};

/* The pointer into the expected text. A zero-initialised struct is valid: nothing has been read
 * yet. */
struct esp_follow {
    unsigned serial;   /* serial of the expected text that is followed */
    int begin;         /* length of the session's text before the answer, in tokens */
    int read;          /* length of the text that has been read, in tokens */
    int at;            /* index of the expected token that comes next */
    bool lost;         /* true if there was a difference that has not been skipped yet */
    int lost_expected; /* where the difference is in the expected text */
    int lost_text;     /* where the difference is in the session's text */
};

/* Reads the session's text up to its end. Starts again at the beginning of the answer if
 * there is a new expected text or a new answer, or if the session's text is shorter now. */
void esp_follow_read(struct esp_follow *follow, const struct esp_expected *expected,
                     const int32_t *text, int length);

/* Returns the index of the expected token that comes next, or -1 if the pointer has no position
 * or the expected text has ended. */
int esp_follow_place(const struct esp_follow *follow, const struct esp_expected *expected);

enum { ESP_FOLLOW_PLACES = 3 };

/* An index in the expected text, and the estimated probability that its token comes next. */
struct esp_follow_guess {
    int place;
    float q;
};

/* After a difference, writes the positions of the expected text at which the answer probably
 * continues, the likeliest first. Returns the number of positions, which is 0 if the pointer
 * has a position. `text` is the session's text, as passed to esp_follow_read(). */
int esp_follow_guess(const struct esp_follow *follow, const struct esp_expected *expected,
                     const int32_t *text, struct esp_follow_guess guesses[ESP_FOLLOW_PLACES]);

#endif
