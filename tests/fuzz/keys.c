/* Fuzzes the decoder of a terminal's bytes, which reports keys, pastes and clicks. Every key
 * must have a name, and parsing this name must give the same key. No byte after the end may be
 * read. The decoder gets the input in pieces. The first byte of the input is the size of these
 * pieces; 0 means that all other bytes are one piece. */
#include "tui/view/decode.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/fuzz/support/fuzz.h"
#include "tui/view/keys.h"
#include "tui/view/mouse.h"

enum { MOST = 1 << 16 /* bytes of an input */ };

struct seen {
    struct esp_ui ui;
    struct esp_state state;
};

static void take_key(void *user, int key)
{
    char name[16];
    int plain = key & ~ESP_KEY_META;
    (void)user;
    FUZZ_REQUIRE(key > 0 && plain <= ESP_KEY_LAST, "%d is a key", key);
    esp_key_name(key, name);
    FUZZ_REQUIRE(esp_key_parse(name) == key, "key %d is named %s, which is key %d", key, name,
                 esp_key_parse(name));
}

static void take_paste(void *user, const char *bytes, size_t count)
{
    volatile char byte;
    (void)user;
    FUZZ_REQUIRE(count > 0, "a paste is not empty");
    byte = bytes[count - 1];
    (void)byte;
}

static void take_click(void *user, int button, int x, int y)
{
    struct seen *seen = user;
    esp_ui_mouse(&seen->ui, &seen->state, (struct esp_mouse){button, x, y}, 80, 24);
}

/* Copies the bytes to the end of a page, before an inaccessible page. So a read beyond the end
 * of the bytes faults, even in the C library. */
static const char *copy(const uint8_t *bytes, size_t count)
{
    static char *end;
    if (!end) {
        const size_t page = (size_t)sysconf(_SC_PAGESIZE), room = MOST + page - MOST % page;
        end =
            mmap(NULL, room + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        FUZZ_REQUIRE(end != MAP_FAILED && mprotect(end + room, page, PROT_NONE) == 0,
                     "there is memory");
        end += room;
    }
    return memcpy(end - count, bytes, count);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    if (length == 0 || length > MOST)
        return 0;
    static struct seen seen; /* clicks change seen.ui; seen.state is always all zeros */
    struct esp_decoder decoder = {
        .user = &seen, .key = take_key, .pasted = take_paste, .mouse = take_click};
    size_t piece = bytes[0] ? bytes[0] : length;
    esp_ui_init(&seen.ui);
    for (size_t at = 1; at < length; at += piece) {
        size_t count = length - at < piece ? length - at : piece;
        esp_decode(&decoder, copy(bytes + at, count), count);
    }
    esp_decode_waits(&decoder);
    esp_decode_flush(&decoder);
    esp_decode_free(&decoder);
    return 0;
}
