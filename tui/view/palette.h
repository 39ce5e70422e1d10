/* palette.h - the menu: a searchable list of everything that the user can do.
 *
 * The caller opens it and adds items (palette_items.c: commands, drafters, verifiers,
 * settings, themes, keys). The palette filters and sorts them by the query and returns the
 * chosen one. Only the caller knows what an item does.
 */
#ifndef ESP_PALETTE_H
#define ESP_PALETTE_H

#include <stdbool.h>

#include "viz/canvas.h"

struct esp_binding;

struct esp_palette_item {
    const char *kind;                  /* "command", "theme", ...; static */
    char *text, *summary;              /* owned; text: a ':' line or the name of a key */
    const struct esp_binding *binding; /* the key's, if the item is a key; else NULL */
    bool current; /* the item is the current value, and is shown with a check mark */
    bool refused; /* the item cannot be chosen; the summary gives the reason */
};

struct esp_palette {
    bool open;
    const char *title; /* static; NULL means the title of the full menu */
    int skipped;       /* bytes to hide at the start of each text: the title says the same */
    char query[64];
    struct esp_palette_item *items; /* (count) */
    int count;
    int *shown; /* (shown_count) matching items, best first */
    int shown_count, selected;
};

/* Opens an empty palette. */
void esp_palette_open(struct esp_palette *palette);
/* Frees the items. */
void esp_palette_close(struct esp_palette *palette);
void esp_palette_add(struct esp_palette *palette, const char *kind, const char *text,
                     const char *summary, const struct esp_binding *binding);
/* Marks the last added item. */
void esp_palette_mark(struct esp_palette *palette, bool current, bool refused);
/* Filters and sorts. Call it after adding items and after a change of the query. */
void esp_palette_filter(struct esp_palette *palette);

enum esp_palette_answer { ESP_PALETTE_STAYS, ESP_PALETTE_LEFT, ESP_PALETTE_CHOSE };

/* Handles a key. Returns whether the palette stays open, was left, or the user chose the
 * selected item; in the last two cases the caller closes the palette. */
enum esp_palette_answer esp_palette_key(struct esp_palette *palette, int key);
/* The selected item, or NULL if nothing matches. */
const struct esp_palette_item *esp_palette_selected(const struct esp_palette *palette);

/* Returns the index of the shown item at a cell of the canvas, or one of these constants. */
enum { ESP_PALETTE_NOTHING = -1, ESP_PALETTE_OUTSIDE = -2 };
int esp_palette_at(const struct esp_palette *palette, int width, int height, int x, int y);

/* Draws the palette over the canvas and places the cursor after the query. */
void esp_palette_draw(struct esp_canvas *canvas, const struct esp_palette *palette);

#endif
