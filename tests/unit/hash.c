/* Tests hash tables whose keys come from a file. Even keys that an attacker chooses must not
 * make them slow. */
#include "engine/support/hash.h"

#include <stdio.h>
#include <time.h>

#include "tests/check.h"
#include "engine/support/int_map.h"
#include "tests/recorded.h"

/* Checks hashes of the bytes 0, 1, 2, ... with the key 00 01 .. 0f, as the test of the
 * reference implementation does.
 */
TEST(the_hash_is_siphash_1_3)
{
    static const struct esp_hash_key key = {{0x0706050403020100u, 0x0f0e0d0c0b0a0908u}};
    static const struct {
        size_t length;
        uint64_t want;
    } cases[] = {
        {0, 0xabac0158050fc4dcu},  {1, 0xc9f49bf37d57ca93u},  {7, 0xd3927d989bb11140u},
        {8, 0x369095118d299a8eu},  {15, 0xd320d86d2a519956u}, {16, 0xcc4fdd1a7d908b66u},
        {63, 0x9d199062b7bbb3a8u},
    };
    unsigned char bytes[64];
    for (int i = 0; i < 64; i++)
        bytes[i] = (unsigned char)i;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint64_t got = esp_hash(key, bytes, cases[i].length);
        CHECK(got == cases[i].want, "%zu bytes: %016llx", cases[i].length,
              (unsigned long long)got);
    }
}

TEST(a_map_grows_and_replaces)
{
    struct esp_int_map map = {.mask = 0};
    CHECK(esp_int_map_get(&map, 7) == ESP_INT_MAP_NONE);
    for (uint64_t i = 0; i < 5000; i++)
        CHECK(esp_int_map_put(&map, i * i, i) && esp_int_map_put(&map, i * i, i + 1));
    CHECK(map.count == 5000 && map.mask + 1 >= 2 * map.count);
    for (uint64_t i = 0; i < 5000; i++)
        CHECK(esp_int_map_get(&map, i * i) == i + 1);
    CHECK(esp_int_map_get(&map, 3) == ESP_INT_MAP_NONE);
    esp_int_map_free(&map);
    CHECK(!esp_int_map_init(&map, SIZE_MAX / 2),
          "a map that is too large for memory is refused");
}

/* ------------------------------------------------------------------ keys that collide */

enum { KEYS = 30000, TRIES = 3 };

/* Returns the processor time of the fastest of several runs. So a busy machine does not slow
 * only one side of a comparison. */
static double fastest(double (*once)(bool attack), bool attack)
{
    double best = 1e9;
    for (int i = 0; i < TRIES; i++) {
        double seconds = once(attack);
        best = seconds < best ? seconds : best;
    }
    return best;
}

/* Checks that keys that were chosen for an attack cost as much as other keys. If the attacker
 * could predict the hash, each key would be compared with all earlier keys. Then the chosen
 * keys would cost thirty to a thousand times as much. */
static void cost_the_same(double (*once)(bool attack), const char *what)
{
    double ordinary = fastest(once, false), attack = fastest(once, true);
    printf("    %s: %.1f ms, attacked %.1f ms\n", what, 1e3 * ordinary, 1e3 * attack);
    CHECK(attack < 5 * ordinary + 1e-3, "%s: %.1f times as slow", what, attack / ordinary);
}

/* Returns the key that had the hash `hash` in earlier versions. Their hash was the finalizer of
 * splitmix64. */
static uint64_t unmixed(uint64_t hash)
{
    hash ^= hash >> 31 ^ hash >> 62;
    hash *= 0x319642b2d24d8ec3u;
    hash ^= hash >> 27 ^ hash >> 54;
    hash *= 0x96de1b173f119089u;
    return hash ^ hash >> 30 ^ hash >> 60;
}

static double fill_map(bool attack)
{
    struct esp_int_map map;
    clock_t start = clock();
    CHECK(esp_int_map_init(&map, KEYS));
    for (uint64_t i = 1; i <= KEYS; i++)
        esp_int_map_put(&map, attack ? unmixed(i << 20) : i, i);
    double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
    esp_int_map_free(&map);
    return seconds;
}

TEST(colliding_keys_do_not_make_a_map_slow)
{
    cost_the_same(fill_map, "a map");
}

/* Returns true if an earlier version puts this token in the first of 65536 slots. That version
 * multiplied tokens by the golden ratio to hash them. */
static bool collides(uint32_t token)
{
    return ((token * 0x9e3779b97f4a7c15u) >> 20 & 0xffff) == 0;
}

/* The gaps between colliding tokens have only three sizes (Steinhaus's three-gap theorem). The
 * first few tokens are found by trying all numbers. The next tokens follow from the gaps. */
static void find_colliding(uint32_t tokens[KEYS])
{
    uint32_t gaps[3] = {0}, token = 0;
    int gap_count = 0, count = 0;
    for (uint32_t next = 1; next < 40000000; next++) {
        if (!collides(next))
            continue;
        uint32_t gap = next - token;
        token = next;
        if (gap_count < 3 && gap != gaps[0] && gap != gaps[1])
            gaps[gap_count++] = gap;
    }
    for (token = 0; count < KEYS; count++) {
        uint32_t nearest = UINT32_MAX;
        for (int i = 0; i < gap_count; i++)
            if (collides(token + gaps[i]) && gaps[i] < nearest)
                nearest = gaps[i];
        CHECK(nearest < UINT32_MAX && token < INT32_MAX - nearest, "after %d", count);
        tokens[count] = token += nearest;
    }
}

/* Writes a recording whose prompt has each of these tokens once. */
static void write_recording(const uint32_t *tokens)
{
    FILE *file = fopen(recorded_path(), "w");
    CHECK(file);
    fputs("{\"format\":\"espalier-session\",\"version\":\"1.0\"}\n"
          "{\"t\":0,\"type\":\"prompt\",\"tokens\":[",
          file);
    for (int i = 0; i < KEYS; i++)
        fprintf(file, "%s{\"id\":%u,\"text\":\"a\"}", i ? "," : "", (unsigned)tokens[i]);
    fputs("]}\n", file);
    CHECK(fclose(file) == 0);
}

static uint32_t colliding[KEYS];

static double open_recording(bool attack)
{
    uint32_t ordinary[KEYS];
    for (uint32_t i = 0; i < KEYS; i++) /* all these tokens have ten digits */
        ordinary[i] = 1000000000 + i;
    write_recording(attack ? colliding : ordinary);
    clock_t start = clock();
    struct esp_recording *recording = recorded_open();
    double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
    CHECK(esp_recording_events(recording) == 1);
    esp_recording_close(recording);
    return seconds;
}

TEST(colliding_tokens_do_not_make_a_recording_slow)
{
    find_colliding(colliding);
    cost_the_same(open_recording, "opening a recording");
}
