/* hash.h - the hash of every table with untrusted keys.
 *
 * SipHash-1-3 (Aumasson and Bernstein, "SipHash: a fast short-input PRF", 2012), with a random
 * key per process. Without that key nobody can choose colliding keys, so no file can make a
 * table slow. A hash differs from run to run: do not store it, and let no output depend on the
 * order of a table.
 */
#ifndef ESP_HASH_H
#define ESP_HASH_H

#include <stddef.h>
#include <stdint.h>

struct esp_hash_key {
    uint64_t word[2];
};

/* The key of this process. Thread-safe. */
struct esp_hash_key esp_hash_key(void);

/* The hash of `length` bytes. */
uint64_t esp_hash(struct esp_hash_key key, const void *bytes, size_t length);

#endif
