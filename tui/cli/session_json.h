/* session_json.h - adds the results of a session to a JSON object.
 *
 * The comment on each cli_json_...() names the members that the function adds. */
#ifndef ESP_CLI_SESSION_JSON_H
#define ESP_CLI_SESSION_JSON_H

#include <stdio.h>

#include "engine/espalier.h"
#include "tui/cli/json_object.h"
#include "viz/acceptance.h"

/* Adds the members text (valid UTF-8), tokens, prompt_tokens and generated_tokens. */
void cli_json_text(cJSON *o, const struct esp_engine *engine,
                   const struct esp_session *session);
/* Adds the members target, draft (null if there is none) and backend. */
void cli_json_models(cJSON *o, const struct esp_engine *engine);
/* Adds the members drafter, verifier and lossy. */
void cli_json_choice(cJSON *o, const struct esp_session *session);
/* Adds a member `name` with the value of a setting: a number, true, false or a word. */
void cli_json_setting(cJSON *o, const char *name, const struct esp_session_values *values,
                      int index);
/* Adds the member settings. It is an object with a member for each setting. */
void cli_json_settings(cJSON *o, const struct esp_session_values *values);
/* Adds members for counts, rates and times. `baseline` is the number of seconds per token of
 * plain decoding. If it is 0, the speed of plain decoding and the speedup over it are null. */
void cli_json_figures(cJSON *o, const struct esp_engine *engine,
                      const struct esp_session *session, double baseline);
/* Adds the member streamed. It says how much of the target every pass reads from the disk, and
 * at what speed. It is null if the whole target is in memory. */
void cli_json_streamed(cJSON *o, const struct esp_engine *engine);
/* Returns the speed of reading in bytes per second, or 0 if nothing was read yet. */
double cli_read_rate(const struct esp_streamed *streamed);
/* Returns whether the session has an expected text. */
bool cli_is_expecting(const struct esp_session *session);
/* Adds the member acceptance. It says how many drafted nodes were accepted, grouped by path
 * length, depth, rank, q and source. */
void cli_json_acceptance(cJSON *o, const struct esp_acceptance *acceptance);
/* Prints how many iterations accepted a path of each length, such as " 0: 12, 1: 7, 3: 2", and
 * a newline. */
void cli_print_lengths(FILE *file, const struct esp_acceptance *acceptance);

/* Returns the number of tokens per second, or 0 if no time was measured. */
double cli_speed(const struct esp_stats *stats);

#endif
