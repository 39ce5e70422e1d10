/* gauges.h - the values of adaptive drafters in words.
 *
 * Drafters and recordings know a value by its symbol ("tauh"). Here it gets a name, a sentence
 * about its effect, its goal, and the reason why it moved.
 */
#ifndef ESP_GAUGES_H
#define ESP_GAUGES_H

#include "engine/espalier.h"

/* The value of this symbol, or NULL. */
const struct esp_gauge *esp_gauge_find(const struct esp_iteration *it, const char *symbol);
/* "upper confidence"; the symbol of a value that is not in the table. */
const char *esp_gauge_name(const struct esp_iteration *it, const char *symbol);
/* "upper confidence (tauh)"; returns text. */
const char *esp_gauge_full_name(char text[64], const struct esp_iteration *it,
                                const char *symbol);
/* Its effect, as a sentence; "" if it is not in the table. */
const char *esp_gauge_meaning(const struct esp_iteration *it, const char *symbol);
/* Its owner: the drafter, or "" for the session (the draft temperature), which outlives a
 * change of the drafter. Values of the same symbol and owner form one series. */
const char *esp_gauge_owner(const struct esp_iteration *it, const char *symbol);
/* Its goal; NULL: none. */
const struct esp_gauge *esp_gauge_goal(const struct esp_iteration *it, const char *symbol);
/* Why a value moved in this iteration, and the effect: "It rose, as the accepted share .74 is
 * above the goal .70: trees may get deeper." The cause follows the drafter's rule
 * (dynatree_history.h): the share over many iterations, or this tree alone. "" if it did not
 * move. */
void esp_gauge_why(char *text, size_t size, const struct esp_iteration *it, int gauge);

#endif
