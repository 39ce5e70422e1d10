/* compatible.c - drafters and verifiers that go together; see compatible.h.
 *
 * The matrix is the product of two columns of their tables: how a drafter draws children, and
 * with which draws a rule is exact (algorithms.md, sec. 2). At temperature 0 only the likeliest
 * token has any probability; there `greedy` is exact for every tree and is the only rule.
 */
#include "compatible.h"

#include <stdio.h>

#include "error.h"

unsigned esp_draws_of(const struct esp_settings *set)
{
    bool greedy = set->sampling.temperature == 0;
    return set->drafter->draws_with ? set->drafter->draws_with(&set->drafter_params, greedy)
                                    : set->drafter->draws;
}

enum esp_fit esp_fit(const struct esp_settings *set, const struct esp_verifier_ops *verifier)
{
    const struct esp_drafter_ops *drafter = set->drafter;
    if (set->sampling.temperature == 0)
        return verifier->greedy ? ESP_FIT_LOSSLESS : ESP_FIT_RANDOM;
    if (verifier->greedy)
        return ESP_FIT_GREEDY;
    if ((verifier->lossless & esp_draws_of(set)) == 0)
        return ESP_FIT_DRAWS;
    if (verifier->single_path &&
        !(drafter->single_path && drafter->single_path(&set->drafter_params)))
        return ESP_FIT_PATHS;
    return ESP_FIT_LOSSLESS;
}

/* The default: the first exact rule that is preferred for these draws. */
static const struct esp_verifier_ops *pick(const struct esp_settings *set)
{
    for (int i = 0; esp_verifiers[i]; i++)
        if (esp_fit(set, esp_verifiers[i]) == ESP_FIT_LOSSLESS &&
            (esp_verifiers[i]->greedy || (esp_verifiers[i]->preferred & esp_draws_of(set))))
            return esp_verifiers[i];
    return NULL;
}

static const char *list_lossless(const struct esp_settings *set, char *text, size_t size)
{
    size_t used = 0;
    snprintf(text, size, "none");
    for (int i = 0; esp_verifiers[i] && used < size; i++)
        if (esp_fit(set, esp_verifiers[i]) == ESP_FIT_LOSSLESS)
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

static int refuse(const struct esp_settings *set, enum esp_fit fit, char *err, size_t errlen)
{
    const char *rule = set->verifier->name, *drafter = set->drafter->name;
    char names[256];
    list_lossless(set, names, sizeof names);
    switch (fit) {
    case ESP_FIT_RANDOM:
        return esp_fail(
            err, errlen, ESP_E_ARGUMENT,
            "verifier %s draws at random and needs a temperature above 0; at 0 use %s", rule,
            names);
    case ESP_FIT_GREEDY:
        return esp_fail(err, errlen, ESP_E_ARGUMENT,
                        "verifier %s is for temperature 0; at %g with drafter %s use %s", rule,
                        set->sampling.temperature, drafter, names);
    case ESP_FIT_PATHS:
        return esp_fail(
            err, errlen, ESP_E_ARGUMENT,
            "verifier %s needs a single path and drafter %s branches here; that would "
            "change what the model says; use %s, or %s:lossy=allow",
            rule, drafter, names, rule);
    default:
        return esp_fail(err, errlen, ESP_E_ARGUMENT,
                        "verifier %s is not made for %s, which drafter %s gives; that would "
                        "change what the model says; use %s, or %s:lossy=allow",
                        rule, draws_text(esp_draws_of(set)), drafter, names, rule);
    }
}

int esp_choose_rule(struct esp_settings *set, char *err, size_t errlen)
{
    if (!set->verifier_chosen) {
        set->verifier = pick(set);
        if (!set->verifier)
            return esp_fail(err, errlen, ESP_E_ARGUMENT,
                            "no verifier keeps what the model says with drafter %s at "
                            "temperature %g",
                            set->drafter->name, set->sampling.temperature);
        esp_params_init(&set->verifier_params, set->verifier->params);
    }
    enum esp_fit fit = esp_fit(set, set->verifier);
    int lossy = esp_params_find(&set->verifier_params, "lossy");
    bool allowed = lossy >= 0 && esp_param(&set->verifier_params, lossy) != 0;
    set->lossy = fit != ESP_FIT_LOSSLESS;
    if (!set->lossy || (allowed && fit != ESP_FIT_RANDOM))
        return ESP_OK;
    return refuse(set, fit, err, errlen);
}
