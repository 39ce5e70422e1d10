/* decode.c - a state machine that turns bytes of the terminal into keys; see decode.h.
 *
 *     ESC [ parameters final     CSI: cursor keys, "number ~" keys, paste brackets
 *     ESC [ < b ; x ; y M|m      mouse: pressed, released (SGR form)
 *     ESC [ M b x y              mouse, old form, from terminals without SGR form: ignored
 *     ESC O final                SS3: F1..F4, cursor keys in application mode
 *     ESC [ [ A..E               F1..F5 of the Linux console
 *     ESC ] 11;rgb:R/G/B         the background's colour, if it was requested; ends with BEL or
 *                                ESC \
 *     ESC key                    Meta
 */
#include "tui/view/decode.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "tui/view/keys.h"

enum { MOST_PASTED = 64 << 20 };

/* A sequence that was recognised at the start of some bytes. Its length is 0 if the sequence is
 * not complete yet. */
struct match {
    size_t taken;
    int key; /* 0: ignore the sequence */
};

static int final_key(char final)
{
    static const char finals[] = "ABCDHFZPQRS";
    static const int keys[] = {ESP_KEY_UP,     ESP_KEY_DOWN,   ESP_KEY_RIGHT,   ESP_KEY_LEFT,
                               ESP_KEY_HOME,   ESP_KEY_END,    ESP_KEY_BACKTAB, ESP_KEY_F0 + 1,
                               ESP_KEY_F0 + 2, ESP_KEY_F0 + 3, ESP_KEY_F0 + 4};
    const char *at = final ? strchr(finals, final) : NULL;
    return at ? keys[at - finals] : 0;
}

static int numbered_key(int number)
{
    static const int keys[] = {
        [1] = ESP_KEY_HOME,     [2] = ESP_KEY_INSERT,   [3] = ESP_KEY_DELETE,
        [4] = ESP_KEY_END,      [5] = ESP_KEY_PAGE_UP,  [6] = ESP_KEY_PAGE_DOWN,
        [7] = ESP_KEY_HOME,     [8] = ESP_KEY_END,      [11] = ESP_KEY_F0 + 1,
        [12] = ESP_KEY_F0 + 2,  [13] = ESP_KEY_F0 + 3,  [14] = ESP_KEY_F0 + 4,
        [15] = ESP_KEY_F0 + 5,  [17] = ESP_KEY_F0 + 6,  [18] = ESP_KEY_F0 + 7,
        [19] = ESP_KEY_F0 + 8,  [20] = ESP_KEY_F0 + 9,  [21] = ESP_KEY_F0 + 10,
        [23] = ESP_KEY_F0 + 11, [24] = ESP_KEY_F0 + 12,
    };
    return number >= 0 && number < (int)(sizeof keys / sizeof *keys) ? keys[number] : 0;
}

/* Reads a decimal number that ends before `end`, and returns a pointer to the byte after it.
 * Sets *number to -1 if there is no number, or if it is larger than terminals ever send. */
static const char *read_number(const char *at, const char *end, int *number)
{
    enum { LARGEST = 1 << 16 };
    *number = at < end && *at >= '0' && *at <= '9' ? 0 : -1;
    for (; at < end && *at >= '0' && *at <= '9'; at++)
        if (*number >= 0 && (*number = 10 * *number + (*at - '0')) > LARGEST)
            *number = -1;
    return at;
}

/* Reads "button;column;row" before the final letter at `end`. Ignores releases and drags. */
static void report_mouse(const struct esp_decoder *decoder, const char *at, const char *end)
{
    enum { DRAG = 32, MODIFIERS = 4 + 8 + 16 };
    int number[3] = {-1, -1, -1};
    for (int i = 0; i < 3; i++) {
        at = read_number(at, end, &number[i]);
        if (number[i] < 0 || (i < 2 && *at++ != ';'))
            return;
    }
    if (at == end && *end == 'M' && decoder->mouse && !(number[0] & DRAG))
        decoder->mouse(decoder->user, number[0] & ~MODIFIERS, number[1] - 1, number[2] - 1);
}

static struct match match_csi(struct esp_decoder *decoder, const char *bytes, size_t count)
{
    size_t end = 2;
    if (count > 2 && bytes[2] == '[') {
        if (count < 4)
            return (struct match){0, 0};
        bool known = bytes[3] >= 'A' && bytes[3] <= 'E';
        return (struct match){4, known ? ESP_KEY_F0 + 1 + (bytes[3] - 'A') : 0};
    }
    if (count > 2 && bytes[2] == 'M')
        return (struct match){count < 6 ? 0 : 6, 0};
    while (end < count && (unsigned char)bytes[end] >= 0x20 && (unsigned char)bytes[end] < 0x40)
        end++;
    if (end == count)
        return (struct match){count == sizeof decoder->pending ? count : 0, 0};
    if (bytes[2] == '<') {
        report_mouse(decoder, bytes + 3, bytes + end);
        return (struct match){end + 1, 0};
    }
    int number;
    read_number(bytes + 2, bytes + end, &number);
    if (bytes[end] == '~' && number == 200) {
        decoder->pasting = true;
        return (struct match){end + 1, 0};
    }
    if (bytes[end] == '~')
        return (struct match){end + 1, numbered_key(number)};
    return (struct match){end + 1, final_key(bytes[end])};
}

/* Reads a part of "RRRR/GGGG/BBBB" (one to four hexadecimal digits each) as a number from 0 to
 * 255, and moves *at to the next part. Returns -1 if there is none. */
static int read_part(const char **at)
{
    char digits[5] = "";
    const size_t length = strspn(*at, "0123456789abcdefABCDEF");
    if (length < 1 || length > 4)
        return -1;
    memcpy(digits, *at, length);
    *at += length + ((*at)[length] == '/');
    const int value = (int)strtol(digits, NULL, 16), most = (1 << 4 * length) - 1;
    return (value * 255 + most / 2) / most;
}

/* Recognises the answer to OSC 11. If the bytes are not such an answer, they are the key ] with
 * Meta. */
static struct match match_answer(struct esp_decoder *decoder, const char *bytes, size_t count)
{
    static const char start[] = "\033]11;rgb:";
    const size_t prefix = sizeof start - 1, most = prefix + 14;
    const struct match typed = {2, ']' | ESP_KEY_META};
    size_t end = count < prefix ? count : prefix;
    if (memcmp(bytes, start, end) != 0)
        return typed;
    while (end < count && end < most && bytes[end] &&
           strchr("0123456789abcdefABCDEF/", bytes[end]))
        end++;
    const bool bell = end < count && bytes[end] == '\a',
               escape = end < count && bytes[end] == ESP_KEY_ESCAPE;
    if (end == count || (escape && end + 1 == count))
        return (struct match){0, 0};
    if (!bell && !(escape && bytes[end + 1] == '\\'))
        return typed;
    char colour[16];
    snprintf(colour, sizeof colour, "%.*s", (int)(end - prefix), bytes + prefix);
    const char *at = colour;
    const int red = read_part(&at), green = read_part(&at), blue = read_part(&at);
    if (red < 0 || green < 0 || blue < 0)
        return typed;
    decoder->asked = false;
    if (decoder->background)
        decoder->background(decoder->user, red << 16 | green << 8 | blue);
    return (struct match){end + (bell ? 1 : 2), 0};
}

static struct match match_character(const char *bytes, size_t count)
{
    utf8proc_int32_t c;
    utf8proc_ssize_t taken =
        utf8proc_iterate((const utf8proc_uint8_t *)bytes, (utf8proc_ssize_t)count, &c);
    if (taken > 0)
        return (struct match){(size_t)taken, c};
    unsigned char first = (unsigned char)bytes[0];
    size_t expected = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc2 ? 2 : 1;
    for (size_t i = 1; i < count && i < expected; i++)
        if (((unsigned char)bytes[i] & 0xc0) != 0x80)
            return (struct match){1, 0xfffd};
    return (struct match){count < expected ? 0 : 1, 0xfffd};
}

static struct match match_key(struct esp_decoder *decoder, const char *bytes, size_t count)
{
    if (bytes[0] != ESP_KEY_ESCAPE)
        return match_character(bytes, count);
    if (count == 1)
        return (struct match){0, 0};
    if (bytes[1] == '[')
        return match_csi(decoder, bytes, count);
    if (bytes[1] == 'O')
        return count > 2 ? (struct match){3, final_key(bytes[2])} : (struct match){0, 0};
    if (bytes[1] == ']' && decoder->asked)
        return match_answer(decoder, bytes, count);
    if (bytes[1] == ESP_KEY_ESCAPE)
        return (struct match){1, ESP_KEY_ESCAPE};
    struct match match = match_character(bytes + 1, count - 1);
    if (match.taken > 0) {
        match.taken++;
        match.key |= ESP_KEY_META;
    }
    return match;
}

/* ------------------------------------------------------------------ pastes */

static void keep(struct esp_decoder *decoder, const char *bytes, size_t count)
{
    size_t needed = decoder->paste_count + count;
    if (count == 0 || needed > MOST_PASTED)
        return;
    if (needed > decoder->paste_capacity) {
        char *grown = realloc(decoder->paste, needed * 2);
        if (!grown)
            return;
        decoder->paste = grown;
        decoder->paste_capacity = needed * 2;
    }
    memcpy(decoder->paste + decoder->paste_count, bytes, count);
    decoder->paste_count = needed;
}

/* Takes bytes up to the end of the paste, and returns their number. The sequence that ends the
 * paste can arrive in pieces. Therefore bytes that could be its start are left for the next
 * call. */
static size_t take_paste(struct esp_decoder *decoder, const char *bytes, size_t count)
{
    static const char mark[] = "\033[201~";
    const size_t length = sizeof mark - 1;
    const char *end = memmem(bytes, count, mark, length);
    if (end) {
        keep(decoder, bytes, (size_t)(end - bytes));
        decoder->pasting = false;
        if (decoder->paste_count > 0)
            decoder->pasted(decoder->user, decoder->paste, decoder->paste_count);
        decoder->paste_count = 0;
        return (size_t)(end - bytes) + length;
    }
    size_t kept = count < length - 1 ? count : length - 1;
    while (kept > 0 && memcmp(bytes + count - kept, mark, kept) != 0)
        kept--;
    keep(decoder, bytes, count - kept);
    return count - kept;
}

/* ------------------------------------------------------------------ the interface */

/* Handles complete keys and pastes. Returns the number of bytes that it has handled. */
static size_t consume(struct esp_decoder *decoder, const char *bytes, size_t count)
{
    size_t at = 0;
    while (at < count) {
        if (decoder->pasting) {
            size_t taken = take_paste(decoder, bytes + at, count - at);
            at += taken;
            if (decoder->pasting)
                break;
            continue;
        }
        struct match match = match_key(decoder, bytes + at, count - at);
        if (match.taken == 0)
            break;
        at += match.taken;
        if (match.key > 0)
            decoder->key(decoder->user, match.key);
    }
    return at;
}

void esp_decode(struct esp_decoder *decoder, const char *bytes, size_t count)
{
    /* Add bytes to the pending key until it is complete. Then process the other bytes. */
    while (decoder->pending_count > 0 && count > 0) {
        decoder->pending[decoder->pending_count++] = *bytes++;
        count--;
        size_t taken = consume(decoder, decoder->pending, decoder->pending_count);
        decoder->pending_count -= taken;
        memmove(decoder->pending, decoder->pending + taken, decoder->pending_count);
        if (decoder->pending_count == sizeof decoder->pending)
            decoder->pending_count = 0;
    }
    size_t taken = consume(decoder, bytes, count);
    size_t rest = count - taken;
    if (rest > 0 && rest < sizeof decoder->pending) {
        memcpy(decoder->pending, bytes + taken, rest);
        decoder->pending_count = rest;
    }
}

bool esp_decode_waits(const struct esp_decoder *decoder)
{
    return decoder->pending_count > 0 && !decoder->pasting;
}

bool esp_decode_answers(const struct esp_decoder *decoder)
{
    return decoder->asked && decoder->pending_count > 1 && decoder->pending[1] == ']';
}

void esp_decode_flush(struct esp_decoder *decoder)
{
    const bool escape = decoder->pending_count > 0 && decoder->pending[0] == ESP_KEY_ESCAPE;
    const unsigned char second = (unsigned char)decoder->pending[1];
    const size_t count = decoder->pending_count;
    if (decoder->pasting)
        return;
    decoder->pending_count = 0;
    if (escape && count > 2 && second == ']') { /* the user has typed these characters */
        decoder->key(decoder->user, ']' | ESP_KEY_META);
        for (size_t i = 2; i < count; i++)
            decoder->key(decoder->user, (unsigned char)decoder->pending[i]);
        return;
    }
    if (escape && count == 1)
        decoder->key(decoder->user, ESP_KEY_ESCAPE);
    else if (escape && count == 2) /* a key with Meta, or an incomplete character */
        decoder->key(decoder->user, (second < 0x80 ? second : 0xfffd) | ESP_KEY_META);
}

void esp_decode_free(struct esp_decoder *decoder)
{
    free(decoder->paste);
    decoder->paste = NULL;
    decoder->paste_count = decoder->paste_capacity = 0;
}
