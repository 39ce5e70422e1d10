/* script.c - runs the interface from a file; see script.h. */
#include "tui/app/script.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <utf8proc.h>

#include "tui/commands/catalogue.h"
#include "viz/safe.h"

enum { PATIENCE = 120 /* seconds after which the instruction `wait` fails */ };

struct script {
    struct esp_app app;
    const char *path;
    int line;
};

static int complain(const struct script *script, const char *what, const char *value)
{
    esp_complain("%s, line %d: %s '%s'", script->path, script->line, what, value);
    return 1;
}

static int set_size(struct script *script, char *value)
{
    int width, height, end = 0;
    if (sscanf(value, "%dx%d%n", &width, &height, &end) != 2 || value[end] ||
        esp_app_resize(&script->app, width, height) < 0)
        return complain(script, "size takes WIDTHxHEIGHT, not", value);
    return 0;
}

static int set_glyphs(struct script *script, char *value)
{
    const struct esp_glyphs *glyphs = esp_glyphs_find(value);
    if (!glyphs)
        return complain(script, "there is no glyph set", value);
    script->app.canvas.glyphs = glyphs;
    return 0;
}

static int type(struct script *script, char *text)
{
    utf8proc_int32_t c;
    while (*text) {
        utf8proc_ssize_t n = utf8proc_iterate((const utf8proc_uint8_t *)text, -1, &c);
        if (n < 1)
            return complain(script, "not UTF-8:", text);
        esp_app_key(&script->app, c);
        text += n;
    }
    return 0;
}

static int press(struct script *script, char *names)
{
    char *rest = NULL;
    for (char *name = strtok_r(names, " ", &rest); name; name = strtok_r(NULL, " ", &rest)) {
        int key = esp_key_parse(name);
        if (key < 0)
            return complain(script, "there is no key", name);
        esp_app_key(&script->app, key);
        if (script->app.control.requests.edit)
            esp_app_edit(&script->app);
    }
    return 0;
}

static int paste(struct script *script, char *text)
{
    size_t length = 0;
    for (const char *c = text; *c; c++) {
        bool newline = c[0] == '\\' && c[1] == 'n';
        text[length++] = newline ? '\n' : *c;
        c += newline;
    }
    esp_app_paste(&script->app, text, length);
    return 0;
}

static int mouse(struct script *script, char *value)
{
    struct esp_mouse mouse;
    if (sscanf(value, "%d %d %d", &mouse.button, &mouse.x, &mouse.y) != 3)
        return complain(script, "mouse takes BUTTON X Y, not", value);
    esp_app_mouse(&script->app, mouse);
    return 0;
}

static int wait_settled(struct script *script, char *rest)
{
    (void)rest;
    struct esp_app *app = &script->app;
    struct pollfd ready = {.fd = esp_app_wake_fd(app), .events = POLLIN};
    const time_t end = time(NULL) + PATIENCE;
    while (time(NULL) < end) {
        esp_app_receive(app);
        if (esp_app_settled(app))
            return 0;
        poll(&ready, 1, 5);
    }
    return complain(script, "nothing settled within", "two minutes");
}

/* Opens the file that an instruction writes; "-" is standard output. Returns NULL if the file
 * cannot be written. */
static FILE *open_file(const char *path)
{
    return strcmp(path, "-") == 0 ? stdout : fopen(path, "w");
}

static int close_file(const struct script *script, FILE *file, const char *path)
{
    if (!file || (file != stdout && fclose(file) != 0))
        return complain(script, strerror(errno), path);
    return 0;
}

static int dump_screen(struct script *script, const char *path, bool styles)
{
    FILE *file = open_file(path);
    if (file) {
        esp_app_receive(&script->app);
        esp_app_draw(&script->app);
        esp_canvas_dump(&script->app.canvas, file, styles);
    }
    return close_file(script, file, path);
}

static int dump(struct script *script, char *path)
{
    return dump_screen(script, path, false);
}

static int dump_styles(struct script *script, char *path)
{
    return dump_screen(script, path, true);
}

static int print_reference(struct script *script, char *path)
{
    FILE *file = open_file(path);
    if (file)
        esp_catalogue_mdoc(file);
    return close_file(script, file, path);
}

static int obey(struct script *script, char *line)
{
    static const struct {
        const char *name;
        int (*run)(struct script *script, char *rest);
    } instructions[] = {{"size", set_size},      {"glyphs", set_glyphs},
                        {"type", type},          {"key", press},
                        {"paste", paste},        {"mouse", mouse},
                        {"wait", wait_settled},  {"dump", dump},
                        {"styles", dump_styles}, {"mdoc", print_reference}};
    size_t length = strcspn(line, " ");
    char *rest = line + length + (line[length] == ' ');
    line[length] = '\0';
    if (!*line || *line == '#')
        return 0;
    for (size_t i = 0; i < sizeof instructions / sizeof *instructions; i++)
        if (strcmp(instructions[i].name, line) == 0)
            return instructions[i].run(script, rest);
    return complain(script, "there is no instruction", line);
}

int esp_script_run(const char *path, const struct esp_interface_options *options)
{
    struct script script = {.path = path};
    char err[256], *line = NULL;
    size_t capacity = 0;
    int code = 0;
    FILE *file = fopen(path, "r");
    if (!file) {
        esp_complain("the script %s cannot be read: %s", path, strerror(errno));
        return 1;
    }
    if (esp_app_open(&script.app, options, false, err, sizeof err) < 0) {
        esp_complain("%s", err);
        fclose(file);
        return 1;
    }
    while (code == 0 && !script.app.control.requests.leaving &&
           getline(&line, &capacity, file) >= 0) {
        script.line++;
        line[strcspn(line, "\n")] = '\0';
        code = obey(&script, line);
    }
    free(line);
    fclose(file);
    esp_app_close(&script.app);
    return code;
}
