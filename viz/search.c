/* search.c - finds text; see search.h. */
#include "viz/search.h"

#include <stdbool.h>
#include <string.h>

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool has_capital(const char *what)
{
    while (*what && lower(*what) == *what)
        what++;
    return *what;
}

static bool occurs(const char *bytes, const char *what, size_t length, bool exact)
{
    for (size_t i = 0; i < length; i++)
        if (bytes[i] != what[i] && (exact || lower(bytes[i]) != what[i]))
            return false;
    return true;
}

long esp_search_forward(const char *bytes, size_t count, size_t from, const char *what)
{
    size_t length = strlen(what);
    bool exact = has_capital(what);
    for (size_t at = from; length > 0 && at + length <= count; at++)
        if (occurs(bytes + at, what, length, exact))
            return (long)at;
    return -1;
}
