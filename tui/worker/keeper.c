/* keeper.c - see keeper.h.
 *
 * Records are written to the journal. They wait in memory if the session is private, or if the
 * journal is full because the disk is much too slow. Records in memory are newer than those in
 * the journal. There are two locks. `moving` is held while records are moved to the library,
 * and `lock` only while bytes are copied in memory.
 */
#include "tui/worker/keeper.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/status.h"
#include "sessions/journal.h"
#include "sessions/log.h"
#include "tui/model/quiet_thread.h"

enum {
    MANY = 128 << 10, /* a journal with this many bytes is moved to the library immediately */
    PAUSE = 2,        /* a smaller journal is moved after this many seconds */
};

struct esp_keeper {
    pthread_t thread;
    pthread_mutex_t moving; /* protects the library and the next five members */
    char *path;
    esp_keeper_tell *tell;
    void *user;
    struct esp_library *library; /* NULL until it is opened */
    int chunk;                   /* number of the log's next chunk */

    /* Protects the next six members. The engine thread reads them without the lock. */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct esp_journal *journal; /* NULL: records wait in memory */
    struct esp_pack waiting;
    bool asleep;  /* the keeper's thread waits for new records, without a time limit */
    bool private; /* the session is private, so records wait in memory */
    bool quit;

    atomic_bool failed; /* after an error, nothing more is stored */

    /* Only the engine thread uses the following members. */
    bool resumed;
    bool judged; /* some branches may have been deleted */
    int64_t id;  /* number of the session in the library; 0: it is not in the library */
    time_t created;
    struct timespec now;         /* time of the last records */
    int iterations, generations; /* number of the next iteration, and of the next generation */
    int generation;              /* number of the generation of the next iteration */
    int first_generation;        /* the library's number for the caller's generation 0 */
    int begun;                   /* how many generations the caller has begun */
    struct esp_recording_header header;
    char target_path[1024], draft_path[1024];
    struct esp_tokens tokens;
    bool header_changed;
    unsigned char *pieces; /* a bit for each token; 1: its text is in the library or log */
    struct esp_layers layers;
    struct esp_pack records; /* the records that the current call has made */
};

static void complain(struct esp_keeper *k, const char *err)
{
    char sentence[760];
    if (atomic_exchange(&k->failed, true))
        return;
    snprintf(sentence, sizeof sentence, "this session is no longer kept: %s", err);
    k->tell(k->user, sentence);
}

/* ------------------------------------------------------------------ moving records */

/* Returns how many bytes wait to be moved. The caller holds `lock`. */
static size_t amount(const struct esp_keeper *k)
{
    return k->journal && !k->private && !atomic_load(&k->failed)
               ? esp_journal_used(k->journal) + k->waiting.length
               : 0;
}

/* Moves all records to the library. The caller holds `moving`. */
static void move(struct esp_keeper *k)
{
    char err[700];
    struct esp_records spans[2] = {{NULL, 0}, {NULL, 0}};
    pthread_mutex_lock(&k->lock);
    struct esp_journal *journal = k->journal;
    struct esp_pack waiting = {.length = 0};
    const bool any = amount(k) > 0;
    if (any) {
        spans[0] = esp_journal_take(journal);
        waiting = k->waiting;
        k->waiting = (struct esp_pack){.length = 0};
        spans[1] = (struct esp_records){waiting.at, waiting.length};
    }
    pthread_mutex_unlock(&k->lock);
    if (any && esp_library_store(k->library, k->id, k->chunk, spans, 2, err, sizeof err) < 0) {
        complain(k, err);
    } else if (any) {
        k->chunk++;
        esp_journal_taken(journal);
    }
    esp_pack_free(&waiting);
}

static void *run(void *user)
{
    struct esp_keeper *k = user;
    struct timespec until;
    pthread_mutex_lock(&k->lock);
    while (!k->quit) {
        if (amount(k) == 0) {
            k->asleep = true;
            pthread_cond_wait(&k->changed, &k->lock);
            k->asleep = false;
            continue;
        }
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += PAUSE;
        while (!k->quit && amount(k) < MANY &&
               pthread_cond_timedwait(&k->changed, &k->lock, &until) == 0)
            continue;
        pthread_mutex_unlock(&k->lock);
        esp_keeper_settle(k);
        pthread_mutex_lock(&k->lock);
    }
    pthread_mutex_unlock(&k->lock);
    return NULL;
}

void esp_keeper_settle(struct esp_keeper *k)
{
    pthread_mutex_lock(&k->moving);
    move(k);
    pthread_mutex_unlock(&k->moving);
}

/* ------------------------------------------------------------------ a session */

/* Opens the library. If a part of it is damaged, tells the user. The caller holds
 * `moving`. */
static int open_library(struct esp_keeper *k, char *err, size_t errlen)
{
    if (k->library)
        return ESP_OK;
    const int status = esp_library_open(&k->library, k->path, ESP_LIBRARY_KEEP, err, errlen);
    if (status == ESP_OK && *esp_library_note(k->library))
        k->tell(k->user, esp_library_note(k->library));
    return status;
}

/* Adds the session to the library. The caller holds `moving`. */
static int add_session(struct esp_keeper *k, char *err, size_t errlen)
{
    if (k->id > 0)
        return ESP_OK;
    esp_library_begin(k->library);
    const int64_t id = esp_library_add(k->library, k->created);
    const int status = esp_library_commit(k->library, err, errlen);
    k->id = status == ESP_OK ? id : 0;
    k->chunk = 0;
    return status;
}

/* Adds the session to the library, and makes its journal. After that, records can be
 * written. */
static void begin(struct esp_keeper *k)
{
    char err[700];
    pthread_mutex_lock(&k->moving);
    struct esp_journal *journal = NULL;
    int status = open_library(k, err, sizeof err);
    if (status == ESP_OK)
        status = add_session(k, err, sizeof err);
    if (status == ESP_OK)
        status = esp_journal_open(&journal, k->path, k->id, k->chunk, err, sizeof err);
    if (status == ESP_OK && k->pieces)
        esp_library_pieces(k->library, k->header.vocabulary_hash, k->header.vocabulary,
                           k->pieces);
    pthread_mutex_lock(&k->lock);
    k->journal = journal;
    pthread_mutex_unlock(&k->lock);
    if (status < 0)
        complain(k, err);
    pthread_mutex_unlock(&k->moving);
}

/* Marks all token texts as not yet in the library. Returns false if there is no memory. */
static bool forget_pieces(struct esp_keeper *k)
{
    free(k->pieces);
    k->pieces = calloc((size_t)k->header.vocabulary / 8 + 1, 1);
    return k->pieces;
}

/* Closes the journal. Its records are in the library, unless moving them has failed. The caller
 * holds `moving`. */
static void close_journal(struct esp_keeper *k, bool remove)
{
    pthread_mutex_lock(&k->lock);
    struct esp_journal *journal = k->journal;
    k->journal = NULL;
    pthread_mutex_unlock(&k->lock);
    esp_journal_close(journal, remove);
}

/* Removes deleted branches from the library. This is done at the end of a session, when undo
 * can no longer restore them. */
static void drop_deleted(struct esp_keeper *k)
{
    char err[700];
    struct esp_kept_text text;
    int status = esp_library_load(k->library, k->id, &text, err, sizeof err);
    if (status == ESP_OK && esp_branches_compact(&text.branches) > 0)
        status = esp_library_rewrite(k->library, k->id, &text, err, sizeof err);
    if (status < 0)
        complain(k, err);
    esp_kept_text_free(&text);
}

/* Moves the last records to the library, and releases the session. */
static void finish(struct esp_keeper *k)
{
    char err[700];
    pthread_mutex_lock(&k->moving);
    move(k);
    const bool whole = !atomic_load(&k->failed);
    close_journal(k, whole);
    if (k->id > 0 && k->library && whole && !k->private) {
        if (k->judged)
            drop_deleted(k);
        /* If this fails, the next command that lists the sessions refreshes this session. */
        esp_library_refresh(k->library, k->id, err, sizeof err);
    }
    if (k->id > 0 && k->library)
        esp_library_release(k->library, k->id);
    k->id = 0;
    pthread_mutex_unlock(&k->moving);
}

/* ------------------------------------------------------------------ writing records */

/* Adds a record with the text of a token, unless the library or the log already has it. */
static void put_piece(struct esp_keeper *k, int32_t token)
{
    size_t length = 0;
    if (token < 0 || token >= k->header.vocabulary || k->pieces[token / 8] >> token % 8 & 1)
        return;
    const char *bytes = k->tokens.text(k->tokens.user, token, &length);
    esp_log_piece(&k->records, token, bytes, length);
    k->pieces[token / 8] |= (unsigned char)(1 << token % 8);
}

static void put_likely(struct esp_keeper *k, const struct esp_token_score *score)
{
    for (int i = 0; i < score->count; i++)
        put_piece(k, score->likely[i]);
}

/* Begins to collect the records of a call. Returns false if nothing is stored because of an
 * error. */
static bool begin_records(struct esp_keeper *k)
{
    struct esp_line line = {.text = NULL};
    const time_t before = k->now.tv_sec;
    if (atomic_load(&k->failed) || !k->pieces)
        return false;
    if (!k->private && !k->journal)
        begin(k);
    if (atomic_load(&k->failed))
        return false;
    k->records.length = 0;
    clock_gettime(CLOCK_REALTIME, &k->now);
    if (k->now.tv_sec != before)
        esp_log_time(&k->records, k->now.tv_sec);
    if (k->header_changed) {
        k->records.failed |= esp_header_to_json(&line, &k->header) < 0;
        esp_log_header(&k->records, &k->header, line.text ? line.text : "", line.length,
                       k->target_path, k->draft_path);
        esp_line_free(&line);
        k->header_changed = false;
    }
    return true;
}

/* Adds the records of a call to the journal or to the waiting records. */
static void end_records(struct esp_keeper *k)
{
    pthread_mutex_lock(&k->lock);
    const size_t before = amount(k);
    if (k->private || k->waiting.length > 0 || !k->journal ||
        !esp_journal_add(k->journal, k->records.at, k->records.length))
        esp_pack_put(&k->waiting, k->records.at, k->records.length);
    const bool failed = k->records.failed || k->waiting.failed;
    if (k->asleep || (before < MANY && amount(k) >= MANY))
        pthread_cond_signal(&k->changed);
    pthread_mutex_unlock(&k->lock);
    if (failed)
        complain(k, "there is not enough memory");
}

static void put_prompt(struct esp_keeper *k, const struct esp_event *event)
{
    for (int i = 0; i < event->token_count; i++)
        put_piece(k, event->tokens[i]);
    esp_log_prompt(&k->records, event);
}

/* Adds records for an iteration. Leaves the tree out while the session is private, because only
 * the texts of a private session can be kept later. */
static void put_iteration(struct esp_keeper *k, const struct esp_event *event)
{
    const struct esp_iteration *it = event->iteration;
    struct esp_event timed = *event;
    for (int i = 0; i < it->committed_count; i++) {
        put_piece(k, it->committed[i]);
        if (it->scores)
            put_likely(k, &it->scores[i]);
    }
    esp_log_iteration(&k->records, k->iterations, event);
    if (!k->private) {
        k->records.failed |= esp_layers_finish(&k->layers, it) < 0;
        for (int i = 0; i < it->tree.count; i++)
            put_piece(k, it->tree.nodes[i].token);
        put_piece(k, it->bonus);
        timed.time = (double)(k->now.tv_sec - k->created) + 1e-9 * (double)k->now.tv_nsec;
        timed.time = timed.time > 0 ? timed.time : 0;
        esp_log_tree(&k->records, k->iterations, k->generation, &timed, &k->layers);
    }
    k->iterations++;
    esp_layers_begin(&k->layers);
}

void esp_keeper_event(struct esp_keeper *k, const struct esp_event *event)
{
    if (event->type == ESP_EVENT_LAYER && !k->private)
        esp_layers_note(&k->layers, event);
    if ((event->type != ESP_EVENT_ITERATION && event->type != ESP_EVENT_PROMPT &&
         event->type != ESP_EVENT_REWIND && event->type != ESP_EVENT_DROP &&
         event->type != ESP_EVENT_CLEAR) ||
        !begin_records(k))
        return;
    if (event->type == ESP_EVENT_ITERATION)
        put_iteration(k, event);
    else if (event->type == ESP_EVENT_PROMPT)
        put_prompt(k, event);
    else if (event->type == ESP_EVENT_DROP)
        esp_log_drop(&k->records, event->token_start, event->token_count);
    else
        esp_log_cut(&k->records, event->type == ESP_EVENT_CLEAR ? 0 : event->token_count);
    end_records(k);
}

void esp_keeper_generation(struct esp_keeper *k, int number,
                           const struct esp_recording_header *header,
                           const struct esp_generator *generator, int tokens)
{
    struct esp_line line = {.text = NULL};
    k->begun = number + 1;
    k->generation = k->first_generation + number;
    if (k->generation < k->generations || !begin_records(k))
        return; /* the log already has this generation, which continues */
    k->generations = k->generation + 1;
    k->records.failed |= esp_header_to_json(&line, header) < 0;
    esp_log_generation(&k->records,
                       &(struct esp_kept_generation){k->generation, -1, *generator, tokens,
                                                     line.text ? line.text : "", line.length});
    esp_line_free(&line);
    end_records(k);
}

void esp_keeper_fork(struct esp_keeper *k, int kept, const struct esp_text_token *text,
                     int count)
{
    if (!begin_records(k))
        return;
    for (int i = kept; i < count; i++)
        put_piece(k, text[i].token);
    esp_log_fork(&k->records, kept, text, count);
    end_records(k);
}

void esp_keeper_scores(struct esp_keeper *k, int first, const struct esp_token_score *scores,
                       int count)
{
    if (!begin_records(k))
        return;
    for (int i = 0; i < count; i++)
        put_likely(k, &scores[i]);
    esp_log_scores(&k->records, first, scores, count);
    end_records(k);
}

void esp_keeper_branch(struct esp_keeper *k, int branch, const char *name, bool marked,
                       bool deleted)
{
    k->judged |= deleted;
    if (!begin_records(k))
        return;
    esp_log_judge(&k->records, branch, name, marked, deleted);
    end_records(k);
}

/* ------------------------------------------------------------------ private sessions */

/* Adds the texts of all tokens of the session to `waiting`. */
static void wait_pieces(struct esp_keeper *k)
{
    struct esp_kept_text text = {.vocabulary = 0};
    char err[700];
    k->records.length = 0;
    if (forget_pieces(k) &&
        esp_library_load(k->library, k->id, &text, err, sizeof err) == ESP_OK)
        for (int i = 0; i < text.branches.count; i++)
            for (int j = 0; j < text.branches.branch[i].count; j++) {
                put_piece(k, text.branches.branch[i].tokens[j].token);
                put_likely(k, &text.branches.branch[i].tokens[j].score);
            }
    esp_pack_put(&k->waiting, k->records.at, k->records.length);
    esp_kept_text_free(&text);
}

/* Deletes the session from the library. Its texts stay in memory. */
static void take_back(struct esp_keeper *k)
{
    char err[700];
    pthread_mutex_lock(&k->moving);
    close_journal(k, true);
    pthread_mutex_lock(&k->lock);
    k->waiting.length = 0;
    int status = esp_library_texts(k->library, k->id, &k->waiting, err, sizeof err);
    if (status == ESP_OK)
        wait_pieces(k);
    pthread_mutex_unlock(&k->lock);
    if (esp_library_delete(k->library, k->id, err, sizeof err) < 0)
        k->tell(k->user, err);
    k->id = 0;
    pthread_mutex_unlock(&k->moving);
}

void esp_keeper_private(struct esp_keeper *k, bool on)
{
    if (on == k->private)
        return;
    if (on)
        esp_keeper_settle(k);
    pthread_mutex_lock(&k->lock);
    k->private = on;
    pthread_mutex_unlock(&k->lock);
    if (on && k->id > 0 && !k->resumed)
        take_back(k);
    else if (!on && k->waiting.length > 0 && !k->journal && !atomic_load(&k->failed))
        begin(k);
    if (!on)
        esp_keeper_settle(k);
}

/* ------------------------------------------------------------------ opening and closing */

void esp_keeper_models(struct esp_keeper *k, const struct esp_recording_header *header,
                       const char *target_path, const char *draft_path,
                       const struct esp_tokens *tokens, bool anew)
{
    const bool same = k->pieces && header->vocabulary == k->header.vocabulary &&
                      strcmp(header->vocabulary_hash, k->header.vocabulary_hash) == 0;
    if (anew) {
        finish(k);
        k->waiting.length = 0;
        k->resumed = k->judged = false;
        k->iterations = k->generations = 0;
        k->first_generation = -k->begun;
        k->created = time(NULL);
        k->now.tv_sec = 0;
    }
    k->header = *header;
    k->tokens = *tokens;
    snprintf(k->target_path, sizeof k->target_path, "%s", target_path);
    snprintf(k->draft_path, sizeof k->draft_path, "%s", draft_path);
    k->header_changed = true;
    if ((anew || !same) && !forget_pieces(k))
        complain(k, "there is not enough memory");
}

/* Opens the kept session to continue, and claims it for this program. */
static void resume(struct esp_keeper *k, int64_t id)
{
    char err[700];
    struct esp_kept_next next;
    int status = open_library(k, err, sizeof err);
    if (status == ESP_OK && !esp_library_claim(k->library, id))
        status = esp_fail(err, sizeof err, ESP_E_FILE,
                          "session %lld is open in another program", (long long)id);
    if (status == ESP_OK)
        status = esp_library_next_numbers(k->library, id, &next, err, sizeof err);
    if (status < 0) {
        complain(k, err);
        return;
    }
    k->id = id;
    k->judged = true; /* an earlier program may have ended before it removed a branch */
    k->chunk = next.chunk;
    k->iterations = next.iterations;
    k->first_generation = k->generations = next.generations;
    k->created = next.created;
}

int esp_keeper_open(struct esp_keeper **keeper, const char *path, int64_t resumed,
                    esp_keeper_tell *tell, void *user)
{
    struct esp_keeper *k = calloc(1, sizeof *k);
    *keeper = NULL;
    if (!k)
        return ESP_E_MEMORY;
    k->path = strdup(path);
    k->resumed = resumed > 0;
    k->tell = tell;
    k->user = user;
    k->private = true;
    k->created = time(NULL);
    pthread_mutex_init(&k->moving, NULL);
    pthread_mutex_init(&k->lock, NULL);
    pthread_cond_init(&k->changed, NULL);
    if (k->path && resumed > 0)
        resume(k, resumed);
    *keeper = k;
    if (k->path && esp_quiet_thread(&k->thread, run, k) == ESP_OK)
        return ESP_OK;
    k->quit = true;
    esp_keeper_close(k);
    *keeper = NULL;
    return ESP_E_MEMORY;
}

void esp_keeper_close(struct esp_keeper *k)
{
    if (!k)
        return;
    pthread_mutex_lock(&k->lock);
    const bool runs = !k->quit;
    k->quit = true;
    pthread_cond_signal(&k->changed);
    pthread_mutex_unlock(&k->lock);
    if (runs)
        pthread_join(k->thread, NULL);
    finish(k);
    esp_library_close(k->library);
    esp_layers_free(&k->layers);
    esp_pack_free(&k->waiting);
    esp_pack_free(&k->records);
    free(k->pieces);
    free(k->path);
    pthread_mutex_destroy(&k->moving);
    pthread_mutex_destroy(&k->lock);
    pthread_cond_destroy(&k->changed);
    free(k);
}
