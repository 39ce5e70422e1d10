/* scene.h - a small story for tests of drawing: fixed tokens, iterations and events.
 *
 * Scene 1 has a king, a tree with an accepted path of three nodes, a rejected node and two cut
 * nodes. The texts of tokens are in scene.c. A golden screen is a file in tests/tui/golden/;
 * ESPALIER_GOLDEN=write overwrites these files with the current screens. Check the differences
 * before a commit.
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
/* Makes the scene in which the models are loaded and nothing has been typed. */
void scene_ready(struct scene *scene);
void scene_prompt(struct scene *scene);
/* Makes an iteration with the scene's tree. Its numbers differ slightly from index to index. */
void scene_iteration(struct scene *scene, int index);
/* Opens the scene and adds the prompt and seven iterations. */
void scene_telling(struct scene *scene, int width, int height);
/* Passes an event to the interface, as the engine's thread would. */
void scene_event(struct scene *scene, const struct esp_event *event);
void scene_phase(struct scene *scene, int phase, const char *text, double fraction);
/* Starts a comparison: announces another session over the same text and adds iterations of that
 * session. */
void scene_compare(struct scene *scene, const char *drafter);
void scene_second(struct scene *scene, const struct esp_iteration *it);
/* Moves the focus to a pane, and zooms it if `zoomed` is set. scene_act() performs the action
 * of a key. */
void scene_focus(struct scene *scene, int pane, bool zoomed);
void scene_act(struct scene *scene, int action);
/* Returns the scene's iteration, which is valid until the next call. */
const struct esp_iteration *scene_king(int index);

/* Draws the screen and returns the dump of the canvas; the caller frees it. */
char *scene_dump(struct scene *scene, bool styles);
/* Draws the screen and fails the test if it differs from the golden screen. */
void scene_golden(struct scene *scene, const char *name);

/* Makes a random tree of `count` nodes, with every kind of verdict and a consistent path. */
void scene_random(struct esp_iteration *it, struct esp_node *nodes, int32_t *path, int count,
                  unsigned long long *random);

#endif
