/* espalier_lists.h - the drafters, verifiers and backends there are, and their parameters.
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
    const char *differs; /* how it differs from the source, and why; or "" */
    /* Drafters: how they draw children ("topk", "iid, topk", ...). Verifiers: the draws with
     * which they are lossless. */
    const char *draws;
    bool weighs_costs; /* drafters: its trees depend on what passes cost */
    /* Verifiers: how a node is tested, e.g. "min(1, p/q)"; the same with numbers filled in, or
     * NULL; what its letters mean, or NULL. In the last two a letter after '$' stands for a
     * number of the node, see viz/formula.h. NULL for the other lists. */
    const char *formula, *numbers, *where;
};

/* Entry `index` of a list; false past its end. */
bool esp_item(enum esp_list list, int index, struct esp_item *item);

/* Whether a session at this temperature takes a drafter and a verifier ("name:k=v,...";
 * verifier NULL: the best that goes with it), with or without a draft model. ESP_E_ARGUMENT:
 * no, and the sentence says why. */
int esp_choice_check(const char *drafter, const char *verifier, double temperature,
                     bool has_draft, char *err, size_t errlen);

/* Opens and closes a backend on one of its devices, numbered from 0. `text` becomes the device
 * ("AVX-512, 2 threads", "NVIDIA H100, 85 GB, driver 580.65"); or, with a negative status, the
 * reason why it cannot be used here. */
int esp_backend_probe(const char *name, int device, char *text, size_t size);

struct esp_param_info {
    const char *name, *type, *help; /* type: "int", "real", "flag", "choice", "text" */
    const char *choices;            /* "a|b|c" for a choice, else NULL */
    const char *text;               /* default of a text */
    double minimum, maximum, value; /* range and default; of a choice its index */
};

/* Parameter `index` of a drafter or verifier; false past the end or if there is no such name.
 */
bool esp_item_param(enum esp_list list, const char *name, int index,
                    struct esp_param_info *info);

#ifdef __cplusplus
}
#endif
#endif
