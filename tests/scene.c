/* scene.c - makes the scene's events and draws it; see scene.h. */
#include "tests/scene.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/check.h"

const char *scene_text(void *user, int32_t token, size_t *length)
{
    static const char *const texts[TOKENS] = {
        "Once upon a time there was a king who had three sons,",
        " king",
        " and",
        " the",
        " old",
        " said",
        " was",
        " had",
        " woman",
        " he",
        " so",
        " fell",
        "\n",
        "\033[31mred\a\u202e\u200b\xff",
        " e\u0301\u6f22\u5b57",
    };
    (void)user;
    if (token < 0 || token >= TOKENS)
        return NULL;
    *length = strlen(texts[token]);
    return texts[token];
}

void scene_open(struct scene *scene, int width, int height)
{
    *scene = (struct scene){.state = {.tokens = {scene_text, NULL}}};
    esp_ui_init(&scene->ui);
    CHECK(esp_canvas_open(&scene->canvas, width, height) == 0);
}

void scene_close(struct scene *scene)
{
    esp_canvas_close(&scene->canvas);
    esp_state_free(&scene->state);
}

static void apply(struct scene *scene, struct esp_snapshot *snapshot)
{
    CHECK(esp_state_apply(&scene->state, snapshot) == 0);
    esp_snapshot_free(snapshot);
}

void scene_event(struct scene *scene, const struct esp_event *event)
{
    struct esp_snapshot snapshot = {.type = 0};
    CHECK(esp_snapshot_take(&snapshot, event) == 0);
    apply(scene, &snapshot);
}

void scene_compare(struct scene *scene, const char *drafter)
{
    struct esp_snapshot snapshot = {.type = ESP_SNAPSHOT_COMPARE,
                                    .loaded = {.verifier = "greedy"}};
    snprintf(snapshot.loaded.drafter, sizeof snapshot.loaded.drafter, "%s", drafter);
    apply(scene, &snapshot);
    esp_ui_compare(&scene->ui, scene->state.compared != NULL);
}

void scene_second(struct scene *scene, const struct esp_iteration *it)
{
    struct esp_snapshot snapshot = {.type = 0};
    CHECK(esp_snapshot_take(&snapshot, &(struct esp_event){.type = ESP_EVENT_ITERATION,
                                                           .iteration = it}) == 0);
    snapshot.second = true;
    apply(scene, &snapshot);
}

void scene_phase(struct scene *scene, int phase, const char *text, double fraction)
{
    struct esp_snapshot snapshot = {
        .type = ESP_SNAPSHOT_PHASE, .phase = phase, .fraction = fraction};
    snprintf(snapshot.text, sizeof snapshot.text, "%s", text);
    apply(scene, &snapshot);
}

void scene_ready(struct scene *scene)
{
    struct esp_snapshot snapshot = {.type = ESP_SNAPSHOT_READY,
                                    .loaded = {.target = "fairytale-target",
                                               .draft = "fairytale-draft",
                                               .backend = "cpu",
                                               .device = "portable C, 1 thread",
                                               .drafter = "dynatree:tau=0.05",
                                               .verifier = "greedy"}};
    apply(scene, &snapshot);
    scene_phase(scene, ESP_PHASE_IDLE, "", 1);
}

void scene_prompt(struct scene *scene)
{
    const int32_t tokens[] = {TOKEN_ONCE, TOKEN_AND};
    scene_event(scene, &(struct esp_event){
                           .type = ESP_EVENT_PROMPT, .tokens = tokens, .token_count = 2});
    scene_phase(scene, ESP_PHASE_GENERATING, "", 0);
}

static struct esp_node node(int token, int parent, int depth, int rank, double q, double path_q,
                            int verdict)
{
    return (struct esp_node){
        .token = token,
        .parent = parent,
        .depth = depth,
        .rank = rank,
        .copies = 1,
        .q = (float)q,
        .cumulative_log_q = (float)log(path_q),
        .confidence = NAN,
        .value = NAN,
        .p = verdict == ESP_CUT ? NAN : (float)(q * 0.9),
        .u = NAN,
        .acceptance = NAN,
        .branching = NAN,
        .acceptance_rate = NAN,
        .ceiling = NAN,
        .verdict = (uint8_t)verdict,
        .reason = verdict == ESP_CUT ? ESP_REASON_THRESHOLD : ESP_REASON_NONE,
    };
}

const struct esp_iteration *scene_king(int index)
{
    static struct esp_node nodes[11];
    static int32_t order[] = {0, 1, 2, 3, 4, 5, 6, 8, 9}, path[] = {1, 4, 6};
    static const int32_t committed[] = {TOKEN_THE, TOKEN_OLD, TOKEN_KING, TOKEN_FELL};
    static struct esp_iteration it;
    const double moved = index / 100.0;
    nodes[0] = node(TOKEN_AND, -1, 0, 0, 1, 1, ESP_UNVISITED);
    nodes[1] = node(TOKEN_THE, 0, 1, 0, 0.81, 0.81, ESP_ACCEPTED);
    nodes[2] = node(TOKEN_HE, 0, 1, 1, 0.11, 0.11, ESP_UNVISITED);
    nodes[3] = node(TOKEN_KING, 1, 2, 1, 0.30, 0.24, ESP_UNVISITED);
    nodes[4] = node(TOKEN_OLD, 1, 2, 0, 0.44, 0.36, ESP_ACCEPTED);
    nodes[5] = node(TOKEN_WOMAN, 4, 3, 1, 0.12, 0.04, ESP_UNVISITED);
    nodes[6] = node(TOKEN_KING, 4, 3, 0, 0.71, 0.25, ESP_ACCEPTED);
    nodes[7] = node(TOKEN_SO, 0, 1, 2, 0.03, 0.03, ESP_CUT);
    nodes[8] = node(TOKEN_SAID, 6, 4, 0, 0.38, 0.097, ESP_REJECTED);
    nodes[9] = node(TOKEN_WAS, 6, 4, 1, 0.21, 0.053, ESP_UNVISITED);
    nodes[10] = node(TOKEN_HAD, 6, 4, 2, 0.08, 0.02, ESP_CUT);
    nodes[0].confidence = 0.81f;
    nodes[1].confidence = 0.44f;
    nodes[4].confidence = 0.71f;
    nodes[6].confidence = 0.38f;
    it = (struct esp_iteration){
        .index = index,
        .position = 15 + 4 * index,
        .tree = {.nodes = nodes, .count = 11, .order = order, .verified = 9},
        .path = path,
        .path_length = 3,
        .bonus = TOKEN_FELL,
        .bonus_u = NAN,
        .committed = committed,
        .committed_count = 4,
        .deepest = 4,
        .draft_passes = 4,
        .target_passes = 1,
        .mask_blocks = 1,
        .gauges = {{"tauh", 0.90 - moved, 0.89 - moved, 0.40, 1},
                   {"taul", 0.40, 0.40, 0, 1},
                   {"D0", 5 + moved, 5.01 + moved, 1, 7}},
        .gauge_count = 3,
        .seconds = {0.0009, 0.00001, 0.0024, 0.00002, 0.00005, 0.00001},
        .baseline = 0.0013,
        .drafter = "dynatree",
        .verifier = "greedy",
    };
    return &it;
}

void scene_iteration(struct scene *scene, int index)
{
    scene_event(scene, &(struct esp_event){.type = ESP_EVENT_ITERATION,
                                           .iteration = scene_king(index)});
}

char *scene_dump(struct scene *scene, bool styles)
{
    char *text = NULL;
    size_t length;
    FILE *file = open_memstream(&text, &length);
    CHECK(file);
    esp_ui_draw(&scene->canvas, &scene->ui, &scene->state);
    esp_canvas_dump(&scene->canvas, file, styles);
    fclose(file);
    return text;
}

static char *read_file(const char *path)
{
    FILE *file = fopen(path, "r");
    char *text = calloc(1, 1 << 17);
    if (file && text) {
        text[fread(text, 1, (1 << 17) - 1, file)] = '\0';
        fclose(file);
    }
    return text;
}

void scene_golden(struct scene *scene, const char *name)
{
    char relative[128], *wanted, *text = scene_dump(scene, false);
    const char *write = getenv("ESPALIER_GOLDEN");
    snprintf(relative, sizeof relative, "tui/golden/%s.txt", name);
    const char *path = check_path(relative);
    if (write && strcmp(write, "write") == 0) {
        FILE *file = fopen(path, "w");
        CHECK(file, "cannot write %s", path);
        fputs(text, file);
        fclose(file);
    }
    wanted = read_file(path);
    bool same = wanted && strcmp(text, wanted) == 0;
    if (!same)
        printf("--- %s is now:\n%s", path, text);
    free(text);
    free(wanted);
    CHECK(same, "the screen differs from %s", path);
}

void scene_random(struct esp_iteration *it, struct esp_node *nodes, int32_t *path, int count,
                  unsigned long long *random)
{
    int *children = calloc((size_t)count, sizeof *children);
    CHECK(children);
    int at = 0;
    *it = (struct esp_iteration){.tree = {.nodes = nodes, .count = count, .verified = 1},
                                 .path = path,
                                 .bonus = TOKEN_FELL};
    for (int i = 0; i < count; i++) {
        int parent = i == 0 ? -1 : (int)(check_uniform(random) * i);
        double q = check_uniform(random);
        double above = i == 0 ? 1 : exp(nodes[parent].cumulative_log_q);
        nodes[i] =
            node((int)(check_uniform(random) * TOKENS), parent,
                 i == 0 ? 0 : nodes[parent].depth + 1, i == 0 ? 0 : children[parent]++, q,
                 above * q + 1e-30, check_uniform(random) < 0.3 ? ESP_CUT : ESP_UNVISITED);
        if (i > 0 && parent == at && check_uniform(random) < 0.5) {
            nodes[i].verdict = ESP_ACCEPTED;
            path[it->path_length++] = at = i;
        } else if (i > 0 && parent == at && nodes[i].verdict != ESP_CUT) {
            nodes[i].verdict = ESP_REJECTED;
        }
    }
    free(children);
}

void scene_telling(struct scene *scene, int width, int height)
{
    scene_open(scene, width, height);
    scene_ready(scene);
    scene_prompt(scene);
    for (int i = 0; i < 7; i++)
        scene_iteration(scene, i);
}

void scene_focus(struct scene *scene, int pane, bool zoomed)
{
    scene->ui.layout.current = pane;
    scene->ui.layout.focused = true;
    scene->ui.layout.zoomed = zoomed;
}

void scene_act(struct scene *scene, int action)
{
    esp_ui_act(&scene->ui, &scene->state, action, scene->canvas.width, scene->canvas.height);
}
