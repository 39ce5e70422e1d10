/* versus.h - compares two configurations of drafter and verifier, in words. */
#ifndef ESP_VERSUS_H
#define ESP_VERSUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One of the two configurations, with its results. Both have decoded the same text. */
struct esp_contender {
    const char *drafter, *verifier; /* specifications: "name:parameter=value,..." */
    int iterations;
    int64_t tokens; /* committed */
    double pace;    /* seconds per token (engine/pace.h); 0 means unknown */
};

/* Returns whether this specification of a drafter means plain decoding. */
bool esp_spec_is_plain(const char *drafter);

/* Writes the shortest name of `one` that differs from the name of `other`. */
void esp_contender_name(char *name, size_t size, const struct esp_contender *one,
                        const struct esp_contender *other);

/* Writes which configuration is ahead, and by how much; "" until both have run an iteration. */
void esp_versus(char *text, size_t size, const struct esp_contender *one,
                const struct esp_contender *other);

#endif
