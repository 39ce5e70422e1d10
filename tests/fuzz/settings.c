/* Fuzzes a theme and a configuration file, which the interface reads when it plays a recording.
 * The file that ":config save" would write must be readable and have the same settings. The
 * input has the parts theme and config. */
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/support/fuzz.h"
#include "tui/commands/bindings.h"
#include "tui/commands/configuration.h"
#include "tui/commands/replay.h"
#include "tui/commands/settings.h"

enum { VALUES = 8192 };

static const char recording[] =
    "{\"format\":\"espalier-session\",\"version\":\"1.0\",\"vocabulary\":{\"size\":12}}\n"
    "{\"t\":0,\"type\":\"prompt\",\"tokens\":[{\"id\":1,\"text\":\"a\"},{\"id\":2}]}\n";

static void read_theme(const char *path)
{
    static const int colours[] = {0, 8, 16, 88, 256, 1 << 24};
    struct esp_theme theme;
    char err[512];
    if (esp_theme_load(&theme, path, err, sizeof err) < 0)
        return;
    for (int style = 0; style < ESP_STYLE_COUNT; style++)
        for (size_t i = 0; i < sizeof colours / sizeof *colours; i++) {
            struct esp_appearance look = esp_appearance_near(&theme, style, colours[i]);
            FUZZ_REQUIRE(look.foreground >= -1 && look.foreground < colours[i] + !colours[i],
                         "colour %d is below the number of colours, %d", (int)look.foreground,
                         colours[i]);
        }
}

/* Writes the value of every setting, one per line. */
static void read_values(const struct esp_control *control, char *values, size_t size)
{
    char value[1200];
    size_t used = 0;
    for (int i = 0; esp_setting(i) && used < size; i++) {
        esp_setting_get(control, i, value, sizeof value);
        used +=
            (size_t)snprintf(values + used, size - used, "%s %s\n", esp_setting(i)->key, value);
    }
}

/* Does what esp_app_open() does for a replay, but does not draw or open an input line. */
static bool open_control(struct esp_control *control, const char *played, const char *config)
{
    char err[512] = "";
    *control = (struct esp_control){
        .settings = {.options = {.recording = played, .speed = 1, .idle = 2},
                     .theme_name = "mono"},
        .pace = 1};
    esp_ui_init(&control->ui);
    esp_theme_plain(&control->settings.theme);
    int status =
        esp_configuration_read(&control->settings.config, config, true, err, sizeof err);
    if (status == 0)
        status =
            esp_configuration_apply(&control->settings.config, control, true, err, sizeof err);
    if (status == 0)
        status = esp_replay_open(control, err, sizeof err);
    if (status == 0)
        status =
            esp_configuration_apply(&control->settings.config, control, false, err, sizeof err);
    FUZZ_REQUIRE(status == 0 || *err, "a refusal is a sentence");
    return status == 0;
}

static void close_control(struct esp_control *control)
{
    esp_replay_close(control);
    esp_bindings_free(&control->ui.own_keys);
    esp_configuration_free(&control->settings.config);
    esp_state_free(&control->state);
}

/* Reads a saved configuration. Its settings must be equal to `values`, which are the settings
 * that were saved. */
static void read_saved(const char *played, const char *saved, const char *values)
{
    static struct esp_control control;
    static char again[VALUES];
    FUZZ_REQUIRE(open_control(&control, played, saved), "the saved configuration can be read");
    read_values(&control, again, sizeof again);
    FUZZ_REQUIRE(strcmp(values, again) == 0, "saved settings do not change:\n%s\n%s", values,
                 again);
    close_control(&control);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    static struct esp_control control;
    static char values[VALUES], config[300], saved[300];
    struct fuzz_part part;
    char err[512];
    fuzz_folder_empty();
    for (size_t at = 0; fuzz_next_part(bytes, length, &at, &part);)
        fuzz_folder_write(part.name, part.bytes, part.length, 0);
    snprintf(config, sizeof config, "%s/theme", fuzz_folder());
    read_theme(config);
    snprintf(config, sizeof config, "%s/config", fuzz_folder());
    snprintf(saved, sizeof saved, "%s/saved", fuzz_folder());
    struct fuzz_file file = fuzz_file_open(recording, sizeof recording - 1);
    bool opened = open_control(&control, file.path, config);
    if (opened) {
        read_values(&control, values, sizeof values);
        FUZZ_REQUIRE(esp_configuration_write(&control, saved, err, sizeof err) == 0, "%s", err);
        read_saved(file.path, saved, values);
    }
    close_control(&control);
    fuzz_file_close(&file);
    return 0;
}
