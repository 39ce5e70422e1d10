/* quantize.c - `espalier quantize SRC DST --type NAME`: writes a model as a GGUF file with
 * fewer bits per number. */
#include <stdio.h>
#include <unistd.h>

#include "engine/model/quantize.h"
#include "kernels/clock.h"
#include "tui/cli/cli.h"
#include "viz/safe.h"

static int run(struct cli_options *o)
{
    char err[512];
    struct esp_quantize_report report;
    struct cli_loading loading = {.start = esp_clock()};
    if (!o->type) {
        esp_complain("name a type with --type: %s", esp_quantize_types());
        return EXIT_USAGE;
    }
    if (!o->force && access(o->arguments[1], F_OK) == 0) {
        esp_complain("%s already exists; choose another name, or overwrite it with --force",
                     o->arguments[1]);
        return EXIT_BAD;
    }
    if (!cli_find_source(o))
        return EXIT_BAD;
    int status = esp_model_quantize(o->arguments[0], o->arguments[1], o->type, o->force,
                                    &report, cli_progress, &loading, err, sizeof err);
    cli_clear_bar(loading.shown);
    if (status < 0)
        return cli_fail(err);
    esp_safe_print(stdout, "%-10s %s\n", "written", o->arguments[1]);
    printf("%-10s %.1f MB instead of %.1f MB, %.2f bits per number of a matrix\n", "size",
           report.bytes_after / 1e6, report.bytes_before / 1e6, report.bits);
    printf("%-10s %.2f %% of the matrices' size (root mean square)", "loss", 100 * report.loss);
    if (report.worst > 0)
        esp_safe_print(stdout, "; most in %s: %.2f %%", report.worst_name, 100 * report.worst);
    printf("\n");
    if (report.mtp)
        printf("%-10s in the same file; --draft mtp drafts with it\n", "MTP layer");
    if (*report.mtp_left_out)
        esp_complain("MTP layers are left out: %s", report.mtp_left_out);
    if (report.other_tokens > 0)
        esp_complain("the tokenizer of the new file splits %d of %d tokens of a test text "
                     "differently, because GGUF cannot express all that tokenizer.json can",
                     report.other_tokens, report.tokens);
    if (report.ignored_window > 0)
        esp_complain(
            "the model's layers attend only to the last %d tokens; espalier reads that from "
            "the file, but llama.cpp has no window for architecture llama, so its output "
            "differs after that many tokens",
            report.ignored_window);
    return EXIT_DONE;
}

const struct cli_command cli_quantize = {
    .name = "quantize",
    .arguments = "SRC DST --type NAME",
    .summary = "write a model as a GGUF file, with matrices of fewer bits",
    .flags = CLI(TYPE) | CLI(FORCE),
    .least = 2,
    .most = 2,
    .details =
        "SRC is a model folder or a GGUF file. Types: q8_0, q6_k, q5_k, q4_k, q4_0, mxfp4\n"
        "(for experts; all else gets q8_0), and bf16, f16, f32. With q4_k and q5_k, the\n"
        "matrices that matter most get 6 bits. The rounding error is printed; `espalier\n"
        "inspect DST --perplexity FILE` measures its effect on the predictions of a text.\n",
    .run = run,
};
