/* interface.c - runs the interface on a terminal, in these steps:
 *
 * - It saves the terminal's modes and catches signals.
 * - It shows the first frame before any model is loaded.
 * - Its event loop handles keys, signals and reports of the engine thread. It draws at most 30
 *   frames a second, but shows the effect of a key immediately.
 * - At the end it restores the terminal, and then ends the engine thread.
 */
#include "tui/app/interface.h"

#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/clock.h"
#include "tui/app/app.h"
#include "tui/view/decode.h"
#include "tui/app/root.h"
#include "viz/safe.h"
#include "tui/app/screen.h"
#include "tui/app/script.h"

enum { FRAME_MS = 33, ESCAPE_MS = 25 };
/* Time limits for the terminal's answer to a query: the longest pause between two parts of the
 * answer, and the longest time from the query to the answer. */
enum { PIECES_MS = 300, ANSWER_MS = 1000 };

struct session {
    struct esp_app app;
    struct esp_terminal terminal;
    struct esp_screen *screen;
    struct esp_decoder decoder;
    bool key_pressed;
    /* Times in ms. They say when the last frame was painted, when the last bytes were read from
     * the keyboard, and when the terminal was asked for its background colour. */
    int64_t painted, heard;
    int64_t asked;
};

static int64_t now_ms(void)
{
    return (int64_t)(esp_clock() * 1e3);
}

/* Sets the character set that the environment names. If it names none, sets UTF-8, because that
 * is more likely than ASCII. Returns whether characters beyond ASCII can be shown. */
static bool choose_character_set(void)
{
    const char *all = getenv("LC_ALL"), *type = getenv("LC_CTYPE"), *lang = getenv("LANG");
    bool named = (all && *all) || (type && *type) || (lang && *lang);
    setlocale(LC_CTYPE, "");
    if (!named)
        setlocale(LC_CTYPE, "C.UTF-8");
    return strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

/* ------------------------------------------------------------------ events */

static void on_key(void *user, int key)
{
    struct session *session = user;
    session->key_pressed = true;
    esp_app_key(&session->app, key);
}

static void on_paste(void *user, const char *bytes, size_t count)
{
    struct session *session = user;
    session->key_pressed = true;
    esp_app_paste(&session->app, bytes, count);
}

static void on_mouse(void *user, int button, int x, int y)
{
    struct session *session = user;
    session->key_pressed = true;
    esp_app_mouse(&session->app, (struct esp_mouse){button, x, y});
}

static void on_background(void *user, int rgb)
{
    struct session *session = user;
    if (now_ms() - session->asked < ANSWER_MS)
        esp_app_background(&session->app, rgb);
}

static void read_keys(struct session *session)
{
    char bytes[65536];
    ssize_t count = read(STDIN_FILENO, bytes, sizeof bytes);
    session->heard = now_ms();
    if (count > 0)
        esp_decode(&session->decoder, bytes, (size_t)count);
    else if (count == 0 || (errno != EINTR && errno != EAGAIN))
        session->app.control.requests.leaving = true; /* the terminal is gone */
}

static void resize(struct session *session)
{
    int width, height;
    esp_screen_size(session->screen, &width, &height);
    esp_app_resize(&session->app, width, height);
}

/* Takes the terminal back after the program was suspended. Also reads the size of the window,
 * because no signal reports a change of the size during that time. */
static void take_again(struct session *session)
{
    esp_screen_enter(session->screen);
    resize(session);
    session->app.control.requests.changed = true;
}

static void suspend(struct session *session, bool group)
{
    if (esp_root.ending)
        return;
    esp_screen_leave(session->screen);
    esp_terminal_suspend(&session->terminal, group);
    if (!esp_root.ending)
        take_again(session);
}

/* Leaves the terminal to the user's editor until the editor ends. */
static void lend(struct session *session)
{
    struct termios ours;
    esp_screen_leave(session->screen);
    tcgetattr(STDIN_FILENO, &ours);
    tcsetattr(STDIN_FILENO, TCSADRAIN, &session->terminal.saved);
    esp_app_edit(&session->app);
    if (esp_root.ending)
        return;
    tcsetattr(STDIN_FILENO, TCSADRAIN, &ours);
    take_again(session);
}

static void read_signals(struct session *session)
{
    char numbers[64];
    ssize_t count = read(session->terminal.signals[0], numbers, sizeof numbers);
    for (ssize_t i = 0; i < count; i++) {
        switch (numbers[i]) {
        case SIGINT:
            esp_app_interrupt(&session->app);
            break;
        case SIGTSTP:
            suspend(session, false);
            break;
        case SIGCONT:
            if (!esp_root.ending)
                take_again(session);
            break;
        case SIGWINCH:
            resize(session);
            break;
        default: /* SIGTERM, SIGHUP */
            session->app.control.requests.leaving = true;
            break;
        }
    }
}

/* ------------------------------------------------------------------ the loop */

static void paint(struct session *session)
{
    struct esp_app *app = &session->app;
    if (app->control.requests.new_theme) {
        const char *no_colour = getenv("NO_COLOR");
        esp_screen_theme(session->screen, &app->control.settings.theme,
                         !no_colour || !*no_colour);
        app->control.requests.new_theme = false;
    }
    if (app->redraw)
        esp_screen_redraw(session->screen);
    esp_screen_mouse(session->screen, app->control.settings.mouse);
    esp_app_draw(app);
    esp_screen_paint(session->screen, &app->canvas);
    app->redraw = session->key_pressed = false;
    session->painted = now_ms();
}

/* Returns the milliseconds from now to `due`, or 0 if that time has passed. */
static int until(int64_t due)
{
    int64_t left = due - now_ms();
    return left > 0 ? (int)left : 0;
}

static int sooner(int wait, int other)
{
    return wait < 0 || other < wait ? other : wait;
}

/* Returns the time until which later bytes can complete a key sequence. After this time, the
 * bytes that were read so far count as single keys. */
static int64_t silence_ends(const struct session *session)
{
    return session->heard + (esp_decode_answers(&session->decoder) ? PIECES_MS : ESCAPE_MS);
}

/* Returns the milliseconds until the loop must continue even if no event occurs. Returns -1 if
 * the loop can wait for an event without a limit. */
static int patience(const struct session *session)
{
    int wait = esp_app_due(&session->app);
    if (session->app.control.requests.changed)
        wait = sooner(wait, until(session->painted + FRAME_MS));
    if (esp_decode_waits(&session->decoder))
        wait = sooner(wait, until(silence_ends(session)));
    return wait;
}

static void copy(struct session *session)
{
    struct esp_app *app = &session->app;
    if (!esp_screen_copy(app->control.requests.clipboard,
                         app->control.requests.clipboard_length))
        esp_app_say(app, true, "this terminal has no clipboard; :save FILE writes the text");
    free(app->control.requests.clipboard);
    app->control.requests.clipboard = NULL;
}

static void run(struct session *session)
{
    struct esp_app *app = &session->app;
    struct pollfd fds[3] = {{.fd = STDIN_FILENO, .events = POLLIN},
                            {.fd = session->terminal.signals[0], .events = POLLIN},
                            {.fd = esp_app_wake_fd(app), .events = POLLIN}};
    while (!app->control.requests.leaving && !esp_root.ending) {
        if (esp_app_due(app) == 0)
            esp_app_receive(app);
        if (app->control.requests.changed &&
            (session->key_pressed || now_ms() - session->painted >= FRAME_MS))
            paint(session);
        int ready = poll(fds, 3, patience(session));
        if (ready < 0 && errno == EINTR)
            continue;
        if (ready < 0)
            break;
        if (fds[1].revents)
            read_signals(session);
        if (fds[0].revents)
            read_keys(session);
        else if (esp_decode_waits(&session->decoder) && until(silence_ends(session)) == 0)
            esp_decode_flush(&session->decoder);
        if (fds[2].revents)
            esp_app_receive(app);
        if (app->control.requests.clipboard)
            copy(session);
        if (app->control.requests.edit)
            lend(session);
        if (app->suspend) {
            app->suspend = false;
            suspend(session, true);
        }
    }
}

/* Chooses the glyphs that the terminal can show. */
static void choose_glyphs(struct session *session, bool utf8)
{
    struct esp_canvas *canvas = &session->app.canvas;
    const char *type = getenv("TERM");
    canvas->ascii_text = !utf8;
    if (!utf8)
        canvas->glyphs = &esp_glyphs_ascii;
    else if (type && strcmp(type, "linux") == 0 && canvas->glyphs == &esp_glyphs_full)
        canvas->glyphs = &esp_glyphs_plain; /* a console's font has lines, but few symbols */
}

static int exit_code(void)
{
    return esp_root.ending ? 128 + esp_root.ending : 0;
}

/* Takes over the terminal, runs the session, and restores the terminal. */
static int on_terminal(struct session *session, const struct esp_interface_options *options,
                       bool utf8, char *err, size_t errlen)
{
    int status = esp_app_open(&session->app, options, true, err, errlen);
    if (status < 0)
        return status;
    status = esp_screen_open(&session->screen, &session->terminal, err, errlen);
    if (status == 0) {
        choose_glyphs(session, utf8);
        resize(session);
        session->asked = now_ms();
        if (esp_app_wants_background(&session->app))
            session->decoder.asked = esp_screen_ask_background(session->screen);
        if (options->record)
            ESP_WORKER_POST(session->app.control.worker, RECORD, .text = {options->record},
                            .number = {session->app.canvas.width, session->app.canvas.height},
                            .flag = options->force);
        run(session);
    }
    if (esp_terminal_is_ours())
        esp_screen_close(session->screen);
    esp_terminal_close(&session->terminal);
    if (!esp_app_close(&session->app))
        _exit(status < 0 ? 1 : exit_code()); /* exit() would free memory still in use */
    return status;
}

int interface_main(const struct esp_interface_options *options)
{
    const char *script = getenv("ESPALIER_SCRIPT");
    struct session session = {.painted = 0};
    char err[512] = "";
    bool utf8 = choose_character_set();
    if (script && *script)
        return esp_script_run(script, options);
    session.decoder = (struct esp_decoder){.user = &session,
                                           .key = on_key,
                                           .pasted = on_paste,
                                           .mouse = on_mouse,
                                           .background = on_background};
    int status = esp_terminal_open(&session.terminal, err, sizeof err);
    if (status == 0)
        status = on_terminal(&session, options, utf8, err, sizeof err);
    esp_terminal_close(&session.terminal);
    esp_decode_free(&session.decoder);
    if (status < 0) {
        esp_complain("%s", err);
        return 1;
    }
    return exit_code();
}
