/* compatible.c - decides which verifier is exact with which drafter; see compatible.h.
 *
 * A drafter's entry `draws` says how it draws children. A verifier's entry `lossless` lists the
 * ways of drawing for which it is exact. These two entries decide whether the pair is exact. At
 * temperature 0 only the likeliest token has a probability above 0. Verifier `greedy` is then
 * exact for every tree, and it is the only verifier that can be used.
 */
#include "engine/compatible.h"

#include <stdio.h>

#include "kernels/status.h"

/* Says whether speculation with these settings keeps the output distribution. Each value except
 * the first is a reason why it does not. */
enum fit {
    FIT_LOSSLESS,
    FIT_GREEDY, /* the verifier is for temperature 0, and the temperature is not 0 */
    FIT_RANDOM, /* the verifier needs random numbers, and the temperature is 0 */
    FIT_DRAWS,  /* the verifier is exact, but not for the way this drafter draws */
    FIT_PATHS,  /* the verifier is exact only for a single path */
};

unsigned esp_draws_of(const struct esp_settings *set)
{
    const unsigned all = set->drafter->draws, sampled = all & ~(unsigned)ESP_DRAW_TOPK;
    const int at = esp_params_find(&set->drafter_params, "draws");
    const double value = at < 0 ? 0 : esp_param(&set->drafter_params, at);
    if (set->drafter->without_model || sampled == all || sampled == 0)
        return all;
    return value == 2 || (value == 0 && set->sampling.temperature > 0) ? sampled
                                                                       : ESP_DRAW_TOPK;
}

/* Returns whether no node of the tree can have two children. */
static bool is_single_path(const struct esp_settings *set)
{
    int width[ESP_MAX_LEVELS], levels;
    if (!set->drafter->widths)
        return false;
    levels = set->drafter->widths(&set->drafter_params, width);
    while (levels > 0 && width[levels - 1] == 1)
        levels--;
    return levels == 0;
}

static enum fit fit_of(const struct esp_settings *set, const struct esp_verifier_ops *verifier)
{
    if (set->sampling.temperature == 0)
        return verifier->greedy ? FIT_LOSSLESS : FIT_RANDOM;
    if (verifier->greedy)
        return FIT_GREEDY;
    if ((verifier->lossless & esp_draws_of(set)) == 0)
        return FIT_DRAWS;
    return verifier->single_path && !is_single_path(set) ? FIT_PATHS : FIT_LOSSLESS;
}

/* Returns the default verifier. This is the verifier that the drafter names, if it is exact.
 * Otherwise it is the first exact verifier in esp_verifiers that is greedy, or that is
 * preferred for the drafter's way of drawing. */
static const struct esp_verifier_ops *pick(const struct esp_settings *set)
{
    const char *name = set->drafter->verifier;
    const struct esp_verifier_ops *named = name ? esp_verifier_find(name) : NULL;
    if (named && fit_of(set, named) == FIT_LOSSLESS)
        return named;
    for (int i = 0; esp_verifiers[i]; i++)
        if (fit_of(set, esp_verifiers[i]) == FIT_LOSSLESS &&
            (esp_verifiers[i]->greedy || (esp_verifiers[i]->preferred & esp_draws_of(set))))
            return esp_verifiers[i];
    return NULL;
}

static const char *list_lossless(const struct esp_settings *set, char *text, size_t size)
{
    size_t used = 0;
    snprintf(text, size, "none");
    for (int i = 0; esp_verifiers[i] && used < size; i++)
        if (fit_of(set, esp_verifiers[i]) == FIT_LOSSLESS)
            used += (size_t)snprintf(text + used, size - used, "%s%s", used ? ", " : "",
                                     esp_verifiers[i]->name);
    return text;
}

static const char *draws_text(unsigned draws)
{
    return draws & ESP_DRAW_IID    ? "independent draws"
           : draws & ESP_DRAW_SWOR ? "draws without replacement"
                                   : "the draft's likeliest tokens";
}

static int refuse(const struct esp_settings *set, enum fit fit, char *err, size_t errlen)
{
    const char *verifier = set->verifier->name, *drafter = set->drafter->name;
    char names[256];
    list_lossless(set, names, sizeof names);
    switch (fit) {
    case FIT_RANDOM:
        return esp_fail(err, errlen, ESP_E_ARGUMENT,
                        "verifier %s needs a temperature above 0; at 0 use %s", verifier,
                        names);
    case FIT_GREEDY:
        return esp_fail(err, errlen, ESP_E_ARGUMENT,
                        "verifier %s is for temperature 0; at %g with drafter %s use %s",
                        verifier, set->sampling.temperature, drafter, names);
    case FIT_PATHS:
        return esp_fail(err, errlen, ESP_E_ARGUMENT,
                        "verifier %s needs a single path, but drafter %s branches: the output "
                        "distribution would change. Use %s, or %s:lossy=allow",
                        verifier, drafter, names, verifier);
    default:
        return esp_fail(err, errlen, ESP_E_ARGUMENT,
                        "verifier %s is not exact with %s, which drafter %s uses: the output "
                        "distribution would change. Use %s, or %s:lossy=allow",
                        verifier, draws_text(esp_draws_of(set)), drafter, names, verifier);
    }
}

int esp_choose_verifier(struct esp_settings *set, char *err, size_t errlen)
{
    if (!set->verifier_chosen) {
        set->verifier = pick(set);
        if (!set->verifier)
            return esp_fail(err, errlen, ESP_E_ARGUMENT,
                            "no verifier is exact with drafter %s at temperature %g",
                            set->drafter->name, set->sampling.temperature);
        esp_params_init(&set->verifier_params, esp_verifier_params);
    }
    enum fit fit = fit_of(set, set->verifier);
    int lossy = esp_params_find(&set->verifier_params, "lossy");
    bool allowed = lossy >= 0 && esp_param(&set->verifier_params, lossy) != 0;
    set->lossy = fit != FIT_LOSSLESS;
    if (!set->lossy || (allowed && fit != FIT_RANDOM))
        return ESP_OK;
    return refuse(set, fit, err, errlen);
}
