/* recycled.h - the tokens that the target found likeliest after each token (Token Recycling,
 * Luo et al., arXiv 2408.08696).
 *
 * Each verified row of a tree, rejected ones too, gives the target's likeliest next tokens:
 * they replace what is known for the row's token. Drafters fill trees from this matrix without
 * a draft model: the children of a node are the row of its token.
 *
 * How often such a child is right is learned by its place in the row, and by how often the
 * first place of the row was right before: after "United" it nearly always is, after "the" it
 * rarely is. The paper's tree has one shape instead.
 *
 * The matrix is kept for the next run in a file of the state folder, one for each target. Its
 * content comes from the user's texts, so only the owner may read it. It holds the
 * ESP_RECYCLED_KEPT rows that were written last. A damaged file is ignored. What is stored
 * decides only which tokens are tried, never the text.
 */
#ifndef ESP_RECYCLED_H
#define ESP_RECYCLED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    ESP_RECYCLED_WIDTH = 8,      /* tokens of a row */
    ESP_RECYCLED_STREAKS = 4,    /* classes of rows, by how often their first place was right */
    ESP_RECYCLED_KEPT = 1 << 15, /* rows of a file */
};

struct esp_recycled_row {
    int32_t token[ESP_RECYCLED_WIDTH]; /* the likeliest first; -1: none */
    uint32_t written;                  /* when it was written last; 0: never */
    int32_t streak;                    /* 0 to ESP_RECYCLED_STREAKS - 1 */
};

/* Zeroed memory is a matrix of no rows. */
struct esp_recycled {
    struct esp_recycled_row *row; /* (vocabulary) by token */
    int vocabulary;
    uint32_t writes;
    /* Of each class of rows: how many were looked at, and how often each place was right. They
     * decay. */
    double tried[ESP_RECYCLED_STREAKS], right[ESP_RECYCLED_STREAKS][ESP_RECYCLED_WIDTH];
    char key[384], file[64]; /* names the target; its file, or "" */
    char notice[300];        /* what is wrong with the file, or "" */
    bool learned;            /* has rows that are not in the file */
};

/* Allocates the rows, and reads the file for this key if `kept`. The same key again does
 * nothing; another one saves first. Returns 0 or ESP_E_MEMORY. */
int esp_recycled_open(struct esp_recycled *recycled, const char *key, int vocabulary,
                      bool kept);

/* Saves, if there is a file, and frees the rows. */
void esp_recycled_close(struct esp_recycled *recycled);

/* The row of a token; NULL: nothing is known. */
const struct esp_recycled_row *esp_recycled_of(const struct esp_recycled *recycled,
                                               int32_t token);

/* How often place `rank` of such a row is right. */
double esp_recycled_rate(const struct esp_recycled *recycled,
                         const struct esp_recycled_row *row, int rank);

/* Writes the row of `token`: the `count` likeliest tokens after it, at most
 * ESP_RECYCLED_WIDTH. */
void esp_recycled_write(struct esp_recycled *recycled, int32_t token, const int32_t *likeliest,
                        int count);

/* Learns from the token that came after `token`, before its row is written. */
void esp_recycled_learn(struct esp_recycled *recycled, int32_t token, int32_t next);

#endif
