/* expectation.h - reads the file that the answer is expected to resemble (setting `expect`),
 * such as a text that is to be changed, or an earlier answer.
 *
 * Drafters get the file's tokens (struct esp_expected, follow.h). The answer follows the
 * prompt, so the file is tokenized together with the text of the prompt's last token. The
 * file's first tokens are then the tokens that the model would write after the prompt.
 */
#ifndef ESP_EXPECTATION_H
#define ESP_EXPECTATION_H

#include <stddef.h>
#include <stdint.h>

#include "engine/drafters/follow.h"

struct esp_session;

enum { ESP_EXPECT_BYTES = 1 << 20 }; /* maximum size of a file */

struct esp_expectation {
    char *text;       /* content of the file */
    size_t length;    /* its length in bytes */
    int32_t *tokens;  /* tokens of the file when it follows token `after` */
    int32_t after;    /* the last token of the prompt */
    const char *file; /* path of the file, not owned; NULL if there is no expected text */
    struct esp_expected expected;
};

/* Reads `file`, the value of the setting, into an uninitialised struct; if it is NULL, reads
 * nothing. Returns 0, ESP_E_FILE or ESP_E_MEMORY. */
int esp_expectation_read(struct esp_expectation *expectation, const char *file, char *err,
                         size_t errlen);
void esp_expectation_close(struct esp_expectation *expectation);

/* Call this when an answer begins. Tokenizes the file as the continuation of the prompt, unless
 * that was done before. If there is not enough memory, there is no expected text. */
void esp_expectation_begin(struct esp_session *session);

#endif
