/* fuzzy.c - finds the best match of a query's letters in a text; see fuzzy.h.
 *
 * The method is dynamic programming. For each letter of the query, a row best[] is computed
 * from the row of the previous letter. best[j] is the best score of a match of the query up to
 * this letter, with this letter at text[j]. Both texts are truncated to MOST bytes.
 */
#include "tui/view/fuzzy.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

enum { MOST = 128, LETTER = 4, FOLLOWS = 6, STARTS_WORD = 5, STARTS_TEXT = 4, NONE = -1000000 };

static int lower(char c)
{
    return tolower((unsigned char)c);
}

/* Returns the score of a match of one letter at text[at], without regard to the matches before
 * it. */
static int worth(const char *text, int at)
{
    if (at == 0)
        return LETTER + STARTS_WORD + STARTS_TEXT;
    return isalnum((unsigned char)text[at - 1]) ? LETTER : LETTER + STARTS_WORD;
}

/* Computes the row best[] of a letter of the query from the row of the previous letter, in
 * place. */
static void find_letter(char letter, const char *text, int length, bool first, int best[MOST])
{
    int before = first ? 0 : NONE; /* the best score in the previous row, left of j */
    int diagonal = NONE;           /* the score in the previous row at j - 1 */
    for (int j = 0; j < length; j++) {
        const int above = first ? NONE : best[j];
        best[j] = NONE;
        if (lower(letter) == lower(text[j])) {
            if (before > NONE)
                best[j] = before + worth(text, j);
            if (diagonal > NONE && diagonal + LETTER + FOLLOWS > best[j])
                best[j] = diagonal + LETTER + FOLLOWS;
        }
        diagonal = above;
        before = above > before ? above : before;
    }
}

int esp_fuzzy_score(const char *query, const char *text)
{
    int best[MOST], length = (int)strnlen(text, MOST), letters = 0, result = NONE;
    for (; *query && letters < MOST; query++)
        if (*query != ' ')
            find_letter(*query, text, length, letters++ == 0, best);
    if (letters == 0)
        return 0;
    for (int j = 0; j < length; j++)
        result = best[j] > result ? best[j] : result;
    if (result == NONE)
        return -1;
    result = 4 * result - length; /* if two texts match equally well, the shorter one wins */
    return result > 0 ? result : 0;
}
