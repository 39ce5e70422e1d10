/* inspect.c - `espalier inspect MODEL [DRAFT]`: prints the contents of a model folder or GGUF
 * file, whether a pair fits, and how well the target predicts a text. */
#include <cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/espalier_ranks.h"
#include "engine/perplexity.h"
#include "kernels/clock.h"
#include "tui/cli/cli.h"
#include "tui/cli/prompt.h"
#include "tui/cli/session_json.h"
#include "viz/safe.h"

static cJSON *model_json(const struct esp_model_info *m)
{
    return cli_object(
        CLI_TEXT("path", m->path), CLI_TEXT("architecture", m->architecture),
        CLI_BOOL("draft_head", m->head), CLI_BOOL("mtp", m->mtp), CLI_TEXT("dtype", m->dtype),
        CLI_NUMBER("parameters", m->parameters), CLI_NUMBER("active_parameters", m->active),
        CLI_NUMBER("experts", m->experts), CLI_NUMBER("experts_used", m->experts_used),
        CLI_NUMBER("expert_ffn", m->expert_ffn), CLI_TEXT("expert_dtype", m->expert_dtype),
        CLI_NUMBER("bytes", m->bytes), CLI_NUMBER("layers", m->layers),
        CLI_NUMBER("hidden", m->hidden), CLI_NUMBER("heads", m->heads),
        CLI_NUMBER("kv_heads", m->kv_heads), CLI_NUMBER("head_dim", m->head_dim),
        CLI_NUMBER("recurrent_layers", m->recurrent), CLI_NUMBER("state_bytes", m->state_bytes),
        CLI_NUMBER("checkpoints", m->checkpoints),
        CLI_NUMBER("checkpoint_bytes", m->checkpoint_bytes), CLI_NUMBER("ffn", m->ffn),
        CLI_NUMBER("vocabulary", m->vocabulary), CLI_NUMBER("outputs", m->outputs),
        CLI_BOOL("other_vocabulary", m->translated), CLI_NUMBER("shared_tokens", m->shared),
        CLI_NUMBER("text_share", m->text_share), CLI_NUMBER("context", m->context),
        CLI_NUMBER("unused_tensors", m->unused), CLI_NUMBER("ignored_tensors", m->ignored));
}

static void print_model(const char *role, const struct esp_model_info *m)
{
    esp_safe_print(stdout, "%-12s %s\n", role, m->path);
    printf("  architecture   %s%s, %d layer%s, hidden %d, ffn %d\n", m->architecture,
           m->head ? " draft head" : "", m->layers, m->layers == 1 ? "" : "s", m->hidden,
           m->ffn);
    printf("  attention      %d heads, %d key/value heads, head dimension %d\n", m->heads,
           m->kv_heads, m->head_dim);
    if (m->recurrent > 0)
        printf(
            "  recurrence     %d of %d layers; %d checkpoint%s of their states, %.1f MB each\n",
            m->recurrent, m->layers, m->checkpoints, m->checkpoints == 1 ? "" : "s",
            1e-6 * (double)m->checkpoint_bytes);
    printf("  vocabulary     %d tokens", m->vocabulary);
    if (m->outputs < m->vocabulary && !m->translated)
        printf(", of which %d are drafted", m->outputs);
    putchar('\n');
    printf("  context        %d tokens\n", m->context);
    printf("  weights        %lld parameters, %.1f MB, %s\n", (long long)m->parameters,
           (double)m->bytes / 1e6, m->dtype);
    if (m->experts > 0)
        printf("  experts        %d of %d for each token, ffn %d, %s; %lld parameters active\n",
               m->experts_used, m->experts, m->expert_ffn, m->expert_dtype,
               (long long)m->active);
    if (m->mtp)
        puts("  MTP layer      in the same files; --draft mtp drafts with it");
    if (m->ignored > 0)
        printf("  ignored        %d tensor%s for images: this program computes only the text "
               "part\n",
               m->ignored, m->ignored == 1 ? "" : "s");
    if (m->unused > 0)
        esp_safe_print(stdout,
                       "  not used       %d more tensor%s that config.json does not require, "
                       "such as %s\n",
                       m->unused, m->unused == 1 ? "" : "s", m->unused_name);
}

/* Prints how many layers stay in memory, and the expected speed. The other layers must be read
 * or copied to the GPU in every pass, which limits the speed. */
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
    printf("%.1f MB are for the target: %d of %d layers, %.1f MB for %s the other layers\n",
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

/* ------------------------------------------------------------------ ranks */

static const int rows_shown[] = {1, 16, 64};
enum { ROWS_SHOWN = sizeof rows_shown / sizeof *rows_shown };
/* The time of a pass is also predicted for these numbers of ranks. */
static const int ranks_shown[] = {2, 4, 8};
enum { RANKS_SHOWN = sizeof ranks_shown / sizeof *ranks_shown };

static void print_kind(const struct esp_rank_kind_report *k, int ranks)
{
    printf("    %-22s %10.1f  ", k->name, 1e-6 * k->bytes);
    if (k->whole) {
        printf("whole in every rank\n");
        return;
    }
    for (int i = 0; i < ranks; i++)
        printf("%s%d", i > 0 ? " + " : "", k->part[i]);
    printf(" %s; a row gathers %.1f KB in %d exchange%s\n",
           strcmp(k->word, "attention") == 0 ? "key/value heads" : "outputs",
           1e-3 * k->gathered, k->exchanges, k->exchanges == 1 ? "" : "s");
}

static double expected(const struct esp_engine *engine, int ranks, int rows)
{
    return 1e3 * esp_engine_ranks_expected(engine, ranks, rows);
}

/* Prints the predicted time of a pass of rows_shown[i] rows: with `ranks` ranks, in a single
 * process, and with each number of ranks in ranks_shown. */
static void print_predicted(const struct esp_engine *engine, int ranks, int i)
{
    const int rows = rows_shown[i];
    printf("  %-14s a pass of %d row%s takes %.2f ms or more; in a single process "
           "%.2f ms",
           i == 0 ? "predicted" : "", rows, rows == 1 ? "" : "s", expected(engine, ranks, rows),
           expected(engine, 1, rows));
    for (int k = 0; k < RANKS_SHOWN; k++)
        if (ranks_shown[k] != ranks && expected(engine, ranks_shown[k], rows) > 0)
            printf(", with %d ranks %.2f ms", ranks_shown[k],
                   expected(engine, ranks_shown[k], rows));
    putchar('\n');
}

/* Prints how the model is divided among the ranks, the measured costs of an exchange, and the
 * predicted time of a pass. */
static void print_ranks(const struct esp_engine *engine)
{
    struct esp_rank_report r;
    if (!esp_engine_ranks(engine, &r))
        return;
    printf("%-12s %d: an exchange takes %.1f us, %.1f GB/s; a rank reads %.1f GB/s\n", "ranks",
           r.ranks, 1e6 * r.latency, 1e-9 * r.rate, 1e-9 * r.read);
    if (r.by_layers) {
        printf("  %-14s", "layers");
        for (int i = 0; i <= r.ranks; i++)
            printf("%s%d", i > 0 ? " + " : " ", r.layers[i]);
        printf("; the first and the last number are for rank 0, which also has the LM head\n");
    } else {
        printf("    %-22s %10s  %s\n", "matrices", "MB a row", "parts");
    }
    for (int i = 0; i < r.kinds && !r.by_layers; i++)
        print_kind(&r.kind[i], r.ranks);
    for (int i = 0; i < ROWS_SHOWN; i++)
        print_predicted(engine, r.ranks, i);
}

static cJSON *ranks_json(const struct esp_engine *engine)
{
    struct esp_rank_report r;
    if (!esp_engine_ranks(engine, &r))
        return cJSON_CreateNull();
    cJSON *kinds = cJSON_CreateArray(), *predicted = cJSON_CreateArray();
    for (int i = 0; i < r.kinds; i++) {
        const struct esp_rank_kind_report *k = &r.kind[i];
        cJSON_AddItemToArray(
            kinds, cli_object(CLI_TEXT("kind", k->word), CLI_NUMBER("bytes", k->bytes),
                              CLI_BOOL("whole", k->whole),
                              CLI_ITEM("parts", cJSON_CreateIntArray(k->part, r.ranks)),
                              CLI_NUMBER("row_bytes", k->gathered),
                              CLI_NUMBER("exchanges", k->exchanges)));
    }
    for (int i = 0; i < ROWS_SHOWN; i++) {
        const int rows = rows_shown[i];
        cJSON *others = cJSON_CreateArray();
        for (int k = 0; k < RANKS_SHOWN; k++)
            cJSON_AddItemToArray(
                others, cli_object(CLI_NUMBER("ranks", ranks_shown[k]),
                                   CLI_NUMBER("seconds", esp_engine_ranks_expected(
                                                             engine, ranks_shown[k], rows))));
        cJSON_AddItemToArray(
            predicted,
            cli_object(CLI_NUMBER("rows", rows),
                       CLI_NUMBER("seconds", esp_engine_ranks_expected(engine, r.ranks, rows)),
                       CLI_NUMBER("seconds_alone", esp_engine_ranks_expected(engine, 1, rows)),
                       CLI_ITEM("others", others)));
    }
    cJSON *layers =
        r.by_layers ? cJSON_CreateIntArray(r.layers, r.ranks + 1) : cJSON_CreateNull();
    return cli_object(CLI_NUMBER("ranks", r.ranks), CLI_ITEM("layers", layers),
                      CLI_NUMBER("latency", r.latency), CLI_NUMBER("rate", r.rate),
                      CLI_NUMBER("read_rate", r.read), CLI_ITEM("kinds", kinds),
                      CLI_ITEM("predicted", predicted));
}

static int measure(struct esp_perplexity *result, struct esp_engine *engine, const char *file)
{
    char err[512], *text;
    size_t length;
    struct cli_loading loading = {.start = esp_clock()};
    int code = cli_read_text(file, &text, &length);
    if (code != EXIT_DONE)
        return code;
    int status = esp_perplexity_measure(engine, text, length, result, cli_progress, &loading,
                                        err, sizeof err);
    cli_clear_bar(loading.shown);
    free(text);
    return status < 0 ? cli_fail(err) : EXIT_DONE;
}

static void print_pair(const struct esp_model_info *target, const struct esp_model_info *draft)
{
    char same[160];
    if (draft->copy) {
        printf("%-12s yes: the target's own copy, quantised; it uses the target's KV cache\n",
               "pair fits");
        return;
    }
    snprintf(same, sizeof same, "%s the same",
             draft->head ? "vocabulary and hidden states are" : "the vocabularies are");
    if (draft->translated)
        snprintf(same, sizeof same,
                 "the draft has a different vocabulary, with %d of the target's %d tokens and "
                 "%.1f %% of the tokens of a sample text",
                 draft->shared, target->vocabulary, 100 * draft->text_share);
    printf("%-12s yes: %s; the draft has %.1f %% of the target's parameters%s\n", "pair fits",
           same, 100.0 * (double)draft->parameters / (double)target->parameters,
           draft->head ? ", and also uses some of the target's" : "");
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
        cJSON *all =
            cli_object(CLI_ITEM("target", model_json(&target)),
                       CLI_ITEM("draft", pair ? model_json(&draft) : cJSON_CreateNull()),
                       CLI_TEXT("preset", preset), CLI_TEXT("sampling_preset", sampling));
        cli_json_streamed(all, engine);
        cJSON_AddItemToObject(all, "ranks", ranks_json(engine));
        if (o->perplexity)
            cJSON_AddItemToObject(all, "perplexity",
                                  cli_object(CLI_NUMBER("value", perplexity.value),
                                             CLI_NUMBER("standard_error", perplexity.error),
                                             CLI_NUMBER("tokens", perplexity.tokens),
                                             CLI_NUMBER("piece", perplexity.piece)));
        code = cli_print_json(all);
    } else {
        print_model("target", &target);
        if (pair)
            print_model("draft", &draft);
        if (pair)
            print_pair(&target, &draft);
        print_memory(engine, o);
        print_ranks(engine);
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
    .summary = "describe a model, and say whether a pair fits",
    .flags = CLI_ENGINE | CLI(NODES) | CLI(CONTEXT) | CLI(JSON) | CLI(PERPLEXITY),
    .most = 2,
    .names_models = true,
    .run = run,
};
