/* split_pattern.c - see split_pattern.h.
 *
 * The translation handles these peculiarities of Oniguruma: \s is White_Space (PCRE2's \s has
 * U+180E and lacks U+0085); \w has more characters; \h is a hexadecimal digit; \v is one
 * character; ^ and $ match at every line; (?m) is PCRE2's (?s); {,n} is a quantifier; {n}+ is
 * not possessive; \p{Han} is the script without its extensions; classes may contain classes.
 * With (?i), Oniguruma also lets one character match several (U+00DF and "ss"). PCRE2 does
 * not, but no known tokenizer depends on that.
 *
 * A file may contain a hostile pattern. Three limits bound the cost: PCRE2's match limit for
 * one start position, the number of start positions for one call, and a limit of processor time
 * for all calls.
 */
#include "engine/model/split_pattern.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "kernels/status.h"

enum {
    PATTERN_LIMIT = 1 << 16, /* maximum bytes of a pattern */
    NESTING_LIMIT = 50,      /* maximum depth of classes in classes */
    HEAP_LIMIT = 256 << 10,  /* KiB */
    STACK_LIMIT = 8 << 20,   /* bytes */
    WINDOW = 256,            /* maximum number of start positions per call */
};

/* Lists the characters that \w matches, for use inside a class. Outside a class, Oniguruma's \w
 * also matches the superscripts and fractions of Latin-1. */
#define WORD "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}"
#define LONE_WORD WORD "\\x{B2}\\x{B3}\\x{B9}\\x{BC}-\\x{BE}"

struct esp_split_pattern {
    pcre2_code *code;
};

struct esp_matcher {
    pcre2_match_data *data;
    pcre2_match_context *context;
    pcre2_jit_stack *stack;
    struct timespec deadline; /* in processor time of this thread */
    unsigned calls;
};

/* ------------------------------------------------------------------ translation */

struct translation {
    const char *p; /* the part of the pattern that is not translated yet */
    FILE *out;
    bool group_start;    /* true: at the start of a group or alternative */
    int depth;           /* nesting of groups; 1 outside all groups */
    int caseless;        /* depth of the group in which (?i) applies, or 0 */
    const char *refused; /* the unsupported syntax that was found, or NULL */
};

static bool refuse(struct translation *t, const char *what)
{
    if (!t->refused)
        t->refused = what;
    return false;
}

static bool put(struct translation *t, const char *text)
{
    fputs(text, t->out);
    return true;
}

/* Copies `count` bytes of the pattern to the translation. */
static bool copy(struct translation *t, size_t count)
{
    fwrite(t->p, 1, count, t->out);
    t->p += count;
    return true;
}

/* Translates a \p{...}; t->p points to its p or P. The names of categories and properties do
 * not change. Other names are scripts. */
static bool translate_property(struct translation *t)
{
    bool negated = *t->p++ == 'P';
    size_t length = strcspn(t->p, "}");
    if (*t->p != '{' || t->p[length] != '}' || length > 40)
        return refuse(t, "a \\p without {...}");
    const char *name = t->p + 1;
    t->p += length + 1;
    length--;
    if (*name == '^') {
        negated = !negated;
        name++;
        length--;
    }
    static const char *const kept[] = {"Any", "Alphabetic", "White_Space", "Uppercase",
                                       "Lowercase"};
    bool script = length > 2 || length == 0 || !strchr("LMNPSZC", *name);
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        if (strlen(kept[i]) == length && memcmp(kept[i], name, length) == 0)
            script = false;
    for (size_t i = 0; i < length; i++)
        if (!isalnum((unsigned char)name[i]) && name[i] != '_')
            return refuse(t, "a \\p{...} that is not a plain name");
    fprintf(t->out, "\\%c{%s%.*s}", negated ? 'P' : 'p', script ? "sc:" : "", (int)length,
            name);
    return true;
}

/* Translates a code point to \x{...}; t->p points to the x or u after the backslash. */
static bool translate_code_point(struct translation *t)
{
    bool four = *t->p++ == 'u', braces = !four && *t->p == '{';
    t->p += braces;
    size_t length = strspn(t->p, "0123456789abcdefABCDEF");
    size_t least = four ? 4 : 1, most = four ? 4 : braces ? 8 : 2;
    if (length > most && !braces)
        length = most;
    if (length < least || length > most || (braces && t->p[length] != '}'))
        return refuse(t, "a \\x or \\u that is not a code point");
    if (!four && !braces && length == 2 && *t->p >= '8')
        return refuse(t, "a single byte above \\x7f");
    fprintf(t->out, "\\x{%.*s}", (int)length, t->p);
    t->p += length + braces;
    return true;
}

/* Translates an escape; t->p points to the character after the backslash. */
static bool translate_escape(struct translation *t, bool in_class)
{
    static const struct {
        char letter;
        const char *outside, *inside; /* translations outside and inside a class; NULL means
                                         that the escape is refused */
    } table[] = {
        {'s', "\\p{White_Space}", "\\p{White_Space}"},
        {'S', "\\P{White_Space}", "\\P{White_Space}"},
        {'w', "[" LONE_WORD "]", WORD},
        {'W', "[^" LONE_WORD "]", NULL},
        {'h', "[0-9A-Fa-f]", "0-9A-Fa-f"},
        {'H', "[^0-9A-Fa-f]", NULL},
        {'b',
         "(?:(?<=[" LONE_WORD "])(?![" LONE_WORD "])|(?<![" LONE_WORD "])(?=[" LONE_WORD "]))",
         "\\x08"},
        {'B',
         "(?:(?<=[" LONE_WORD "])(?=[" LONE_WORD "])|(?<![" LONE_WORD "])(?![" LONE_WORD "]))",
         NULL},
        {'v', "\\x0b", "\\x0b"},
        {'a', "\\x07", "\\x07"},
        {'e', "\\x1b", "\\x1b"},
    };
    char c = *t->p;
    /* Oniguruma adds the other case of every character in the class; PCRE2 does not. */
    if (in_class && t->caseless && (c == 'p' || c == 'P' || c == 'w'))
        return refuse(t, "a property in a class under (?i)");
    if (c == 'p' || c == 'P')
        return translate_property(t);
    if (c == 'x' || c == 'u')
        return translate_code_point(t);
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const char *text = in_class ? table[i].inside : table[i].outside;
        if (table[i].letter == c && text) {
            t->p++;
            return put(t, text);
        }
    }
    const bool same = c != '\0' && strchr(in_class ? "dDnrtf" : "dDnrtfAzZR", c);
    if (!same && (c == '\0' || isalnum((unsigned char)c)))
        return refuse(t, "an unusual escape (a backslash before a letter or digit)");
    return put(t, "\\") && copy(t, 1);
}

/* Translates a class, from '[' to its ']'. A class inside a class adds its characters to the
 * outer class. */
static bool translate_class(struct translation *t, int depth)
{
    t->p++;
    if (depth == 0)
        put(t, *t->p == '^' ? "[^" : "[");
    else if (*t->p == '^' || *t->p == '-' || depth > NESTING_LIMIT)
        return refuse(t, "a class inside a class that begins with ^ or -");
    t->p += depth == 0 && *t->p == '^';
    if (*t->p == ']') {
        put(t, "\\]");
        t->p++;
    }
    while (*t->p != ']') {
        if (*t->p == '\0')
            return refuse(t, "a [ without its ]");
        if (t->p[0] == '&' && t->p[1] == '&')
            return refuse(t, "an intersection of classes (&&)");
        if (*t->p == '\\') {
            t->p++;
            if (!translate_escape(t, true))
                return false;
        } else if (*t->p == '[') {
            if (t->p[1] == ':')
                return refuse(t, "a POSIX class ([:...:])");
            if (t->p[-1] == '-')
                return refuse(t, "a class at the end of a range");
            if (!translate_class(t, depth + 1))
                return false;
            if (t->p[0] == '-' && t->p[1] != ']')
                return refuse(t, "a class at the start of a range");
        } else {
            copy(t, 1);
        }
    }
    if (depth > 0 && t->p[-1] == '-')
        return refuse(t, "a class inside a class that ends with -");
    t->p++;
    return depth > 0 || put(t, "]");
}

/* Translates the beginning of a group, from '(' up to its content. */
static bool translate_group(struct translation *t)
{
    static const char *const plain[] = {"(?:", "(?=", "(?!", "(?>", "(?<=", "(?<!"};
    if (t->p[1] == '*')
        return refuse(t, "(*");
    if (t->p[1] != '?')
        return copy(t, 1);
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        if (strncmp(t->p, plain[i], strlen(plain[i])) == 0)
            return copy(t, strlen(plain[i]));
    size_t letters = strspn(t->p + 2, "im-");
    char last = t->p[2 + letters];
    if (letters == 0 || (last != ':' && last != ')'))
        return refuse(t,
                      "a group other than (...), (?:), (?=), (?!), (?>), (?<=), (?<!), (?i:)");
    /* In Ruby, an (?i) that opens no group applies up to the end of the enclosing group,
     * including all alternatives. */
    if (last == ')' && !t->group_start)
        return refuse(t, "an option that is not at the start of a group");
    if (!t->caseless && memchr(t->p + 2, 'i', letters))
        t->caseless = last == ':' ? t->depth + 1 : t->depth;
    for (size_t i = 0; i < letters + 3; i++)
        fputc(i > 1 && t->p[i] == 'm' ? 's' : t->p[i], t->out);
    t->depth -= last == ')';
    t->p += letters + 3;
    return true;
}

/* Translates a '{', which begins a quantifier or is a plain character. */
static bool translate_brace(struct translation *t)
{
    const char *p = t->p + 1;
    size_t low = strspn(p, "0123456789"), high = 0;
    bool comma = p[low] == ',';
    if (comma)
        high = strspn(p + low + 1, "0123456789");
    size_t length = low + comma + high;
    if (p[length] != '}' || low + high == 0) {
        t->p++;
        return put(t, "\\{");
    }
    if (p[length + 1] == '+' || (p[length + 1] == '?' && !comma))
        return refuse(t, "a quantifier after {...}");
    put(t, low ? "{" : "{0");
    t->p++;
    return copy(t, length + 1);
}

/* Returns the pattern in PCRE2's syntax, or NULL if there is no memory or t->refused is set.
 * The caller frees the result. */
static char *translate(struct translation *t)
{
    char *text = NULL;
    size_t size;
    bool ok = true;
    t->out = open_memstream(&text, &size);
    if (!t->out)
        return NULL;
    t->group_start = true;
    t->depth = 1;
    while (ok && *t->p) {
        char c = *t->p;
        if (c == '\\') {
            t->p++;
            ok = translate_escape(t, false);
        } else if (c == '[') {
            ok = translate_class(t, 0);
        } else if (c == '(') {
            ok = translate_group(t);
            t->depth++;
        } else if (c == '{') {
            ok = translate_brace(t);
        } else {
            if (c == ')' && t->caseless == t->depth--)
                t->caseless = 0;
            copy(t, 1);
        }
        t->group_start = c == '(' || c == '|';
    }
    if (fclose(t->out) != 0 || !ok) {
        free(text);
        return NULL;
    }
    return text;
}

/* ------------------------------------------------------------------ compiling */

static int compile(pcre2_code **code, const char *text, const char *shown, uint32_t options,
                   char *err, size_t errlen)
{
    int number;
    PCRE2_SIZE offset;
    *code = pcre2_compile((PCRE2_SPTR)text, PCRE2_ZERO_TERMINATED,
                          PCRE2_UTF | PCRE2_USE_OFFSET_LIMIT | options, &number, &offset, NULL);
    if (*code) {
        pcre2_jit_compile(*code,
                          PCRE2_JIT_COMPLETE); /* if this fails, matching is slower but still
                                                  works */
        return ESP_OK;
    }
    char why[128];
    pcre2_get_error_message(number, (PCRE2_UCHAR *)why, sizeof why);
    return esp_fail(err, errlen, ESP_E_UNSUPPORTED,
                    "the pattern \"%.80s\" cannot be used: %s (at byte %zu of its translation)",
                    shown, why, (size_t)offset);
}

int esp_split_pattern_open(struct esp_split_pattern **pattern, const char *text, bool literal,
                           char *err, size_t errlen)
{
    if (strlen(text) > PATTERN_LIMIT)
        return esp_fail(err, errlen, ESP_E_UNSUPPORTED,
                        "the pattern \"%.80s...\" has %zu bytes; at most %d are supported",
                        text, strlen(text), PATTERN_LIMIT);
    pcre2_code *code = NULL;
    int status;
    if (literal) {
        status = compile(&code, text, text, PCRE2_LITERAL, err, errlen);
    } else {
        struct translation t = {.p = text};
        char *translated = translate(&t);
        if (t.refused)
            return esp_fail(err, errlen, ESP_E_UNSUPPORTED,
                            "the pattern \"%.80s\" uses %s, which is not supported", text,
                            t.refused);
        if (!translated)
            return esp_fail(err, errlen, ESP_E_MEMORY, "not enough memory for a pattern");
        status = compile(&code, translated, text,
                         PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NO_AUTO_CAPTURE, err, errlen);
        free(translated);
    }
    if (status < 0)
        return status;
    *pattern = malloc(sizeof **pattern);
    if (!*pattern) {
        pcre2_code_free(code);
        return esp_fail(err, errlen, ESP_E_MEMORY, "not enough memory for a pattern");
    }
    (*pattern)->code = code;
    return ESP_OK;
}

void esp_split_pattern_close(struct esp_split_pattern *pattern)
{
    if (pattern)
        pcre2_code_free(pattern->code);
    free(pattern);
}

/* ------------------------------------------------------------------ matching */

struct esp_matcher *esp_matcher_open(size_t length)
{
    struct esp_matcher *matcher = calloc(1, sizeof *matcher);
    if (!matcher)
        return NULL;
    matcher->data = pcre2_match_data_create(1, NULL);
    matcher->context = pcre2_match_context_create(NULL);
    if (!matcher->data || !matcher->context) {
        esp_matcher_close(matcher);
        return NULL;
    }
    pcre2_set_heap_limit(matcher->context, HEAP_LIMIT);
    /* Without a separate stack, compiled patterns would use 32 KiB of the thread's stack. */
    matcher->stack = pcre2_jit_stack_create(32 << 10, STACK_LIMIT, NULL);
    if (matcher->stack)
        pcre2_jit_stack_assign(matcher->context, NULL, matcher->stack);
    esp_matcher_restart(matcher, length);
    return matcher;
}

void esp_matcher_restart(struct esp_matcher *matcher, size_t length)
{
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &matcher->deadline);
    matcher->deadline.tv_sec += 5 + (time_t)(length >> 16);
    matcher->calls = 0;
}

void esp_matcher_close(struct esp_matcher *matcher)
{
    if (!matcher)
        return;
    pcre2_match_data_free(matcher->data);
    pcre2_match_context_free(matcher->context);
    pcre2_jit_stack_free(matcher->stack);
    free(matcher);
}

static bool out_of_time(struct esp_matcher *matcher)
{
    struct timespec now;
    if (matcher->calls++ % 16 != 0)
        return false;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec > matcher->deadline.tv_sec ||
           (now.tv_sec == matcher->deadline.tv_sec && now.tv_nsec > matcher->deadline.tv_nsec);
}

int esp_matcher_find(struct esp_matcher *matcher, const struct esp_split_pattern *pattern,
                     const char *text, size_t length, size_t from, size_t *start, size_t *end)
{
    /* The limit grows with the length, because a greedy run of white space may backtrack one
     * character at a time. */
    size_t limit = 10000 + 2 * length;
    pcre2_set_match_limit(matcher->context, limit < UINT32_MAX ? (uint32_t)limit : UINT32_MAX);
    while (from <= length) {
        if (out_of_time(matcher))
            return ESP_E_UNSUPPORTED;
        size_t last = length - from > WINDOW ? from + WINDOW : length;
        pcre2_set_offset_limit(matcher->context, last);
        int n = pcre2_match(pattern->code, (PCRE2_SPTR)text, length, from, PCRE2_NO_UTF_CHECK,
                            matcher->data, matcher->context);
        if (n == PCRE2_ERROR_JIT_STACKLIMIT)
            n = pcre2_match(pattern->code, (PCRE2_SPTR)text, length, from,
                            PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, matcher->data, matcher->context);
        if (n >= 0) {
            const PCRE2_SIZE *match = pcre2_get_ovector_pointer(matcher->data);
            *start = match[0];
            *end = match[1];
            return 1;
        }
        if (n != PCRE2_ERROR_NOMATCH)
            return n == PCRE2_ERROR_NOMEMORY ? ESP_E_MEMORY : ESP_E_UNSUPPORTED;
        for (from = last + 1; from < length && (text[from] & 0xC0) == 0x80; from++)
            ;
    }
    return 0;
}
