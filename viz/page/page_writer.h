/* web_page.h - a recording as one HTML file that plays in a browser and loads nothing.
 *
 * The page is viz/page/ with the recording as JSON in a data element:
 *
 *     program, target, draft, device, started
 *     earlier      number of iterations before the first one here
 *     strings      every text once; other fields refer to it by index
 *     stages       the names of the six stages
 *     gauges       [{symbol, name, meaning, goal}] of the controllers; goal: index of a gauge
 *     iterations   [{
 *         index, time, drafter, verifier, lossy, seconds (of the stages), baseline,
 *         before:  [{keep, text, note}] changes since the last tree: tokens of the text that
 *                  stay, text that follows, a note to show
 *         text:    [string, kind, ...] the committed tokens; kind: enum esp_text_kind
 *         nodes:   [[token, parent, verdict, q, p, confidence, probability of the path, u
 *                  (if it was compared to the acceptance), acceptance, copies, sentence,
 *                  distance to the copied token (0: drafted, -1: unknown)], ...], the root
 *                  first
 *         hidden:  number of omitted nodes, in a tree of more than ESP_WEB_NODES
 *         bonus:   the target's own token
 *         gauges:  [[gauge, before, after, sentence], ...]
 *         said:    sentences about drafting, verifying, selecting, committing, adapting
 *         telling: the node selected at first }]
 *
 * All text passes viz/safe.h, so it cannot reorder, hide or control anything. '<' is escaped,
 * so text cannot end the element. The same recording gives the same bytes.
 */
#ifndef ESP_WEB_PAGE_H
#define ESP_WEB_PAGE_H

#include "sessions/recording.h"
#include "tui/model/state.h"

enum {
    ESP_WEB_NODES = 256,      /* of a tree; the most probable are kept */
    ESP_WEB_BYTES = 64 << 20, /* of a page */
};

/* Makes the page of iterations first..last of a recording, counted from 0 over the whole
 * recording. The caller frees *page. Returns 0 or a negative status with a message;
 * ESP_E_ARGUMENT: the page would be larger than ESP_WEB_BYTES. */
int esp_web_page(struct esp_recording *recording, int first, int last, char **page,
                 size_t *length, char *err, size_t errlen);

/* The same for a live session: the kept iterations with text that still exists. Sets their
 * number; 0 is ESP_E_ARGUMENT. */
int esp_web_page_of_state(const struct esp_state *state, char **page, size_t *length,
                          int *iterations, char *err, size_t errlen);

#endif
