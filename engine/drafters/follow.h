/* follow.h - follows the expected text while the answer is written.
 *
 * A pointer stands before the token that the answer is expected to go on with. It moves on
 * while committed tokens equal the expected ones. At a difference it takes the shortest way on:
 * it skips i expected tokens and j tokens of the answer, with the smallest i + j up to 64,
 * after which three tokens agree (an inserted, a deleted, a changed line). If there is no such
 * way, it goes on where the last eight tokens of the answer stand in the expected text.
 *
 * Predicted outputs (OpenAI) and two designs for llama.cpp (pull requests 12127, 14739) follow
 * a text in this manner.
 */
#ifndef ESP_FOLLOW_H
#define ESP_FOLLOW_H

#include <stdbool.h>
#include <stdint.h>

/* A text that the answer is expected to resemble. */
struct esp_expected {
    const int32_t *tokens; /* (count) */
    int count;             /* 0: nothing is expected */
    int begin;             /* tokens of the session's text before the answer */
    unsigned serial;       /* another one for other tokens; 0: there never were any */
};

/* Zeroed memory is valid. */
struct esp_follow {
    unsigned serial; /* of the expected text */
    int begin, read; /* tokens of the text before the answer, and those that are read */
    int at;          /* the expected token that comes next */
    bool lost;       /* since there was a difference, at these tokens of both: */
    int lost_expected, lost_text;
};

/* Reads the text up to its end. Starts anew for another expected text, another answer or a
 * shorter text. */
void esp_follow_read(struct esp_follow *follow, const struct esp_expected *expected,
                     const int32_t *text, int length);

/* The index of the expected token that comes next; -1: the pointer has lost its place, or the
 * expected text has ended. */
int esp_follow_place(const struct esp_follow *follow, const struct esp_expected *expected);

#endif
