/* Fuzzes the export of a recording as an asciicast: every line must be JSON, and no text of
 * the recording may become an escape sequence. The input is the recording. */
#include "tui/view/cast.h"

#include <stdlib.h>
#include <string.h>

#include <cJSON.h>

#include "tests/fuzz/support/fuzz.h"

/* Checks that all escape sequences are of the kinds that the program writes: colours, cursor
 * movements and erasing. */
static void require_own_sequences(const char *text)
{
    for (const char *escape = text; (escape = strchr(escape, '\033')); escape++) {
        FUZZ_REQUIRE(escape[1] == '[', "an escape sequence starts with '['");
        size_t n = strspn(escape + 2, "0123456789;?");
        FUZZ_REQUIRE(escape[2 + n] && strchr("mHJKlh", escape[2 + n]),
                     "an escape sequence ends with a letter that the program uses");
    }
    for (; *text; text++)
        FUZZ_REQUIRE((unsigned char)*text >= 0x20 || strchr("\033\r\n", *text),
                     "there is no other control character; found %02x", *text);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    struct esp_theme theme;
    char *made, *rest = NULL, err[512];
    size_t size;
    struct fuzz_file file = fuzz_file_open(bytes, length);
    esp_theme_plain(&theme);
    const struct esp_cast_options options = {.recording = file.path,
                                             .width = 60,
                                             .height = 20,
                                             .speed = 1,
                                             .idle = 2,
                                             .theme = &theme};
    if (esp_cast_make(&options, &made, &size, err, sizeof err) == 0) {
        FUZZ_REQUIRE(strlen(made) == size, "it is a text");
        for (char *line = strtok_r(made, "\n", &rest); line;
             line = strtok_r(NULL, "\n", &rest)) {
            cJSON *json = cJSON_Parse(line);
            FUZZ_REQUIRE(json, "a line is JSON");
            const char *kind = cJSON_GetStringValue(cJSON_GetArrayItem(json, 1));
            const cJSON *text = cJSON_IsArray(json) ? cJSON_GetArrayItem(json, 2)
                                                    : cJSON_GetObjectItem(json, "title");
            FUZZ_REQUIRE(cJSON_IsString(text), "a line has a text");
            if (kind && strcmp(kind, "o") == 0)
                require_own_sequences(text->valuestring);
            else
                fuzz_require_safe(text->valuestring, strlen(text->valuestring), "a name");
            cJSON_Delete(json);
        }
        free(made);
    }
    fuzz_file_close(&file);
    return 0;
}
