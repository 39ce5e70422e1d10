/* palette.h - the menu: a searchable list of everything that the user can do.
 *
 * The caller opens the menu and adds items: commands, drafters, verifiers, settings, themes and
 * keys (palette_items.c). The palette filters and sorts the items by the query, and returns the
 * item that the user chooses. Only the caller knows what an item does.
 */
#ifndef ESP_PALETTE_H
#define ESP_PALETTE_H

#include <stdbool.h>

#include "viz/canvas.h"

struct esp_binding;

struct esp_palette_item {
    const char *kind;                  /* "command", "theme", ...; not owned */
    char *text, *summary;              /* owned; `text` is a ':' line or the name of a key */
    const struct esp_binding *binding; /* the binding if the item is a key; else NULL */
    bool current; /* the item is the current value, and is shown with a check mark */
    bool refused; /* the item cannot be chosen; the summary gives the reason */
};

struct esp_palette {
    bool open;
    const char *title; /* not owned; NULL: the title of the full palette */
    int skipped; /* bytes to hide at the start of each text, because the title shows them */
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
/* Sets the members `current` and `refused` of the item that was added last. */
void esp_palette_mark(struct esp_palette *palette, bool current, bool refused);
/* Filters and sorts the items. Must be called after items were added and after the query has
 * changed. */
void esp_palette_filter(struct esp_palette *palette);

enum esp_palette_answer { ESP_PALETTE_STAYS, ESP_PALETTE_LEFT, ESP_PALETTE_CHOSE };

/* Handles a key. Returns whether the palette stays open, the user has left it, or the user has
 * chosen the selected item. If it does not stay open, the caller must close it. */
enum esp_palette_answer esp_palette_key(struct esp_palette *palette, int key);
/* Returns the selected item, or NULL if no item matches the query. */
const struct esp_palette_item *esp_palette_selected(const struct esp_palette *palette);

/* Returns the index of the shown item at a cell of the canvas, or one of these constants. */
enum { ESP_PALETTE_NOTHING = -1, ESP_PALETTE_OUTSIDE = -2 };
int esp_palette_at(const struct esp_palette *palette, int width, int height, int x, int y);

/* Draws the palette over the canvas and places the cursor after the query. */
void esp_palette_draw(struct esp_canvas *canvas, const struct esp_palette *palette);

#endif
