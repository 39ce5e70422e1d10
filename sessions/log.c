/* log.c - writes the records of a session's log, and applies them; see log.h. */
#include "sessions/log.h"

#include <math.h>
#include <stdio.h>

#include "sessions/grow.h"

enum { MOST = 1 << 28 }; /* maximum length of a text, in tokens */
enum { KIND = 7, HAS_SCORE = 8, HAS_ITERATION = 16 };

/* ------------------------------------------------------------------ frames */

/* Returns a checksum of the bytes. For speed, it reads eight bytes at a time. It detects
 * accidental damage, but not deliberate changes. */
static uint32_t check_of(const unsigned char *bytes, size_t length)
{
    uint64_t sum = length, word;
    for (; length >= 8; bytes += 8, length -= 8) {
        memcpy(&word, bytes, 8);
        sum = (sum ^ word) * 0x9E3779B97F4A7C15u;
        sum ^= sum >> 32;
    }
    for (; length > 0; bytes++, length--) {
        sum = (sum ^ *bytes) * 0x9E3779B97F4A7C15u;
        sum ^= sum >> 32;
    }
    return (uint32_t)sum;
}

static void put_fixed(unsigned char *to, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        to[i] = (unsigned char)(value >> 8 * i);
}

static uint32_t get_fixed(const unsigned char *from)
{
    return (uint32_t)from[0] | (uint32_t)from[1] << 8 | (uint32_t)from[2] << 16 |
           (uint32_t)from[3] << 24;
}

static size_t begin(struct esp_pack *to, enum esp_log_kind kind)
{
    const size_t start = to->length;
    unsigned char *room = esp_pack_room(to, ESP_LOG_FRAME + 1);
    if (room) {
        room[ESP_LOG_FRAME] = (unsigned char)kind;
        to->length += ESP_LOG_FRAME + 1;
    }
    return start;
}

void esp_log_seal(unsigned char *record, size_t length)
{
    put_fixed(record, (uint32_t)length);
    put_fixed(record + 4, check_of(record + ESP_LOG_FRAME, length));
}

static void end(struct esp_pack *to, size_t start)
{
    if (!to->failed)
        esp_log_seal(to->at + start, to->length - start - ESP_LOG_FRAME);
}

int esp_log_next(const unsigned char **at, const unsigned char *limit, struct esp_from *from)
{
    if (*at == limit)
        return 0;
    if (limit - *at <= ESP_LOG_FRAME)
        return -1;
    const size_t length = get_fixed(*at);
    const unsigned char *body = *at + ESP_LOG_FRAME;
    if (length < 1 || length > (size_t)(limit - body) ||
        get_fixed(*at + 4) != check_of(body, length) || *body == 0 || *body >= ESP_LOG_KINDS)
        return -1;
    *from = (struct esp_from){body + 1, body + length, false};
    *at = body + length;
    return *body;
}

/* ------------------------------------------------------------------ writing */

static void put_score(struct esp_pack *to, const struct esp_token_score *score)
{
    esp_pack_float(to, score->p);
    esp_pack_float(to, score->entropy);
    esp_pack_number(to, (uint64_t)score->rank);
    esp_pack_number(to, (uint64_t)score->count);
    for (int i = 0; i < score->count; i++) {
        esp_pack_number(to, (uint32_t)score->likely[i]);
        esp_pack_float(to, score->likely_p[i]);
    }
}

static void put_token(struct esp_pack *to, int32_t token, int kind, int iteration,
                      const struct esp_token_score *score)
{
    const bool scored = score && score->count > 0;
    esp_pack_number(to, (uint32_t)token);
    esp_pack_number(to, (uint64_t)kind | (scored ? HAS_SCORE : 0) |
                            (iteration >= 0 ? HAS_ITERATION : 0));
    if (iteration >= 0)
        esp_pack_number(to, (uint64_t)iteration);
    if (scored)
        put_score(to, score);
}

/* Appends a record that consists only of numbers. */
static void put_numbers(struct esp_pack *to, enum esp_log_kind kind, int count,
                        const uint64_t *numbers)
{
    const size_t start = begin(to, kind);
    for (int i = 0; i < count; i++)
        esp_pack_number(to, numbers[i]);
    end(to, start);
}

void esp_log_time(struct esp_pack *to, time_t now)
{
    put_numbers(to, ESP_LOG_TIME, 1, (uint64_t[]){now > 0 ? (uint64_t)now : 0});
}

void esp_log_piece(struct esp_pack *to, int32_t token, const char *bytes, size_t length)
{
    const size_t start = begin(to, ESP_LOG_PIECE);
    esp_pack_number(to, (uint32_t)token);
    esp_pack_text(to, bytes ? bytes : "", bytes ? length : 0);
    end(to, start);
}

void esp_log_header(struct esp_pack *to, const struct esp_recording_header *header,
                    const char *line, size_t length, const char *target_path,
                    const char *draft_path)
{
    const size_t start = begin(to, ESP_LOG_HEADER);
    esp_pack_text(to, header->drafter, strcspn(header->drafter, ":"));
    esp_pack_number(to, (uint64_t)header->vocabulary);
    esp_pack_text(to, header->vocabulary_hash, strlen(header->vocabulary_hash));
    esp_pack_text(to, target_path, strlen(target_path));
    esp_pack_text(to, draft_path, strlen(draft_path));
    esp_pack_text(to, line, length);
    end(to, start);
}

void esp_log_prompt(struct esp_pack *to, const struct esp_event *event)
{
    const size_t start = begin(to, ESP_LOG_PROMPT);
    esp_pack_number(to, (uint64_t)event->token_count);
    for (int i = 0; i < event->token_count; i++)
        put_token(to, event->tokens[i], esp_text_kind_of(event, i), -1, NULL);
    end(to, start);
}

void esp_log_fork(struct esp_pack *to, int kept, const struct esp_text_token *text, int count)
{
    const size_t start = begin(to, ESP_LOG_FORK);
    esp_pack_number(to, (uint64_t)kept);
    esp_pack_number(to, (uint64_t)(count - kept));
    for (int i = kept; i < count; i++)
        put_token(to, text[i].token, text[i].kind, -1, NULL);
    end(to, start);
}

void esp_log_cut(struct esp_pack *to, int length)
{
    put_numbers(to, ESP_LOG_CUT, 1, (uint64_t[]){(uint64_t)length});
}

void esp_log_drop(struct esp_pack *to, int start, int count)
{
    put_numbers(to, ESP_LOG_DROP, 2, (uint64_t[]){(uint64_t)start, (uint64_t)count});
}

void esp_log_scores(struct esp_pack *to, int first, const struct esp_token_score *scores,
                    int count)
{
    const size_t start = begin(to, ESP_LOG_SCORES);
    esp_pack_number(to, (uint64_t)first);
    esp_pack_number(to, (uint64_t)count);
    for (int i = 0; i < count; i++)
        put_score(to, &scores[i]);
    end(to, start);
}

static void put_name(struct esp_pack *to, const char *name, bool marked, bool deleted)
{
    esp_pack_number(to, (uint64_t)marked | (uint64_t)deleted << 1);
    esp_pack_text(to, name, strlen(name));
}

void esp_log_judge(struct esp_pack *to, int branch, const char *name, bool marked, bool deleted)
{
    const size_t start = begin(to, ESP_LOG_JUDGE);
    esp_pack_number(to, (uint64_t)branch);
    put_name(to, name, marked, deleted);
    end(to, start);
}

void esp_log_generation(struct esp_pack *to, const struct esp_kept_generation *g)
{
    const size_t start = begin(to, ESP_LOG_GENERATION);
    esp_pack_number(to, (uint64_t)g->number);
    esp_pack_number(to, (uint64_t)(g->place + 1));
    esp_pack_number(to, (uint64_t)g->tokens);
    esp_pack_fixed(to, g->generator.draft, 8);
    esp_pack_fixed(to, g->generator.verify, 8);
    esp_pack_text(to, g->header, g->header_length);
    end(to, start);
}

void esp_log_iteration(struct esp_pack *to, int number, const struct esp_event *event)
{
    const struct esp_iteration *it = event->iteration;
    const size_t start = begin(to, ESP_LOG_ITERATION);
    esp_pack_number(to, (uint64_t)number);
    esp_pack_number(to, (uint64_t)it->committed_count);
    for (int i = 0; i < it->committed_count; i++)
        put_token(to, it->committed[i], esp_text_kind_of(event, i), -1,
                  it->scores ? &it->scores[i] : NULL);
    end(to, start);
}

void esp_log_tree(struct esp_pack *to, int number, int generation,
                  const struct esp_event *event, const struct esp_layers *layers)
{
    const size_t start = begin(to, ESP_LOG_TREE);
    esp_pack_number(to, (uint64_t)number);
    esp_pack_number(to, (uint64_t)generation);
    esp_event_to_bytes(to, event, layers);
    end(to, start);
}

void esp_log_branch(struct esp_pack *to, const struct esp_branch *b)
{
    const size_t start = begin(to, ESP_LOG_BRANCH);
    esp_pack_number(to, (uint64_t)(b->parent + 1));
    esp_pack_number(to, (uint64_t)b->fork);
    put_name(to, b->name, b->marked, b->deleted);
    esp_pack_number(to, b->created > 0 ? (uint64_t)b->created : 0);
    esp_pack_text(to, b->drafter, strlen(b->drafter));
    esp_pack_number(to, (uint64_t)b->count);
    for (int i = 0; i < b->count; i++)
        put_token(to, b->tokens[i].token, b->tokens[i].kind, b->tokens[i].iteration,
                  &b->tokens[i].score);
    end(to, start);
}

void esp_log_place(struct esp_pack *to, struct esp_text_place place)
{
    put_numbers(to, ESP_LOG_PLACE, 2,
                (uint64_t[]){(uint64_t)(place.branch + 1), (uint64_t)place.length});
}

/* ------------------------------------------------------------------ reading */

/* Reads an integer. If it is not within `least`..`most`, this is an error, and the function
 * returns `least`. */
static int get_int(struct esp_from *from, int least, int most)
{
    const uint64_t value = esp_from_number(from, most >= least ? (uint64_t)most : 0);
    from->bad |= most < least || value < (uint64_t)least;
    return from->bad ? least : (int)value;
}

/* Reads a number from 0 to `most`, or NaN, which stands for a missing value. */
static float get_float(struct esp_from *from, double most)
{
    const uint32_t bits = (uint32_t)esp_from_fixed(from, 4);
    float value;
    memcpy(&value, &bits, sizeof value);
    from->bad |= !isnan(value) && !(value >= 0 && value <= most);
    return value;
}

static void get_score(struct esp_log_texts *t, struct esp_from *from,
                      struct esp_token_score *score)
{
    *score = (struct esp_token_score){.p = get_float(from, 1.01)};
    score->entropy = get_float(from, 64);
    const int rank = get_int(from, 0, ESP_LIKELY);
    score->count = get_int(from, 0, ESP_LIKELY);
    score->rank = rank;
    from->bad |= rank > score->count;
    for (int i = 0; i < score->count; i++) {
        score->likely[i] = get_int(from, 0, t->vocabulary - 1);
        score->likely_p[i] = esp_from_float(from, 0, 1.01);
    }
}

/* Reads the number of an iteration. If needed, raises t->iterations above this number. */
static int get_iteration(struct esp_log_texts *t, struct esp_from *from)
{
    const int number = get_int(from, 0, ESP_LOG_ITERATIONS - 1);
    if (number >= t->iterations && !from->bad)
        t->iterations = number + 1;
    return number;
}

static struct esp_written get_token(struct esp_log_texts *t, struct esp_from *from)
{
    struct esp_written token = {.token = get_int(from, 0, t->vocabulary - 1),
                                .iteration = ESP_BY_NO_ITERATION};
    const int flags = get_int(from, 0, 31);
    from->bad |= (flags & KIND) > ESP_TEXT_CHOSEN;
    token.kind = (uint8_t)(flags & KIND);
    if (flags & HAS_ITERATION)
        token.iteration = get_iteration(t, from);
    if (flags & HAS_SCORE)
        get_score(t, from, &token.score);
    return token;
}

/* Reads tokens and appends them to the current text. Iteration `iteration` wrote them. For
 * `anew` see esp_branches_append(). */
static void append(struct esp_log_texts *t, struct esp_from *from, int iteration, bool anew)
{
    struct esp_branches *b = t->branches;
    struct esp_written *stored;
    const int count = get_int(from, 0, MOST);
    for (int i = 0; i < count && !from->bad; i++) {
        struct esp_written token = get_token(t, from);
        const int before = b->count;
        token.iteration = iteration;
        if (from->bad || b->at.length >= MOST)
            from->bad = true;
        else if (esp_branches_append(b, &token, anew, t->drafter, &stored) < 0)
            t->no_memory = from->bad = true;
        else if (b->count > before)
            b->branch[before].created = t->now;
    }
}

static void drop(struct esp_log_texts *t, struct esp_from *from)
{
    struct esp_branches *b = t->branches;
    struct esp_written *stored;
    const int start = get_int(from, 0, b->at.length);
    const int count = get_int(from, 1, b->at.length - start);
    const int rest = from->bad ? 0 : b->at.length - start - count;
    struct esp_written *tokens = malloc(((size_t)rest + 1) * sizeof *tokens);
    t->no_memory |= !tokens;
    if (tokens && !from->bad) {
        esp_branches_text(b, b->at, start + count, tokens);
        esp_branches_cut(b, start);
        for (int i = 0; i < rest && !t->no_memory; i++)
            t->no_memory = esp_branches_append(b, &tokens[i], true, t->drafter, &stored) < 0;
    }
    from->bad |= t->no_memory;
    free(tokens);
}

static void set_scores(struct esp_log_texts *t, struct esp_from *from)
{
    struct esp_branches *b = t->branches;
    struct esp_token_score score;
    const int first = get_int(from, 0, MOST), count = get_int(from, 0, MOST);
    for (int i = 0; i < count && !from->bad; i++) {
        get_score(t, from, &score);
        if (first + i < b->at.length && !from->bad) /* the last score can belong to the next
                                                       token, which is not in the text yet */
            esp_branches_token(b, b->at, first + i)->score = score;
    }
}

/* Reads the name and the flags of a branch. */
static void get_name(struct esp_from *from, struct esp_branch *branch)
{
    const int flags = get_int(from, 0, 3);
    branch->marked = flags & 1;
    branch->deleted = flags & 2;
    esp_from_copy(from, branch->name, sizeof branch->name);
}

static void judge(struct esp_log_texts *t, struct esp_from *from)
{
    struct esp_branch any;
    const int number = get_int(from, 0, MOST);
    get_name(from, number < t->branches->count ? &t->branches->branch[number] : &any);
}

static void whole_branch(struct esp_log_texts *t, struct esp_from *from)
{
    struct esp_branches *b = t->branches;
    struct esp_branch branch = {.parent = get_int(from, 0, b->count) - 1,
                                .fork = get_int(from, 0, MOST)};
    get_name(from, &branch);
    branch.created = (time_t)esp_from_number(from, INT64_MAX);
    esp_from_copy(from, branch.drafter, sizeof branch.drafter);
    /* A token takes at least two bytes. Checking this avoids a huge allocation if the number
     * of tokens is wrong. */
    branch.capacity = get_int(from, 1, (int)((from->end - from->at) / 2));
    if (from->bad || !esp_branches_fit(b, &branch) || branch.fork + branch.capacity > MOST) {
        from->bad = true;
        return;
    }
    branch.tokens = malloc((size_t)branch.capacity * sizeof *branch.tokens);
    t->no_memory =
        !branch.tokens || esp_grow(&b->branch, b->count, &b->capacity, sizeof *b->branch) < 0;
    while (!t->no_memory && branch.count < branch.capacity && !from->bad)
        branch.tokens[branch.count++] = get_token(t, from);
    from->bad |= t->no_memory;
    if (from->bad) {
        free(branch.tokens);
        return;
    }
    b->branch[b->count++] = branch;
    esp_branches_link(b, b->count - 1);
}

static void set_place(struct esp_log_texts *t, struct esp_from *from)
{
    struct esp_branches *b = t->branches;
    struct esp_text_place at = {.branch = get_int(from, 0, b->count) - 1,
                                .length = get_int(from, 0, MOST)};
    if (from->bad || at.length > esp_branches_end(b, at.branch).length)
        from->bad = true;
    else
        b->at = esp_branches_before(b, at, at.length);
    from->bad |= !from->bad && (b->at.branch < 0) != (b->at.length == 0);
}

static void generation(struct esp_log_texts *t, struct esp_from *from)
{
    struct esp_kept_generation g = {.number = get_int(from, 0, ESP_LOG_ITERATIONS - 1),
                                    .place = get_int(from, 0, MOST) - 1};
    g.tokens = get_int(from, 1, INT32_MAX);
    g.generator.draft = esp_from_fixed(from, 8);
    g.generator.verify = esp_from_fixed(from, 8);
    const char *header = esp_from_text(from, &g.header_length);
    g.place = g.place < 0 ? t->branches->at.length : g.place;
    if (from->bad)
        return;
    t->generations = g.number >= t->generations ? g.number + 1 : t->generations;
    if (!t->begin)
        return;
    char *copy = strndup(header, g.header_length);
    if (!copy) {
        t->no_memory = from->bad = true;
        return;
    }
    g.header = copy;
    g.header_length = strlen(copy);
    t->begin(t->user, &g);
    free(copy);
}

bool esp_log_apply(struct esp_log_texts *t, int kind, struct esp_from *from)
{
    struct esp_branches *b = t->branches;
    int number = ESP_BY_NO_ITERATION;
    switch (kind) {
    case ESP_LOG_TIME:
        t->now = (time_t)esp_from_number(from, INT64_MAX);
        break;
    case ESP_LOG_HEADER:
        esp_from_copy(from, t->drafter, sizeof t->drafter);
        break;
    case ESP_LOG_ITERATION:
        number = get_iteration(t, from);
        append(t, from, number, true);
        break;
    case ESP_LOG_PROMPT:
        append(t, from, number, true);
        break;
    case ESP_LOG_FORK:
        esp_branches_cut(b, get_int(from, 0, MOST));
        append(t, from, number, false);
        break;
    case ESP_LOG_CUT:
        esp_branches_cut(b, get_int(from, 0, MOST));
        break;
    case ESP_LOG_DROP:
        drop(t, from);
        break;
    case ESP_LOG_SCORES:
        set_scores(t, from);
        break;
    case ESP_LOG_JUDGE:
        judge(t, from);
        break;
    case ESP_LOG_BRANCH:
        whole_branch(t, from);
        break;
    case ESP_LOG_PLACE:
        set_place(t, from);
        break;
    case ESP_LOG_GENERATION:
        generation(t, from);
        break;
    default: /* records of kind PIECE or TREE do not change the texts */
        break;
    }
    return !from->bad;
}

void esp_log_tree_begin(struct esp_from *from, int *number, int *generation)
{
    *number = get_int(from, 0, ESP_LOG_ITERATIONS - 1);
    *generation = get_int(from, 0, ESP_LOG_ITERATIONS - 1);
}
