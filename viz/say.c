/* say.c - appends to a sentence; see say.h. */
#include "viz/say.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void esp_say(char *text, size_t size, const char *format, ...)
{
    size_t used = strlen(text);
    va_list args;
    va_start(args, format);
    vsnprintf(text + used, size - used, format, args);
    va_end(args);
}
