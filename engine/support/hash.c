/* hash.c - see hash.h. */
#include "engine/support/hash.h"

#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "kernels/system.h"

static struct esp_hash_key process_key;
static pthread_once_t drawn = PTHREAD_ONCE_INIT;

/* Draws the key without blocking. If the system has no random numbers yet, the key is made
 * from the clock, the process id and an address. */
static void draw_key(void)
{
    struct timespec now;
    if (esp_random_bytes(&process_key, sizeof process_key))
        return;
    clock_gettime(CLOCK_REALTIME, &now);
    process_key.word[0] = (uint64_t)now.tv_sec << 30 ^ (uint64_t)now.tv_nsec;
    process_key.word[1] = (uint64_t)(uintptr_t)&now ^ (uint64_t)getpid() << 48;
}

struct esp_hash_key esp_hash_key(void)
{
    pthread_once(&drawn, draw_key);
    return process_key;
}

/* Returns up to eight bytes as a little-endian number. */
static uint64_t word_of(const unsigned char *bytes, size_t length)
{
    uint64_t word = 0;
    if (length > 0)
        memcpy(&word, bytes, length);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    return word;
}

uint64_t esp_hash(struct esp_hash_key key, const void *data, size_t length)
{
    const unsigned char *bytes = data;
    struct esp_hash_state v = esp_hash_begin(key);
    size_t left = length;
    for (; left >= 8; left -= 8, bytes += 8)
        v = esp_hash_word(v, word_of(bytes, 8));
    v = esp_hash_word(v, word_of(bytes, left) | (uint64_t)length << 56);
    return esp_hash_end(v);
}

uint64_t esp_fnv(uint64_t hash, const void *data, size_t length)
{
    const unsigned char *bytes = data;
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ bytes[i]) * 0x100000001b3ull;
    return hash;
}
