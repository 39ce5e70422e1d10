/* status.h - defines how functions report success, failure and progress.
 *
 * Functions return 0 or more on success and a negative enum esp_status on failure. On failure,
 * functions that take `err` also write one sentence to it, with esp_fail(). This header is part
 * of the public interface.
 */
#ifndef ESP_STATUS_H
#define ESP_STATUS_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ESP_STATUS(X)                                                                          \
    X(ARGUMENT, "a value is not allowed")                                                      \
    X(FILE, "a file could not be read or written")                                             \
    X(FORMAT, "the contents of a file do not follow its format")                               \
    X(UNSUPPORTED, "this model or feature is not supported")                                   \
    X(MISMATCH, "the draft model does not fit the target model")                               \
    X(MEMORY, "not enough memory")                                                             \
    X(DEVICE, "the device failed")                                                             \
    X(NUMERIC, "the model produced a value that is not a number")                              \
    X(CONTEXT, "the context is full")                                                          \
    X(CANCELLED, "cancelled")

enum esp_status {
    ESP_OK = 0,
    ESP_STATUS_BEFORE_FIRST = -100, /* failures count up from here: -99, -98, ... */
#define X(name, message) ESP_E_##name,
    ESP_STATUS(X)
#undef X
};

/* Returns a short description of a negative status; never NULL. */
const char *esp_status_message(int status);

/* Writes one sentence to err (if errlen > 0) and returns `status`:
 *     return esp_fail(err, errlen, ESP_E_FILE, "cannot open %s: %s", path, strerror(errno));
 * Untrusted text in the sentence is made safe for a terminal: control and format characters
 * and invalid UTF-8 become '?'. */
int esp_fail(char *err, size_t errlen, int status, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Called while weights are loaded; `done` and `total` are bytes. It must return false to cancel. */
typedef bool esp_progress(void *user, const char *what, size_t done, size_t total);

#ifdef __cplusplus
}
#endif
#endif
