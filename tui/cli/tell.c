/* tell.c - prints messages on standard error for several commands. */
#include "kernels/status.h"
#include "sessions/recording.h"
#include "tui/cli/cli.h"
#include "viz/safe.h"

int cli_fail(const char *sentence)
{
    esp_complain("%s", sentence);
    return EXIT_BAD;
}

int cli_code(int status, const char *err)
{
    return status < 0 ? cli_fail(*err ? err : esp_status_message(status)) : EXIT_DONE;
}

void cli_tell_cut(const struct esp_recording *recording, const char *path)
{
    if (esp_recording_is_cut(recording))
        esp_complain("%s ends early, as after a crash; it has %d iterations", path,
                     esp_recording_iterations(recording));
}
