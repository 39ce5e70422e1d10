/* library_read.c - reads the library, and checks everything that it reads; see library.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/status.h"
#include "sessions/event_json.h"
#include "sessions/grow.h"
#include "sessions/library_parts.h"

enum { MOST = 1 << 28 /* tokens in a text */, MOST_ITERATIONS = 1 << 24 };

/* ------------------------------------------------------------------ columns */

static void copy_text(char *to, size_t size, sqlite3_stmt *s, int column)
{
    const char *text = (const char *)sqlite3_column_text(s, column);
    snprintf(to, size, "%s", text ? text : "");
}

/* Returns an integer column. Sets *damaged if it is not an integer within the limits. */
static int64_t integer(sqlite3_stmt *s, int column, int64_t least, int64_t most, bool *damaged)
{
    const int64_t value = sqlite3_column_int64(s, column);
    if (sqlite3_column_type(s, column) == SQLITE_INTEGER && value >= least && value <= most)
        return value;
    *damaged = true;
    return least;
}

/* Returns a numeric column, or NaN for NULL. Sets *damaged if it is outside the limits. */
static float real(sqlite3_stmt *s, int column, double least, double most, bool *damaged)
{
    const double value = sqlite3_column_double(s, column);
    const int type = sqlite3_column_type(s, column);
    if (type == SQLITE_NULL)
        return NAN;
    if ((type == SQLITE_FLOAT || type == SQLITE_INTEGER) && value >= least && value <= most)
        return (float)value;
    *damaged = true;
    return NAN;
}

/* ------------------------------------------------------------------ the list */

/* Writes the beginning of a branch's own text to `to`, on one line. */
static void first_words(struct esp_library *l, int64_t id, int branch, char *to, size_t size)
{
    size_t used = 0;
    sqlite3_stmt *s = esp_library_sql(l, ESP_SQL_OWN_BYTES);
    if (!s)
        return;
    sqlite3_bind_int64(s, 1, id);
    sqlite3_bind_int(s, 2, branch);
    sqlite3_bind_int(s, 3, 40);
    while (sqlite3_step(s) == SQLITE_ROW) {
        const char *bytes = sqlite3_column_blob(s, 0);
        const size_t count = (size_t)sqlite3_column_bytes(s, 0);
        for (size_t i = 0; bytes && i < count && used + 1 < size; i++) {
            const bool blank = strchr(" \t\r\n", bytes[i]) != NULL && bytes[i];
            if (bytes[i] && (!blank || (used > 0 && to[used - 1] != ' ')))
                to[used++] = blank ? ' ' : bytes[i];
        }
    }
    sqlite3_reset(s);
    while (used > 0 && used + 1 >= size && ((unsigned char)to[used - 1] & 0x80))
        used--; /* do not end within a UTF-8 character */
    to[used] = '\0';
}

static void name_models(struct esp_kept_session *session, const char *header, int length)
{
    struct esp_recording_header models = {.major = 0};
    char err[256];
    if (header && length > 0 && header[length - 1] == '\n')
        length--;
    if (!header || esp_header_from_json(&models, header, (size_t)length, err, sizeof err) < 0)
        return;
    snprintf(session->target, sizeof session->target, "%s", models.target.name);
    snprintf(session->draft, sizeof session->draft, "%s", models.draft.name);
}

static void read_session(struct esp_library *l, sqlite3_stmt *s, struct esp_kept_session *to)
{
    *to = (struct esp_kept_session){.id = sqlite3_column_int64(s, 0),
                                    .created = (time_t)sqlite3_column_int64(s, 2),
                                    .changed = (time_t)sqlite3_column_int64(s, 3),
                                    .branches = sqlite3_column_int(s, 7),
                                    .tokens = sqlite3_column_int(s, 8)};
    copy_text(to->name, sizeof to->name, s, 1);
    copy_text(to->target_path, sizeof to->target_path, s, 5);
    copy_text(to->draft_path, sizeof to->draft_path, s, 6);
    const char *header = (const char *)sqlite3_column_text(s, 4);
    name_models(to, header, sqlite3_column_bytes(s, 4));
    if (sqlite3_column_type(s, 9) != SQLITE_NULL)
        first_words(l, to->id, sqlite3_column_int(s, 9), to->words, sizeof to->words);
    to->open = !esp_library_claim(l, to->id);
    if (!to->open)
        esp_library_release(l, to->id);
}

/* Lists the sessions with the number `id` (0: any) and the name `name` ("": any). */
static int list(struct esp_library *l, int64_t id, const char *name, esp_kept_visit *visit,
                void *user, char *err, size_t errlen)
{
    struct esp_kept_session session;
    sqlite3_stmt *s = esp_library_sql(l, ESP_SQL_LIST);
    int step = SQLITE_ERROR, status = ESP_OK;
    if (!s)
        return esp_library_fail(l, err, errlen);
    sqlite3_bind_int64(s, 1, id);
    sqlite3_bind_text(s, 2, name, -1, SQLITE_STATIC);
    while (status == ESP_OK && (step = sqlite3_step(s)) == SQLITE_ROW) {
        read_session(l, s, &session);
        if (visit(user, &session) != 0)
            break;
    }
    if (step != SQLITE_DONE && step != SQLITE_ROW)
        status = esp_library_fail(l, err, errlen);
    sqlite3_reset(s);
    return status;
}

int esp_library_list(struct esp_library *l, esp_kept_visit *visit, void *user, char *err,
                     size_t errlen)
{
    return list(l, 0, "", visit, user, err, errlen);
}

static int take(void *user, const struct esp_kept_session *session)
{
    *(struct esp_kept_session *)user = *session;
    return 1;
}

static int64_t latest(struct esp_library *l)
{
    sqlite3_stmt *s = esp_library_sql(l, ESP_SQL_LATEST);
    const int64_t id = s && sqlite3_step(s) == SQLITE_ROW ? sqlite3_column_int64(s, 0) : 0;
    sqlite3_reset(s);
    return id;
}

int esp_library_find(struct esp_library *l, const char *which, struct esp_kept_session *session,
                     char *err, size_t errlen)
{
    char *end;
    session->id = 0;
    const bool any = !which || !*which;
    const int64_t id = any ? latest(l) : strtoll(which, &end, 10);
    int status = ESP_OK;
    if (id > 0 && (any || !*end))
        status = list(l, id, "", take, session, err, errlen);
    if (status == ESP_OK && session->id == 0 && !any)
        status = list(l, 0, which, take, session, err, errlen);
    if (status < 0 || session->id > 0)
        return status;
    return any ? esp_fail(err, errlen, ESP_E_ARGUMENT, "no sessions are kept in %s", l->path)
               : esp_fail(err, errlen, ESP_E_ARGUMENT,
                          "no session '%.60s' is kept; espalier sessions lists them", which);
}

/* ------------------------------------------------------------------ searching */

/* Returns an allocated FTS5 query for texts that have all words; the last one may be the
 * beginning of a word. */
static char *query_of(const char *words)
{
    char *query = malloc(4 * strlen(words) + 8), *to = query;
    for (const char *at = words; query && *at;) {
        at += strspn(at, " \t\n");
        const size_t length = strcspn(at, " \t\n");
        if (length == 0)
            break;
        *to++ = '"';
        for (size_t i = 0; i < length; i++) {
            if (at[i] == '"')
                *to++ = '"';
            *to++ = at[i];
        }
        *to++ = '"';
        at += length;
        if (!at[strspn(at, " \t\n")])
            *to++ = '*';
        *to++ = ' ';
    }
    if (query)
        *to = '\0';
    return query;
}

int esp_library_search(struct esp_library *l, const char *words,
                       int (*visit)(void *user, const struct esp_kept_match *match), void *user,
                       char *err, size_t errlen)
{
    struct esp_kept_match match;
    int step = SQLITE_ERROR, status = ESP_OK;
    esp_library_begin(l);
    esp_library_index(l, 0);
    esp_library_commit(l, err, errlen); /* after a failure, the old index is searched */
    char *query = query_of(words);
    sqlite3_stmt *s = query ? esp_library_sql(l, ESP_SQL_SEARCH) : NULL;
    if (s) {
        sqlite3_bind_text(s, 1, query, -1, SQLITE_STATIC);
        while ((step = sqlite3_step(s)) == SQLITE_ROW) {
            match = (struct esp_kept_match){.session = sqlite3_column_int64(s, 0) >> 32,
                                            .branch =
                                                (int)(sqlite3_column_int64(s, 0) & INT32_MAX)};
            copy_text(match.words, sizeof match.words, s, 1);
            if (visit(user, &match) != 0)
                break;
        }
    }
    if (step != SQLITE_DONE && step != SQLITE_ROW)
        status = esp_library_fail(l, err, errlen);
    sqlite3_reset(s);
    free(query);
    return status;
}

/* ------------------------------------------------------------------ loading a session */

static int damaged(struct esp_library *l, int64_t id, const char *what, char *err,
                   size_t errlen)
{
    return esp_fail(err, errlen, ESP_E_FORMAT, "%s: session %lld is damaged: %s", l->path,
                    (long long)id, what);
}

static int load_session(struct esp_library *l, int64_t id, struct esp_kept_text *text,
                        char *err, size_t errlen)
{
    bool bad = false;
    sqlite3_stmt *s = esp_library_sql(l, ESP_SQL_SESSION);
    if (s)
        sqlite3_bind_int64(s, 1, id);
    const int step = s ? sqlite3_step(s) : SQLITE_ERROR;
    if (step == SQLITE_DONE)
        return esp_fail(err, errlen, ESP_E_ARGUMENT, "no session %lld is kept", (long long)id);
    if (step != SQLITE_ROW)
        return esp_library_fail(l, err, errlen);
    const char *header = (const char *)sqlite3_column_text(s, 0);
    text->header = header ? strdup(header) : NULL;
    text->branches.at.branch = (int)integer(s, 1, -1, INT32_MAX, &bad);
    text->branches.at.length = (int)integer(s, 2, 0, INT32_MAX, &bad);
    copy_text(text->vocabulary_hash, sizeof text->vocabulary_hash, s, 3);
    text->vocabulary = (int)integer(s, 4, 1, INT32_MAX, &bad);
    text->created = (time_t)integer(s, 5, 0, INT64_MAX, &bad);
    text->iterations = (int)integer(s, 6, 0, MOST_ITERATIONS, &bad);
    text->generations = (int)integer(s, 7, 0, MOST_ITERATIONS, &bad);
    sqlite3_reset(s);
    return bad ? damaged(l, id, "its own row", err, errlen) : (int)ESP_OK;
}

static int load_branches(struct esp_library *l, int64_t id, struct esp_branches *b, char *err,
                         size_t errlen)
{
    sqlite3_stmt *s = esp_library_sql(l, ESP_SQL_BRANCHES);
    bool bad = false;
    int step = SQLITE_ERROR;
    if (s)
        sqlite3_bind_int64(s, 1, id);
    while (s && !bad && (step = sqlite3_step(s)) == SQLITE_ROW) {
        if (esp_grow(&b->branch, b->count, &b->capacity, sizeof *b->branch) < 0)
            return esp_fail(err, errlen, ESP_E_MEMORY, "no memory for the session's branches");
        struct esp_branch *branch = &b->branch[b->count];
        integer(s, 0, b->count, b->count, &bad);
        *branch = (struct esp_branch){.parent = (int)integer(s, 1, -1, b->count - 1, &bad),
                                      .fork = (int)integer(s, 2, 0, MOST, &bad),
                                      .marked = integer(s, 4, 0, 1, &bad),
                                      .deleted = integer(s, 5, 0, 1, &bad),
                                      .created = (time_t)integer(s, 6, 0, INT64_MAX, &bad)};
        copy_text(branch->name, sizeof branch->name, s, 3);
        copy_text(branch->drafter, sizeof branch->drafter, s, 7);
        b->count++;
    }
    sqlite3_reset(s);
    if (bad)
        return damaged(l, id, "a branch", err, errlen);
    return step == SQLITE_DONE ? (int)ESP_OK : esp_library_fail(l, err, errlen);
}

static uint32_t little(const unsigned char *bytes)
{
    return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
           (uint32_t)bytes[3] << 24;
}

static void read_score(sqlite3_stmt *s, int vocabulary, struct esp_token_score *score,
                       bool *bad)
{
    const unsigned char *bytes = sqlite3_column_blob(s, 8);
    const int size = sqlite3_column_bytes(s, 8);
    if (sqlite3_column_type(s, 8) == SQLITE_NULL)
        return;
    if (!bytes || size < 8 || size > 8 * ESP_LIKELY || size % 8 != 0) {
        *bad = true;
        return;
    }
    score->count = size / 8;
    score->p = real(s, 5, 0, 1.001, bad);
    score->entropy = real(s, 6, 0, 64, bad);
    score->rank = (int32_t)integer(s, 7, 0, score->count, bad);
    for (int i = 0; i < score->count; i++) {
        const uint32_t token = little(bytes + 8 * i), bits = little(bytes + 8 * i + 4);
        memcpy(&score->likely_p[i], &bits, sizeof bits);
        *bad |= token >= (uint32_t)vocabulary ||
                !(score->likely_p[i] >= 0 && score->likely_p[i] <= 1.001f);
        score->likely[i] = *bad ? 0 : (int32_t)token;
    }
}

static int load_token(sqlite3_stmt *s, struct esp_kept_text *text, bool *bad)
{
    const struct esp_branches *b = &text->branches;
    struct esp_branch *branch =
        b->count > 0 ? &b->branch[integer(s, 0, 0, b->count - 1, bad)] : NULL;
    struct esp_written token = {.iteration = ESP_BY_NO_ITERATION};
    if (!branch) {
        *bad = true;
        return ESP_OK;
    }
    integer(s, 1, branch->fork + branch->count, branch->fork + branch->count, bad);
    token.token = (int32_t)integer(s, 2, 0, text->vocabulary - 1, bad);
    token.kind = (uint8_t)integer(s, 3, 0, ESP_TEXT_CHOSEN, bad);
    if (sqlite3_column_type(s, 4) != SQLITE_NULL)
        token.iteration = (int32_t)integer(s, 4, 0, MOST_ITERATIONS - 1, bad);
    if (token.iteration >= text->iterations) /* an iteration that was not kept */
        text->iterations = token.iteration + 1;
    read_score(s, text->vocabulary, &token.score, bad);
    if (esp_grow(&branch->tokens, branch->count, &branch->capacity, sizeof *branch->tokens) < 0)
        return ESP_E_MEMORY;
    branch->tokens[branch->count++] = token;
    return ESP_OK;
}

/* Returns whether a branch has tokens and begins within its parent's own text or, if it has no
 * parent, at 0. */
static bool fits(const struct esp_branches *b, const struct esp_branch *branch)
{
    if (branch->count == 0)
        return false;
    if (branch->parent < 0)
        return branch->fork == 0;
    const struct esp_branch *parent = &b->branch[branch->parent];
    return branch->fork > parent->fork && branch->fork <= parent->fork + parent->count;
}

static int load_tokens(struct esp_library *l, int64_t id, struct esp_kept_text *text, char *err,
                       size_t errlen)
{
    struct esp_branches *b = &text->branches;
    sqlite3_stmt *s = esp_library_sql(l, ESP_SQL_TOKENS);
    bool bad = false;
    int step = SQLITE_ERROR, status = ESP_OK;
    if (s)
        sqlite3_bind_int64(s, 1, id);
    while (s && !bad && status == ESP_OK && (step = sqlite3_step(s)) == SQLITE_ROW)
        status = load_token(s, text, &bad);
    sqlite3_reset(s);
    if (status < 0)
        return esp_fail(err, errlen, status, "no memory for the session's texts");
    if (!bad && step != SQLITE_DONE)
        return esp_library_fail(l, err, errlen);
    for (int i = 0; i < b->count && !bad; i++) {
        bad = !fits(b, &b->branch[i]);
        esp_branches_link(b, i);
    }
    if (bad)
        return damaged(l, id, "a token", err, errlen);
    if (!bad && b->at.length == ESP_LIBRARY_END && b->at.branch >= 0 && b->at.branch < b->count)
        b->at = esp_branches_end(b, b->at.branch);
    const struct esp_text_place at = b->at;
    if (at.branch >= b->count || (at.branch < 0) != (at.length == 0) ||
        (at.branch >= 0 && (at.length <= b->branch[at.branch].fork ||
                            at.length > esp_branches_end(b, at.branch).length)))
        return damaged(l, id, "its place", err, errlen);
    return ESP_OK;
}

int esp_library_load(struct esp_library *l, int64_t id, struct esp_kept_text *text, char *err,
                     size_t errlen)
{
    *text = (struct esp_kept_text){.vocabulary = 0};
    esp_branches_open(&text->branches);
    int status = load_session(l, id, text, err, errlen);
    if (status == ESP_OK)
        status = load_branches(l, id, &text->branches, err, errlen);
    if (status == ESP_OK)
        status = load_tokens(l, id, text, err, errlen);
    return status;
}

void esp_kept_text_free(struct esp_kept_text *text)
{
    esp_branches_free(&text->branches);
    free(text->header);
    text->header = NULL;
}

int esp_library_iteration(struct esp_library *l, int64_t id, int number, char **line)
{
    sqlite3_stmt *s = esp_library_sql(l, ESP_SQL_ITERATION);
    *line = NULL;
    if (!s)
        return ESP_E_FILE;
    sqlite3_bind_int64(s, 1, id);
    sqlite3_bind_int(s, 2, number);
    if (sqlite3_step(s) == SQLITE_ROW) {
        const char *text = (const char *)sqlite3_column_text(s, 0);
        *line = text ? strdup(text) : NULL;
        if (*line)
            (*line)[strcspn(*line, "\n")] = '\0';
    }
    sqlite3_reset(s);
    return *line ? (int)ESP_OK : (int)ESP_E_FILE;
}

const char *esp_library_piece(struct esp_library *l, const char *hash, int32_t token,
                              size_t *length)
{
    sqlite3_stmt *s = esp_library_sql(l, ESP_SQL_PIECE);
    *length = 0;
    if (!s)
        return NULL;
    sqlite3_bind_text(s, 1, hash, -1, SQLITE_STATIC);
    sqlite3_bind_int(s, 2, token);
    if (sqlite3_step(s) != SQLITE_ROW)
        return NULL;
    const char *bytes = sqlite3_column_blob(s, 0);
    *length = (size_t)sqlite3_column_bytes(s, 0);
    return bytes ? bytes : "";
}

int esp_library_generations(struct esp_library *l, int64_t id,
                            int (*visit)(void *user, const struct esp_kept_generation *),
                            void *user, char *err, size_t errlen)
{
    sqlite3_stmt *s = esp_library_sql(l, ESP_SQL_GENERATIONS);
    int step = SQLITE_ERROR, status = ESP_OK;
    bool bad = false;
    if (s)
        sqlite3_bind_int64(s, 1, id);
    while (s && status == ESP_OK && !bad && (step = sqlite3_step(s)) == SQLITE_ROW) {
        const char *header = (const char *)sqlite3_column_text(s, 5);
        const struct esp_kept_generation generation = {
            .number = (int)integer(s, 0, 0, INT32_MAX, &bad),
            .place = (int)integer(s, 1, 0, INT32_MAX, &bad),
            .generator = {(uint64_t)integer(s, 2, INT64_MIN, INT64_MAX, &bad),
                          (uint64_t)integer(s, 3, INT64_MIN, INT64_MAX, &bad)},
            .tokens = (int)integer(s, 4, 1, INT32_MAX, &bad),
            .header = header ? header : "",
            .header_length = (size_t)sqlite3_column_bytes(s, 5)};
        if (!bad)
            status = visit(user, &generation);
    }
    if (bad)
        status = damaged(l, id, "a generation", err, errlen);
    else if (status == ESP_OK && step != SQLITE_DONE)
        status = esp_library_fail(l, err, errlen);
    sqlite3_reset(s);
    return status < 0 ? status : (int)ESP_OK;
}

int esp_library_writers(struct esp_library *l, int64_t id, int iterations, int **writers,
                        char *err, size_t errlen)
{
    sqlite3_stmt *s = esp_library_sql(l, ESP_SQL_WRITERS);
    int step = SQLITE_ERROR;
    bool bad = false;
    *writers = iterations > 0 ? calloc((size_t)iterations, sizeof **writers) : NULL;
    if (iterations > 0 && !*writers)
        return esp_fail(err, errlen, ESP_E_MEMORY, "no memory for %d iterations", iterations);
    for (int i = 0; i < iterations; i++)
        (*writers)[i] = -1;
    if (s)
        sqlite3_bind_int64(s, 1, id);
    while (s && !bad && (step = sqlite3_step(s)) == SQLITE_ROW) {
        const int64_t number = integer(s, 0, 0, iterations - 1, &bad);
        if (!bad)
            (*writers)[number] = (int)integer(s, 1, 0, MOST_ITERATIONS, &bad);
    }
    sqlite3_reset(s);
    if (bad)
        return damaged(l, id, "an iteration", err, errlen);
    return step == SQLITE_DONE ? (int)ESP_OK : esp_library_fail(l, err, errlen);
}
