/* session_json.h - results of a session as members of a JSON object.
 *
 * The comment on each cli_json_...() names the members that it adds. */
#ifndef ESP_CLI_SESSION_JSON_H
#define ESP_CLI_SESSION_JSON_H

#include <stdio.h>

#include "engine/espalier.h"
#include "tui/cli/json_object.h"
#include "viz/acceptance.h"

/* text (valid UTF-8), tokens, prompt_tokens, generated_tokens */
void cli_json_text(cJSON *o, const struct esp_engine *engine,
                   const struct esp_session *session);
/* target, draft (null if there is none), backend */
void cli_json_models(cJSON *o, const struct esp_engine *engine);
/* drafter, verifier, lossy */
void cli_json_choice(cJSON *o, const struct esp_session *session);
/* `name`: the value of a setting, as a number, true or false, or a word */
void cli_json_setting(cJSON *o, const char *name, const struct esp_session_values *values,
                      int index);
/* settings: an object of all settings by their names */
void cli_json_settings(cJSON *o, const struct esp_session_values *values);
/* counts, rates and seconds. `baseline`: seconds per token of plain decoding; if it is 0, its
 * speed and the speedup over it are null */
void cli_json_figures(cJSON *o, const struct esp_engine *engine,
                      const struct esp_session *session, double baseline);
/* streamed: the part of the target that every pass reads, and how fast; null if none */
void cli_json_streamed(cJSON *o, const struct esp_engine *engine);
/* Returns the bytes read per second of reading; 0 if nothing was read yet. */
double cli_read_rate(const struct esp_streamed *streamed);
/* Returns whether the session has an expected text. */
bool cli_is_expecting(const struct esp_session *session);
/* acceptance: which drafts were accepted, by path length, depth, rank, q and source */
void cli_json_acceptance(cJSON *o, const struct esp_acceptance *acceptance);
/* Prints the number of iterations by length of the accepted path, as " 0: 12, 1: 7, 3: 2" and
 * a newline. */
void cli_print_lengths(FILE *file, const struct esp_acceptance *acceptance);

/* Tokens per second; 0 if there was no time. */
double cli_speed(const struct esp_stats *stats);

#endif
