/* gauges.h - describes the values of adaptive drafters in words.
 *
 * In drafters and recordings, a value has only a symbol ("tauh"). These functions give its
 * name, a sentence about its effect, its goal, and the reason why it changed.
 */
#ifndef ESP_GAUGES_H
#define ESP_GAUGES_H

#include "engine/espalier.h"

/* Returns the value with this symbol, or NULL. */
const struct esp_gauge *esp_gauge_find(const struct esp_iteration *it, const char *symbol);
/* Returns the name of the value, for example "upper confidence". If the value is not in the
 * table, returns its symbol. */
const char *esp_gauge_name(const struct esp_iteration *it, const char *symbol);
/* Writes name and symbol, such as "upper confidence (tauh)"; returns `text`. */
const char *esp_gauge_full_name(char text[64], const struct esp_iteration *it,
                                const char *symbol);
/* Returns a sentence about the effect of the value; "" if the value is not in the table. */
const char *esp_gauge_meaning(const struct esp_iteration *it, const char *symbol);
/* Returns the owner of the value: the name of the drafter, or "" if the value belongs to the
 * session. Such a value, for example the draft temperature, stays when the drafter changes.
 * Values with the same symbol and owner form one series. */
const char *esp_gauge_owner(const struct esp_iteration *it, const char *symbol);
/* Returns the value that is the goal of this value, or NULL. */
const struct esp_gauge *esp_gauge_goal(const struct esp_iteration *it, const char *symbol);
/* Writes why a value changed in this iteration, and the effect: "It rose, as the accepted share
 * .74 is above the goal .70: trees may get deeper." The cause depends on the controller rule
 * (dynatree_history.h): it is the share over many iterations, or this tree alone. Writes "" if
 * the value did not change. */
void esp_gauge_why(char *text, size_t size, const struct esp_iteration *it, int gauge);

#endif
