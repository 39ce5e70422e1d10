/* example.c - the whole library in forty lines: continues a text with the built-in pair.
 *
 *     cc example.c $(pkg-config --cflags --libs espalier) -o example
 *     ./example "Once upon a time"
 */
#include <espalier.h>
#include <stdio.h>
#include <string.h>

static void print_tokens(void *user, const struct esp_event *event)
{
    const struct esp_engine *engine = *(struct esp_engine **)user;
    if (event->type != ESP_EVENT_ITERATION)
        return;
    for (int i = 0; i < event->iteration->committed_count; i++) {
        size_t length = 0; /* stays 0 for a token that the tokenizer does not have */
        const char *bytes = esp_token_bytes(engine, event->iteration->committed[i], &length);
        fwrite(bytes ? bytes : "", 1, length, stdout);
    }
    fflush(stdout);
}

int main(int argc, char **argv)
{
    const char *prompt = argc > 1 ? argv[1] : "Once upon a time there was";
    struct esp_engine *engine = NULL;
    struct esp_session *session = NULL;
    struct esp_session_options options = {.observer = print_tokens, .user = &engine};
    int32_t tokens[512];
    char err[256] = "";
    int status = esp_engine_open(&engine, NULL, err, sizeof err);
    if (status == ESP_OK)
        status = esp_session_open(&session, engine, &options, err, sizeof err);
    int count = status < 0 ? 0 : esp_tokenize(engine, prompt, strlen(prompt), tokens, 512);
    if (status == ESP_OK)
        status =
            esp_session_prompt(session, tokens, count > 512 ? 512 : count, err, sizeof err);
    if (status == ESP_OK)
        esp_session_allow(session, 64);
    while (status >= 0 && (status = esp_session_step(session, err, sizeof err)) > 0)
        continue;
    printf("\n%s", status < 0 ? err : "");
    esp_session_close(session);
    esp_engine_close(engine);
    return status < 0;
}
