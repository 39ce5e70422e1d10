/* interface.h - the terminal interface, as the command line opens it. */
#ifndef ESP_INTERFACE_H
#define ESP_INTERFACE_H

#include "espalier.h"

struct interface_options {
    struct esp_engine_options engine;
    struct esp_session_options session;
    const char *prompt; /* submitted as soon as the models are loaded; NULL: none */
    int tokens;         /* new tokens per prompt; 0: 256 */
    bool ascii;         /* draw nothing beyond ASCII */
    const char *record; /* file to record to from the start on; NULL: none */
    bool force;         /* overwrite it */
    const char *theme;  /* name of a theme; NULL: the default */
    const char *config; /* file to read settings from; NULL: the user's */
    bool no_config;     /* read none */
    const char *given;  /* names of the flags that go before the file, as in cli.h; or NULL */
    /* A recording to be replayed; then no model is loaded. NULL: a live session. Speed and the
     * longest pause are those of player.h. */
    const char *recording;
    double speed, idle;
};

/* Runs until the user leaves and returns the exit code. With ESPALIER_SCRIPT in the environment
 * it opens no terminal but obeys the script of that name (script.h). */
int interface_main(const struct interface_options *options);

#endif
