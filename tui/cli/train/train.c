/* train.c - `espalier train`: picks the training by its name. */
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
    .summary = "train a draft head, a draft model or a selector, or make text for it",
    .flags = CLI(MODELS) | CLI(VERIFIER) | CLI(TRAIN) | CLI(TOKENS) | CLI(OUTPUT) |
             CLI(RESUME) | CLI(FORCE) | CLI(SETTINGS) | CLI(DEVICE) | CLI(CONTEXT) | CLI(JSON),
    .chooses = CLI_SETTING(temperature) | CLI_SETTING(draft_temp) | CLI_SETTING(top_p) |
               CLI_SETTING(top_k) | CLI_SETTING(order) | CLI_SETTING(baseline) |
               CLI_SETTING(system),
    .least = 1,
    .most = 64,
    .details =
        "head: a draft head on the target's hidden states (--draft DIR: begin with that "
        "head).\n"
        "draft: the draft model --draft DIR, trained further. Losses and their parameters:\n"
        "  head:  eagle, hass, talf (default); draft: ce, talf (default)\n"
        "  eagle:cls=10,reg=1,smooth=no,noise=0; hass: the same and distil=10,top=10,depth=3,\n"
        "  every=4; talf:k=4,depth=3,every=4. The papers train a head ten epochs with eagle "
        "and\n"
        "  three more with hass or talf.\n"
        "text: text that the target writes at temperature 1, -n tokens (default 100000) in "
        "pieces\n"
        "that each begin with 32 tokens of the given text, to train on; -o is a file.\n"
        "-n: tokens of the text to learn from (default: all). -o: the folder to make.\n"
        "The target runs over the text once; what it says is kept in DIR/features.bin until "
        "the\n"
        "end. Ctrl-C leaves a checkpoint, from which --resume goes on to the same bits; the\n"
        "other options must be the same then. Every twentieth piece of the text is kept apart "
        "to\nmeasure the draft after each epoch.\n"
        "\n"
        "selector: the target continues --pieces of the text with eight sampling settings; "
        "what\n"
        "each tree brings there is worked out by the verifier's formulas. --verifier names one "
        "or\n"
        "several, divided by commas (default: "
        "nss,naivetree,spectr,specinfer,khisti,traversal).\n"
        "--goal speed: tokens per second; tokens: per iteration; cheap-rows: tokens per second "
        "where\n"
        "a row more of the target costs 3 % of a pass and a draft pass 5 %. All goals learn "
        "from the\n"
        "same samples.\n"
        "-o is a file, or for several a folder; without it selectors go to the target's "
        "folder,\n"
        "where drafter nde finds them. After Ctrl-C the same command goes on where it was; "
        "its\n"
        "samples are in a file that ends in .samples and may be removed when it is done.",
    .run = run,
};
