/* explain.h - explains in sentences what happened to a node, with the iteration's numbers. */
#ifndef ESP_EXPLAIN_H
#define ESP_EXPLAIN_H

#include "viz/tree_view.h"

/* Writes the token in quotes, in a form that is safe to show. Returns `text`. */
const char *esp_quote_token(char text[48], const struct esp_tokens *tokens, int32_t token);

/* Writes the verdict on a node and the reason for it. Uses only what is known after the first
 * `stages` stages of the iteration. */
void esp_explain_node(char *text, size_t size, const struct esp_iteration *it, int stages,
                      int node, const struct esp_tokens *tokens);

/* Explains why a cost-aware drafter left a node out or drafted nothing below it, with the
 * drafter's numbers. Returns false if there is nothing to add to the node's reason. */
bool esp_explain_refusal(char *text, size_t size, const struct esp_iteration *it, int node);

/* Writes the shape of a tree as "K 2, L1 3, L2 4", "chain of 5" or "no draft"; returns
 * `text`. */
const char *esp_shape_text(char text[48], const struct esp_shape_choice *shape);

/* Writes two or three sentences about the last draft pass or stage, for step mode. `type` is
 * ESP_EVENT_LAYER (one draft pass) or ESP_EVENT_STAGE; `stages` stages of the iteration have
 * ended. */
void esp_explain_stop(char *text, size_t size, const struct esp_iteration *it, int type,
                      int stages, const struct esp_tokens *tokens);

/* Returns the node that best explains where the verifier stopped: a rejected child of the last
 * accepted node, otherwise the last accepted node. If no node was accepted or rejected, returns
 * the root's first child, or 0 if there is none. */
int esp_telling_node(const struct esp_iteration *it);

#endif
