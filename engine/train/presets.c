/* presets.c - lists the losses by name. To add a loss, add a table of its parameters, and an
 * entry in `losses`.
 *
 * Defaults are the papers' values. If a paper leaves a value open, the default is the value in
 * the released code (EAGLE's code: `eagle:cls=0.1,smooth=yes,noise=0.2`), or the help says so.
 * Roots at every token would cost a lot and teach little, because the trees of neighbouring
 * roots share half of their nodes. By default, therefore, only every fourth token is a root
 * (`every`).
 */
#include "engine/train/presets.h"

#include <stdio.h>
#include <string.h>

#include "engine/support/params.h"
#include "engine/train/train_draft.h"
#include "kernels/status.h"

/* These parameters are shared by several losses. */
#define CLS "cls", ESP_REAL, 0, 1000, 10, .help = "weight of -sum p log q"
#define REG "reg", ESP_REAL, 0, 1000, 1, .help = "weight of the mean L1 distance of features"
#define SMOOTH "smooth", ESP_FLAG, 0, 1, 0, .help = "use smooth L1 for the distance of features"
#define NOISE                                                                                  \
    "noise", ESP_REAL, 0, 10, 0, .help = "width of uniform noise added to a text's features"
#define DEPTH "depth", ESP_INT, 2, 8, 3, .help = "passes along a path"
#define EVERY "every", ESP_INT, 1, 64, 4, .help = "paths begin at every N-th token"

#define EVERY_FOURTH                                                                           \
    "paths begin at every 4th token of the text; in the paper they begin at each token "       \
    "(every=1), which costs much more and teaches little, because neighbouring paths share "   \
    "half of their nodes"

static const struct esp_param eagle[] = {{CLS}, {REG}, {SMOOTH}, {NOISE}, {0}};
static const struct esp_param hass[] = {
    {CLS},
    {REG},
    {SMOOTH},
    {NOISE},
    {"distil", ESP_REAL, 0, 1000, 10, .help = "additional weight of the likeliest tokens"},
    {"top", ESP_INT, 1, ESP_SOFT_TOP, 10,
     .help = "number of tokens that get the additional weight"},
    {DEPTH},
    {EVERY},
    {0}};
static const struct esp_param talf[] = {
    {"k", ESP_INT, 1, 16, 4, .help = "nodes of the target's tree at each depth"},
    {DEPTH},
    {EVERY},
    {0}};
static const struct esp_param ce[] = {{0}};

static const struct {
    struct esp_train_loss_info info;
    const struct esp_param *params;
    enum esp_paths paths;
    double cls; /* weight of -sum p log q, if the user cannot set it */
} losses[] = {
    {{"eagle", "match the target's distributions and features along the text",
      "EAGLE (2024), section 4.2", "", true, false},
     eagle,
     ESP_PATHS_NONE,
     0},
    {{"hass", "like eagle, but the head also reads its own features", "HASS (2025), section 3",
      EVERY_FOURTH, true, false},
     hass,
     ESP_PATHS_TEXT,
     0},
    {{"talf", "match the target's distributions on all paths of trees that the target grows",
      "SALF & TALF, algorithm 1", EVERY_FOURTH, true, true},
     talf,
     ESP_PATHS_TREE,
     1},
    {{"ce", "match the target's distributions along the text", "Hinton et al. (2015)", "",
      false, true},
     ce,
     ESP_PATHS_NONE,
     1},
};
enum { LOSSES = sizeof losses / sizeof *losses };

bool esp_train_loss(int index, struct esp_train_loss_info *info)
{
    if (index < 0 || index >= LOSSES)
        return false;
    *info = losses[index].info;
    return true;
}

static int find(const char *name, size_t length)
{
    for (int i = 0; i < LOSSES; i++)
        if (strlen(losses[i].info.name) == length &&
            strncmp(losses[i].info.name, name, length) == 0)
            return i;
    return -1;
}

bool esp_train_loss_param(const char *name, int index, struct esp_param_info *info)
{
    const int loss = find(name, strlen(name));
    return loss >= 0 && esp_params_info(losses[loss].params, index, info);
}

static double value_of(const struct esp_params *params, const char *name, double fallback)
{
    const int index = esp_params_find(params, name);
    return index < 0 ? fallback : esp_param(params, index);
}

int esp_loss_preset(struct esp_loss_preset *preset, const char *spec, bool head, char *err,
                    size_t errlen)
{
    const size_t length = strcspn(spec, ":");
    const int loss = find(spec, length);
    struct esp_params params;
    if (loss < 0 || !(head ? losses[loss].info.head : losses[loss].info.draft))
        return esp_fail(err, errlen, ESP_E_ARGUMENT, "there is no loss %.*s for a draft %s; %s",
                        (int)(length < 40 ? length : 40), spec, head ? "head" : "model",
                        head ? "choose eagle, hass or talf" : "choose ce or talf");
    esp_params_init(&params, losses[loss].params);
    int status = esp_params_parse(&params, losses[loss].info.name,
                                  spec[length] ? spec + length + 1 : NULL, err, errlen);
    if (status < 0)
        return status;
    *preset = (struct esp_loss_preset){
        .weights = {.cls = value_of(&params, "cls", losses[loss].cls),
                    .reg = value_of(&params, "reg", 0),
                    .distil = value_of(&params, "distil", 0),
                    .top = (int)value_of(&params, "top", 0),
                    .smooth = value_of(&params, "smooth", 0) > 0},
        .batch = {.head = head,
                  .paths = losses[loss].paths,
                  .depth = (int)value_of(&params, "depth", 1),
                  .every = (int)value_of(&params, "every", 0),
                  .noise = value_of(&params, "noise", 0)},
        .k = (int)value_of(&params, "k", 0),
    };
    esp_params_spec(&params, losses[loss].info.name, preset->spec, sizeof preset->spec);
    return ESP_OK;
}
