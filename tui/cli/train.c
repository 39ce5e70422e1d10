/* train.c - `espalier train`: trains what decoding learns from; a file of train_*.c for each.
 */
#include <string.h>

#include "tui/cli/train.h"
#include "viz/safe.h"

static const struct {
    const char *name;
    int (*run)(struct cli_options *options);
} trainings[] = {
    {"selector", cli_train_selector},
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
    .arguments = "selector --text FILE...",
    .summary = "train the selector of drafter nde for a pair",
    .flags =
        "target draft verifier text pieces epochs goal output settings backend threads device "
        "context json",
    .chooses = "temp draft-temp top-p top-k order baseline",
    .least = 1,
    .most = 64,
    .details =
        "The target continues pieces of the text with eight sampling settings; what each tree\n"
        "brings there is worked out by the verifier's formulas. --verifier names one verifier "
        "or\n"
        "several, divided by commas (default: "
        "nss,naivetree,spectr,specinfer,khisti,traversal).\n"
        "-o is a file, or for several a folder; without it selectors go to the target's "
        "folder,\n"
        "where drafter nde finds them. After Ctrl-C the same command goes on where it was; "
        "its\n"
        "samples are in a file that ends in .samples and may be removed when it is done.",
    .run = run,
};
