/* inflate.c - `espalier inflate SRC DST`: makes a model larger without changing its output, to
 * measure speed. */
#include <stdio.h>

#include "tui/cli/cli.h"
#include "engine/model/inflate.h"

static int run(struct cli_options *o)
{
    char err[512];
    const int width = o->engine.width > 0 ? o->engine.width : 1;
    if (!cli_find_source(o))
        return EXIT_BAD;
    if (esp_model_inflate(o->arguments[0], o->arguments[1], width, o->engine.layers, err,
                          sizeof err) < 0)
        return cli_fail(err);
    return EXIT_DONE;
}

const struct cli_command cli_inflate = {
    .name = "inflate",
    .arguments = "SRC DST",
    .summary = "make a model larger without changing its output, to measure speed",
    .flags = CLI(SIZE),
    .least = 2,
    .most = 2,
    .details =
        "Every hidden dimension, head and MLP unit is repeated --width times, with weights\n"
        "divided so that the logits stay the same. Further layers are computed in\n"
        "full, but add zero. A pass takes as long as with any other model of this size.\n",
    .run = run,
};
