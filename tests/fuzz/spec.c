/* Fuzzes the settings of a session: a drafter and a verifier with parameters, and all other
 * settings that can change while the session runs. Each line of the input is "KEY VALUE" or
 * "step", which runs one iteration on two small models. After a setting has changed, the test
 * reads its value as text and sets it to this text. This must succeed, and must not change the
 * value. */
#include "engine/espalier.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/support/fuzz.h"
#include "tests/toy.h"

enum { VOCABULARY = 12, CONTEXT = 64, NODES = 24, MOST_LINES = 20, MOST_STEPS = 4 };

static void set(struct esp_session *session, const char *key, const char *value)
{
    char err[512], now[ESP_SPEC_TEXT], again[ESP_SPEC_TEXT];
    if (esp_session_set(session, key, value, err, sizeof err) < 0) {
        FUZZ_REQUIRE(*err, "a refusal is a sentence");
        return;
    }
    FUZZ_REQUIRE(esp_session_get(session, key, now, sizeof now) == 0, "%s has a value", key);
    FUZZ_REQUIRE(esp_session_set(session, key, now, err, sizeof err) == 0, "%s takes '%s': %s",
                 key, now, err);
    FUZZ_REQUIRE(esp_session_get(session, key, again, sizeof again) == 0, "it has a value");
    FUZZ_REQUIRE(strcmp(now, again) == 0, "%s stays '%s', not '%s'", key, now, again);
}

static void obey(struct esp_session *session, char *lines)
{
    char err[512], *rest = NULL;
    int count = 0, steps = 0;
    for (char *line = strtok_r(lines, "\n", &rest); line && count++ < MOST_LINES;
         line = strtok_r(NULL, "\n", &rest)) {
        char *value = strchr(line, ' ');
        if (strcmp(line, "step") == 0 && steps++ < MOST_STEPS) {
            esp_session_allow(session, 16);
            esp_session_step(session, err, sizeof err);
        } else if (value) {
            *value = '\0';
            set(session, line, value + 1);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    static const int32_t prompt[] = {1, 2, 3};
    struct toy toy;
    struct esp_session *session;
    char err[512];
    fuzz_folder(); /* drafters store what they learn in this folder */
    char *lines = fuzz_text(bytes, length);
    toy_open(&toy, VOCABULARY, CONTEXT, NODES, 1);
    FUZZ_REQUIRE(esp_session_open(&session, &toy.engine, NULL, err, sizeof err) == 0, "%s",
                 err);
    FUZZ_REQUIRE(esp_session_prompt(session, prompt, 3, err, sizeof err) == 0, "%s", err);
    obey(session, lines);
    esp_session_close(session);
    toy_close(&toy);
    free(lines);
    return 0;
}
