/* page_writer.h - writes iterations as one HTML file that plays in a browser and loads no other
 * file.
 *
 * The page is page.html of this folder. The iterations are JSON in a data element, which has
 * these members:
 *
 *     program, target, draft, device, started: texts about the session
 *     earlier      number of iterations before the first iteration on the page
 *     strings      every text once; other fields refer to it by index
 *     stages       the names of the six stages
 *     heats        [{title, limits, words}] of the colours of the text (viz/heat.h), for
 *                  surprisal, entropy, rank and origin; words: null for an unused colour
 *     gauges       [{symbol, name, meaning, goal}] of the controllers; goal: index of a gauge
 *     iterations   [{
 *         index, time, drafter, verifier, lossy, seconds (of the stages), baseline,
 *         before:  [{keep, text, note}] changes since the last tree: tokens of the text that
 *                  stay, text that follows, a note to show
 *         text:    [string, kind, ...] the committed tokens; kind: enum esp_text_kind
 *         scores:  [[surprisal, entropy, rank (0: beyond the likeliest), [token, p, ...]], ...]
 *                  the target's values for these tokens; 0 instead of a list: unknown
 *         nodes:   [[token, parent, verdict, q, p, confidence, probability of the path, u
 *                  (if it was compared with the acceptance), acceptance, copies, sentence,
 *                  distance to the copied token (0: drafted; -1: copied from an unknown
 *                  place; -2: expected; -3: recycled)], ...], the root first
 *         hidden:  number of omitted nodes, in a tree of more than ESP_PAGE_NODES
 *         bonus:   the target's own token
 *         gauges:  [[gauge, before, after, sentence], ...]
 *         said:    sentences about drafting, verifying, selecting, committing, adapting
 *         telling: the node that is selected at first }]
 *
 * All text passes through viz/safe.h, so it cannot reorder, hide or control anything. '<' is
 * escaped, so text cannot end the element. The same iterations give the same bytes.
 */
#ifndef ESP_PAGE_WRITER_H
#define ESP_PAGE_WRITER_H

#include <stddef.h>

#include "engine/text_token.h"

enum {
    ESP_PAGE_NODES = 256,      /* maximum number of shown nodes of a tree */
    ESP_PAGE_BYTES = 64 << 20, /* maximum size of a page */
};

struct esp_page_head {
    const char *program, *target, *draft, *device, *started; /* NULL means "" */
    int earlier;
};

struct esp_page_writer;

/* Starts a page. The texts of tokens must stay readable until the page is closed. Returns NULL
 * if there is no memory. */
struct esp_page_writer *esp_page_open(struct esp_tokens tokens,
                                      const struct esp_page_head *head);
/* Adds text after the first `keep` tokens of the text so far; -1 means after all of them. */
void esp_page_add_text(struct esp_page_writer *page, int keep,
                       const struct esp_text_token *tokens, int count);
/* Adds a note that is shown before the next iteration. */
__attribute__((format(printf, 2, 3))) void esp_page_add_note(struct esp_page_writer *page,
                                                             const char *format, ...);
/* Adds an iteration with the text that it committed. `time`: seconds since the session's
 * start; `baseline`: seconds per token of plain decoding. Returns 0, ESP_E_MEMORY, or
 * ESP_E_ARGUMENT if the page becomes larger than ESP_PAGE_BYTES. */
int esp_page_add(struct esp_page_writer *page, const struct esp_iteration *it, double time,
                 double baseline, const struct esp_text_token *text, int count);
/* Ends the page and frees the writer; a NULL writer means that memory ran out. `status` is the
 * status so far: if it is 0, writes the page to *bytes, which the caller frees. Returns 0, or a
 * negative status with a message. A message that is already in `err` is not changed. */
int esp_page_close(struct esp_page_writer *page, int status, char **bytes, size_t *length,
                   char *err, size_t errlen);

#endif
