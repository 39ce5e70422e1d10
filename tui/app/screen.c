/* screen.c - passes a canvas to ncurses; see screen.h.
 *
 * The screen has a copy of the last canvas and passes only changed cells to ncurses. Therefore
 * a frame without changes costs almost nothing. Each style with colours has its own colour
 * pair.
 */
#include "tui/app/screen.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <wchar.h>

#include <ncurses.h>
#include <term.h>

#include "kernels/status.h"
#include "engine/support/write_file.h"
#include "tui/view/ansi.h"

struct esp_screen {
    SCREEN *curses;
    struct esp_canvas shown; /* the content of the terminal */
    bool everything;         /* send every cell, because `shown` may be out of date */
    attr_t attributes[ESP_STYLE_COUNT];
    int pair[ESP_STYLE_COUNT]; /* colour pair of each style. 0 is the terminal's default, which
                                  works with every attribute */
    bool has_colours;
    bool true_colours;      /* the terminal shows 24-bit colours */
    bool direct;            /* write our own colour codes instead of using ncurses */
    struct esp_theme theme; /* used while `direct` */
    bool taken;             /* take() has switched on its terminal modes */
    bool mouse;             /* mouse reports are on */
};

static const char cursor_on[] = "\033[?25h", cursor_off[] = "\033[?25l";
static const char paste_on[] = "\033[?2004h", paste_off[] = "\033[?2004l";
/* While mouse reports are off, some terminals send cursor keys when the wheel is turned. These
 * keys would scroll through the input history. So we save this mode of the terminal, switch it
 * off, and restore it at the end. If a terminal cannot save the mode, we switch the mode on. */
static const char wheel_off[] = "\033[?1007s\033[?1007l", wheel_on[] = "\033[?1007h\033[?1007r";
static const char mouse_on[] = "\033[?1000h\033[?1006h", mouse_off[] = "\033[?1006l\033[?1000l";

/* Appends a string capability of terminfo without its padding marks, such as "$<5>". */
static void append_capability(char *text, size_t size, const char *name)
{
    const char *from = tigetstr(name);
    size_t used = strlen(text);
    if (!from || from == (const char *)-1)
        return;
    for (; *from && used + 1 < size; from++) {
        const char *end = strncmp(from, "$<", 2) == 0 ? strchr(from, '>') : NULL;
        if (end)
            from = end;
        else
            text[used++] = *from;
    }
    text[used] = '\0';
}

static void prepare_restore(struct esp_terminal *terminal)
{
    static const char *const names[] = {"sgr0", "op", "cnorm", "rmkx", "rmcup"};
    char text[sizeof terminal->restore];
    snprintf(text, sizeof text, "%s%s%s", mouse_off, wheel_on, paste_off);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        append_capability(text, sizeof text, names[i]);
    esp_terminal_restore_with(terminal, text);
}

/* Writes a text to the terminal. Ignores errors, because they mean that the terminal is
 * gone. */
static void send(const char *text)
{
    (void)!esp_write_all(STDOUT_FILENO, text, strlen(text));
}

/* Returns whether the terminal shows 24-bit colours. GNU screen does not, but COLORTERM can say
 * that it does, because screen inherits this variable from the terminal around it. */
static bool has_true_colours(void)
{
    const char *says = getenv("COLORTERM"), *type = getenv("TERM");
    if (!says || (strcmp(says, "truecolor") != 0 && strcmp(says, "24bit") != 0))
        return false;
    return COLORS >= 256 && (strncmp(type, "screen", 6) != 0 || getenv("TMUX"));
}

/* Switches on the terminal modes that ncurses does not set. */
static void take(void)
{
    send(paste_on);
    send(wheel_off);
}

/* Restores the modes that the terminal had before. */
void esp_screen_leave(struct esp_screen *screen)
{
    if (screen->mouse)
        send(mouse_off);
    if (screen->taken) {
        send(wheel_on);
        send(paste_off);
    }
    if (screen->direct)
        send(cursor_on);
    endwin();
}

int esp_screen_open(struct esp_screen **opened, struct esp_terminal *terminal, char *err,
                    size_t errlen)
{
    const char *type = getenv("TERM");
    struct esp_screen *screen = calloc(1, sizeof *screen);
    *opened = NULL;
    if (!screen || esp_canvas_open(&screen->shown, 1, 1) < 0) {
        free(screen);
        return esp_fail(err, errlen, ESP_E_MEMORY, "not enough memory for the screen");
    }
    screen->curses = newterm(NULL, stdout, stdin);
    const char *move = screen->curses ? tigetstr("cup") : NULL;
    if (!move || move == (const char *)-1) {
        esp_screen_close(screen);
        return esp_fail(err, errlen, ESP_E_UNSUPPORTED,
                        "the terminal type '%s' is unknown or cannot show the interface; set "
                        "TERM, or use espalier generate",
                        type ? type : "");
    }
    raw();
    noecho();
    nonl();
    screen->has_colours = has_colors() && start_color() == OK && use_default_colors() == OK;
    screen->true_colours = screen->has_colours && has_true_colours();
    screen->everything = true;
    refresh();
    prepare_restore(terminal);
    take();
    screen->taken = true;
    *opened = screen;
    return 0;
}

void esp_screen_close(struct esp_screen *screen)
{
    if (!screen)
        return;
    if (screen->curses) {
        esp_screen_leave(screen);
        delscreen(screen->curses);
    }
    esp_canvas_close(&screen->shown);
    free(screen);
}

void esp_screen_mouse(struct esp_screen *screen, bool on)
{
    if (on != screen->mouse)
        send(on ? mouse_on : mouse_off);
    screen->mouse = on;
}

void esp_screen_enter(struct esp_screen *screen)
{
    take();
    if (screen->mouse)
        send(mouse_on);
    esp_screen_redraw(screen);
    refresh();
}

void esp_screen_redraw(struct esp_screen *screen)
{
    screen->everything = true;
    clearok(curscr, TRUE);
}

void esp_screen_theme(struct esp_screen *screen, const struct esp_theme *theme, bool colours)
{
    static const struct {
        int ours;
        attr_t theirs;
    } pairs[] = {{ESP_BOLD, A_BOLD},
                 {ESP_DIM, A_DIM},
                 {ESP_UNDERLINE, A_UNDERLINE},
                 {ESP_REVERSE, A_REVERSE},
                 {ESP_ITALIC, A_ITALIC}};
    screen->direct = colours && screen->true_colours;
    screen->theme = *theme;
    for (int i = 0; i < ESP_STYLE_COUNT; i++) {
        const int count = colours && screen->has_colours ? COLORS : 0;
        const struct esp_appearance look = esp_appearance_near(theme, i, count);
        screen->attributes[i] = 0;
        for (size_t j = 0; j < sizeof pairs / sizeof *pairs; j++)
            if (look.attributes & pairs[j].ours)
                screen->attributes[i] |= pairs[j].theirs;
        screen->pair[i] = look.foreground < 0 && look.background < 0 ? 0 : i + 1;
        if (screen->pair[i] > 0)
            init_extended_pair(i + 1, look.foreground, look.background);
    }
    esp_screen_redraw(screen);
}

void esp_screen_size(struct esp_screen *screen, int *width, int *height)
{
    struct winsize size;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 && size.ws_row > 0 &&
        (size.ws_col != COLS || size.ws_row != LINES)) {
        resizeterm(size.ws_row, size.ws_col);
        screen->everything = true;
        clearok(curscr, TRUE);
    }
    *width = COLS;
    *height = LINES;
}

/* Encodes bytes as base64, with four characters for every three bytes. Returns the number of
 * characters. */
static size_t base64(const unsigned char *bytes, size_t length, char *text)
{
    static const char digits[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t n = 0;
    for (size_t i = 0; i < length; i += 3) {
        const bool second = i + 1 < length, third = i + 2 < length;
        unsigned bits = (unsigned)bytes[i] << 16 | (second ? (unsigned)bytes[i + 1] << 8 : 0) |
                        (third ? bytes[i + 2] : 0);
        text[n++] = digits[bits >> 18];
        text[n++] = digits[bits >> 12 & 63];
        text[n++] = second ? digits[bits >> 6 & 63] : '=';
        text[n++] = third ? digits[bits & 63] : '=';
    }
    return n;
}

bool esp_screen_copy(const char *bytes, size_t length)
{
    static const char start[] = "\033]52;c;", end[] = "\a";
    const char *type = getenv("TERM");
    if (!type || strcmp(type, "linux") == 0 || strncmp(type, "vt", 2) == 0)
        return false;
    char *text = malloc(sizeof start + (length + 2) / 3 * 4 + sizeof end);
    if (!text)
        return false;
    size_t n = sizeof start - 1;
    memcpy(text, start, n);
    n += base64((const unsigned char *)bytes, length, text + n);
    memcpy(text + n, end, sizeof end);
    send(text);
    free(text);
    return true;
}

bool esp_screen_ask_background(struct esp_screen *screen)
{
    const char *type = getenv("TERM");
    if (!screen->has_colours || !type || strcmp(type, "linux") == 0 ||
        strncmp(type, "vt", 2) == 0)
        return false;
    send("\033]11;?\a");
    return true;
}

/* Writes the characters of a cell. If the C library assumes a width for them that differs from
 * `width`, writes a question mark instead. This keeps the columns aligned. */
static void cell_characters(const char *text, int width, wchar_t characters[CCHARW_MAX + 1])
{
    size_t count = mbstowcs(characters, text, CCHARW_MAX);
    if (count == (size_t)-1 || count == 0 || wcwidth(characters[0]) != width) {
        characters[0] = L'?';
        count = 1;
    }
    for (size_t i = 1; i < count; i++)
        if (wcwidth(characters[i]) != 0)
            count = i;
    characters[count] = L'\0';
}

static void put_cell(struct esp_screen *screen, const struct esp_canvas *canvas,
                     const struct esp_cell *cell, int x, int y)
{
    wchar_t characters[CCHARW_MAX + 1];
    cchar_t complex;
    int pair = screen->pair[cell->style];
    cell_characters(esp_cell_text(canvas, cell), cell->width, characters);
    if (setcchar(&complex, characters, screen->attributes[cell->style], 0, &pair) == OK)
        mvadd_wch(y, x, &complex);
}

/* Shows a canvas in 24-bit colours. */
static void paint_directly(struct esp_screen *screen, const struct esp_canvas *canvas)
{
    char *bytes = NULL;
    size_t length = 0;
    if (screen->everything && esp_canvas_resize(&screen->shown, 1, 1) < 0)
        return;
    FILE *file = open_memstream(&bytes, &length);
    if (!file)
        return;
    fputs(cursor_off, file);
    int status = esp_ansi_update(file, &screen->shown, canvas, canvas->height, &screen->theme);
    if (canvas->cursor_x >= 0 && canvas->cursor_x < canvas->width)
        fprintf(file, "\033[%d;%dH%s", canvas->cursor_y + 1, canvas->cursor_x + 1, cursor_on);
    screen->everything = status < 0;
    if (fclose(file) == 0)
        (void)!esp_write_all(STDOUT_FILENO, bytes, length); /* errors do not matter here */
    free(bytes);
}

void esp_screen_paint(struct esp_screen *screen, const struct esp_canvas *canvas)
{
    struct esp_canvas *shown = &screen->shown;
    if (shown->glyphs != canvas->glyphs)
        screen->everything = true;
    if (screen->direct) {
        shown->glyphs = canvas->glyphs;
        paint_directly(screen, canvas);
        return;
    }
    if (shown->width != canvas->width || shown->height != canvas->height) {
        if (esp_canvas_resize(shown, canvas->width, canvas->height) < 0)
            return;
        screen->everything = true;
    }
    shown->glyphs = canvas->glyphs;
    if (screen->everything)
        erase();
    for (int y = 0; y < canvas->height; y++) {
        const size_t width = (size_t)canvas->width, row = (size_t)y * width;
        if (!screen->everything &&
            memcmp(canvas->cells + row, shown->cells + row, width * sizeof *canvas->cells) == 0)
            continue;
        for (int x = 0; x < canvas->width; x++) {
            const struct esp_cell *cell = &canvas->cells[row + (size_t)x];
            struct esp_cell *before = &shown->cells[row + (size_t)x];
            if (!screen->everything && memcmp(cell, before, sizeof *cell) == 0)
                continue;
            *before = *cell;
            if (cell->width > 0)
                put_cell(screen, canvas, cell, x, y);
        }
    }
    screen->everything = false;
    bool cursor = canvas->cursor_x >= 0 && canvas->cursor_x < canvas->width;
    curs_set(cursor);
    if (cursor)
        move(canvas->cursor_y, canvas->cursor_x);
    refresh();
}
