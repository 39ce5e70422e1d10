/* gauges.h - the values of adaptive drafters in words.
 *
 * Drafters and recordings know a value by its symbol ("tauh"); here it gets a name, a sentence
 * about what it does, what it is steered to, and why it moved.
 */
#ifndef ESP_GAUGES_H
#define ESP_GAUGES_H

#include "engine/espalier.h"

/* "upper confidence"; of a value that is not in the table, its symbol. */
const char *esp_gauge_name(const struct esp_iteration *it, const char *symbol);
/* "upper confidence (tauh)"; returns text. */
const char *esp_gauge_full_name(char text[64], const struct esp_iteration *it,
                                const char *symbol);
/* What it does, as a sentence; "" if it is not in the table. */
const char *esp_gauge_meaning(const struct esp_iteration *it, const char *symbol);
/* Whose value it is: that of the drafter, or "", of the session (the draft's temperature),
 * which goes on when the drafter changes. Values of the same symbol and owner are one course.
 */
const char *esp_gauge_owner(const struct esp_iteration *it, const char *symbol);
/* The value that this one is steered to; NULL: there is none. */
const struct esp_gauge *esp_gauge_goal(const struct esp_iteration *it, const char *symbol);
/* Why a value moved in this iteration, and what that changes: "It rose, as the accepted share
 * .74 is above the goal .70: trees may get deeper." The cause is the one that the drafter's
 * rule goes by (dynatree_history.h): the share over many iterations, or this tree alone. "" if
 * it did not move. */
void esp_gauge_why(char *text, size_t size, const struct esp_iteration *it, int gauge);

#endif
