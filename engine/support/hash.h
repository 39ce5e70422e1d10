/* hash.h - computes hashes for all hash tables with untrusted keys.
 *
 * The function is SipHash-1-3 (Aumasson and Bernstein, "SipHash: a fast short-input PRF", 2012)
 * with a random key per process. Nobody can choose table keys that collide without this key, so
 * no file can make a table slow. A hash differs from run to run. Do not store it, and do not
 * let any output depend on the order of a table.
 */
#ifndef ESP_HASH_H
#define ESP_HASH_H

#include <stddef.h>
#include <stdint.h>

struct esp_hash_key {
    uint64_t word[2];
};

/* Returns the key of this process. Thread-safe. */
struct esp_hash_key esp_hash_key(void);

/* Hashes `length` bytes. */
uint64_t esp_hash(struct esp_hash_key key, const void *bytes, size_t length);

/* ------------------------------------------------------------------ single rounds */

struct esp_hash_state {
    uint64_t a, b, c, d;
};

static inline uint64_t esp_hash_rotate(uint64_t value, int bits)
{
    return value << bits | value >> (64 - bits);
}

static inline struct esp_hash_state esp_hash_round(struct esp_hash_state v)
{
    v.a += v.b;
    v.c += v.d;
    v.b = esp_hash_rotate(v.b, 13) ^ v.a;
    v.d = esp_hash_rotate(v.d, 16) ^ v.c;
    v.a = esp_hash_rotate(v.a, 32);
    v.c += v.b;
    v.a += v.d;
    v.b = esp_hash_rotate(v.b, 17) ^ v.c;
    v.d = esp_hash_rotate(v.d, 21) ^ v.a;
    v.c = esp_hash_rotate(v.c, 32);
    return v;
}

static inline struct esp_hash_state esp_hash_begin(struct esp_hash_key key)
{
    return (struct esp_hash_state){
        key.word[0] ^ 0x736f6d6570736575u, key.word[1] ^ 0x646f72616e646f6du,
        key.word[0] ^ 0x6c7967656e657261u, key.word[1] ^ 0x7465646279746573u};
}

static inline struct esp_hash_state esp_hash_word(struct esp_hash_state v, uint64_t word)
{
    v.d ^= word;
    v = esp_hash_round(v);
    v.a ^= word;
    return v;
}

static inline uint64_t esp_hash_end(struct esp_hash_state v)
{
    v.c ^= 0xff;
    v = esp_hash_round(esp_hash_round(esp_hash_round(v)));
    return v.a ^ v.b ^ v.c ^ v.d;
}

/* Returns the hash of one word. The length is not hashed, because all words have the same
 * length. */
static inline uint64_t esp_hash_number(struct esp_hash_key key, uint64_t number)
{
    return esp_hash_end(esp_hash_word(esp_hash_begin(key), number));
}

/* ------------------------------------------------------------------ trusted data */

/* Adds `length` bytes to an FNV-1a hash (64 bits), which is the same in every run. Returns the
 * new hash. Pass ESP_FNV_START as the first `hash`. */
#define ESP_FNV_START 0xcbf29ce484222325ull
uint64_t esp_fnv(uint64_t hash, const void *bytes, size_t length);

#endif
