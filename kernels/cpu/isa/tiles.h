/* tiles.h - configures Intel's tile unit (AMX). amx.c and blocks.c include this file. */
#ifndef ESP_CPU_TILES_H
#define ESP_CPU_TILES_H

#include <immintrin.h>
#include <stdint.h>

enum { TILES = 8, TILE_ROWS = 16, ROW_BYTES = 64, TILE_BYTES = TILE_ROWS * ROW_BYTES };

/* The configuration of the tiles, in the form that _tile_loadconfig() reads. */
struct tile_config {
    uint8_t palette, start, reserved[14];
    uint16_t row_bytes[TILES + 8];
    uint8_t rows[TILES + 8];
} __attribute__((aligned(64)));

/* Configures the tiles. Tiles 0 to 3 hold `rows` rows of sums. Tiles 4 and 5 hold `rows` rows
 * of `bytes` bytes of activations. Tiles 6 and 7 hold weights: each row contains four bytes for
 * each of 16 outputs. */
static inline void configure_tiles(int rows, int bytes)
{
    struct tile_config config = {.palette = 1};
    for (int i = 0; i < TILES; i++) {
        config.row_bytes[i] = (uint16_t)(i == 4 || i == 5 ? bytes : ROW_BYTES);
        config.rows[i] = (uint8_t)(i < 6 ? rows : bytes / 4);
    }
    __asm__ volatile("" ::"r"(&config) : "memory"); /* forces the compiler to store config */
    _tile_loadconfig(&config);
}

#endif
