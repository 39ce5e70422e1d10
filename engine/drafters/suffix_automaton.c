/* suffix_automaton.c - see suffix_automaton.h.
 *
 * Edges are in a hash table by (state, token), and in a list per state to enumerate
 * continuations. A token adds at most two states; counts are updated along the suffix links.
 */
#include "engine/drafters/suffix_automaton.h"

#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ the automaton */

enum { FIRST_ROOM = 512, LONGEST_LINKS = 64, SEPARATOR = -1 /* separates two texts */ };
/* If a text is longer than MOST tokens, only its last MOST / 2 to MOST tokens are kept. */
enum { MOST = ESP_SUFFIX_MOST };

static size_t slot_of(const struct esp_suffix *s, int32_t state, int32_t token)
{
    uint64_t key = (uint64_t)(uint32_t)state << 32 | (uint32_t)token;
    key *= 0x9E3779B97F4A7C15u;
    key ^= key >> 29;
    size_t at = (size_t)(key * 0xBF58476D1CE4E5B9u >> 17) & (size_t)(s->slots - 1);
    while (s->slot[at] >= 0 &&
           (s->edge[s->slot[at]].from != state || s->edge[s->slot[at]].token != token))
        at = (at + 1) & (size_t)(s->slots - 1);
    return at;
}

/* Returns the edge of a state with this token, or -1. */
static int32_t find(const struct esp_suffix *s, int32_t state, int32_t token)
{
    return s->slot[slot_of(s, state, token)];
}

static void add_edge(struct esp_suffix *s, int32_t from, int32_t token, int32_t to)
{
    const int32_t e = s->edges++;
    s->slot[slot_of(s, from, token)] = e; /* this slot is free, because there is no such edge
                                             yet */
    s->edge[e] = (struct esp_suffix_edge){from, token, to, s->state[from].edges};
    s->state[from].edges = e;
}

static int32_t add_state(struct esp_suffix *s, struct esp_suffix_state state)
{
    state.edges = -1;
    s->state[s->states] = state;
    return s->states++;
}

static void clear(struct esp_suffix *s)
{
    s->length = s->states = s->edges = s->last = 0;
    for (int i = 0; i < s->slots; i++)
        s->slot[i] = -1;
    if (s->room > 0)
        add_state(s, (struct esp_suffix_state){.link = -1});
}

/* Allocates room for a text of `length` tokens. A text of n tokens needs at most 2n states and
 * 3n edges; the hash table gets 8n slots. */
static int make_room(struct esp_suffix *s, int length)
{
    int room = s->room > 0 ? s->room : FIRST_ROOM;
    if (length <= s->room)
        return ESP_OK;
    while (room < length)
        room *= 2;
    const size_t n = (size_t)room;
    int slots = 8 * room;
    void *text = realloc(s->text, n * sizeof *s->text);
    s->text = text ? text : s->text;
    void *state = realloc(s->state, 2 * n * sizeof *s->state);
    s->state = state ? state : s->state;
    void *edge = realloc(s->edge, 3 * n * sizeof *s->edge);
    s->edge = edge ? edge : s->edge;
    int32_t *slot = malloc((size_t)slots * sizeof *slot);
    if (!text || !state || !edge || !slot) {
        free(slot);
        return ESP_E_MEMORY;
    }
    free(s->slot);
    s->slot = slot;
    s->slots = slots;
    for (int i = 0; i < slots; i++)
        slot[i] = -1;
    if (s->room == 0)
        add_state(s, (struct esp_suffix_state){.link = -1});
    s->room = room;
    for (int32_t e = 0; e < s->edges; e++)
        slot[slot_of(s, s->edge[e].from, s->edge[e].token)] = e;
    return ESP_OK;
}

/* Returns the suffix link of the new end of the text: the state of the longest substring that
 * ends with `token` and occurred before. p is the first state along the suffix links with an
 * edge for `token`, or -1. */
static int32_t link_of(struct esp_suffix *s, int32_t p, int32_t token)
{
    if (p < 0)
        return 0;
    const int32_t q = s->edge[find(s, p, token)].to;
    if (s->state[p].length + 1 == s->state[q].length)
        return q;
    struct esp_suffix_state shorter = s->state[q];
    shorter.length = s->state[p].length + 1;
    const int32_t clone = add_state(s, shorter);
    for (int32_t e = s->state[q].edges; e >= 0; e = s->edge[e].next)
        add_edge(s, clone, s->edge[e].token, s->edge[e].to);
    s->state[q].link = clone;
    for (int32_t e; p >= 0 && (e = find(s, p, token)) >= 0 && s->edge[e].to == q;
         p = s->state[p].link)
        s->edge[e].to = clone;
    return clone;
}

static void append(struct esp_suffix *s, int32_t token)
{
    const int32_t now = add_state(s, (struct esp_suffix_state){.length = s->length + 1});
    int32_t p = s->last;
    s->text[s->length++] = token;
    for (; p >= 0 && find(s, p, token) < 0; p = s->state[p].link)
        add_edge(s, p, token, now);
    const int32_t link = link_of(s, p, token);
    s->state[now].link = link;
    for (int32_t u = now; u > 0; u = s->state[u].link) {
        s->state[u].count++;
        s->state[u].end = s->length;
    }
    s->last = now;
}

/* Removes the text from the automaton, but keeps the seed (the expected text). */
static void forget_text(struct esp_suffix *s)
{
    clear(s);
    while (s->length < s->seed)
        append(s, s->text[s->length]);
}

int esp_suffix_seed(struct esp_suffix *s, const int32_t *tokens, int count)
{
    count = count < MOST ? count : MOST;
    s->seed = 0;
    clear(s);
    if (count == 0)
        return ESP_OK;
    if (make_room(s, count + 1) < 0) {
        clear(s);
        return ESP_E_MEMORY;
    }
    for (int i = 0; i < count; i++)
        append(s, tokens[i]);
    append(s, SEPARATOR);
    s->seed = count + 1;
    return ESP_OK;
}

int esp_suffix_read(struct esp_suffix *s, const int32_t *text, int length)
{
    if (length > MOST) {
        const int forgotten = (length - MOST / 2) / (MOST / 2) * (MOST / 2);
        text += forgotten;
        length -= forgotten;
    }
    const int known = s->length - s->seed;
    if (known > length ||
        memcmp(s->text ? s->text + s->seed : text, text, (size_t)known * sizeof *text) != 0)
        forget_text(s);
    if (make_room(s, s->seed + length) < 0) {
        s->seed = 0;
        clear(s);
        return ESP_E_MEMORY;
    }
    while (s->length < s->seed + length)
        append(s, text[s->length - s->seed]);
    return ESP_OK;
}

void esp_suffix_close(struct esp_suffix *s)
{
    free(s->text);
    free(s->state);
    free(s->edge);
    free(s->slot);
    memset(s, 0, sizeof *s);
}

/* ------------------------------------------------------------------ guesses */

/* Returns how many occurrences of a state's substrings are followed by a token. */
static int32_t followed(const struct esp_suffix *s, int32_t state)
{
    int32_t sum = 0;
    for (int32_t e = s->state[state].edges; e >= 0; e = s->edge[e].next)
        if (s->edge[e].token != SEPARATOR)
            sum += s->state[s->edge[e].to].count;
    return sum;
}

/* Returns whether any token follows a state's substrings. */
static bool is_followed(const struct esp_suffix *s, int32_t state)
{
    const int32_t e = s->state[state].edges;
    return e >= 0 && (s->edge[e].token != SEPARATOR || s->edge[e].next >= 0);
}

/* Returns the state itself if a token follows its substrings, or else the state of the longest
 * shorter match that is followed by a token; 0 if there is none. */
static int32_t followed_state(const struct esp_suffix *s, int32_t state)
{
    while (state > 0 && !is_followed(s, state))
        state = s->state[state].link;
    return state;
}

/* A candidate for the tree: the likeliest continuation of `parent` that is not in the tree
 * yet. */
struct open {
    int32_t parent, edge;
    int32_t total; /* summed counts of all continuations of the parent */
    double d;
};

static int32_t count_of(const struct esp_suffix *s, int32_t edge)
{
    return s->state[s->edge[edge].to].count;
}

/* Returns whether edge a comes before b: edges are sorted by falling count, then by falling
 * position of the last occurrence. */
static bool sooner(const struct esp_suffix *s, int32_t a, int32_t b)
{
    const struct esp_suffix_state *x = &s->state[s->edge[a].to], *y = &s->state[s->edge[b].to];
    return x->count != y->count ? x->count > y->count : x->end > y->end;
}

/* Returns the edge that comes after edge `after` of a state, or its first edge if `after` is
 * -1. Returns -1 if there is none. */
static int32_t next_edge(const struct esp_suffix *s, int32_t state, int32_t after)
{
    int32_t best = -1;
    for (int32_t e = s->state[state].edges; e >= 0; e = s->edge[e].next)
        if (s->edge[e].token != SEPARATOR && (after < 0 || sooner(s, after, e)) &&
            (best < 0 || sooner(s, e, best)))
            best = e;
    return best;
}

/* Grows a tree of guesses from a match. Returns the number of guesses. Sets *sum to the sum of
 * their D, the estimated probabilities of acceptance. */
static int grow(const struct esp_suffix *s, int32_t match, const struct esp_guess_plan *plan,
                int most, struct esp_guess *g, double *sum)
{
    struct open open[2 * ESP_GUESSES + 2];
    int count = 0, waiting = 0;
    *sum = 0;
    open[waiting++] = (struct open){-1, next_edge(s, match, -1), followed(s, match), 1};
    while (count < most && waiting > 0) {
        int best = 0;
        double best_d = -1;
        for (int i = 0; i < waiting; i++) {
            double d = open[i].d * count_of(s, open[i].edge) / open[i].total;
            if (d > best_d) {
                best_d = d;
                best = i;
            }
        }
        if (best_d < plan->least)
            break;
        struct open *from = &open[best];
        const struct esp_suffix_edge *edge = &s->edge[from->edge];
        const int depth = from->parent < 0 ? 1 : g[from->parent].depth + 1;
        g[count] = (struct esp_guess){
            .parent = from->parent,
            .token = edge->token,
            .depth = depth,
            .q = (float)count_of(s, from->edge) / (float)from->total,
            .d = best_d,
            .state = edge->to,
        };
        *sum += best_d;
        from->edge = next_edge(s, edge->from, from->edge);
        if (from->edge < 0)
            *from = open[--waiting];
        const int32_t state = depth < plan->depth ? followed_state(s, g[count].state) : 0;
        if (state > 0)
            open[waiting++] =
                (struct open){count, next_edge(s, state, -1), followed(s, state), best_d};
        count++;
    }
    return count;
}

int esp_suffix_guess(const struct esp_suffix *s, const struct esp_guess_plan *plan,
                     struct esp_guess *guesses, int *match)
{
    struct esp_guess own[ESP_GUESSES];
    double best = 0;
    int count = 0;
    *match = 0;
    if (s->states == 0)
        return 0;
    int32_t state = s->state[s->last].link;
    for (int tried = 0; state > 0 && tried < LONGEST_LINKS;
         state = s->state[state].link, tried++) {
        const double most = plan->factor * s->state[state].length;
        int nodes = plan->nodes < ESP_GUESSES ? plan->nodes : ESP_GUESSES;
        double sum;
        nodes = most < nodes ? (int)most : nodes;
        if (nodes <= best) /* every D is at most 1, so shorter matches cannot do better */
            break;
        if (!is_followed(s, state))
            continue;
        const int n = grow(s, state, plan, nodes, own, &sum);
        if (sum <= best)
            continue;
        best = sum;
        count = n;
        *match = s->state[state].length;
        memcpy(guesses, own, (size_t)n * sizeof *own);
    }
    return count;
}

int esp_suffix_back(const struct esp_suffix *s, const struct esp_guess *guess)
{
    const int end = s->state[guess->state].end;
    return end > s->seed ? s->length + guess->depth - end : 0;
}
