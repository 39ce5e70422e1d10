/* web_page.h - a recording as one HTML file that plays in a browser and loads nothing.
 *
 * The page is viz/page/ with the recording in it as JSON, in an element that is no script:
 *
 *     program, target, draft, device, started
 *     earlier      how many iterations came before the first one here
 *     strings      every text once; elsewhere its index stands for it
 *     stages       the names of the six stages
 *     gauges       [{symbol, name, meaning, goal}] of the controllers; goal: index of a gauge
 *     iterations   [{
 *         index, time, drafter, verifier, lossy, seconds (of the stages), baseline,
 *         before:  [{keep, text, note}] what happened between the last tree and this one: so
 *                  many tokens of the text stay, this text follows, this is to be told
 *         text:    [string, kind, ...] what it committed; kind as enum esp_text_kind
 *         nodes:   [[token, parent, verdict, q, p, confidence, probability of the path, u
 *                  (if it was compared to the acceptance), acceptance, copies, sentence,
 *                  tokens back to where it was copied from (0: drafted, -1: not known)],
 *                  ...], the root first
 *         hidden:  nodes that are left out, of a tree of more than ESP_WEB_NODES
 *         bonus:   the target's own token
 *         gauges:  [[gauge, before, after, sentence], ...]
 *         said:    sentences about drafting, verifying, selecting, committing, adapting
 *         telling: the node that is shown first }]
 *
 * All text has gone through viz/safe.h, so that nothing in it reorders, hides or controls
 * anything; '<' is an escape, so that nothing ends the element. The same recording gives the
 * same bytes.
 */
#ifndef ESP_WEB_PAGE_H
#define ESP_WEB_PAGE_H

#include "sessions/recording.h"
#include "tui/model/state.h"

enum {
    ESP_WEB_NODES = 256,      /* of a tree, the likeliest */
    ESP_WEB_BYTES = 64 << 20, /* of a page */
};

/* Makes the page of iterations first..last of a recording, counted through the whole of it from
 * 0. The caller frees *page. Returns 0 or a negative status with a sentence; ESP_E_ARGUMENT:
 * the page would be larger than ESP_WEB_BYTES. */
int esp_web_page(struct esp_recording *recording, int first, int last, char **page,
                 size_t *length, char *err, size_t errlen);

/* The same of a live session: of the iterations that it keeps, those whose text is still there.
 * Sets how many they are; 0 is ESP_E_ARGUMENT. */
int esp_web_page_of_state(const struct esp_state *state, char **page, size_t *length,
                          int *iterations, char *err, size_t errlen);

#endif
