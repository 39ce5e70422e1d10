/* versus.h - compares two configurations of drafter and verifier, in words. */
#ifndef ESP_VERSUS_H
#define ESP_VERSUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Describes one of two configurations, with its results. Both have decoded the same text. */
struct esp_contender {
    const char *drafter, *verifier; /* specifications: "name:parameter=value,..." */
    int iterations;
    int64_t tokens; /* number of committed tokens */
    double pace;    /* seconds per token (engine/pace.h); 0 means unknown */
};

/* Returns whether this specification of a drafter means plain decoding. */
bool esp_spec_is_plain(const char *drafter);

/* Writes the shortest name of `one` that differs from the name of `other`. */
void esp_contender_name(char *name, size_t size, const struct esp_contender *one,
                        const struct esp_contender *other);

/* Writes a sentence that says which configuration is ahead, and by how much. Writes "" until
 * both have run an iteration. */
void esp_versus(char *text, size_t size, const struct esp_contender *one,
                const struct esp_contender *other);

#endif
