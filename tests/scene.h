/* scene.h - a fixed example for tests of drawing: a short story with tokens, iterations and
 * events.
 *
 * The story is about a king. The tree of an iteration has an accepted path of three nodes, a
 * rejected node and two nodes that the drafter has cut. The texts of tokens are in scene.c. The
 * files in tests/tui/golden/ are golden screens. Drawn screens are compared with them.
 * ESPALIER_GOLDEN=write overwrites these files with the current screens. Check the differences
 * before you commit them.
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
/* Sets the scene's state: the models are loaded, and no prompt has been typed. */
void scene_ready(struct scene *scene);
void scene_prompt(struct scene *scene);
/* Adds iteration number `index`, with the scene's tree. Each iteration has slightly different
 * numbers. */
void scene_iteration(struct scene *scene, int index);
/* Opens the scene and adds the prompt and seven iterations. */
void scene_telling(struct scene *scene, int width, int height);
/* Passes an event to the interface, as the engine's thread does. */
void scene_event(struct scene *scene, const struct esp_event *event);
void scene_phase(struct scene *scene, int phase, const char *text, double fraction);
/* scene_compare() starts a comparison with a second session, which uses the given drafter after
 * the same text. scene_second() adds an iteration of the second session. */
void scene_compare(struct scene *scene, const char *drafter);
void scene_second(struct scene *scene, const struct esp_iteration *it);
/* Moves the focus to a pane, and zooms the pane if `zoomed` is set. scene_act() performs the
 * action of a key. */
void scene_focus(struct scene *scene, int pane, bool zoomed);
void scene_act(struct scene *scene, int action);
/* Returns iteration number `index` of the scene, which is valid until the next call. */
const struct esp_iteration *scene_king(int index);

/* Draws the screen and returns it as text. The caller must free it. */
char *scene_dump(struct scene *scene, bool styles);
/* Draws the screen and fails the test if it differs from the golden screen. */
void scene_golden(struct scene *scene, const char *name);

/* Makes a random tree of `count` nodes. Its nodes have all kinds of verdicts, and its accepted
 * path agrees with these verdicts. */
void scene_random(struct esp_iteration *it, struct esp_node *nodes, int32_t *path, int count,
                  unsigned long long *random);

#endif
