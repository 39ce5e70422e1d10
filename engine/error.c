/* error.c - status texts and the one way to write an error sentence. */
#include "error.h"

#include <stdarg.h>
#include <stdio.h>
#include <utf8proc.h>

const char *esp_status_message(int status)
{
    switch (status) {
#define X(name, message)                                                                       \
    case ESP_E_##name:                                                                         \
        return message;
        ESP_STATUS(X)
#undef X
    default:
        return status >= 0 ? "no error" : "unknown error";
    }
}

/* Replaces what a terminal could act on: C0, DEL, C1, bidirectional controls, invalid UTF-8. */
static void make_safe(char *text)
{
    utf8proc_uint8_t *in = (utf8proc_uint8_t *)text;
    char *out = text;
    while (*in) {
        utf8proc_int32_t c;
        utf8proc_ssize_t n = utf8proc_iterate(in, -1, &c);
        if (n < 1) {
            *out++ = '?';
            in++;
            continue;
        }
        utf8proc_category_t category = utf8proc_category(c);
        if (category == UTF8PROC_CATEGORY_CC || category == UTF8PROC_CATEGORY_CF) {
            *out++ = '?';
        } else {
            for (utf8proc_ssize_t i = 0; i < n; i++)
                *out++ = (char)in[i];
        }
        in += n;
    }
    *out = '\0';
}

int esp_fail(char *err, size_t errlen, int status, const char *format, ...)
{
    if (errlen > 0) {
        va_list args;
        va_start(args, format);
        vsnprintf(err, errlen, format, args);
        va_end(args);
        make_safe(err);
    }
    return status;
}
