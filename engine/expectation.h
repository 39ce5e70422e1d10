/* expectation.h - the file that the answer is expected to resemble (setting `expect`): an
 * editor's text that is to be changed, or a former answer.
 *
 * Drafters get its tokens (struct esp_expected, follow.h). The answer goes on where the prompt
 * ends, so the file is tokenized behind the text of the prompt's last token: the tokens at the
 * seam are those that the model would write there.
 */
#ifndef ESP_EXPECTATION_H
#define ESP_EXPECTATION_H

#include <stddef.h>
#include <stdint.h>

#include "engine/drafters/follow.h"

struct esp_session;

enum { ESP_EXPECT_BYTES = 1 << 20 }; /* of a file, at most */

struct esp_expectation {
    char *text; /* of the file */
    size_t length;
    int32_t *tokens;  /* of the file behind `after` */
    int32_t after;    /* the last token of the prompt */
    const char *file; /* that `text` was read from; not owned. NULL: nothing is expected */
    struct esp_expected expected;
};

/* Reads the file of the setting's value, or nothing for NULL, into an empty struct. Returns 0,
 * ESP_E_FILE or ESP_E_MEMORY. */
int esp_expectation_read(struct esp_expectation *expectation, const char *file, char *err,
                         size_t errlen);
void esp_expectation_close(struct esp_expectation *expectation);

/* An answer begins: tokenizes the file behind the prompt, unless that is done. If there is no
 * memory, nothing is expected. */
void esp_expectation_begin(struct esp_session *session);

#endif
