/* palette.h - one list of everything that can be done, searched by typing.
 *
 * The caller that opens it adds items (palette_items.c: commands, drafters, verifiers,
 * settings, themes, keys). The palette filters and sorts them by what was typed, and returns
 * the one that was chosen; what an item means is the caller's business.
 */
#ifndef ESP_PALETTE_H
#define ESP_PALETTE_H

#include <stdbool.h>

#include "viz/canvas.h"

struct esp_binding;

struct esp_palette_item {
    const char *kind;                  /* "command", "theme", ...: static */
    char *text, *summary;              /* owned; text: a ':' line, or the name of a key */
    const struct esp_binding *binding; /* of a key, else NULL */
    bool current;                      /* what is set now; it is marked */
    bool refused;                      /* it cannot be chosen; the summary says why */
};

struct esp_palette {
    bool open;
    const char *title; /* static; NULL: of everything that can be done */
    int skipped;       /* bytes of each text that are not shown, as its title says them */
    char query[64];
    struct esp_palette_item *items; /* (count) */
    int count;
    int *shown; /* (shown_count) items that match, the best first */
    int shown_count, selected;
};

/* Opens it without items. */
void esp_palette_open(struct esp_palette *palette);
/* Frees the items. */
void esp_palette_close(struct esp_palette *palette);
void esp_palette_add(struct esp_palette *palette, const char *kind, const char *text,
                     const char *summary, const struct esp_binding *binding);
/* Marks the item that was added last. */
void esp_palette_mark(struct esp_palette *palette, bool current, bool refused);
/* Filters and sorts: after adding, and after the query changed. */
void esp_palette_filter(struct esp_palette *palette);

enum esp_palette_answer { ESP_PALETTE_STAYS, ESP_PALETTE_LEFT, ESP_PALETTE_CHOSE };

/* Handles a key. CHOSE: the selected item was chosen. The caller closes the palette. */
enum esp_palette_answer esp_palette_key(struct esp_palette *palette, int key);
/* The selected item; NULL if nothing matches. */
const struct esp_palette_item *esp_palette_selected(const struct esp_palette *palette);

/* The place among the shown items that is drawn at a cell of the canvas. */
enum { ESP_PALETTE_NOTHING = -1, ESP_PALETTE_OUTSIDE = -2 };
int esp_palette_at(const struct esp_palette *palette, int width, int height, int x, int y);

/* Draws it over the canvas, and puts the cursor behind the query. */
void esp_palette_draw(struct esp_canvas *canvas, const struct esp_palette *palette);

#endif
