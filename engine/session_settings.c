/* session_settings.c - reads, checks, changes and prints the settings of a session.
 *
 * Settings are checked together before any of them takes effect. If a drafter, its parameters,
 * the verifier and the temperature do not fit together, the old settings stay.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/compatible.h"
#include "engine/session_parts.h"
#include "engine/support/suggestion.h"
#include "kernels/status.h"

_Static_assert(ESP_ORDER_bfs == 0 && ESP_ORDER_dfs == 1 && ESP_ORDER_hpd == 2,
               "espalier_settings.h lists the orders in the same sequence as tree.h");

/* ------------------------------------------------------------------ learned values */

struct esp_sampling esp_draft_sampling(const struct esp_settings *settings)
{
    struct esp_sampling plain = {.temperature = 1, .top_p = 1};
    return settings->sampling.temperature > 0 ? settings->sampling : plain;
}

double esp_session_beta(const struct esp_session *s)
{
    const double base = esp_draft_sampling(&s->set).temperature;
    const struct esp_chooser_ops *chooser = s->set.drafter->chooser;
    if (s->set.values.draft_temp == ESP_DRAFT_OFF)
        return 1;
    if (s->set.values.draft_temp != ESP_DRAFT_AUTO)
        return base / s->set.values.draft_temp;
    return chooser ? base / fmax(s->set.sampling.temperature, chooser->least_draft_temp)
                   : esp_calibration_beta(&s->calibration);
}

/* Switches to the calibration that was learned for this pair at this temperature, and to the
 * costs that were measured for this pair on this device. */
static void turn_to_learned(struct esp_session *s)
{
    const double temperature = s->set.sampling.temperature;
    char key[sizeof s->costs.key] = "";
    if (*s->pair)
        snprintf(key, sizeof key, "%s, temperature %g", s->pair, temperature);
    esp_calibration_turn(&s->calibration, key, !s->repeatable);
    if (*s->pair)
        snprintf(key, sizeof key, "%s, %s, %s: %s", s->pair,
                 temperature > 0 ? "sampling" : "greedy", esp_engine_backend(s->engine),
                 s->ops->device ? esp_engine_device(s->engine) : "");
    esp_costs_turn(&s->costs, key);
}

/* Reads the expected text if the setting names a file other than the current one. */
static int turn_to_expected(struct esp_session *s, const char *file, char *err, size_t errlen)
{
    struct esp_expectation next;
    if (file == s->expectation.file)
        return ESP_OK;
    int status = esp_expectation_read(&next, file, err, errlen);
    if (status < 0)
        return status;
    esp_expectation_close(&s->expectation);
    s->expectation = next;
    esp_expectation_begin(s);
    return ESP_OK;
}

/* ------------------------------------------------------------------ drafter and verifier */

/* Finds the name of "name:k=v,..." in a list and reads the parameters. Returns the index in
 * the list, or a negative status. */
static int read_spec(enum esp_list list, const char *spec, struct esp_params *params, char *err,
                     size_t errlen)
{
    const char *kind = list == ESP_DRAFTERS ? "drafter" : "verifier";
    const size_t n = strcspn(spec, ":");
    struct esp_suggestion guess;
    struct esp_item item;
    char name[64], meant[96];
    if (n == 0 || n >= sizeof name)
        return esp_fail(err, errlen, ESP_E_ARGUMENT,
                        "'%.64s' does not name a %s; see espalier list %ss", spec, kind, kind);
    snprintf(name, sizeof name, "%.*s", (int)n, spec);
    esp_suggestion_begin(&guess, name, n);
    for (int i = 0; esp_item(list, i, &item); i++) {
        esp_suggestion_try(&guess, item.name);
        if (strcmp(item.name, name) != 0)
            continue;
        esp_params_init(params,
                        list == ESP_DRAFTERS ? esp_drafters[i]->params : esp_verifier_params);
        const int status =
            esp_params_parse(params, name, spec[n] ? spec + n + 1 : NULL, err, errlen);
        return status < 0 ? status : i;
    }
    return esp_fail(err, errlen, ESP_E_ARGUMENT, "there is no %s '%s'%s; see espalier list %ss",
                    kind, name, esp_suggestion_text(&guess, meant), kind);
}

static int choose_drafter(struct esp_settings *set, const char *spec, char *err, size_t errlen)
{
    const int index = read_spec(ESP_DRAFTERS, spec, &set->drafter_params, err, errlen);
    if (index >= 0)
        set->drafter = esp_drafters[index];
    return index < 0 ? index : (int)ESP_OK;
}

static int choose_verifier(struct esp_settings *set, const char *spec, char *err, size_t errlen)
{
    const bool follows = strncmp(spec, "auto", 4) == 0 && (!spec[4] || spec[4] == ':');
    set->verifier_chosen = !follows;
    if (follows && spec[4])
        return esp_fail(err, errlen, ESP_E_ARGUMENT,
                        "verifier auto takes no parameters; name the verifier of '%.64s'",
                        spec + 5);
    if (follows)
        return ESP_OK;
    const int index = read_spec(ESP_VERIFIERS, spec, &set->verifier_params, err, errlen);
    if (index >= 0)
        set->verifier = esp_verifiers[index];
    return index < 0 ? index : (int)ESP_OK;
}

static int check_choice(bool has_draft, struct esp_settings *set, char *err, size_t errlen)
{
    const struct esp_drafter_ops *drafter = set->drafter;
    if (!drafter->without_model && !has_draft)
        return esp_fail(err, errlen, ESP_E_ARGUMENT,
                        "drafter %s needs a draft model; name one with --draft, or use ar",
                        drafter->name);
    int status =
        drafter->check ? drafter->check(&set->drafter_params, err, errlen) : (int)ESP_OK;
    return status < 0 ? status : esp_choose_verifier(set, err, errlen);
}

int esp_choice_check(const char *drafter, const char *verifier, double temperature,
                     bool has_draft, char *err, size_t errlen)
{
    struct esp_settings set = {.sampling = {.temperature = (float)temperature}};
    int status = choose_drafter(&set, drafter, err, errlen);
    if (status == ESP_OK)
        status = choose_verifier(&set, verifier ? verifier : "auto", err, errlen);
    return status < 0 ? status : check_choice(has_draft, &set, err, errlen);
}

static bool same_params(const struct esp_params *a, const struct esp_params *b)
{
    char one[ESP_SPEC_TEXT], other[ESP_SPEC_TEXT];
    esp_params_spec(a, "", one, sizeof one);
    esp_params_spec(b, "", other, sizeof other);
    return strcmp(one, other) == 0;
}

/* Returns the default drafter of a pair without a preset. If the user gave an expected text,
 * this is a drafter that reads the expected text. */
static const char *usual_drafter(const struct esp_session *s, const struct esp_settings *set)
{
    if (s->engine->draft_tokenizer)
        return "respell";
    if (esp_session_has_copy(s) || esp_session_has_mtp(s) || s->engine->translation.tokens > 0)
        return "goodput";
    if (set->values.expect)
        return s->engine->draft ? "goodput" : "recycle";
    return s->engine->draft ? "dynatree" : "ar";
}

/* Applies the pair's preset for this temperature. If the user chose a verifier that does not
 * fit this preset's drafter, applies the preset for greedy decoding instead. *changed is set to
 * -1 if the drafter stays the same but gets other parameters. If nothing changes, the drafter
 * keeps its learned state. */
static int choose_default(const struct esp_session *s, struct esp_settings *set, int *changed,
                          char *err, size_t errlen)
{
    const bool sampling = set->sampling.temperature > 0;
    for (int general = !sampling; general < 2; general++) {
        struct esp_settings with = *set;
        char why[400];
        const char *preset =
            s->engine->draft_tokenizer ? NULL : esp_engine_preset(s->engine, !general);
        const char *spec = preset ? preset : usual_drafter(s, set);
        int status = choose_drafter(&with, spec, why, sizeof why);
        if (status == ESP_OK && with.drafter->check)
            status = with.drafter->check(&with.drafter_params, why, sizeof why);
        if (status < 0)
            return esp_fail(err, errlen, status, "%s/espalier.json: %s",
                            s->engine->target->path, why);
        with.drafter_chosen = false;
        if (!general && set->verifier_chosen && esp_choose_verifier(&with, NULL, 0) < 0)
            continue;
        if (with.drafter == s->set.drafter &&
            !same_params(&with.drafter_params, &s->set.drafter_params))
            *changed = -1;
        *set = with;
        break;
    }
    return ESP_OK;
}

/* ------------------------------------------------------------------ applying settings */

void esp_session_close_drafter(struct esp_session *s)
{
    if (s->draft.state && s->set.drafter->close)
        s->set.drafter->close(s->draft.state);
    free(s->draft.state);
}

int esp_session_keep_texts(struct esp_session *s, struct esp_session_values *values, char *err,
                           size_t errlen)
{
    struct esp_value_info info;
    for (int i = 0; esp_value_info(i, &info); i++) {
        const char **text = esp_value_text(&info, values);
        const char **old = esp_value_text(&info, &s->set.values);
        if (!text || *text == *old)
            continue;
        if (*text && !(*text = strdup(*text)))
            return esp_fail(err, errlen, ESP_E_MEMORY, "not enough memory for %s", info.name);
        free((char *)*old);
        *old = *text;
    }
    return ESP_OK;
}

/* Opens the matrices that this drafter needs, unless they are already open. */
static int open_context(struct esp_session *s, unsigned asks, char *err, size_t errlen)
{
    const struct esp_engine *e = s->engine;
    const int rows = e->max_nodes + 1;
    struct esp_look_back *back = &s->draft_context.back;
    const struct esp_wanted_rows text = {&s->respelling.logits, 1,
                                         e->draft ? e->draft->desc.vocabulary : 0};
    if (asks & ESP_ASK_TEXT && e->draft_tokenizer) {
        s->draft_context.respelling = &s->respelling;
        return esp_session_open_rows(s, &text, 1, err, errlen);
    }
    if (!(asks & ESP_ASK_PAST))
        return ESP_OK;
    const struct esp_wanted_rows wanted[] = {
        {&back->draft_states, rows + 1, e->draft->desc.hidden},
        {&back->state, rows, e->target->desc.hidden},
        {&back->p, 1, e->target->desc.vocabulary},
    };
    back->q = s->q;
    return esp_session_open_rows(s, wanted, 3, err, errlen);
}

void esp_session_choose_end(struct esp_session *s)
{
    s->verify.end = esp_session_keeps_past(s) ? s->draft_context.back.p
                    : s->verify.scores        ? s->scores.end
                                              : NULL;
}

/* Copies the settings to the fields that iterations read. */
static void set_stages(struct esp_session *s)
{
    const struct esp_params *params = &s->set.drafter_params;
    const int cache = esp_params_find(params, "cache");
    struct esp_draft *d = &s->draft;
    struct esp_verify *v = &s->verify;
    d->params = params;
    d->draws = v->draws = esp_draws_of(&s->set);
    d->temperature = s->set.sampling.temperature;
    d->greedy = d->temperature == 0;
    d->context = s->set.drafter->asks ? &s->draft_context : NULL;
    v->sampling = s->set.sampling;
    esp_session_choose_end(s);
    s->rebuild = cache >= 0 && esp_param(params, cache) != 0;
}

/* Makes checked settings current. If the drafter is the same as before, its state is kept. */
static int apply_settings(struct esp_session *s, struct esp_settings *set, int changed,
                          char *err, size_t errlen)
{
    const bool same = set->drafter == s->set.drafter;
    void *state = s->draft.state;
    struct esp_window window;
    int status = esp_session_choose_window(s, &set->values, &window, err, errlen);
    if (status < 0)
        return status;
    if (!same && !(state = calloc(1, set->drafter->state_size ? set->drafter->state_size : 1)))
        return esp_fail(err, errlen, ESP_E_MEMORY, "not enough memory for drafter %s",
                        set->drafter->name);
    if (set->drafter->chooser)
        status = set->drafter->chooser->bind(state, &set->drafter_params, s->engine,
                                             set->verifier->name, err, errlen);
    if (status == ESP_OK)
        status = open_context(s, set->drafter->asks, err, errlen);
    if (status == ESP_OK)
        status = esp_session_open_caches(s, &window, err, errlen);
    if (status == ESP_OK)
        status = turn_to_expected(s, set->values.expect, err, errlen);
    if (status == ESP_OK)
        status = esp_session_keep_texts(s, &set->values, err, errlen);
    s->expectation.file = s->set.values.expect; /* the session's own copy */
    if (status < 0 && !same)
        free(state);
    if (status < 0)
        return status;
    if (!same) {
        esp_session_close_drafter(s);
        s->draft.state = state;
        changed = -1;
    }
    s->set = *set;
    esp_params_spec(&set->drafter_params, set->drafter->name, s->drafter_spec,
                    sizeof s->drafter_spec);
    esp_params_spec(&set->verifier_params, set->verifier->name, s->verifier_spec,
                    sizeof s->verifier_spec);
    set_stages(s);
    turn_to_learned(s);
    if (esp_recycling_turn(s) < 0) /* after a failure no tokens are recycled */
        s->draft_context.recycled = NULL;
    esp_conversation_choose(s);
    if (set->drafter->init)
        set->drafter->init(state, &s->set.drafter_params, changed);
    return ESP_OK;
}

/* ------------------------------------------------------------------ changing and printing */

void esp_session_restart_random(struct esp_session *s)
{
    s->draft_rng = (struct esp_rng){.seed = s->set.values.seed, .stream = ESP_RNG_DRAFT};
    s->verify_rng = (struct esp_rng){.seed = s->set.values.seed, .stream = ESP_RNG_VERIFY};
}

void esp_session_generator(const struct esp_session *s, struct esp_generator *generator)
{
    *generator = (struct esp_generator){s->draft_rng.next, s->verify_rng.next};
}

void esp_session_set_generator(struct esp_session *s, const struct esp_generator *generator)
{
    esp_session_restart_random(s);
    s->draft_rng.next = generator->draft;
    s->verify_rng.next = generator->verify;
}

static struct esp_sampling sampling_of(const struct esp_session_values *values)
{
    return (struct esp_sampling){values->temperature, values->top_p, values->top_k};
}

/* Changes one setting in `set`. Sets *changed to the index of the changed drafter parameter,
 * or to -1 if all drafter parameters changed. */
static int change(struct esp_settings *set, const char *key, const char *value, int *changed,
                  char *err, size_t errlen)
{
    const int index = esp_value_find(key);
    *changed = INT32_MAX; /* no parameter has changed */
    if (strcmp(key, "drafter") == 0) {
        *changed = -1;
        set->drafter_chosen = strcmp(value, "auto") != 0;
        return set->drafter_chosen ? choose_drafter(set, value, err, errlen) : (int)ESP_OK;
    }
    if (strcmp(key, "verifier") == 0)
        return choose_verifier(set, value, err, errlen);
    if (index >= 0) {
        int status = esp_value_parse(&set->values, index, key, value, err, errlen);
        set->sampling = sampling_of(&set->values);
        return status;
    }
    *changed =
        esp_params_set(&set->drafter_params, set->drafter->name, key, value, err, errlen);
    set->drafter_chosen = true;
    return *changed < 0 ? *changed : (int)ESP_OK;
}

/* Completes changed settings, checks them and makes them current. */
static int settle(struct esp_session *s, struct esp_settings *set, int changed, char *err,
                  size_t errlen)
{
    int status = ESP_OK;
    if (!set->drafter_chosen)
        status = choose_default(s, set, &changed, err, errlen);
    if (status == ESP_OK && s->engine->draft_tokenizer && !set->drafter->without_model &&
        !(set->drafter->asks & ESP_ASK_TEXT))
        return esp_fail(err, errlen, ESP_E_ARGUMENT,
                        "drafter %s drafts tokens, but the draft has another vocabulary and "
                        "drafts text; use respell, or --draft-match tokens",
                        set->drafter->name);
    if (status == ESP_OK)
        status = check_choice(s->engine->draft != NULL, set, err, errlen);
    return status < 0 ? status : apply_settings(s, set, changed, err, errlen);
}

int esp_session_set(struct esp_session *s, const char *key, const char *value, char *err,
                    size_t errlen)
{
    struct esp_settings set = s->set;
    int changed, status = change(&set, key, value, &changed, err, errlen);
    if (status == ESP_OK)
        status = settle(s, &set, changed, err, errlen);
    if (status < 0)
        return status;
    if (strcmp(key, "seed") == 0)
        esp_session_restart_random(s);
    char now[ESP_SPEC_TEXT];
    struct esp_value_info info;
    const bool is_text =
        esp_value_info(esp_value_find(key), &info) && info.kind == ESP_KIND_text;
    if (!is_text && esp_session_get(s, key, now, sizeof now) == ESP_OK)
        value = now;
    esp_session_emit(s, (struct esp_event){.type = ESP_EVENT_SETTING,
                                           .key = key,
                                           .text = value,
                                           .lossy = esp_session_is_lossy(s)});
    return ESP_OK;
}

/* Below this fraction of shared tokens, the user gets a warning. */
static const double LITTLE_SHARED = 0.6;

/* Writes a warning if the drafter does not use the expected text; otherwise the notice about
 * the file of recycled tokens, or a warning that few tokens are shared; otherwise "". */
static void note_sources(const struct esp_session *s, char *text, size_t size)
{
    text[0] = '\0';
    if (s->set.values.expect && !(s->set.drafter->asks & ESP_ASK_EXPECTED))
        snprintf(text, size,
                 "drafter %s does not use the expected text; use recycle, suffix, hybrid or "
                 "goodput",
                 s->set.drafter->name);
    else if (s->draft_context.recycled && *s->recycling.matrix.notice)
        snprintf(text, size, "%s", s->recycling.matrix.notice);
    else if (!s->set.drafter->without_model && s->engine->translation.tokens > 0 &&
             !s->engine->draft_tokenizer && s->engine->translation.text_share < LITTLE_SHARED)
        snprintf(
            text, size,
            "the draft has another vocabulary, with only %.0f %% of the tokens of a sample "
            "text; few of its guesses will be accepted (--draft-match text)",
            100 * s->engine->translation.text_share);
}

/* Writes the first of these texts that applies: a notice that parameter N exceeds the memory
 * for trees, a warning from the drafter, a warning about where its guesses come from, or "".
 * The default of N is only an upper limit, so it may exceed the memory without a notice. */
static void note_drafter(const struct esp_session *s, char *text, size_t size)
{
    const struct esp_params *params = &s->set.drafter_params;
    const int n = esp_params_find(params, "N"), most = s->engine->max_nodes;
    const struct esp_chooser_ops *chooser = s->set.drafter->chooser;
    const char *own = chooser ? chooser->note(s->draft.state) : NULL;
    note_sources(s, text, size);
    if (own)
        snprintf(text, size, "%s", own);
    if (n >= 0 && esp_param(params, n) > most && esp_param(params, n) != params->table[n].value)
        snprintf(text, size,
                 "%s: N=%g exceeds the memory for trees, so they have at most %d nodes; start "
                 "with --max-nodes %g for more",
                 s->set.drafter->name, esp_param(params, n), most, esp_param(params, n));
}

int esp_session_get(const struct esp_session *s, const char *key, char *value, size_t size)
{
    const struct esp_settings *set = &s->set;
    const int index = esp_value_find(key);
    int param;
    if (strcmp(key, "drafter") == 0)
        snprintf(value, size, "%s", s->drafter_spec);
    else if (strcmp(key, "verifier") == 0)
        snprintf(value, size, "%s", s->verifier_spec);
    else if (index >= 0)
        esp_value_print(&set->values, index, value, size);
    else if (strcmp(key, "lossy") == 0)
        snprintf(value, size, "%s", esp_session_is_lossy(s) ? "yes" : "no");
    else if (strcmp(key, "notice") == 0)
        note_drafter(s, value, size);
    else if ((param = esp_params_find(&set->drafter_params, key)) >= 0)
        esp_params_format(&set->drafter_params, param, value, size);
    else
        return ESP_E_ARGUMENT;
    return ESP_OK;
}

bool esp_session_is_lossy(const struct esp_session *s)
{
    return s->set.lossy || s->set.values.window != ESP_WINDOW_OFF;
}

bool esp_session_rule_is_lossy(const struct esp_session *s)
{
    return s->set.lossy;
}

void esp_session_current(const struct esp_session *s, struct esp_session_options *options)
{
    *options = (struct esp_session_options){
        .drafter = s->set.drafter_chosen ? s->drafter_spec : NULL,
        .verifier = s->set.verifier_chosen ? s->verifier_spec : NULL,
        .values = s->set.values,
    };
}

int esp_session_first_settings(struct esp_session *s, const struct esp_session_options *o,
                               char *err, size_t errlen)
{
    struct esp_settings set = {.values = o->values};
    int status = esp_values_check(&set.values, err, errlen);
    set.sampling = sampling_of(&set.values);
    set.drafter_chosen = o->drafter && strcmp(o->drafter, "auto") != 0;
    if (status == ESP_OK && o->verifier)
        status = choose_verifier(&set, o->verifier, err, errlen);
    if (status == ESP_OK && set.drafter_chosen)
        status = choose_drafter(&set, o->drafter, err, errlen);
    if (status == ESP_OK)
        status = settle(s, &set, -1, err, errlen);
    esp_session_restart_random(s);
    return status;
}
