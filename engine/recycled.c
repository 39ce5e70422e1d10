/* recycled.c - reads and writes the matrix of recycled tokens and its file; see recycled.h. The
 * file is untrusted.
 *
 * The file consists of 32-bit little-endian numbers: the head (make_head), then for each row
 * its token, its streak and ESP_RECYCLED_WIDTH likely tokens. Rows are sorted by token.
 */
#include "engine/recycled.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/support/hash.h"
#include "engine/support/paths.h"
#include "kernels/status.h"

enum { WIDTH = ESP_RECYCLED_WIDTH, STREAKS = ESP_RECYCLED_STREAKS, MOST = ESP_RECYCLED_KEPT };
enum { HEAD = 8, ROW = WIDTH + 2 }; /* numbers */
enum { MAGIC = 0x31437265 /* "erC1" */ };

static const double REMEMBERED = 1024; /* trials after which the counts of a class are halved */
static const double PRIOR_WEIGHT = 16; /* the prior has the weight of this many trials */

/* ------------------------------------------------------------------ rows and rates */

const struct esp_recycled_row *esp_recycled_of(const struct esp_recycled *r, int32_t token)
{
    const bool known = token >= 0 && token < r->vocabulary && r->row[token].written > 0;
    return known ? &r->row[token] : NULL;
}

double esp_recycled_rate(const struct esp_recycled *r, const struct esp_recycled_row *row,
                         int rank)
{
    /* Prior rates: the rate of a row's first token depends on the streak; the other rates fall
     * as 1 / (rank + 1)^2. */
    static const double first[STREAKS] = {0.2, 0.4, 0.6, 0.8};
    const int class = row->streak;
    const double rest = 1 - first[class];
    const double prior = rank == 0 ? first[class] : rest * 0.4 / ((rank + 1) * (rank + 1));
    return (r->right[class][rank] + PRIOR_WEIGHT * prior) / (r->tried[class] + PRIOR_WEIGHT);
}

void esp_recycled_learn(struct esp_recycled *r, int32_t token, int32_t next)
{
    const struct esp_recycled_row *known = esp_recycled_of(r, token);
    if (!known)
        return;
    struct esp_recycled_row *row = &r->row[token];
    const int class = row->streak;
    if (r->tried[class] >= REMEMBERED) {
        r->tried[class] /= 2;
        for (int k = 0; k < WIDTH; k++)
            r->right[class][k] /= 2;
    }
    r->tried[class] += 1;
    for (int k = 0; k < WIDTH; k++)
        r->right[class][k] += row->token[k] == next;
    if (row->token[0] == next)
        row->streak += row->streak < STREAKS - 1;
    else
        row->streak /= 2;
}

void esp_recycled_write(struct esp_recycled *r, int32_t token, const int32_t *likeliest,
                        int count)
{
    if (token < 0 || token >= r->vocabulary)
        return;
    struct esp_recycled_row *row = &r->row[token];
    for (int k = 0; k < WIDTH; k++)
        row->token[k] = k < count ? likeliest[k] : -1;
    row->written = ++r->writes;
    r->learned = true;
    r->notice[0] = '\0'; /* the notice was shown when the session began */
}

/* ------------------------------------------------------------------ reading the file */

static uint32_t number_at(const unsigned char *bytes, size_t index)
{
    const unsigned char *at = bytes + 4 * index;
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 |
           (uint32_t)at[3] << 24;
}

static uint64_t key_hash(const struct esp_recycled *r)
{
    return esp_fnv(ESP_FNV_START, r->key, strlen(r->key));
}

/* Writes the head: magic, width, vocabulary, number of rows, hash of the key, hash of the
 * rows. */
static void make_head(const struct esp_recycled *r, uint32_t rows, uint64_t content,
                      uint32_t head[HEAD])
{
    const uint64_t key = key_hash(r);
    const uint32_t made[HEAD] = {MAGIC,
                                 WIDTH,
                                 (uint32_t)r->vocabulary,
                                 rows,
                                 (uint32_t)key,
                                 (uint32_t)(key >> 32),
                                 (uint32_t)content,
                                 (uint32_t)(content >> 32)};
    memcpy(head, made, sizeof made);
}

static bool is_whole(const struct esp_recycled *r, const unsigned char *bytes, size_t length)
{
    uint32_t head[HEAD];
    const size_t rows = length / 4 > HEAD ? (length / 4 - HEAD) / ROW : 0;
    if (length != 4 * (HEAD + rows * ROW) || rows > MOST)
        return false;
    const size_t start = (size_t)4 * HEAD;
    make_head(r, (uint32_t)rows, esp_fnv(ESP_FNV_START, bytes + start, length - start), head);
    for (size_t i = 0; i < HEAD; i++)
        if (number_at(bytes, i) != head[i])
            return false;
    return true;
}

/* Reads row `index` of the file. Returns false if it is not valid. */
static bool read_row(const struct esp_recycled *r, const unsigned char *bytes, size_t index,
                     uint32_t *token, struct esp_recycled_row *row)
{
    const size_t at = HEAD + index * ROW;
    const uint32_t vocabulary = (uint32_t)r->vocabulary, streak = number_at(bytes, at + 1);
    *token = number_at(bytes, at);
    row->streak = (int32_t)streak;
    row->written = 1;
    if (*token >= vocabulary || streak >= STREAKS)
        return false;
    for (size_t k = 0; k < WIDTH; k++) {
        const uint32_t next = number_at(bytes, at + 2 + k);
        if (next >= vocabulary && next != UINT32_MAX)
            return false;
        row->token[k] = next == UINT32_MAX ? -1 : (int32_t)next;
    }
    return true;
}

static bool take(struct esp_recycled *r, const unsigned char *bytes, size_t length)
{
    struct esp_recycled_row row;
    uint32_t token;
    bool sound = is_whole(r, bytes, length);
    const size_t rows = sound ? number_at(bytes, 3) : 0;
    for (size_t i = 0; i < rows && sound; i++)
        sound = read_row(r, bytes, i, &token, &row);
    for (size_t i = 0; i < rows && sound; i++) {
        read_row(r, bytes, i, &token, &row);
        r->row[token] = row;
    }
    r->writes = 1;
    return sound;
}

static void load(struct esp_recycled *r)
{
    const size_t size = (size_t)4 * (HEAD + MOST * ROW) + 1;
    char path[4096] = "";
    unsigned char *bytes = malloc(size + 1);
    const int length = bytes ? esp_state_read(r->file, (char *)bytes, size + 1) : -1;
    const bool there = length > 0 || (length < 0 && esp_state_exists(r->file));
    if (there && (length < 0 || !take(r, bytes, (size_t)length))) {
        esp_user_path(path, sizeof path, ESP_USER_STATE, r->file);
        snprintf(r->notice, sizeof r->notice,
                 "%.180s is damaged, so no tokens are recycled from earlier runs; the file "
                 "is replaced when the session ends",
                 path);
    }
    free(bytes);
}

/* ------------------------------------------------------------------ writing the file */

static void put(unsigned char *bytes, size_t index, uint32_t number)
{
    for (int i = 0; i < 4; i++)
        bytes[4 * index + (size_t)i] = (unsigned char)(number >> 8 * i);
}

static int by_age(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x < y) - (x > y);
}

/* Only the MOST rows that were written last are stored in the file. Returns the smallest value
 * of `written` among them, or 1 if all rows are stored. `ages` is scratch memory. */
static uint32_t oldest_kept(const struct esp_recycled *r, uint32_t *ages)
{
    size_t count = 0;
    for (int i = 0; i < r->vocabulary; i++)
        if (r->row[i].written > 0)
            ages[count++] = r->row[i].written;
    qsort(ages, count, sizeof *ages, by_age);
    return count > MOST ? ages[MOST - 1] : 1;
}

static size_t put_rows(const struct esp_recycled *r, uint32_t oldest, unsigned char *bytes)
{
    size_t rows = 0;
    for (int i = 0; i < r->vocabulary && rows < MOST; i++) {
        const struct esp_recycled_row *row = &r->row[i];
        const size_t at = HEAD + rows * ROW;
        if (row->written < oldest)
            continue;
        put(bytes, at, (uint32_t)i);
        put(bytes, at + 1, (uint32_t)row->streak);
        for (size_t k = 0; k < WIDTH; k++)
            put(bytes, at + 2 + k, (uint32_t)row->token[k]);
        rows++;
    }
    return rows;
}

static void save(struct esp_recycled *r)
{
    if (!r->learned || !*r->file)
        return;
    uint32_t *ages = malloc((size_t)r->vocabulary * sizeof *ages), head[HEAD];
    const size_t most = r->vocabulary < MOST ? (size_t)r->vocabulary : MOST;
    unsigned char *bytes = malloc(4 * (HEAD + most * ROW));
    if (ages && bytes) {
        const size_t start = (size_t)4 * HEAD, rows = put_rows(r, oldest_kept(r, ages), bytes);
        const uint64_t content = esp_fnv(ESP_FNV_START, bytes + start, 4 * rows * ROW);
        make_head(r, (uint32_t)rows, content, head);
        for (size_t i = 0; i < HEAD; i++)
            put(bytes, i, head[i]);
        if (esp_state_write_private(r->file, (char *)bytes, start + 4 * rows * ROW) == ESP_OK)
            r->learned = false;
    }
    free(ages);
    free(bytes);
}

/* ------------------------------------------------------------------ opening and closing */

void esp_recycled_close(struct esp_recycled *r)
{
    if (r->row)
        save(r);
    free(r->row);
    memset(r, 0, sizeof *r);
}

int esp_recycled_open(struct esp_recycled *r, const char *key, int vocabulary, bool kept)
{
    if (r->row && strcmp(r->key, key) == 0 && (*r->file != '\0') == (kept && *key))
        return ESP_OK;
    esp_recycled_close(r);
    r->row = calloc((size_t)vocabulary, sizeof *r->row);
    if (!r->row)
        return ESP_E_MEMORY;
    r->vocabulary = vocabulary;
    snprintf(r->key, sizeof r->key, "%s", key);
    if (!kept || !*key)
        return ESP_OK;
    snprintf(r->file, sizeof r->file, "recycled-%016llx", (unsigned long long)key_hash(r));
    load(r);
    return ESP_OK;
}
