/* status.c - defines the texts of the status codes, and the function that formats error
 * messages.
 *
 * This file is also part of the CUDA plugin, so it uses no other library.
 */
#include "kernels/status.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

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

/* Decodes the character at `text` (NUL-terminated). Returns its length in bytes, or 0 if the
 * bytes are not valid UTF-8. */
static int decode(const unsigned char *text, uint32_t *character)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const int bytes = text[0] < 0x80   ? 1
                      : text[0] < 0xc2 ? 0
                      : text[0] < 0xe0 ? 2
                      : text[0] < 0xf0 ? 3
                      : text[0] < 0xf5 ? 4
                                       : 0;
    uint32_t c = bytes > 1 ? text[0] & (0x7fu >> bytes) : text[0];
    for (int i = 1; i < bytes; i++) {
        if ((text[i] & 0xc0) != 0x80)
            return 0;
        c = c << 6 | (text[i] & 0x3f);
    }
    if (bytes == 0 || c < least[bytes] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
        return 0;
    *character = c;
    return bytes;
}

/* Returns whether a terminal might act on the character: it is one of Unicode's control (Cc)
 * or format (Cf) characters. */
static bool is_control(uint32_t c)
{
    static const uint32_t ranges[][2] = {
        {0x0, 0x1f},        {0x7f, 0x9f},       {0xad, 0xad},       {0x600, 0x605},
        {0x61c, 0x61c},     {0x6dd, 0x6dd},     {0x70f, 0x70f},     {0x890, 0x891},
        {0x8e2, 0x8e2},     {0x180e, 0x180e},   {0x200b, 0x200f},   {0x202a, 0x202e},
        {0x2060, 0x2064},   {0x2066, 0x206f},   {0xfeff, 0xfeff},   {0xfff9, 0xfffb},
        {0x110bd, 0x110bd}, {0x110cd, 0x110cd}, {0x13430, 0x1343f}, {0x1bca0, 0x1bca3},
        {0x1d173, 0x1d17a}, {0xe0001, 0xe0001}, {0xe0020, 0xe007f},
    };
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        if (c >= ranges[i][0] && c <= ranges[i][1])
            return true;
    return false;
}

static void make_safe(char *text)
{
    const unsigned char *in = (const unsigned char *)text;
    char *out = text;
    while (*in) {
        uint32_t character;
        const int bytes = decode(in, &character);
        if (bytes == 0 || is_control(character)) {
            *out++ = '?';
            in += bytes > 0 ? bytes : 1;
            continue;
        }
        for (int i = 0; i < bytes; i++)
            *out++ = (char)*in++;
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
