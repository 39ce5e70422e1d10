/* enumerate.c - runs a verifier with all outcomes of its random decisions; see enumerate.h. */
#include "tests/enumerate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/check.h"

enum { MOST_OUTCOMES = 256 };

double enumerate_number(void *user, const struct esp_odds *odds)
{
    struct enumerate *all = user;
    const double *weight = odds->weight ? odds->weight : toy_row(odds->rows, odds->row);
    int count = odds->weight ? odds->count : odds->rows->vocabulary, i = all->at++;
    double total = 0, before = 0;
    CHECK(i < MOST_DECISIONS && count <= MOST_OUTCOMES);
    for (int x = 0; x < count; x++)
        total += weight[x] > 0 ? weight[x] : 0;
    if (i == all->known) {
        all->known++;
        all->decision[i].next = 0;
        while (all->decision[i].next < count && !(weight[all->decision[i].next] > 0))
            all->decision[i].next++;
        if (all->decision[i].next == count)
            return 0; /* no outcome has a positive weight, so there is nothing to decide */
        all->decision[i].taken = all->decision[i].next;
        all->decision[i].next = -1;
    }
    int taken = all->decision[i].taken;
    all->decision[i].next = -1;
    for (int x = count - 1; x > taken; x--)
        if (weight[x] > 0)
            all->decision[i].next = x;
    for (int x = 0; x < taken; x++)
        before += weight[x] > 0 ? weight[x] : 0;
    all->probability *= weight[taken] / total;
    double u = (before + weight[taken] / 2) / total;
    return u < 1 ? u : 0x1.fffffffffffffp-1;
}

void enumerate_start(struct enumerate *all)
{
    memset(all, 0, sizeof *all);
    all->probability = 1;
}

bool enumerate_next(struct enumerate *all)
{
    int i = all->at - 1;
    while (i >= 0 && all->decision[i].next < 0)
        i--;
    if (i < 0)
        return false;
    all->decision[i].taken = all->decision[i].next;
    all->known = i + 1;
    all->at = 0;
    all->probability = 1;
    return true;
}

/* ------------------------------------------------------------------ the rig */

void rig_open(struct rig *rig, int vocabulary, int nodes, unsigned draws)
{
    char err[256];
    memset(rig, 0, sizeof *rig);
    toy_open(&rig->toy, vocabulary, 64, nodes, 1);
    rig->vocabulary = vocabulary;
    rig->drawn = nodes;
    CHECK(esp_tree_open(&rig->tree, nodes, err, sizeof err) == ESP_OK, "%s", err);
    CHECK(esp_verify_open(&rig->verify, &rig->tree, err, sizeof err) == ESP_OK, "%s", err);
    toy_backend.rows_open(&rig->p, rig->toy.engine.backend, nodes + 1, vocabulary, err,
                          sizeof err);
    toy_backend.rows_open(&rig->q, rig->toy.engine.backend, nodes + 1, vocabulary, err,
                          sizeof err);
    rig->q_row = calloc((size_t)rig->tree.record, sizeof *rig->q_row);
    rig->verify.ops = &toy_backend;
    rig->verify.p = rig->p;
    rig->verify.q = rig->q;
    rig->verify.q_row = rig->q_row;
    rig->verify.sampling = (struct esp_sampling){.temperature = 1, .top_p = 1};
    rig->verify.draws = draws;
}

void rig_close(struct rig *rig)
{
    esp_verify_close(&rig->verify);
    esp_tree_close(&rig->tree);
    toy_backend.rows_close(rig->p);
    toy_backend.rows_close(rig->q);
    free(rig->q_row);
    toy_close(&rig->toy);
}

void rig_reset(struct rig *rig)
{
    esp_tree_reset(&rig->tree, 0);
}

int rig_path(const struct rig *rig, int node, int32_t *tokens)
{
    const struct esp_node *nodes = rig->tree.tree.nodes;
    int count = nodes[node].depth;
    for (int i = count; i > 0; i--, node = nodes[node].parent)
        tokens[i - 1] = nodes[node].token;
    return count;
}

void rig_run(struct rig *rig, const struct esp_verifier_ops *rule)
{
    struct esp_tree *tree = &rig->tree.tree;
    int32_t tokens[64];
    for (int u = 1; u < tree->count; u++)
        if (tree->nodes[u].verdict != ESP_CUT)
            tree->nodes[u].verdict = ESP_UNVISITED;
    esp_tree_flatten(&rig->tree, ESP_ORDER_bfs);
    for (int i = 0; i < tree->verified; i++) {
        int node = tree->order[i], count = rig_path(rig, node, tokens);
        double *p = toy_row(rig->p, i);
        rig->distribution(rig->user, false, tokens, count, p);
        for (int x = 0; x < rig->vocabulary; x++)
            p[x] = log(p[x]);
        rig->distribution(rig->user, true, tokens, count, toy_row(rig->q, i));
        rig->q_row[node] = tree->nodes[node].depth < rig->drawn ? i : -1;
    }
    rig->verify.chance = (struct esp_chance){.number = enumerate_number, .user = &rig->all};
    int status = esp_verify_run(&rig->verify, rule);
    CHECK(status == ESP_OK, "%s: %s", rule->name, esp_status_message(status));
}

int rig_output(const struct rig *rig, int32_t *tokens)
{
    int count = 0;
    for (int i = 0; i < rig->verify.path_length; i++)
        tokens[count++] = rig->tree.tree.nodes[rig->verify.path[i]].token;
    tokens[count++] = rig->verify.bonus;
    return count;
}
