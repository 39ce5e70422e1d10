/* Compares the tree of texts with a plain list of strings. Texts are written, shortened,
 * undone, redone and deleted at random. The current text must always be the expected one, and
 * no text may be lost. */
#include "sessions/branches.h"

#include <stdlib.h>
#include <string.h>

#include "tests/check.h"

enum { LONGEST = 60, TEXTS = 4000, STEPS = 3000, LETTERS = 4 };

struct text {
    char letters[LONGEST + 1];
};

/* The expected state: the current text, all texts that ever existed, and the texts that undo
 * and redo would show. */
struct model {
    struct text now, seen[TEXTS], undo[TEXTS], redo[TEXTS];
    int seen_count, undo_count, redo_count;
};

static void write_letter(struct esp_branches *b, struct model *m, char letter)
{
    struct esp_written *stored, token = {.token = letter, .iteration = (int)m->seen_count};
    const size_t length = strlen(m->now.letters);
    if (length == LONGEST)
        return;
    CHECK(esp_branches_append(b, &token, true, "ar", &stored) == 0);
    CHECK(stored->token == letter && stored->iteration == m->seen_count);
    m->now.letters[length] = letter;
    m->now.letters[length + 1] = '\0';
    if (m->seen_count < TEXTS)
        m->seen[m->seen_count++] = m->now;
}

static void check_text(const struct esp_branches *b, struct esp_text_place place,
                       const char *want, const char *what)
{
    struct esp_written tokens[LONGEST];
    CHECK(place.length == (int)strlen(want), "%s: %d tokens, not '%s'", what, place.length,
          want);
    CHECK((place.branch < 0) == (place.length == 0));
    esp_branches_text(b, place, 0, tokens);
    for (int i = 0; i < place.length; i++) {
        CHECK(tokens[i].token == want[i], "%s: token %d of '%s'", what, i, want);
        CHECK(esp_branches_token(b, place, i)->token == want[i]);
    }
}

/* Every text that ever existed must be the beginning of a branch, and no two branches may have
 * the same text. */
static void check_all(const struct esp_branches *b, const struct model *m)
{
    static char texts[TEXTS][LONGEST + 1];
    struct esp_written tokens[LONGEST];
    CHECK(b->count < TEXTS);
    for (int i = 0; i < b->count; i++) {
        const struct esp_text_place end = esp_branches_end(b, i);
        esp_branches_text(b, end, 0, tokens);
        for (int j = 0; j < end.length; j++)
            texts[i][j] = (char)tokens[j].token;
        texts[i][end.length] = '\0';
        CHECK(b->branch[i].count > 0, "a branch has at least one token");
        for (int j = 0; j < i; j++)
            CHECK(strcmp(texts[i], texts[j]) != 0, "two branches have the text '%s'", texts[i]);
    }
    for (int i = 0; i < m->seen_count; i++) {
        bool there = false;
        for (int j = 0; j < b->count && !there; j++)
            there = strncmp(texts[j], m->seen[i].letters, strlen(m->seen[i].letters)) == 0;
        CHECK(there, "'%s' is lost", m->seen[i].letters);
    }
}

static void check_list(const struct esp_branches *b)
{
    int *order = calloc((size_t)b->count + 1, 2 * sizeof *order), *depth = order + b->count + 1;
    int shown = 0;
    const int count = esp_branches_list(b, order, depth);
    for (int i = 0; i < b->count; i++)
        shown += !b->branch[i].deleted;
    bool right = count == shown;
    for (int i = 0; i < count; i++) {
        right = right && !b->branch[order[i]].deleted;
        right = right && (i == 0 ? depth[0] == 0 : depth[i] <= depth[i - 1] + 1);
        for (int j = 0; j < i; j++)
            right = right && order[i] != order[j];
    }
    free(order);
    CHECK(right, "the list has each existing branch once, below its parent");
}

/* Switches to the text at `place` as a session does: shortens the current text to the common
 * prefix, then appends token by token. */
static void go(struct esp_branches *b, struct model *m, struct esp_text_place place)
{
    struct esp_written tokens[LONGEST], *stored;
    int common = 0;
    esp_branches_text(b, place, 0, tokens);
    while (common < place.length && m->now.letters[common] &&
           m->now.letters[common] == (char)tokens[common].token)
        common++;
    esp_branches_cut(b, common);
    for (int i = common; i < place.length; i++) {
        const struct esp_written plain = {.token = tokens[i].token, .iteration = -7};
        CHECK(esp_branches_append(b, &plain, false, "ar", &stored) == 0);
        CHECK(stored->iteration != -7, "the data of a stored token do not change");
    }
    for (int i = 0; i < place.length; i++)
        m->now.letters[i] = (char)tokens[i].token;
    m->now.letters[place.length] = '\0';
    CHECK(b->at.branch == place.branch && b->at.length == place.length,
          "the text ends at the requested place in the tree");
}

static void keep(struct esp_branches *b, struct model *m)
{
    CHECK(esp_branches_keep(b) == 0);
    if (m->undo_count > 0 && strcmp(m->undo[m->undo_count - 1].letters, m->now.letters) == 0)
        m->undo_count--; /* the last undo step would restore the same text */
    m->undo[m->undo_count++] = m->now;
    m->redo_count = 0;
}

static void go_back(struct esp_branches *b, struct model *m, bool redo)
{
    struct text *from = redo ? m->redo : m->undo, *to = redo ? m->undo : m->redo;
    int *from_count = redo ? &m->redo_count : &m->undo_count,
        *to_count = redo ? &m->undo_count : &m->redo_count;
    while (*from_count > 0 && strcmp(from[*from_count - 1].letters, m->now.letters) == 0)
        (*from_count)--;
    const struct esp_step_back *step = esp_branches_back(b, redo);
    CHECK((step != NULL) == (*from_count > 0),
          "undo and redo are possible only if there is another text to show");
    if (!step)
        return;
    const struct text want = from[--*from_count];
    const struct esp_text_place place = step->place;
    to[(*to_count)++] = m->now;
    CHECK(esp_branches_went_back(b, redo) == 0);
    check_text(b, place, want.letters, redo ? "redo" : "undo");
    go(b, m, place);
}

static void step(struct esp_branches *b, struct model *m, unsigned long long *random)
{
    const double kind = check_uniform(random);
    const int length = (int)strlen(m->now.letters);
    const int place = (int)(check_uniform(random) * (length + 1));
    if (kind < 0.4) { /* adds a few tokens, as a prompt or an iteration does */
        keep(b, m);
        for (int i = 0; i < 4; i++)
            write_letter(b, m, (char)('a' + (int)(check_uniform(random) * LETTERS)));
    } else if (kind < 0.6) { /* shortened */
        keep(b, m);
        esp_branches_cut(b, place);
        m->now.letters[place] = '\0';
    } else if (kind < 0.75) {
        go_back(b, m, false);
    } else if (kind < 0.85) {
        go_back(b, m, true);
    } else if (kind < 0.98 && b->count > 0) { /* switches to another branch */
        keep(b, m);
        go(b, m, esp_branches_end(b, (int)(check_uniform(random) * b->count)));
    } else { /* cleared */
        keep(b, m);
        esp_branches_cut(b, 0);
        m->now.letters[0] = '\0';
    }
}

TEST(random_changes_lose_nothing)
{
    for (unsigned long long seed = 1; seed <= 8; seed++) {
        struct esp_branches b;
        struct model *m = calloc(1, sizeof *m);
        unsigned long long random = seed;
        esp_branches_open(&b);
        CHECK(m);
        for (int i = 0; i < (check_quick() ? STEPS / 20 : STEPS / 8); i++) {
            step(&b, m, &random);
            check_text(&b, b.at, m->now.letters, "the present text");
            check_list(&b);
        }
        check_all(&b, m);
        esp_branches_free(&b);
        free(m);
    }
}

static void write_text(struct esp_branches *b, const char *text)
{
    struct esp_written *stored;
    for (; *text; text++)
        CHECK(esp_branches_append(b, &(struct esp_written){.token = *text}, true, "ar",
                                  &stored) == 0);
}

TEST(deleting_a_branch_keeps_the_others_and_can_be_undone)
{
    struct esp_branches b;
    int order[8], depth[8];
    esp_branches_open(&b);
    write_text(&b, "abcde");
    esp_branches_cut(&b, 3);
    write_text(&b, "xy");
    esp_branches_cut(&b, 4); /* "abcx" */
    write_text(&b, "z");
    CHECK(esp_branches_list(&b, order, depth) == 3);
    CHECK(depth[0] == 0 && depth[1] == 1 && depth[2] == 2,
          "the branches are abcde, its child abcxy, and abcxz, the child of abcxy");
    CHECK(esp_branches_delete(&b, 1) == 0);
    CHECK(esp_branches_list(&b, order, depth) == 2 && order[1] == 2 && depth[1] == 1);
    check_text(&b, esp_branches_end(&b, 2), "abcxz", "a child of the deleted branch");
    const struct esp_step_back *step = esp_branches_back(&b, false);
    CHECK(step && step->deleted == 1 && step->place.branch == b.at.branch);
    CHECK(esp_branches_went_back(&b, false) == 0);
    CHECK(!b.branch[1].deleted && esp_branches_list(&b, order, depth) == 3);
    CHECK(esp_branches_back(&b, true) && esp_branches_went_back(&b, true) == 0);
    CHECK(b.branch[1].deleted, "after undo and redo the branch is deleted again");
    esp_branches_cut(&b, 4);
    write_text(&b, "y");
    CHECK(!b.branch[1].deleted, "a deleted text that is written again is no longer deleted");
    esp_branches_free(&b);
}

/* If the next tokens are already in a branch, the text follows this branch. So writing the same
 * text again makes no new branch. */
TEST(writing_the_same_text_again_makes_no_new_branch)
{
    struct esp_branches b;
    esp_branches_open(&b);
    write_text(&b, "abcde");
    esp_branches_cut(&b, 2);
    write_text(&b, "cdef");
    CHECK(b.count == 1 && b.branch[0].count == 6);
    esp_branches_cut(&b, 0);
    write_text(&b, "b");
    esp_branches_cut(&b, 0);
    write_text(&b, "ab");
    CHECK(b.count == 2 && b.at.branch == 0 && b.at.length == 2);
    esp_branches_free(&b);
}

/* Deletes a branch in the middle of a chain of branches. It is kept, because the next branch
 * starts from it. Then deletes the last two branches of the chain, which are dropped. */
TEST(deleted_branches_are_dropped_unless_others_share_them)
{
    struct esp_branches b;
    struct esp_written *stored;
    esp_branches_open(&b);
    for (int i = 0; i < 4; i++) {
        esp_branches_cut(&b, 2 * i);
        for (int j = 0; j < 4; j++)
            CHECK(esp_branches_append(&b, &(struct esp_written){.token = 10 * i + j}, true,
                                      "ar", &stored) == 0);
    }
    CHECK(b.count == 4 && b.branch[3].parent == 2);
    CHECK(esp_branches_compact(&b) == 0 && b.count == 4, "nothing is deleted");
    b.branch[1].deleted = true; /* branch 2 starts from branch 1 */
    CHECK(esp_branches_compact(&b) == 0 && b.count == 4);
    b.branch[1].deleted = false;
    esp_branches_cut(&b, 1);
    CHECK(b.at.branch == 0);
    b.branch[3].deleted = b.branch[2].deleted = true;
    CHECK(esp_branches_compact(&b) == 2 && b.count == 2);
    CHECK(b.at.branch == 0 && b.at.length == 1 && b.branch[1].parent == 0 &&
          b.branch[1].furthest == 0 && b.branch[0].furthest == 2);
    esp_branches_free(&b);
}
