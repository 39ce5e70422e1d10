/* Fuzzes a file of prompts, which are plain lines or JSON Lines. Every accepted prompt must
 * have a text and a category, and all prompts together must not be longer than the file. A
 * refused file must give an error message. The input is the file. */
#include "tui/cli/bench/prompt_list.h"

#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/support/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    struct cli_prompts prompts;
    char err[512] = "";
    /* No NUL follows the text, so the sanitizer reports a read beyond its end. */
    char *text = malloc(length ? length : 1);
    FUZZ_REQUIRE(text, "there is memory");
    if (length > 0)
        memcpy(text, bytes, length);
    int status = cli_prompts_take(&prompts, text, length, "prompts", err, sizeof err);
    free(text);
    FUZZ_REQUIRE(status == 0 ? prompts.count > 0 : *err && prompts.count == 0,
                 "there are prompts or an error message");
    size_t all = 0;
    for (int i = 0; i < prompts.count; i++) {
        const struct cli_prompt *p = &prompts.prompt[i];
        FUZZ_REQUIRE(p->length > 0 && p->category, "prompt %d has a text and a category", i);
        char *copy = fuzz_text(p->text, p->length);
        free(copy);
        all += p->length + strlen(p->category);
    }
    FUZZ_REQUIRE(all <= length, "the prompts have %zu bytes, but the file has %zu", all,
                 length);
    cli_prompts_free(&prompts);
    return 0;
}
