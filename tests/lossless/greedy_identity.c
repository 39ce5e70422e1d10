/* Greedy identity on the built-in pair: every drafter, with kept and with rebuilt cache rows, writes token
 * for token what plain decoding writes, on 50 prompts x 256 tokens (algorithms.md, "Tests that decide", 5).
 *
 * The sanitizer pass takes one prompt.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "drafter.h"

enum { PROMPTS = 50, TOKENS = 256, LONGEST = 512 };

static struct esp_engine *engine;
static char err[512];
static int prompts;
static int32_t prompt[PROMPTS][LONGEST];
static int prompt_length[PROMPTS];
static int32_t plain[PROMPTS][TOKENS];
static int plain_length[PROMPTS];

static void read_prompts(void)
{
    char line[4096];
    FILE *file = fopen(check_path("prompts.txt"), "r");
    CHECK(file, "%s", check_path("prompts.txt"));
    while (prompts < PROMPTS && fgets(line, sizeof line, file)) {
        size_t n = strcspn(line, "\n");
        int count = esp_tokenize(engine, line, n, prompt[prompts], LONGEST);
        CHECK(count > 0 && count <= LONGEST, "prompt %d has %d tokens", prompts, count);
        prompt_length[prompts++] = count;
    }
    fclose(file);
    CHECK(prompts == PROMPTS);
    if (check_quick())
        prompts = 1;
}

static int generate(struct esp_session *session, int i, int32_t *tokens)
{
    int status, length;
    esp_session_clear(session);
    CHECK(esp_session_prompt(session, prompt[i], prompt_length[i], err, sizeof err) == 0, "%s", err);
    esp_session_allow(session, TOKENS);
    while ((status = esp_session_step(session, err, sizeof err)) > 0)
        continue;
    CHECK(status == 0, "%s", err);
    const int32_t *text = esp_session_tokens(session, &length);
    length -= prompt_length[i];
    CHECK(length > 0 && length <= TOKENS);
    memcpy(tokens, text + prompt_length[i], (size_t)length * sizeof *tokens);
    return length;
}

static struct esp_session *open_session(const char *drafter)
{
    struct esp_session *session;
    struct esp_session_options options = {.drafter = drafter};
    CHECK(esp_session_open(&session, engine, &options, err, sizeof err) == 0, "%s", err);
    return session;
}

static void check_drafter(const char *spec)
{
    int32_t tokens[TOKENS];
    struct esp_session *session = open_session(spec);
    for (int i = 0; i < prompts; i++) {
        int length = generate(session, i, tokens), same = 0;
        while (same < length && same < plain_length[i] && tokens[same] == plain[i][same])
            same++;
        CHECK(length == plain_length[i] && same == length,
              "%s: prompt %d differs from plain decoding at token %d", spec, i, same);
    }
    esp_session_close(session);
}

/* All in one test: the plain texts are made once. */
TEST(every_drafter_equals_plain_decoding)
{
    CHECK(esp_engine_open(&engine, NULL, err, sizeof err) == 0, "%s", err);
    read_prompts();
    struct esp_session *session = open_session("ar");
    for (int i = 0; i < prompts; i++)
        plain_length[i] = generate(session, i, plain[i]);
    esp_session_close(session);
    for (int i = 0; esp_drafters[i]; i++) {
        char spec[64];
        struct esp_params params;
        check_drafter(esp_drafters[i]->name);
        esp_params_init(&params, esp_drafters[i]->params);
        snprintf(spec, sizeof spec, "%s:cache=rebuild", esp_drafters[i]->name);
        if (esp_params_find(&params, "cache") >= 0)
            check_drafter(spec);
    }
    check_drafter("fixed:root=draft,cache=rebuild");
    check_drafter("dynatree:root=draft,cache=rebuild");
    check_drafter(esp_engine_preset(engine));
    esp_engine_close(engine);
}
