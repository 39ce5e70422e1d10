/* inspect.c - `espalier inspect MODEL [DRAFT]`: what a model folder or GGUF file holds,
 * whether a pair fits, and how well the target predicts a text. */
#include <cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/perplexity.h"
#include "kernels/clock.h"
#include "tui/cli/cli.h"
#include "tui/cli/prompt.h"
#include "tui/cli/session_json.h"
#include "viz/safe.h"

static cJSON *model_json(const struct esp_model_info *m)
{
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "path", m->path);
    cJSON_AddStringToObject(o, "architecture", m->architecture);
    cJSON_AddBoolToObject(o, "draft_head", m->head);
    cJSON_AddStringToObject(o, "dtype", m->dtype);
    cJSON_AddNumberToObject(o, "parameters", (double)m->parameters);
    cJSON_AddNumberToObject(o, "active_parameters", (double)m->active);
    cJSON_AddNumberToObject(o, "experts", m->experts);
    cJSON_AddNumberToObject(o, "experts_used", m->experts_used);
    cJSON_AddNumberToObject(o, "expert_ffn", m->expert_ffn);
    cJSON_AddItemToObject(o, "expert_dtype",
                          m->expert_dtype ? cJSON_CreateString(m->expert_dtype)
                                          : cJSON_CreateNull());
    cJSON_AddNumberToObject(o, "bytes", (double)m->bytes);
    cJSON_AddNumberToObject(o, "layers", m->layers);
    cJSON_AddNumberToObject(o, "hidden", m->hidden);
    cJSON_AddNumberToObject(o, "heads", m->heads);
    cJSON_AddNumberToObject(o, "kv_heads", m->kv_heads);
    cJSON_AddNumberToObject(o, "head_dim", m->head_dim);
    cJSON_AddNumberToObject(o, "ffn", m->ffn);
    cJSON_AddNumberToObject(o, "vocabulary", m->vocabulary);
    cJSON_AddNumberToObject(o, "outputs", m->outputs);
    cJSON_AddNumberToObject(o, "context", m->context);
    cJSON_AddNumberToObject(o, "unused_tensors", m->unused);
    cJSON_AddNumberToObject(o, "ignored_tensors", m->ignored);
    return o;
}

static void print_model(const char *role, const struct esp_model_info *m)
{
    esp_safe_print(stdout, "%-12s %s\n", role, m->path);
    printf("  architecture   %s%s, %d layer%s, hidden %d, ffn %d\n", m->architecture,
           m->head ? " draft head" : "", m->layers, m->layers == 1 ? "" : "s", m->hidden,
           m->ffn);
    printf("  attention      %d heads, %d key/value heads, head dimension %d\n", m->heads,
           m->kv_heads, m->head_dim);
    printf("  vocabulary     %d tokens", m->vocabulary);
    if (m->outputs < m->vocabulary)
        printf(", of which %d are drafted", m->outputs);
    putchar('\n');
    printf("  context        %d tokens\n", m->context);
    printf("  weights        %lld parameters, %.1f MB, %s\n", (long long)m->parameters,
           (double)m->bytes / 1e6, m->dtype);
    if (m->experts > 0)
        printf("  experts        %d of %d for each token, ffn %d, %s; %lld parameters active\n",
               m->experts_used, m->experts, m->expert_ffn, m->expert_dtype,
               (long long)m->active);
    if (m->ignored > 0)
        printf("  ignored        %d tensor%s of pictures: this program computes the text part "
               "only\n",
               m->ignored, m->ignored == 1 ? "" : "s");
    if (m->unused > 0)
        esp_safe_print(stdout,
                       "  not used       %d more tensor%s that config.json does not ask for, "
                       "as %s\n",
                       m->unused, m->unused == 1 ? "" : "s", m->unused_name);
}

/* What stays, what streams, and the speed to expect: no pass takes less time than reading, or
 * copying to the GPU. */
static void print_memory(const struct esp_engine *engine, const struct cli_options *o)
{
    struct esp_streamed s;
    const bool gpu = strcmp(esp_engine_backend(engine), "cpu") != 0;
    const size_t limit = gpu ? o->engine.gpu_memory : o->engine.memory;
    const char *what = gpu ? "GPU memory" : "memory";
    if (!esp_engine_streamed(engine, &s)) {
        if (limit > 0)
            printf("%-12s all layers stay in memory\n", what);
        return;
    }
    const double rate = cli_read_rate(&s);
    printf("%-12s ", what);
    if (limit > 0)
        printf("of %.1f MB, ", 1e-6 * (double)limit);
    printf("%.1f MB are for the target: %d of %d layers, %.1f MB for %s the others\n",
           1e-6 * (double)s.resident_bytes, s.resident, s.layers, 1e-6 * (double)s.buffer_bytes,
           gpu ? "copying" : "reading");
    printf("  every pass     %s %.1f MB", gpu ? "copies" : "reads",
           1e-6 * (double)s.pass_bytes);
    if (rate > 0)
        printf(" in %.2f s, at the %.0f MB/s measured now: %.2f tokens/s of plain decoding at "
               "most",
               (double)s.pass_bytes / rate, 1e-6 * rate, rate / (double)s.pass_bytes);
    putchar('\n');
}

static int measure(struct esp_perplexity *result, struct esp_engine *engine, const char *file)
{
    char err[512], *text;
    size_t length;
    struct cli_loading loading = {.start = esp_clock()};
    int code = cli_read_text(file, &text, &length);
    if (code != EXIT_DONE)
        return code;
    int status = esp_perplexity_measure(engine, text, length, result,
                                        isatty(STDERR_FILENO) ? cli_progress : NULL, &loading,
                                        err, sizeof err);
    if (loading.shown)
        fprintf(stderr, "\r\033[K");
    free(text);
    return status < 0 ? cli_fail(err) : EXIT_DONE;
}

static cJSON *perplexity_json(const struct esp_perplexity *p)
{
    cJSON *o = cJSON_CreateObject();
    cJSON_AddNumberToObject(o, "value", p->value);
    cJSON_AddNumberToObject(o, "standard_error", p->error);
    cJSON_AddNumberToObject(o, "tokens", p->tokens);
    cJSON_AddNumberToObject(o, "piece", p->piece);
    return o;
}

static int run(struct cli_options *o)
{
    char err[512];
    int code = EXIT_DONE;
    struct esp_perplexity perplexity;
    struct esp_engine *engine;
    struct esp_model_info target, draft;
    if (cli_open_engine(&engine, o, err, sizeof err) < 0)
        return cli_fail(err);
    esp_engine_target(engine, &target);
    bool pair = esp_engine_draft(engine, &draft);
    const char *preset = esp_engine_preset(engine, false);
    const char *sampling = esp_engine_preset(engine, true);
    if (o->perplexity)
        code = measure(&perplexity, engine, o->perplexity);
    if (code != EXIT_DONE) {
        esp_engine_close(engine);
        return code;
    }
    if (o->json) {
        cJSON *all = cJSON_CreateObject();
        cJSON_AddItemToObject(all, "target", model_json(&target));
        cJSON_AddItemToObject(all, "draft", pair ? model_json(&draft) : cJSON_CreateNull());
        cJSON_AddItemToObject(all, "preset",
                              preset ? cJSON_CreateString(preset) : cJSON_CreateNull());
        cJSON_AddItemToObject(all, "sampling_preset",
                              sampling ? cJSON_CreateString(sampling) : cJSON_CreateNull());
        cli_json_streamed(all, engine);
        if (o->perplexity)
            cJSON_AddItemToObject(all, "perplexity", perplexity_json(&perplexity));
        code = cli_print_json(all);
    } else {
        print_model("target", &target);
        if (pair) {
            print_model("draft", &draft);
            printf(
                "%-12s yes: %s the same; the draft has %.1f %% of the target's parameters%s\n",
                "pair fits",
                draft.head ? "vocabulary and hidden states are" : "the vocabularies are",
                100.0 * (double)draft.parameters / (double)target.parameters,
                draft.head ? " and uses some of them" : "");
        }
        print_memory(engine, o);
        if (preset)
            esp_safe_print(stdout, "%-12s %s\n", "preset", preset);
        if (sampling && sampling != preset)
            esp_safe_print(stdout, "%-12s %s\n", "  sampling", sampling);
        if (o->perplexity)
            printf("%-12s %.4f +- %.4f on %d tokens, the second half of each piece of %d\n",
                   "perplexity", perplexity.value, perplexity.error, perplexity.tokens,
                   perplexity.piece);
    }
    esp_engine_close(engine);
    return code;
}

const struct cli_command cli_inspect = {
    .name = "inspect",
    .arguments = "[TARGET [DRAFT]]",
    .summary = "what a model holds and whether a pair fits",
    .flags = CLI_ENGINE | CLI(NODES) | CLI(CONTEXT) | CLI(JSON) | CLI(PERPLEXITY),
    .most = 2,
    .names_models = true,
    .run = run,
};
