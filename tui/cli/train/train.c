/* train.c - `espalier train`: runs the kind of training that the first argument names. */
#include <string.h>

#include "tui/cli/train/train.h"
#include "viz/safe.h"

static const struct {
    const char *name;
    int (*run)(struct cli_options *options);
} trainings[] = {
    {"head", cli_train_head},
    {"draft", cli_train_draft},
    {"selector", cli_train_selector},
    {"text", cli_train_text},
};

static int run(struct cli_options *o)
{
    for (size_t i = 0; i < sizeof trainings / sizeof *trainings; i++)
        if (strcmp(o->arguments[0], trainings[i].name) == 0)
            return trainings[i].run(o);
    esp_complain("nothing called '%s' can be trained; try espalier train --help",
                 o->arguments[0]);
    return EXIT_USAGE;
}

const struct cli_command cli_train = {
    .name = "train",
    .arguments = "head|draft|text|selector --text FILE... -o DIR",
    .summary =
        "train a draft head, a draft model or a selector, or generate text for the training",
    .flags = CLI(MODELS) | CLI(VERIFIER) | CLI(TRAIN) | CLI(TOKENS) | CLI(OUTPUT) |
             CLI(RESUME) | CLI(FORCE) | CLI(SETTINGS) | CLI(DEVICE) | CLI(CONTEXT) | CLI(JSON),
    .chooses = CLI_SETTING(temperature) | CLI_SETTING(draft_temp) | CLI_SETTING(top_p) |
               CLI_SETTING(top_k) | CLI_SETTING(order) | CLI_SETTING(baseline) |
               CLI_SETTING(system),
    .least = 1,
    .most = 64,
    .details =
        "head: trains a draft head on the target's hidden states, starting from --draft DIR if "
        "given.\n"
        "draft: trains the draft model --draft DIR further. Losses and their parameters:\n"
        "  head:  eagle, hass, talf (default); draft: ce, talf (default)\n"
        "  eagle:cls=10,reg=1,smooth=no,noise=0; hass: the same and distil=10,top=10,depth=3,\n"
        "  every=4; talf:k=4,depth=3,every=4. The papers train a head for ten epochs with "
        "eagle and\n"
        "  for three more with hass or talf.\n"
        "-n: how many tokens of the text to learn from (default: all). -o: the folder to "
        "make.\n"
        "The target runs over the text once; its outputs are kept in DIR/features.bin until "
        "the end.\n"
        "Ctrl-C leaves a checkpoint; the same command with --resume continues from it "
        "and\n"
        "gives bit-identical results. Every twentieth piece of the text is held out, to "
        "measure "
        "the\ndraft after each epoch.\n"
        "\n"
        "text: makes text to train on. The target writes -n tokens (default 100000) at "
        "temperature 1,\n"
        "in pieces that each begin with 32 tokens of the given text. -o is a file.\n"
        "\n"
        "selector: the target continues --pieces pieces of the text with eight sampling "
        "settings;\n"
        "the verifier's formulas give the number of tokens that each tree would yield.\n"
        "--verifier names one or several verifiers, separated by commas (default:\n"
        "nss,naivetree,spectr,specinfer,khisti,traversal).\n"
        "--goal speed: tokens per second; tokens: tokens per iteration; cheap-rows: tokens "
        "per\n"
        "second if each additional target row cost 3 % of a pass, and a draft pass 5 %. All "
        "goals\nlearn from the same samples.\n"
        "-o is a file or, for several verifiers, a folder. Without it, selectors go to the "
        "target's\n"
        "folder, where drafter nde finds them. After Ctrl-C the same command continues where "
        "it\n"
        "stopped. The samples are in a file *.samples; remove this file when training is "
        "done.",
    .run = run,
};
