/* scene.h - a small story for tests of what is drawn: tokens, iterations and events made by
 * hand.
 *
 * Scene 1 is the one of the design: a king, a tree with an accepted path of three, a rejected
 * node and two that were cut. Texts of tokens are in scene.c. A golden screen is a file in
 * tests/tui/golden/; ESPALIER_GOLDEN=write makes the files anew, to be looked at before they
 * are committed.
 */
#ifndef ESP_SCENE_H
#define ESP_SCENE_H

#include "tui/view/ui.h"

enum scene_token {
    TOKEN_ONCE,
    TOKEN_KING,
    TOKEN_AND,
    TOKEN_THE,
    TOKEN_OLD,
    TOKEN_SAID,
    TOKEN_WAS,
    TOKEN_HAD,
    TOKEN_WOMAN,
    TOKEN_HE,
    TOKEN_SO,
    TOKEN_FELL,
    TOKEN_NEWLINE,
    TOKEN_HOSTILE, /* escape sequence, bidirectional override, zero-width space, invalid UTF-8
                    */
    TOKEN_WIDE,    /* wide and combining characters */
    TOKENS
};

const char *scene_text(void *user, int32_t token, size_t *length);

struct scene {
    struct esp_state state;
    struct esp_ui ui;
    struct esp_canvas canvas;
};

void scene_open(struct scene *scene, int width, int height);
void scene_close(struct scene *scene);
/* Models are loaded and nothing was typed yet. */
void scene_ready(struct scene *scene);
void scene_prompt(struct scene *scene);
/* An iteration with the tree of the design; its numbers depend a little on `index`. */
void scene_iteration(struct scene *scene, int index);
/* The prompt and seven iterations: some way into a text. Opens the scene. */
void scene_telling(struct scene *scene, int width, int height);
/* Any event, as the engine's thread would hand it over. */
void scene_event(struct scene *scene, const struct esp_event *event);
void scene_phase(struct scene *scene, int phase, const char *text, double fraction);
/* Another session runs over the text: what it is, and iterations of it. */
void scene_compare(struct scene *scene, const char *drafter);
void scene_second(struct scene *scene, const struct esp_iteration *it);
/* The keys go to a pane; and what a key does. */
void scene_focus(struct scene *scene, int pane, bool zoomed);
void scene_act(struct scene *scene, int action);
/* The iteration itself; valid until the next call. */
const struct esp_iteration *scene_king(int index);

/* Draws, and returns the dump of the canvas; the caller frees it. */
char *scene_dump(struct scene *scene, bool styles);
/* Draws and compares with the golden screen; fails the test if they differ. */
void scene_golden(struct scene *scene, const char *name);

/* A random tree of `count` nodes with every kind of verdict and a path that fits it. */
void scene_random(struct esp_iteration *it, struct esp_node *nodes, int32_t *path, int count,
                  unsigned long long *random);

#endif
