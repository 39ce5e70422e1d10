/* Tests that the cursor is always where the next character will appear. This must hold while
 * text with wide and combining characters is edited, and during reverse search. The program
 * runs in a real terminal (tmux). The expected column follows from the widths that utf8proc
 * gives.
 *
 * A line is a list of units. A unit is a character with its combining marks. A test case types
 * some units and edits them. The expected line and column follow from the list. The actual line
 * and column are read from the terminal. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <utf8proc.h>

#include "tests/check.h"

enum { MOST_UNITS = 24, CASES = 220, WIDTH = 100 };

static const char *const units[] = {
    "a",       "Z",          " ",          "\u00e9", "e\u0301", "n\u0303",      "o\u0308\u0323",
    "\u6f22",  "\u5b57",     "\uac00",     "\u3042", "\u0416",  "\u03b1\u0301", "\uff21",
    "x\u20d7", "\U0001f333", "\U0001f600", "-",
};

enum { UNITS = sizeof units / sizeof *units };

/* ------------------------------------------------------------------ the terminal */

static char socket_name[64], folder[] = P_tmpdir "/espalier-cursor-XXXXXX";

/* Runs a tmux command. Returns its first line of output, without the newline. */
static const char *tmux(const char *arguments)
{
    static char line[1024];
    char command[4096];
    snprintf(command, sizeof command, "tmux -L %s -f /dev/null %s 2>/dev/null", socket_name,
             arguments);
    FILE *pipe = popen(command, "r");
    CHECK(pipe);
    if (!fgets(line, sizeof line, pipe))
        *line = '\0';
    while (fgetc(pipe) != EOF)
        continue;
    pclose(pipe);
    line[strcspn(line, "\n")] = '\0';
    return line;
}

/* Sends bytes to the program in the same way as a terminal does. Quotes them for the shell. */
static void send(const char *bytes)
{
    char arguments[3000] = "send-keys -t main -l -- '";
    size_t used = strlen(arguments);
    for (; *bytes; bytes++)
        used += (size_t)snprintf(arguments + used, sizeof arguments - used,
                                 *bytes == '\'' ? "'\\''" : "%c", *bytes);
    snprintf(arguments + used, sizeof arguments - used, "'");
    tmux(arguments);
}

/* Reads the edited line. Returns the column of the cursor. */
static int look(char *line, size_t size)
{
    snprintf(line, size, "%s", tmux("capture-pane -p -t main -S 22 -E 22"));
    return atoi(tmux("display-message -p -t main '#{cursor_x}'"));
}

static bool wait_for(const char *want, int column)
{
    char line[1024];
    for (int tries = 0; tries < 1500; tries++) {
        if (look(line, sizeof line) == column && strcmp(line, want) == 0)
            return true;
        usleep(20000);
    }
    printf("    the line is '%s' and the cursor in column %d, not '%s' and %d\n", line,
           look(line, sizeof line), want, column);
    return false;
}

static void close_terminal(void)
{
    char command[128];
    tmux("kill-server");
    snprintf(command, sizeof command, "rm -rf %s", folder);
    CHECK(system(command) == 0);
}

static void open_terminal(void)
{
    char arguments[2048];
    const char *program = getenv("ESPALIER");
    snprintf(folder, sizeof folder, P_tmpdir "/espalier-cursor-XXXXXX");
    CHECK(mkdtemp(folder));
    /* Every test has its own tmux server, because the server of the previous test may still be
     * closing. */
    static int servers;
    snprintf(socket_name, sizeof socket_name, "espalier-cursor-%d-%d", (int)getpid(),
             ++servers);
    snprintf(arguments, sizeof arguments,
             "new-session -d -s main -x %d -y 24 'env -u ESPALIER_SCRIPT LC_ALL=C.UTF-8 "
             "XDG_STATE_HOME=%s XDG_CONFIG_HOME=%s %s' ';' set -g status off",
             WIDTH, folder, folder, program ? program : "build/espalier");
    tmux(arguments);
    tmux("resize-window -t main -x 100 -y 24");
    if (!wait_for(">", 2)) {
        close_terminal();
        CHECK(false, "the program does not start in tmux");
    }
}

/* ------------------------------------------------------------------ editing a line */

struct line {
    int unit[MOST_UNITS];
    int count, point;
};

static int width_of(const char *text)
{
    int width = 0;
    while (*text) {
        utf8proc_int32_t c;
        text += utf8proc_iterate((const utf8proc_uint8_t *)text, -1, &c);
        width += utf8proc_charwidth(c);
    }
    return width;
}

static void insert(struct line *line, int unit)
{
    memmove(line->unit + line->point + 1, line->unit + line->point,
            (size_t)(line->count - line->point) * sizeof *line->unit);
    line->unit[line->point++] = unit;
    line->count++;
}

static void cut(struct line *line, int from, int to)
{
    memmove(line->unit + from, line->unit + to,
            (size_t)(line->count - to) * sizeof *line->unit);
    line->count -= to - from;
    line->point = from;
}

/* Applies an editing key to the expected line. Returns the byte to send to the program, or 0 if
 * the key would have no effect now. */
static char edit(struct line *line, int what)
{
    switch (what) {
    case 0: /* C-b */
    case 1:
        line->point -= line->point > 0;
        return 2;
    case 2: /* C-f */
        line->point += line->point < line->count;
        return 6;
    case 3: /* C-a */
        line->point = 0;
        return 1;
    case 4: /* C-e */
        line->point = line->count;
        return 5;
    case 5: /* C-h */
        if (line->point > 0)
            cut(line, line->point - 1, line->point);
        return 8;
    case 6: /* not in a short line, because C-d in an empty line ends the program */
        if (line->point == line->count || line->count < 2)
            return 0;
        cut(line, line->point, line->point + 1);
        return 4;
    case 7: /* C-k */
        if (line->count < 6)
            return 0;
        line->count = line->point;
        return 11;
    default: /* C-u */
        if (line->count < 6)
            return 0;
        cut(line, 0, line->point);
        return 21;
    }
}

static void add_unit(char *keys, int unit)
{
    strcat(keys, units[unit]);
}

/* Types and edits at random. `keys` receives the bytes to send. */
static void make_case(struct line *line, char *keys, unsigned long long *random)
{
    const int typed = 3 + (int)(check_uniform(random) * 12);
    *line = (struct line){.count = 0};
    strcpy(keys, "\005\025"); /* C-e C-u empties the line */
    for (int i = 0; i < typed; i++) {
        int unit = (int)(check_uniform(random) * UNITS);
        insert(line, unit);
        add_unit(keys, unit);
    }
    for (int i = 0; i < typed; i++) {
        int what = (int)(check_uniform(random) * 14);
        char key = what < 9 ? edit(line, what) : 0;
        if (key) {
            strcat(keys, (const char[]){key, '\0'});
        } else if (line->count < MOST_UNITS - 1) {
            int unit = (int)(check_uniform(random) * UNITS);
            insert(line, unit);
            add_unit(keys, unit);
        }
    }
}

static int expect(const struct line *line, char *text)
{
    int column = 2;
    strcpy(text, "> ");
    for (int i = 0; i < line->count; i++) {
        strcat(text, units[line->unit[i]]);
        column += i < line->point ? width_of(units[line->unit[i]]) : 0;
    }
    for (size_t end = strlen(text); end > 0 && text[end - 1] == ' ';)
        text[--end] = '\0'; /* tmux does not report blanks at the end of a line */
    return column;
}

TEST(the_column_is_right_while_editing)
{
    unsigned long long random = 21;
    int wrong = 0;
    const int cases = check_quick() ? 10 : CASES;
    open_terminal();
    for (int i = 0; i < cases && wrong < 5; i++) {
        struct line line;
        char keys[1024], text[1024];
        make_case(&line, keys, &random);
        int column = expect(&line, text);
        send(keys);
        wrong += !wait_for(text, column);
    }
    close_terminal();
    CHECK(wrong == 0, "%d cases are wrong", wrong);
}

/* The history has several lines, which are unknown commands, the newest line last. Each case
 * has the text to search for, the index of the line that is found, and the text before the
 * match. */
TEST(the_column_is_right_in_reverse_search)
{
    static const char *const lines[] = {
        ":\u6f22\u5b57 \u304b\u306a mixed",  ":na\u00efve cafe\u0301 words",
        ":\U0001f333 trees and \U0001f600",  ":plain words",
        ":\uac00\ub098\ub2e4 and x\u20d7 y",
    };
    static const struct {
        const char *query;
        int line;
        const char *before;
    } cases[] = {
        {"mixed", 0, ":\u6f22\u5b57 \u304b\u306a "},
        {"\u304b", 0, ":\u6f22\u5b57 "},
        {"\u5b57", 0, ":\u6f22"},
        {"cafe", 1, ":na\u00efve "},
        {"\u00efve", 1, ":na"},
        {"naï", 1, ":"},
        {"trees", 2, ":\U0001f333 "},
        {"\U0001f600", 2, ":\U0001f333 trees and "},
        {"plain", 3, ":"},
        {"words", 3, ":plain "},
        {"and x", 4, ":\uac00\ub098\ub2e4 "},
        {"\ub2e4", 4, ":\uac00\ub098"},
        {"y", 4, ":\uac00\ub098\ub2e4 and x\u20d7 "},
    };
    int wrong = 0;
    open_terminal();
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        char keys[256];
        snprintf(keys, sizeof keys, "%s\r", lines[i]);
        send(keys);
        wrong += !wait_for(">", 2);
    }
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char keys[256], prompt[256], text[512];
        snprintf(keys, sizeof keys, "\022%s", cases[i].query);
        snprintf(prompt, sizeof prompt, "(reverse-i-search)`%s': ", cases[i].query);
        snprintf(text, sizeof text, "%s%s", prompt, lines[cases[i].line]);
        send(keys);
        wrong += !wait_for(text, width_of(prompt) + width_of(cases[i].before));
        send("\007");
        wrong += !wait_for(">", 2);
    }
    close_terminal();
    CHECK(wrong == 0, "%d cases are wrong", wrong);
}
