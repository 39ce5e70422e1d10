/* recycled.h - stores the tokens that the target found likeliest after each token (Token
 * Recycling, Luo et al., arXiv 2408.08696).
 *
 * Each verified row of a tree, even of a rejected node, gives the target's likeliest next
 * tokens. They are stored in a matrix that has one row for each token of the vocabulary, and
 * replace the previous tokens of that row. Drafters fill trees from the matrix without a draft
 * model: the children of a node are the tokens in the matrix row of its token.
 *
 * A drafter must know how often such a child is correct. This rate is learned separately for
 * each index in a row. It is also learned separately for rows whose first token was often or
 * seldom correct before: after "United" the first token is nearly always correct, after "the"
 * rarely. The paper uses a tree of fixed shape instead.
 *
 * The matrix is stored for the next run in the state folder, in one file per target. Its
 * content comes from the user's texts, so only the owner may read the file. It contains the
 * last ESP_RECYCLED_KEPT rows that were written. A damaged file is ignored. The content of the
 * file affects only which tokens are drafted, never the output.
 */
#ifndef ESP_RECYCLED_H
#define ESP_RECYCLED_H

#include <stdbool.h>
#include <stdint.h>

enum {
    ESP_RECYCLED_WIDTH = 8,      /* number of tokens in a row */
    ESP_RECYCLED_STREAKS = 4,    /* number of row classes, by accuracy of the first token */
    ESP_RECYCLED_KEPT = 1 << 15, /* maximum number of rows in a file */
};

struct esp_recycled_row {
    int32_t token[ESP_RECYCLED_WIDTH]; /* the likeliest token first; -1 if none */
    uint32_t written; /* value of `writes` when the row was last written; 0 means never */
    int32_t streak;   /* class of the row, 0 to ESP_RECYCLED_STREAKS - 1 */
};

/* A zero-initialised struct is valid: a matrix without rows. */
struct esp_recycled {
    struct esp_recycled_row *row; /* (vocabulary) indexed by token */
    int vocabulary;
    uint32_t writes; /* number of rows written so far */
    /* For each class of rows: how often such a row was tried, and how often each of its tokens
     * was correct. Both decay. */
    double tried[ESP_RECYCLED_STREAKS], right[ESP_RECYCLED_STREAKS][ESP_RECYCLED_WIDTH];
    char key[384], file[64]; /* names of the target and of its file; "" means no file */
    char notice[300];        /* a sentence about a damaged file, or "" */
    bool learned;            /* true if some rows are not in the file yet */
};

/* Allocates the rows. If `kept` is true, also reads the file for this key. Saves the old rows
 * first if the key has changed, and does nothing if it has not. Returns 0 or ESP_E_MEMORY. */
int esp_recycled_open(struct esp_recycled *recycled, const char *key, int vocabulary,
                      bool kept);

/* Saves the rows if there is a file, and frees them. */
void esp_recycled_close(struct esp_recycled *recycled);

/* Returns the row of a token, or NULL if it has not been written yet. */
const struct esp_recycled_row *esp_recycled_of(const struct esp_recycled *recycled,
                                               int32_t token);

/* Returns the probability that the token at index `rank` of this row is correct. */
double esp_recycled_rate(const struct esp_recycled *recycled,
                         const struct esp_recycled_row *row, int rank);

/* Writes the row of `token`: the `count` likeliest tokens after it, at most
 * ESP_RECYCLED_WIDTH. */
void esp_recycled_write(struct esp_recycled *recycled, int32_t token, const int32_t *likeliest,
                        int count);

/* Learns from `next`, the token that followed `token`. Call it before the row of `token` is
 * written. */
void esp_recycled_learn(struct esp_recycled *recycled, int32_t token, int32_t next);

#endif
