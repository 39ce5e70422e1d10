/* espalier_lists.h - lists the drafters, verifiers and backends, and their parameters.
 *
 * Part of the public interface (espalier.h includes it).
 */
#ifndef ESPALIER_LISTS_H
#define ESPALIER_LISTS_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum esp_list { ESP_DRAFTERS, ESP_VERIFIERS, ESP_BACKENDS };

struct esp_item {
    const char *name, *summary, *source;
    const char *differs; /* how the item differs from its source, and why; or "" */
    /* For drafters: how they draw children ("topk", "iid, topk", ...). For verifiers: the kinds
     * of draws for which they are lossless. */
    const char *draws;
    bool weighs_costs; /* for drafters: the trees depend on the costs of passes */
    /* For verifiers; NULL in the other lists. `formula` says how a node is tested, e.g. "min(1,
     * p/q)"; `numbers` is the same formula with numbers filled in, or NULL; `where` explains
     * the letters of the formula, or is NULL. In `numbers` and `where`, '$' and a letter stand
     * for a value of the node; see viz/formula.h. */
    const char *formula, *numbers, *where;
};

/* Fills in entry `index` of a list. Returns false if `index` is past the end of the list. */
bool esp_item(enum esp_list list, int index, struct esp_item *item);

/* Checks whether a session at this temperature, with or without a draft model, can use this
 * drafter with this verifier. Both have the form "name:k=v,...". NULL as verifier means the
 * best verifier for the drafter. Returns 0, or ESP_E_ARGUMENT with the reason in err. */
int esp_choice_check(const char *drafter, const char *verifier, double temperature,
                     bool has_draft, char *err, size_t errlen);

/* Tests whether a backend can use one of its devices, numbered from 0, by opening and closing
 * it. Writes a description of the device to `text` ("AVX-512, 2 threads", "NVIDIA H100, 85 GB,
 * driver 580.65"). If the device cannot be used, writes the reason to `text` instead, and
 * returns a negative status. */
int esp_backend_probe(const char *name, int device, char *text, size_t size);

struct esp_param_info {
    const char *name, *type, *help; /* type: "int", "real", "flag", "choice", "text" */
    const char *choices;            /* "a|b|c" for a choice, else NULL */
    const char *text;               /* default of a text parameter */
    double minimum, maximum, value; /* range and default; a choice has an index as default */
};

/* Fills in parameter `index` of a drafter or verifier. Returns false past the last parameter,
 * or if no drafter or verifier has that name. */
bool esp_item_param(enum esp_list list, const char *name, int index,
                    struct esp_param_info *info);

#ifdef __cplusplus
}
#endif
#endif
