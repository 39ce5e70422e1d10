/* Fuzzes a paper's figures and the table that is compared with them. The result must be an
 * error message or a picture in each of the two formats, and must be safe to show. The input
 * has the parts x.paper and table.json. */
#include "tui/cli/bench/paper.h"

#include <stdio.h>
#include <stdlib.h>

#include "tests/fuzz/support/fuzz.h"
#include "viz/safe.h"

static void draw(const struct esp_beside *beside, bool latex)
{
    struct esp_drawing drawing = {.latex = latex};
    char *bytes, *shown;
    size_t length;
    esp_beside_draw(beside, esp_colours_find("light"), &drawing);
    FUZZ_REQUIRE(esp_drawing_write(&drawing, &bytes, &length) == 0, "there is memory");
    FILE *file = open_memstream(&shown, &length);
    FUZZ_REQUIRE(file, "there is memory");
    esp_safe_print(file, "%s", bytes);
    fclose(file);
    fuzz_require_safe(shown, length, "a picture");
    esp_drawing_free(&drawing);
    free(bytes);
    free(shown);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    static struct esp_beside beside;
    struct fuzz_part part;
    char path[300], err[1024] = "";
    fuzz_folder_empty();
    for (size_t at = 0; fuzz_next_part(bytes, length, &at, &part);)
        fuzz_folder_write(part.name, part.bytes, part.length, 0);
    snprintf(path, sizeof path, "%s/x.paper", fuzz_folder());
    if (cli_paper_read(&beside, path, err, sizeof err) < 0) {
        FUZZ_REQUIRE(*err, "a refusal is a sentence");
        return 0;
    }
    draw(&beside, false);
    draw(&beside, true);
    return 0;
}
