/* recycling.c - see recycling.h.
 *
 * At temperature 0, the acceptance rates of recycled tokens are learned from every verified
 * row, because each row shows which token the target would choose next. Above temperature 0,
 * they are learned only from the accepted path, because only its tokens were drawn from the
 * target's distribution.
 */
#include "engine/recycling.h"

#include <stdio.h>

#include "engine/session_parts.h"
#include "kernels/status.h"

static bool is_wanted(const struct esp_session *s)
{
    return s->set.drafter->asks & ESP_ASK_RECYCLED && s->set.values.recycle != ESP_RECYCLE_OFF;
}

/* Writes the key of the matrix. The key identifies the target and its tokenizer. */
static void make_key(const struct esp_session *s, char *key, size_t size)
{
    const struct esp_engine *e = s->engine;
    key[0] = '\0';
    if (e->target->name && e->tokenizer)
        snprintf(key, size, "%.64s (%lld), tokens %016llx", e->target->name,
                 (long long)e->target->parameters,
                 (unsigned long long)esp_tokenizer_hash(e->tokenizer));
}

static int take_memory(struct esp_recycling *r, const struct esp_engine *e)
{
    const int vocabulary = e->target->desc.vocabulary;
    const size_t rows = (size_t)e->max_nodes + 1;
    if (r->likeliest)
        return ESP_OK;
    r->width = vocabulary < ESP_RECYCLED_WIDTH ? vocabulary : ESP_RECYCLED_WIDTH;
    r->likeliest = esp_arrays_add(&r->arrays, rows * (size_t)r->width, sizeof *r->likeliest);
    r->logits = esp_arrays_add(&r->arrays, rows * (size_t)r->width, sizeof *r->logits);
    return r->arrays.failed ? ESP_E_MEMORY : ESP_OK;
}

int esp_recycling_turn(struct esp_session *s)
{
    struct esp_recycling *r = &s->recycling;
    char key[sizeof r->matrix.key];
    s->draft_context.recycled = NULL;
    if (s->set.values.recycle == ESP_RECYCLE_OFF)
        esp_recycled_close(&r->matrix);
    if (!is_wanted(s))
        return ESP_OK;
    const bool kept = s->set.values.recycle == ESP_RECYCLE_KEEP && !s->repeatable;
    make_key(s, key, sizeof key);
    int status = take_memory(r, s->engine);
    if (status == ESP_OK)
        status = esp_recycled_open(&r->matrix, key, s->engine->target->desc.vocabulary, kept);
    if (status == ESP_OK)
        s->draft_context.recycled = &r->matrix;
    return status;
}

void esp_recycling_close(struct esp_recycling *r)
{
    esp_recycled_close(&r->matrix);
    esp_arrays_free(&r->arrays);
    r->likeliest = NULL;
    r->logits = NULL;
}

int esp_recycling_look(struct esp_session *s)
{
    struct esp_recycling *r = &s->recycling;
    const int rows = s->tree.tree.verified;
    r->looked = s->draft_context.recycled != NULL && is_wanted(s);
    if (!r->looked)
        return ESP_OK;
    for (int i = 0; i < rows; i++)
        s->tokens[i] = i;
    return s->ops->top_k(s->p, s->tokens, rows, r->width, r->likeliest, r->logits, ESP_LATER);
}

void esp_recycling_learn(struct esp_session *s)
{
    struct esp_recycling *r = &s->recycling;
    const struct esp_tree *tree = &s->tree.tree;
    const struct esp_iteration *it = &s->iteration;
    if (!r->looked)
        return;
    for (int i = 0; i < tree->verified && s->draft.greedy; i++)
        esp_recycled_learn(&r->matrix, tree->nodes[tree->order[i]].token,
                           r->likeliest[i * r->width]);
    for (int i = 0; i < it->committed_count && !s->draft.greedy; i++)
        esp_recycled_learn(&r->matrix, tree->nodes[i ? it->path[i - 1] : 0].token,
                           it->committed[i]);
    for (int i = 0; i < tree->verified; i++)
        esp_recycled_write(&r->matrix, tree->nodes[tree->order[i]].token,
                           r->likeliest + i * r->width, r->width);
}
