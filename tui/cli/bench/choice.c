/* choice.c - see choice.h. */
#include "tui/cli/bench/choice.h"

#include <math.h>
#include <string.h>

#include "kernels/status.h"
#include "tui/cli/cli.h"
#include "tui/cli/session_json.h"

void cli_count(struct cli_series *s, double value)
{
    s->count++;
    s->sum += value;
    s->squares += value * value;
}

double cli_mean(const struct cli_series *s)
{
    return s->count > 0 ? s->sum / s->count : 0;
}

double cli_deviation(const struct cli_series *s)
{
    double m = cli_mean(s), spread = s->count > 1 ? s->squares - s->count * m * m : 0;
    return spread > 0 ? sqrt(spread / (s->count - 1)) : 0;
}

cJSON *cli_series_json(const struct cli_series *s)
{
    return cli_object(CLI_NUMBER("mean", cli_mean(s)),
                      CLI_NUMBER("deviation", cli_deviation(s)));
}

static void on_event(void *user, const struct esp_event *event)
{
    struct cli_choice *choice = user;
    const struct esp_iteration *it = event->iteration;
    if (!choice->counting || event->type != ESP_EVENT_ITERATION)
        return;
    esp_acceptance_add(&choice->acceptance, it);
    const int step[] = {it->tree.verified > 0 ? it->tree.verified - 1 : 0, it->path_length};
    if (choice->steps)
        cJSON_AddItemToArray(choice->steps, cJSON_CreateIntArray(step, 2));
}

int cli_choice_open(struct cli_choice *choice, const char *spec, struct esp_engine *engine,
                    const struct esp_session_options *session, char *err, size_t errlen)
{
    struct esp_session_options options = *session;
    char drafter[CLI_CHOICE_SPEC], *plus;
    if (strlen(spec) >= CLI_CHOICE_SPEC)
        return esp_fail(err, errlen, ESP_E_ARGUMENT, "a choice is longer than %d characters",
                        CLI_CHOICE_SPEC - 1);
    memset(choice, 0, sizeof *choice);
    strcpy(choice->spec, spec);
    strcpy(drafter, spec);
    options.drafter = drafter;
    if ((plus = strchr(drafter, '+'))) {
        *plus = '\0';
        options.verifier = plus + 1;
    }
    options.observer = on_event;
    options.user = choice;
    int status = esp_session_open(&choice->session, engine, &options, err, errlen);
    if (status < 0)
        return status;
    cli_note(choice->session);
    esp_session_get(choice->session, "verifier", choice->verifier, sizeof choice->verifier);
    return ESP_OK;
}

void cli_choice_close(struct cli_choice *choice)
{
    esp_session_close(choice->session);
    choice->session = NULL;
}

int cli_choice_run(struct cli_choice *choice, const char *prompt, size_t length,
                   int prompt_tokens, int tokens, char *err, size_t errlen)
{
    esp_session_clear(choice->session);
    int status =
        esp_session_prompt_text(choice->session, prompt, length, prompt_tokens, err, errlen);
    if (status < 0)
        return status;
    esp_session_allow(choice->session, tokens);
    while ((status = esp_session_step(choice->session, err, errlen)) > 0 && !cli_interrupted)
        continue;
    return status < 0 ? status : (int)ESP_OK;
}

void cli_choice_count(struct cli_choice *choice)
{
    struct esp_stats s;
    esp_session_stats(choice->session, &s);
    choice->latest = s.generated_tokens > 0 ? cli_speed(&s) : 0;
    if (s.generated_tokens == 0)
        return;
    cli_count(&choice->speed, choice->latest);
    cli_count(&choice->first_token, 1e3 * s.first_token_seconds);
    cli_count(&choice->token, 1e3 * s.decode_seconds / s.generated_tokens);
    cli_count(&choice->tokens, s.generated_tokens);
    cli_count(&choice->iterations, s.iterations);
}
