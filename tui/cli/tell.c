/* tell.c - sentences on standard error that several commands print. */
#include "sessions/recording.h"
#include "tui/cli/cli.h"
#include "viz/safe.h"

int cli_fail(const char *sentence)
{
    esp_complain("%s", sentence);
    return EXIT_BAD;
}

void cli_tell_cut(const struct esp_recording *recording, const char *path)
{
    if (esp_recording_is_cut(recording))
        esp_complain("%s was cut off, as by a crash; it holds %d iterations", path,
                     esp_recording_iterations(recording));
}
