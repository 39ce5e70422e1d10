/* keeper.c - the queue and the thread that writes; see keeper.h.
 *
 * The queue may grow without limit, so a slow disk costs memory but no time. Items are used
 * again, so that the engine allocates nothing in the long run. Waking a thread costs the engine
 * more than handing over an iteration. So while iterations come, the keeper looks for them
 * every millisecond; it is woken only after a pause.
 */
#include "tui/worker/keeper.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/status.h"
#include "sessions/event_json.h"
#include "sessions/grow.h"
#include "tui/model/quiet_thread.h"
#include "tui/model/snapshot.h"

/* The types of items that are not events; different from all types of events. */
enum { PRIVATE = 200, MODELS, GENERATION, FORK, SCORES, BRANCH, QUIT };

enum { LOOKS = 100 /* looks for items, a millisecond apart, before the thread sleeps */ };

struct item {
    struct item *next;
    int type;
    double time; /* of an iteration, in seconds since 1970 */
    struct esp_snapshot event;
    struct esp_layers layers;
    struct esp_recording_header header;
    char target_path[1024], draft_path[1024];
    struct esp_tokens tokens;
    struct esp_generator generator;
    int number; /* of the generation or branch */
    int limit;  /* maximum number of new tokens of a generation */
    bool on;    /* PRIVATE: on; MODELS: new vocabulary; BRANCH: marked */
    bool deleted;
    char text[256];
};

/* The state of a branch in the library. */
struct kept {
    int tokens;   /* the number of its own tokens there */
    int from, to; /* its own tokens [from, to) must be written */
    bool row;     /* it has a row there, which is up to date except perhaps for `deleted` */
    bool deleted; /* as its row says */
    bool listed;  /* it is in `changed_branches` */
};

struct esp_keeper {
    pthread_t thread;
    pthread_mutex_t lock; /* of the queue */
    pthread_cond_t changed;
    struct item *first, **last, *spare;
    bool writing;         /* items were taken but are not written yet */
    bool asleep;          /* the thread must be woken */
    struct item *running; /* collects the layers of the current iteration; engine thread only */

    /* The rest belongs to the keeper's thread. */
    char *path;
    esp_keeper_tell *tell;
    void *user;
    struct esp_library *library; /* NULL: nothing is written */
    bool private, failed, resumed;
    int64_t id; /* 0: not added yet */
    time_t created;
    struct esp_branches branches;
    struct kept *kept; /* (branches.count) */
    int kept_capacity;
    int *changed_branches, changed_count, changed_capacity;
    struct esp_text_place placed; /* the present text, as the library has it */
    time_t dated;                 /* the second in which that was written; 0: never */
    int iterations;               /* number of the next iteration */
    int generation;               /* number of the present generation in the library */
    int generations;              /* number of the next generation that the library gets */
    int first_generation;         /* added to a number of the caller: that of the library */
    int numbered;                 /* how many generations the caller has begun */
    struct esp_recording_header header;
    char target_path[1024], draft_path[1024];
    struct esp_tokens tokens;
    bool header_changed;
    unsigned char *pieces; /* a bit for each token whose text is in the library */
    struct esp_line line;
};

/* ------------------------------------------------------------------ the queue */

static void free_item(struct item *item)
{
    esp_snapshot_free(&item->event);
    esp_layers_free(&item->layers);
    free(item);
}

/* Returns an empty item, reused if possible. Returns NULL if there is no memory. */
static struct item *new_item(struct esp_keeper *k, int type)
{
    pthread_mutex_lock(&k->lock);
    struct item *item = k->spare;
    if (item)
        k->spare = item->next;
    pthread_mutex_unlock(&k->lock);
    if (!item)
        item = calloc(1, sizeof *item);
    if (!item)
        return NULL;
    item->type = type;
    item->next = NULL;
    esp_snapshot_reset(&item->event, type);
    esp_layers_begin(&item->layers);
    return item;
}

static void push(struct esp_keeper *k, struct item *item)
{
    pthread_mutex_lock(&k->lock);
    *k->last = item;
    k->last = &item->next;
    if (k->asleep)
        pthread_cond_broadcast(&k->changed);
    pthread_mutex_unlock(&k->lock);
}

/* Takes all items from the queue; waits until there are some. */
static struct item *take(struct esp_keeper *k)
{
    pthread_mutex_lock(&k->lock);
    k->writing = false;
    pthread_cond_broadcast(&k->changed);
    for (int looks = 0; !k->first && looks < LOOKS; looks++) {
        pthread_mutex_unlock(&k->lock);
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        pthread_mutex_lock(&k->lock);
    }
    k->asleep = true;
    while (!k->first)
        pthread_cond_wait(&k->changed, &k->lock);
    k->asleep = false;
    struct item *items = k->first;
    k->first = NULL;
    k->last = &k->first;
    k->writing = true;
    pthread_mutex_unlock(&k->lock);
    return items;
}

static void give_back(struct esp_keeper *k, struct item *items)
{
    while (items) {
        struct item *next = items->next;
        pthread_mutex_lock(&k->lock);
        items->next = k->spare;
        k->spare = items;
        pthread_mutex_unlock(&k->lock);
        items = next;
    }
}

void esp_keeper_settle(struct esp_keeper *k)
{
    pthread_mutex_lock(&k->lock);
    while (k->first || k->writing)
        pthread_cond_wait(&k->changed, &k->lock);
    pthread_mutex_unlock(&k->lock);
}

bool esp_keeper_is_settled(struct esp_keeper *k)
{
    pthread_mutex_lock(&k->lock);
    const bool settled = !k->first && !k->writing;
    pthread_mutex_unlock(&k->lock);
    return settled;
}

/* ------------------------------------------------------------------ handing over */

void esp_keeper_private(struct esp_keeper *k, bool on)
{
    struct item *item = new_item(k, PRIVATE);
    if (!item)
        return;
    item->on = on;
    push(k, item);
}

void esp_keeper_models(struct esp_keeper *k, const struct esp_recording_header *header,
                       const char *target_path, const char *draft_path,
                       const struct esp_tokens *tokens, bool anew)
{
    struct item *item = new_item(k, MODELS);
    if (!item)
        return;
    item->header = *header;
    snprintf(item->target_path, sizeof item->target_path, "%s", target_path);
    snprintf(item->draft_path, sizeof item->draft_path, "%s", draft_path);
    item->tokens = *tokens;
    item->on = anew;
    push(k, item);
}

void esp_keeper_generation(struct esp_keeper *k, int number,
                           const struct esp_recording_header *header,
                           const struct esp_generator *generator, int tokens)
{
    struct item *item = new_item(k, GENERATION);
    if (!item)
        return;
    item->number = number;
    item->header = *header;
    item->generator = *generator;
    item->limit = tokens;
    push(k, item);
}

/* Returns the item that collects the current iteration, or NULL if there is no memory. */
static struct item *running(struct esp_keeper *k)
{
    if (!k->running)
        k->running = new_item(k, ESP_EVENT_ITERATION);
    return k->running;
}

static void hand_over_iteration(struct esp_keeper *k, const struct esp_event *event)
{
    struct timespec now;
    struct item *item = running(k);
    if (!item || esp_layers_finish(&item->layers, event->iteration) < 0 ||
        esp_snapshot_take(&item->event, event) < 0)
        return;
    clock_gettime(CLOCK_REALTIME, &now);
    item->time = (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
    k->running = NULL;
    push(k, item);
}

void esp_keeper_event(struct esp_keeper *k, const struct esp_event *event)
{
    struct item *item;
    switch (event->type) {
    case ESP_EVENT_LAYER:
        if ((item = running(k)))
            esp_layers_note(&item->layers, event);
        return;
    case ESP_EVENT_ITERATION:
        hand_over_iteration(k, event);
        return;
    case ESP_EVENT_PROMPT:
    case ESP_EVENT_REWIND:
    case ESP_EVENT_DROP:
    case ESP_EVENT_CLEAR:
        item = new_item(k, event->type);
        if (item && esp_snapshot_take(&item->event, event) == ESP_OK)
            push(k, item);
        return;
    default:
        return;
    }
}

void esp_keeper_fork(struct esp_keeper *k, int kept, const struct esp_text_token *text,
                     int count)
{
    struct item *item = new_item(k, FORK);
    if (!item || esp_snapshot_reserve(&item->event, count - kept) < 0)
        return;
    item->event.kept = kept;
    for (int i = kept; i < count; i++)
        item->event.tokens[item->event.token_count++] = (struct esp_written){
            .token = text[i].token, .iteration = ESP_BY_NO_ITERATION, .kind = text[i].kind};
    push(k, item);
}

void esp_keeper_scores(struct esp_keeper *k, int first, const struct esp_token_score *scores,
                       int count)
{
    struct item *item = new_item(k, SCORES);
    if (!item || esp_snapshot_reserve(&item->event, count) < 0)
        return;
    item->event.start = first;
    for (int i = 0; i < count; i++)
        item->event.tokens[item->event.token_count++] =
            (struct esp_written){.score = scores[i]};
    push(k, item);
}

void esp_keeper_branch(struct esp_keeper *k, int branch, const char *name, bool marked,
                       bool deleted)
{
    struct item *item = new_item(k, BRANCH);
    if (!item)
        return;
    item->number = branch;
    item->on = marked;
    item->deleted = deleted;
    snprintf(item->text, sizeof item->text, "%s", name);
    push(k, item);
}

/* ------------------------------------------------------------------ the tree */

static int grow_kept(struct esp_keeper *k, int branch)
{
    const int before = k->kept_capacity;
    if (branch < before)
        return ESP_OK;
    if (esp_reserve(&k->kept, 2 * branch + 64, &k->kept_capacity, sizeof *k->kept) < 0)
        return ESP_E_MEMORY;
    memset(k->kept + before, 0, (size_t)(k->kept_capacity - before) * sizeof *k->kept);
    return ESP_OK;
}

/* Notes that a branch has changed in its own tokens [from, to), which may be none. Returns 0 or
 * ESP_E_MEMORY. */
static int touch(struct esp_keeper *k, int branch, int from, int to)
{
    if (grow_kept(k, branch) < 0)
        return ESP_E_MEMORY;
    struct kept *kept = &k->kept[branch];
    if (from < to) {
        const bool none = kept->from == kept->to;
        kept->from = none || from < kept->from ? from : kept->from;
        kept->to = none || to > kept->to ? to : kept->to;
    }
    if (kept->listed)
        return ESP_OK;
    if (esp_grow(&k->changed_branches, k->changed_count, &k->changed_capacity,
                 sizeof *k->changed_branches) < 0)
        return ESP_E_MEMORY;
    kept->listed = true;
    k->changed_branches[k->changed_count++] = branch;
    return ESP_OK;
}

static int append(struct esp_keeper *k, const struct esp_written *tokens, int count, bool anew)
{
    struct esp_branches *b = &k->branches;
    struct esp_written *stored;
    int status = ESP_OK;
    for (int i = 0; i < count && status == ESP_OK; i++) {
        status = esp_branches_append(b, &tokens[i], anew, k->header.drafter, &stored);
        const int branch = b->at.branch;
        const int own = b->at.length - 1 - (branch >= 0 ? b->branch[branch].fork : 0);
        if (status == ESP_OK &&
            (anew || branch >= k->kept_capacity || own >= k->kept[branch].tokens))
            status = touch(k, branch, own, own + 1);
        else if (status == ESP_OK && own + 1 == b->branch[branch].count)
            status = touch(k, branch, own, own); /* it may have been deleted, and is not now */
    }
    return status;
}

static int drop(struct esp_keeper *k, int start, int count)
{
    struct esp_branches *b = &k->branches;
    const int rest = b->at.length - start - count;
    if (start < 0 || count < 1 || rest < 0)
        return ESP_OK;
    struct esp_written *tokens = malloc(((size_t)rest + 1) * sizeof *tokens);
    if (!tokens)
        return ESP_E_MEMORY;
    esp_branches_text(b, b->at, start + count, tokens);
    esp_branches_cut(b, start);
    const int status = append(k, tokens, rest, true);
    free(tokens);
    return status;
}

static int set_scores(struct esp_keeper *k, const struct esp_snapshot *event)
{
    struct esp_branches *b = &k->branches;
    int status = ESP_OK;
    for (int i = 0; i < event->token_count && status == ESP_OK; i++) {
        const int place = event->start + i;
        if (place < 0 || place >= b->at.length)
            break;
        const struct esp_text_place owner = esp_branches_before(b, b->at, place + 1);
        esp_branches_token(b, b->at, place)->score = event->tokens[i].score;
        const int own = place - b->branch[owner.branch].fork;
        status = touch(k, owner.branch, own, own + 1);
    }
    return status;
}

static void cut(struct esp_keeper *k, int length)
{
    if (length >= 0 && length < k->branches.at.length)
        esp_branches_cut(&k->branches, length);
}

/* ------------------------------------------------------------------ writing */

static void complain(struct esp_keeper *k, const char *err)
{
    char sentence[760];
    k->failed = true;
    snprintf(sentence, sizeof sentence, "this session is not kept any more: %s", err);
    k->tell(k->user, sentence);
}

/* Marks everything as not written, so that it is written again, as a new session. */
static int forget_kept(struct esp_keeper *k)
{
    int status = ESP_OK;
    k->id = 0;
    k->dated = 0;
    free(k->pieces);
    k->pieces = NULL;
    k->header_changed = true;
    if (k->kept_capacity > 0)
        memset(k->kept, 0, (size_t)k->kept_capacity * sizeof *k->kept);
    k->changed_count = 0;
    for (int i = 0; i < k->branches.count && status == ESP_OK; i++)
        status = touch(k, i, 0, k->branches.branch[i].count);
    return status;
}

/* Opens the library once there is something to write. Returns false if nothing is to be
 * written. */
static bool ready(struct esp_keeper *k)
{
    char err[700];
    if (k->private || k->failed || (k->id == 0 && k->branches.count == 0))
        return false;
    if (!k->library &&
        esp_library_open(&k->library, k->path, ESP_LIBRARY_KEEP, err, sizeof err) < 0) {
        complain(k, err);
        return false;
    }
    if (k->id == 0 && *esp_library_note(k->library))
        k->tell(k->user, esp_library_note(k->library));
    return true;
}

/* Stores the text of a token, once. */
static void put_piece(struct esp_keeper *k, int32_t token)
{
    size_t length = 0;
    if (token < 0 || token >= k->header.vocabulary || k->pieces[token / 8] >> token % 8 & 1)
        return;
    const char *bytes = k->tokens.text(k->tokens.user, token, &length);
    esp_library_put_piece(k->library, k->header.vocabulary_hash, token, bytes, length);
    k->pieces[token / 8] |= (unsigned char)(1 << token % 8);
}

/* Stores the texts of some of a branch's tokens and of the likeliest ones in their places. */
static void put_pieces(struct esp_keeper *k, const struct esp_branch *branch, int from, int to)
{
    for (int i = from; i < to; i++) {
        const struct esp_token_score *score = &branch->tokens[i].score;
        put_piece(k, branch->tokens[i].token);
        for (int j = 0; j < score->count; j++)
            put_piece(k, score->likely[j]);
    }
}

/* Finds out which texts of tokens the library has already. Returns false if there is no
 * memory. */
static bool know_pieces(struct esp_keeper *k)
{
    if (k->pieces)
        return true;
    if (!(k->pieces = calloc((size_t)k->header.vocabulary / 8 + 1, 1)))
        return false;
    esp_library_pieces(k->library, k->header.vocabulary_hash, k->header.vocabulary, k->pieces);
    return true;
}

static void put_header(struct esp_keeper *k)
{
    k->line.length = 0;
    esp_header_to_json(&k->line, &k->header);
    esp_library_put_header(k->library, k->id, k->line.text, k->line.length,
                           k->header.vocabulary, k->header.vocabulary_hash, k->target_path,
                           k->draft_path);
    k->header_changed = false;
}

static void put_branches(struct esp_keeper *k)
{
    for (int i = 0; i < k->changed_count; i++) {
        const int number = k->changed_branches[i];
        struct kept *kept = &k->kept[number];
        const struct esp_branch *branch = &k->branches.branch[number];
        if (!kept->row || kept->deleted != branch->deleted)
            esp_library_put_branch(k->library, k->id, number, branch);
        put_pieces(k, branch, kept->from, kept->to);
        esp_library_put_tokens(k->library, k->id, number, branch, kept->from, kept->to);
        *kept = (struct kept){.tokens = branch->count, .row = true, .deleted = branch->deleted};
    }
    k->changed_count = 0;
}

/* Stores which text is on the screen, if that has changed. While a branch grows, its end stays
 * the place; only the time of the last change is stored then, each second. */
static void put_place(struct esp_keeper *k)
{
    const struct esp_branches *b = &k->branches;
    struct esp_text_place at = b->at;
    const time_t now = time(NULL);
    if (at.branch >= 0 && at.length == esp_branches_end(b, at.branch).length)
        at.length = ESP_LIBRARY_END;
    if (k->dated == now && at.branch == k->placed.branch && at.length == k->placed.length)
        return;
    esp_library_put_place(k->library, k->id, at, now);
    k->placed = at;
    k->dated = now;
}

/* Nine decimals are enough for a time (nanoseconds) and for a gauge, and they are written ten
 * times as fast as the seventeen digits of any double. Small numbers do not change. */
static double nine_decimals(double value)
{
    return fabs(value) > 1e-3 && fabs(value) < 1e6 ? floor(value * 1e9 + 0.5) / 1e9 : value;
}

static void round_numbers(struct esp_iteration *it, struct esp_layers *layers)
{
    for (int i = 0; i < ESP_STAGES; i++)
        it->seconds[i] = floor(it->seconds[i] * 1e9 + 0.5) / 1e9;
    for (int i = 0; i < layers->count; i++)
        layers->layers[i].time = nine_decimals(layers->layers[i].time);
    for (int i = 0; i < it->gauge_count; i++) {
        it->gauges[i].before = nine_decimals(it->gauges[i].before);
        it->gauges[i].after = nine_decimals(it->gauges[i].after);
    }
    it->baseline = nine_decimals(it->baseline);
}

/* Stores an iteration without what other tables have: the texts of tokens, and the scores. */
static void put_iteration(struct esp_keeper *k, struct item *item)
{
    struct esp_iteration *it = &item->event.iteration.it;
    const double time = item->time - (double)k->created;
    const struct esp_event event = {.type = ESP_EVENT_ITERATION,
                                    .iteration = it,
                                    .time = time > 0 ? nine_decimals(time) : 0};
    it->scores = NULL;
    round_numbers(it, &item->layers);
    for (int i = 0; i < it->tree.count; i++)
        put_piece(k, it->tree.nodes[i].token);
    put_piece(k, it->bonus);
    k->line.length = 0;
    if (esp_event_to_json(&k->line, &event, &item->layers, NULL) == ESP_OK)
        esp_library_put_iteration(k->library, k->id, k->iterations - 1, k->generation,
                                  k->line.text, k->line.length);
}

/* Stores the generation if it is new. A generation that is continued is in the library. */
static void put_generation(struct esp_keeper *k, const struct item *item)
{
    struct esp_line line = {.text = NULL};
    if (k->generation < k->generations)
        return;
    k->generations = k->generation + 1;
    if (esp_header_to_json(&line, &item->header) == ESP_OK)
        esp_library_put_generation(
            k->library, k->id,
            &(struct esp_kept_generation){k->generation, k->branches.at.length, item->generator,
                                          item->limit, line.text, line.length});
    esp_line_free(&line);
}

/* ------------------------------------------------------------------ applying */

static void go_private(struct esp_keeper *k, bool on)
{
    char err[512];
    const bool was = k->private;
    k->private = on;
    if (on == was || k->resumed)
        return;
    if (k->id > 0 && esp_library_delete(k->library, k->id, err, sizeof err) < 0)
        k->tell(k->user, err);
    forget_kept(k);
}

static void set_models(struct esp_keeper *k, const struct item *item)
{
    k->header = item->header;
    k->tokens = item->tokens;
    snprintf(k->target_path, sizeof k->target_path, "%s", item->target_path);
    snprintf(k->draft_path, sizeof k->draft_path, "%s", item->draft_path);
    k->header_changed = true;
    if (!item->on)
        return;
    esp_branches_free(&k->branches);
    forget_kept(k);
    k->resumed = false;
    k->iterations = k->generations = 0;
    k->first_generation = -k->numbered;
    k->created = time(NULL);
}

static void edit_branch(struct esp_keeper *k, const struct item *item)
{
    if (item->number < 0 || item->number >= k->branches.count)
        return;
    struct esp_branch *branch = &k->branches.branch[item->number];
    snprintf(branch->name, sizeof branch->name, "%.47s", item->text);
    branch->marked = item->on;
    branch->deleted = item->deleted;
    if (touch(k, item->number, 0, 0) == ESP_OK)
        k->kept[item->number].row = false;
}

/* Applies an item, and numbers iterations. Returns 0 or ESP_E_MEMORY. */
static int follow(struct esp_keeper *k, struct item *item)
{
    struct esp_snapshot *event = &item->event;
    switch (item->type) {
    case PRIVATE:
        go_private(k, item->on);
        return ESP_OK;
    case MODELS:
        set_models(k, item);
        return ESP_OK;
    case GENERATION:
        k->numbered = item->number + 1;
        k->generation = k->first_generation + item->number;
        return ESP_OK;
    case BRANCH:
        edit_branch(k, item);
        return ESP_OK;
    case SCORES:
        return set_scores(k, event);
    case FORK:
        cut(k, event->kept);
        return append(k, event->tokens, event->token_count, false);
    case ESP_EVENT_DROP:
        return drop(k, event->start, event->kept);
    case ESP_EVENT_REWIND:
        cut(k, event->kept);
        return ESP_OK;
    case ESP_EVENT_CLEAR:
        cut(k, 0);
        return ESP_OK;
    case ESP_EVENT_ITERATION:
        for (int i = 0; i < event->token_count; i++)
            event->tokens[i].iteration = k->iterations;
        k->iterations++;
        return append(k, event->tokens, event->token_count, true);
    default: /* ESP_EVENT_PROMPT */
        return append(k, event->tokens, event->token_count, true);
    }
}

/* Applies the items and writes them in one transaction. Returns false if the last item ends the
 * thread. */
static bool work(struct esp_keeper *k, struct item *items)
{
    char err[700];
    bool open = false, on = true;
    for (struct item *item = items; item; item = item->next) {
        if (item->type == QUIT) {
            on = false;
            break;
        }
        if (item->type == PRIVATE && open) { /* needs its own transaction */
            if (esp_library_commit(k->library, err, sizeof err) < 0)
                complain(k, err);
            open = false;
        }
        if (follow(k, item) < 0)
            complain(k, "there is no memory");
        if (!ready(k))
            continue;
        if (!open)
            esp_library_begin(k->library);
        open = true;
        if (k->id == 0)
            k->id = esp_library_add(k->library, k->created);
        if (k->header_changed)
            put_header(k);
        if (!know_pieces(k)) {
            complain(k, "there is no memory");
            continue;
        }
        if (item->type == ESP_EVENT_ITERATION)
            put_iteration(k, item);
        if (item->type == GENERATION)
            put_generation(k, item);
    }
    if (open) {
        put_branches(k);
        put_place(k);
        if (esp_library_commit(k->library, err, sizeof err) < 0)
            complain(k, err);
    }
    return on;
}

/* Loads the kept session that is continued. */
static void load(struct esp_keeper *k)
{
    char err[700];
    struct esp_kept_text text = {.vocabulary = 0};
    int status = esp_library_open(&k->library, k->path, ESP_LIBRARY_KEEP, err, sizeof err);
    if (status == ESP_OK && !esp_library_claim(k->library, k->id))
        status = esp_fail(err, sizeof err, ESP_E_FILE,
                          "session %lld is open in another program", (long long)k->id);
    if (status == ESP_OK)
        status = esp_library_load(k->library, k->id, &text, err, sizeof err);
    if (status == ESP_OK) {
        esp_branches_free(&k->branches);
        k->branches = text.branches;
        k->branches.at = (struct esp_text_place){-1, 0};
        esp_branches_open(&text.branches);
        k->iterations = text.iterations;
        k->first_generation = k->generations = text.generations;
        k->created = text.created;
        for (int i = 0; i < k->branches.count && status == ESP_OK; i++) {
            const struct esp_branch *branch = &k->branches.branch[i];
            if ((status = grow_kept(k, i)) == ESP_OK)
                k->kept[i] = (struct kept){
                    .tokens = branch->count, .row = true, .deleted = branch->deleted};
        }
    }
    if (status < 0)
        complain(k, status == ESP_E_MEMORY ? "there is no memory" : err);
    esp_kept_text_free(&text);
}

/* Removes deleted branches at the end of the session, when undo can no longer restore them. */
static void drop_deleted(struct esp_keeper *k)
{
    char err[700];
    bool deleted = false;
    for (int i = 0; i < k->branches.count; i++)
        deleted = deleted || k->branches.branch[i].deleted;
    if (!deleted || esp_branches_compact(&k->branches) == 0)
        return;
    memset(k->kept, 0, (size_t)k->kept_capacity * sizeof *k->kept);
    k->changed_count = 0;
    for (int i = 0; i < k->branches.count; i++)
        if (touch(k, i, 0, k->branches.branch[i].count) < 0)
            return;
    esp_library_begin(k->library);
    esp_library_drop_branches(k->library, k->id);
    put_branches(k);
    put_place(k);
    esp_library_drop_unused(k->library, k->id);
    if (esp_library_commit(k->library, err, sizeof err) < 0)
        complain(k, err);
}

static void *run(void *user)
{
    struct esp_keeper *k = user;
    char err[512];
    bool on = true;
    if (k->id > 0)
        load(k);
    while (on) {
        struct item *items = take(k);
        on = work(k, items);
        give_back(k, items);
    }
    if (k->library && k->id > 0 && !k->failed && !k->private) {
        drop_deleted(k);
        esp_library_begin(k->library);
        esp_library_index(k->library, k->id);
        esp_library_commit(k->library, err, sizeof err); /* otherwise a search does it */
    }
    esp_library_close(k->library);
    return NULL;
}

/* ------------------------------------------------------------------ opening and closing */

static void free_items(struct item *item)
{
    while (item) {
        struct item *next = item->next;
        free_item(item);
        item = next;
    }
}

static void destroy(struct esp_keeper *k)
{
    free_items(k->first);
    free_items(k->spare);
    if (k->running)
        free_item(k->running);
    esp_branches_free(&k->branches);
    esp_line_free(&k->line);
    free(k->kept);
    free(k->changed_branches);
    free(k->pieces);
    free(k->path);
    pthread_mutex_destroy(&k->lock);
    pthread_cond_destroy(&k->changed);
    free(k);
}

int esp_keeper_open(struct esp_keeper **keeper, const char *path, int64_t resume,
                    esp_keeper_tell *tell, void *user)
{
    struct esp_keeper *k = calloc(1, sizeof *k);
    *keeper = NULL;
    if (!k)
        return ESP_E_MEMORY;
    k->last = &k->first;
    k->path = strdup(path);
    k->id = resume;
    k->resumed = resume > 0;
    k->tell = tell;
    k->user = user;
    k->private = true;
    k->created = time(NULL);
    esp_branches_open(&k->branches);
    pthread_mutex_init(&k->lock, NULL);
    pthread_cond_init(&k->changed, NULL);
    if (!k->path || esp_quiet_thread(&k->thread, run, k) < 0) {
        destroy(k);
        return ESP_E_MEMORY;
    }
    *keeper = k;
    return ESP_OK;
}

void esp_keeper_close(struct esp_keeper *k)
{
    struct item *item;
    if (!k)
        return;
    while (!(item = new_item(k, QUIT))) /* written items can be used again */
        esp_keeper_settle(k);
    push(k, item);
    pthread_join(k->thread, NULL);
    destroy(k);
}
