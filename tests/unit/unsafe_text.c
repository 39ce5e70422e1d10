/* Tests that nothing unsafe reaches a terminal. Every command and every format runs in a
 * terminal, with a model folder, a recording, a theme and arguments that contain attacks. The
 * output may contain only text and the program's own colours and cursor movements. The attack
 * must be visible as text. */
#include <cJSON.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utf8proc.h>

#include "tests/check.h"
#include "tests/folder.h"
#include "tests/pty.h"

/* The attack contains escape sequences that set the title, ask for a report, set a colour,
 * reset the terminal and send a device control string. It also has C1 characters as UTF-8 and
 * as bytes, DEL, backspace, bidirectional and invisible characters, a byte that is not UTF-8,
 * and a carriage return. The text EVIL follows each of them. The colour differs from those that
 * the program uses.
 */
#define EVIL                                                                                   \
    "\033]0;evil\aevil\033[6n\033[31337m\033c\033P1$r\033\\\xc2\x9b"                           \
    "31337m\x9b"                                                                               \
    "31337m\x7f\b\u202e\u2066\u200e\u2028\ufeff\U000e0041\xff\r!"

enum { SECONDS = 60 };

/* ------------------------------------------------------------------ allowed output */

/* Returns the length of the escape sequence at `bytes` if the program itself uses such
 * sequences, otherwise 0. Commands use colours and clear their progress bars. The interface
 * also moves the cursor. */
static size_t own_sequence(const char *bytes, size_t length, bool interface)
{
    static const char *const whole[] = {"\033(B",       "\033)0",     "\0337", "\0338",
                                        "\033M",        "\033=",      "\033>", "\033[22;0;0t",
                                        "\033[23;0;0t", "\033]11;?\a"};
    for (size_t i = 0; interface && i < sizeof whole / sizeof *whole; i++)
        if (length >= strlen(whole[i]) && memcmp(bytes, whole[i], strlen(whole[i])) == 0)
            return strlen(whole[i]);
    if (length < 3 || bytes[1] != '[')
        return 0;
    bool private = interface && bytes[2] == '?';
    size_t at = 2 + private, digits = 0;
    for (; at < length && (bytes[at] == ';' || (bytes[at] >= '0' && bytes[at] <= '9')); at++)
        if ((digits = bytes[at] == ';' ? 0 : digits + 1) > (private ? 4 : 3))
            return 0;
    if (at == length || !bytes[at])
        return 0;
    const char *finals = private ? "hlsr" : interface ? "ABCDGHJKLMPSTXZ@bdfhlmr" : "mK";
    return strchr(finals, bytes[at]) ? at + 1 : 0;
}

static bool is_text(utf8proc_int32_t c)
{
    utf8proc_category_t category = utf8proc_category(c);
    return category != UTF8PROC_CATEGORY_CC && category != UTF8PROC_CATEGORY_CF &&
           category != UTF8PROC_CATEGORY_ZL && category != UTF8PROC_CATEGORY_ZP &&
           category != UTF8PROC_CATEGORY_CS;
}

/* Returns the length of the character or escape sequence at `bytes`, or 0 if it must not reach
 * a terminal. */
static size_t take(const char *bytes, size_t length, bool interface)
{
    utf8proc_int32_t c;
    if (*bytes == '\033')
        return own_sequence(bytes, length, interface);
    if (*bytes == '\n' || *bytes == '\t' || (interface && (*bytes == '\b' || *bytes == '\r')))
        return 1;
    if (*bytes == '\r') /* allowed only at the end of a line and before a progress bar */
        return length == 1 || strchr("\r\n[\033", bytes[1]) != NULL;
    utf8proc_ssize_t n =
        utf8proc_iterate((const utf8proc_uint8_t *)bytes, (utf8proc_ssize_t)length, &c);
    return n > 0 && is_text(c) ? (size_t)n : 0;
}

static void check_output(const char *bytes, size_t length, bool interface, const char *what)
{
    for (size_t i = 0, n; i < length; i += n) {
        n = take(bytes + i, length - i, interface);
        size_t from = i > 60 ? i - 60 : 0;
        CHECK(n > 0, "%s: byte %zu, %02x %02x %02x, after \"%.*s\"", what, i,
              (unsigned char)bytes[i], (unsigned char)bytes[i + 1],
              i + 2 < length ? (unsigned char)bytes[i + 2] : 0, (int)(i - from), bytes + from);
    }
}

TEST(the_check_detects_unsafe_bytes)
{
    static const char *const bad[] = {
        "\033]0;x\a", "\033[6n", "\033[31337m", "\033c",  "\033P", "\xc2\x9b", "\x9b",  "\x7f",
        "\b",         "\u202e",  "\u2069",      "\u200b", "\xff",  "\r!",      "\033[H"};
    static const char good[] = "a\tb\r\n\033[1;38;5;200m\u2713\033[0m\r[##\033[K\r";
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        CHECK(take(bad[i], strlen(bad[i]), false) == 0, "case %zu", i);
        bool moves = strcmp(bad[i], "\b") == 0 || bad[i][0] == '\r' || strstr(bad[i], "[H");
        CHECK((take(bad[i], strlen(bad[i]), true) > 0) == moves, "case %zu", i);
    }
    check_output(good, strlen(good), false, "the good one");
}

/* ------------------------------------------------------------------ running commands */

static char last_output[1000];

/* Runs the program with these arguments and checks its output. The last argument is NULL.
 * Returns whether the attack is visible in the output. */
static bool run_with(const char *const *environment, const char *const *arguments)
{
    struct pty pty;
    char what[300] = "";
    for (int i = 0; arguments[i]; i++)
        for (size_t j = strlen(what), k = 0; arguments[i][k] && j < sizeof what - 2; k++, j++)
            what[j] = arguments[i][k] < ' ' || arguments[i][k] > '~' ? '?' : arguments[i][k],
            what[j + 1] = arguments[i][k + 1] ? '\0' : ' ';
    pty_open(&pty, 100, 30, environment, arguments);
    int status = pty_end(&pty, SECONDS);
    CHECK(status != -1 && WIFEXITED(status), "%s: status %d", what, status);
    CHECK(pty.count > 0 || WEXITSTATUS(status) == 0, "%s fails without a word", what);
    check_output(pty.output, pty.count, false, what);
    bool shown = memmem(pty.output, pty.count, "evil", 4) != NULL;
    snprintf(last_output, sizeof last_output, "%s", pty.output);
    pty_close(&pty);
    return shown;
}

#define RUN(...) run_with(NULL, (const char *const[]){__VA_ARGS__, NULL})
#define SHOWS(...)                                                                             \
    CHECK(RUN(__VA_ARGS__), "the attack is not visible in the output: %s", last_output)

/* ------------------------------------------------------------------ hostile files */

/* Returns the attack as a JSON string with quotes. Bytes that are not UTF-8 are copied
 * unchanged. */
static const char *json_evil(void)
{
    static char *text;
    if (!text) {
        cJSON *string = cJSON_CreateString(EVIL);
        text = cJSON_PrintUnformatted(string);
        cJSON_Delete(string);
    }
    return text;
}

/* Spells the attack's bytes as a byte-level vocabulary does. A number makes each such token
 * different. */
static void spell_evil(char *to, int number)
{
    char bytes[200];
    int length = snprintf(bytes, sizeof bytes, EVIL "%d", number), shifted[256], next = 256;
    for (int b = 0; b < 256; b++)
        shifted[b] = (b >= 33 && b <= 126) || (b >= 161 && b != 173) ? b : next++;
    for (int i = 0; i < length; i++)
        to += utf8proc_encode_char(shifted[(unsigned char)bytes[i]], (utf8proc_uint8_t *)to);
    *to = '\0';
}

/* Replaces all tokens of more than one byte with attacks, and removes the merges. */
static void poison_tokenizer(void)
{
    struct folder_bytes bytes = folder_read(folder_file("tokenizer.json"));
    cJSON *root = cJSON_Parse(bytes.data), *item;
    CHECK(root);
    cJSON *model = cJSON_GetObjectItem(root, "model");
    cJSON *vocabulary = cJSON_GetObjectItem(model, "vocab");
    cJSON_ArrayForEach(item, vocabulary)
    {
        char text[800];
        if (item->valueint <= 256)
            continue;
        spell_evil(text, item->valueint);
        free(item->string);
        item->string = strdup(text);
    }
    cJSON_ReplaceItemInObject(model, "merges", cJSON_CreateArray());
    char *text = cJSON_PrintUnformatted(root);
    folder_write_text("tokenizer.json", text);
    free(text);
    cJSON_Delete(root);
    free(bytes.data);
}

static const char *model_path, *recording_path;

/* Adds a tensor that no model uses. Its name is an attack. */
static void add_tensor(void)
{
    char value[400];
    snprintf(value, sizeof value, "{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]}");
    folder_edit_header("model.safetensors", EVIL, NULL, value);
}

/* Makes a copy of the built-in draft with attacks in its files, and a recording. The paths of
 * both are attacks, too. */
static void make_attackers(void)
{
    static char model[PATH_MAX], recording[PATH_MAX];
    char json[1000];
    folder_copy("../../../engine/models/fairytale-draft");
    poison_tokenizer();
    add_tensor();
    folder_edit("config.json", "_name_or_path", NULL, json_evil());
    folder_edit("config.json", "torch_dtype", NULL, json_evil());
    snprintf(json, sizeof json, "{\"drafter\":%s,\"sampling_drafter\":%s}", json_evil(),
             json_evil());
    folder_write_text("espalier.json", json);
    snprintf(model, sizeof model, "%s", folder_file(EVIL));
    CHECK(symlink(folder_path(), model) == 0);
    snprintf(recording, sizeof recording, "%s", folder_file(EVIL ".esp.jsonl"));
    struct folder_bytes bytes = folder_read(check_path("vectors/recordings/hostile.esp.jsonl"));
    folder_write(EVIL ".esp.jsonl", bytes.data, bytes.size);
    free(bytes.data);
    model_path = model;
    recording_path = recording;
}

/* ------------------------------------------------------------------ recordings */

TEST(a_hostile_recording_reaches_no_terminal)
{
    static const char *const formats[] = {"txt", "json", "dot", "svg"};
    make_attackers();
    const char *file = recording_path, *copy = folder_file("copy");
    for (int i = 0; i < 4; i++)
        RUN("export", file, "--iteration", "0", "--format", formats[i]);
    for (int i = 0; i < 2; i++) {
        RUN("export", file, "--iteration", "0-3", "--format", formats[i]);
        RUN("export", file, "--iteration", "0", "--format", formats[i], "--ascii");
    }
    RUN("stats", file);
    RUN("stats", file, "--json");
    RUN("replay", file, "--plain");
    RUN("replay", file, "--plain", "--ascii");
    SHOWS("export", file, "--iteration", "100000");
    SHOWS("export", file, "--iteration", EVIL);
    SHOWS("export", file, "--iteration", "0", "-o", EVIL);
    SHOWS("stats", EVIL);
    SHOWS("replay", EVIL "/x", "--plain");
    RUN("export", file, "--asciicast", copy);
    struct folder_bytes cast = folder_read(folder_file("copy"));
    check_output(cast.data, cast.size, false, "the asciicast");
    free(cast.data);
}

/* A truncated line and an invalid line are reported with the name of the file, which is an
 * attack. */
TEST(a_hostile_name_is_quoted_as_text)
{
    make_attackers();
    CHECK(truncate(recording_path, 11000) == 0);
    SHOWS("stats", recording_path);
    SHOWS("replay", recording_path, "--plain");
    folder_write_text(EVIL ".esp.jsonl", EVIL "\n");
    SHOWS("stats", recording_path);
}

/* The helper program for pictures fails, and its error message contains an attack. */
TEST(a_hostile_helper_is_quoted_as_text)
{
    char variable[PATH_MAX + 20];
    make_attackers();
    folder_write_text("helper", "#!/bin/sh\nprintf '%s\\n' '" EVIL "' >&2\nexit 1\n");
    CHECK(chmod(folder_file("helper"), 0700) == 0);
    snprintf(variable, sizeof variable, "ESPALIER_DOT=%s", folder_file("helper"));
    const char *const environment[] = {variable, NULL};
    const char *const arguments[] = {"export",   recording_path, "--iteration", "0",
                                     "--format", "svg",          NULL};
    CHECK(run_with(environment, arguments));
}

/* ------------------------------------------------------------------ models */

TEST(a_hostile_model_reaches_no_terminal)
{
    make_attackers();
    const char *m = model_path, *record = folder_file("recorded"), *loud = "linear:K=3";
    SHOWS("inspect", m);
    SHOWS("inspect", m, m);
    SHOWS("inspect", m, m, "--json");
    /* the preset of this model is invalid */
    SHOWS("generate", "--target", m, "--draft", m, "-p", "Once");
    SHOWS("generate", "--target", m, "--draft", m, "--drafter", loud, "-p", EVIL, "-n", "30",
          "--temp", "2", "--stats");
    SHOWS("generate", "--target", m, "--draft", m, "--drafter", loud, "-p", EVIL, "-n", "30",
          "--temp", "2", "--json");
    SHOWS("compare", "--target", m, "--draft", m, "--drafter", loud, "--with", "linear", "-p",
          "x", "-n", "20", "--temp", "2", "--json");
    RUN("compare", "--target", m, "--draft", m, "--drafter", loud, "--with", "linear", "-p",
        "x", "-n", "20", "--temp", "2");
    RUN("bench", "--target", m, "--draft", m, "-p", EVIL, "-n", "8", "linear", "ar");
    RUN("bench", "--target", m, "--draft", m, "-p", EVIL, "-n", "8", "linear", "ar", "--json");
    /* The model's preset is a candidate, and must be reported as invalid. */
    SHOWS("tune", "--target", m, "--draft", m, "-p", EVIL, "-n", "4", "--seconds", "1");
    RUN("tune", "--target", m, "--draft", m, "-p", EVIL, "-n", "4", "--seconds", "1", "--json");
    RUN("check", "--target", m, "--draft", m, "--drafter", "linear", "-p", EVIL, "--trials",
        "2");
    RUN("check", "--target", m, "--draft", m, "--drafter", "linear", "-p", EVIL, "--trials",
        "2", "--json");
    record = strdup(folder_file("recorded"));
    RUN("generate", "--target", m, "--draft", m, "--drafter", loud, "-p", EVIL, "-n", "30",
        "--temp", "2", "--record", record);
    struct folder_bytes bytes = folder_read(record);
    check_output(bytes.data, bytes.size, false, "the recording itself");
    free(bytes.data);
    free((char *)record);
    RUN("generate", "--target", m, "--draft", m, "--drafter", loud, "-p", EVIL, "-n", "30",
        "--temp", "2", "--record", "/dev/tty");
    SHOWS("inflate", m, EVIL "/x");
}

/* Replaces each value in a model's files with the attack, one value per run. Some values are
 * never read. Values that are read must be quoted. */
TEST(hostile_values_are_quoted_as_text)
{
    static const char *const files[] = {"config.json", "tokenizer.json", "espalier.json",
                                        "generation_config.json", "tokenizer_config.json"};
    int shown = 0;
    make_attackers();
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        struct folder_bytes bytes = folder_read(folder_file(files[i]));
        cJSON *root = cJSON_Parse(bytes.data), *item;
        CHECK(root);
        cJSON_ArrayForEach(item, root)
        {
            folder_edit(files[i], item->string, NULL, json_evil());
            shown += RUN("inspect", folder_path());
            folder_write(files[i], bytes.data, bytes.size);
            const cJSON *inner;
            cJSON_ArrayForEach(inner, item)
            {
                if (!inner->string)
                    break;
                folder_edit(files[i], item->string, inner->string, json_evil());
                shown += RUN("inspect", folder_path());
                folder_write(files[i], bytes.data, bytes.size);
            }
        }
        folder_edit(files[i], EVIL, NULL, json_evil());
        shown += RUN("inspect", folder_path(), "--json");
        folder_write_text(files[i], EVIL);
        RUN("inspect", folder_path());
        folder_write(files[i], bytes.data, bytes.size);
        cJSON_Delete(root);
        free(bytes.data);
    }
    CHECK(shown > 10, "only %d runs showed the attack", shown);
    folder_edit_header("model.safetensors", EVIL, NULL, json_evil());
    SHOWS("inspect", folder_path());
}

/* ------------------------------------------------------------------ arguments */

/* Lists the flags in a command's help, except flags without a value. */
static int flags_of(const char *command, char flags[64][32])
{
    struct pty pty;
    const char *const arguments[] = {command, "--help", NULL};
    int count = 0;
    pty_open(&pty, 100, 30, NULL, arguments);
    CHECK(pty_end(&pty, SECONDS) == 0);
    for (char *line = pty.output; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        char *flag = strstr(line, "--"), *end = strchr(line, '\n');
        if (strncmp(line, "  ", 2) != 0 || !flag || (end && flag > end) || flag - line > 8)
            continue;
        int length = (int)strcspn(flag, " ");
        if (count < 64 && length < 32 && flag[length + 1] >= 'A' && flag[length + 1] <= 'Z')
            snprintf(flags[count++], 32, "%.*s", length, flag);
    }
    pty_close(&pty);
    return count;
}

/* Each command gets the attack as its argument, and as the value of each of its flags. */
TEST(hostile_arguments_are_quoted_as_text)
{
    static const char *const commands[] = {"generate", "list",  "inspect", "check",
                                           "compare",  "bench", "inflate", "replay",
                                           "export",   "stats"};
    char flags[64][32];
    int shown = 0, asked = 0;
    make_attackers();
    SHOWS(EVIL);
    SHOWS("--theme", EVIL, "-p", "x");
    SHOWS("--" EVIL);
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        int count = flags_of(commands[i], flags);
        shown += RUN(commands[i], EVIL);
        RUN(commands[i], "--" EVIL);
        for (int j = 0; j < count; j++) {
            bool plain = strcmp(commands[i], "replay") == 0;
            const char *file =
                plain || strcmp(commands[i], "export") == 0 || strcmp(commands[i], "stats") == 0
                    ? recording_path
                    : "-pOnce";
            if (strcmp(flags[j], "--prompt") == 0)
                continue;
            shown += RUN(commands[i], file, flags[j], EVIL "/x", plain ? "--plain" : NULL);
            asked++;
        }
    }
    CHECK(asked > 60 && shown > asked / 2, "%d of %d runs showed the attack", shown, asked);
}

TEST(hostile_names_in_lists_are_quoted_as_text)
{
    char variable[PATH_MAX + 20], themes[PATH_MAX + 20];
    static const char *const lists[] = {"drafters", "verifiers", "backends", "themes",
                                        "models"};
    make_attackers();
    snprintf(variable, sizeof variable, "XDG_CONFIG_HOME=%s", folder_path());
    snprintf(themes, sizeof themes, "%s/espalier", folder_path());
    CHECK(mkdir(themes, 0700) == 0);
    strcat(themes, "/themes");
    CHECK(mkdir(themes, 0700) == 0);
    folder_write_text("espalier/themes/" EVIL ".theme", EVIL "\n");
    const char *const environment[] = {variable, "ESPALIER_CUDA_PLUGIN=/" EVIL, NULL};
    for (int i = 0; i < 5; i++)
        for (int json = 0; json < 2; json++) {
            const char *const arguments[] = {"list", lists[i], json ? "--json" : NULL, NULL};
            bool shown = run_with(environment, arguments);
            CHECK(shown || (i != 2 && i != 3), "list %s", lists[i]);
        }
    snprintf(themes, sizeof themes, "%s/" EVIL ".theme", "espalier/themes");
    const char *const theme[] = {"--theme", EVIL, NULL};
    CHECK(run_with(environment, theme));
    const char *const config[] = {"--config", recording_path, NULL};
    run_with(environment, config);
    const char *const backend[] = {"generate", "-pOnce", "-n", "2", "--backend", "cuda", NULL};
    CHECK(run_with(environment, backend));
    unlink(folder_file("espalier/themes/" EVIL ".theme"));
    rmdir(folder_file("espalier/themes"));
    rmdir(folder_file("espalier"));
}

/* ------------------------------------------------------------------ the interface */

/* Goes through every part of the interface that shows text: each pane alone, other drawings in
 * the panes, help, the palette, commands that fail, and a message. */
static void look_around(struct pty *pty)
{
    static const char *const typed[] = {"\t",
                                        "\t",
                                        "\t",
                                        "\t",
                                        "\t",
                                        "\t",
                                        "\t",
                                        "\t",
                                        "z",
                                        "\t",
                                        "\t",
                                        "\t",
                                        "\t",
                                        "\t",
                                        "z",
                                        "l",
                                        "m",
                                        "s",
                                        "j",
                                        "k",
                                        "\033OP",
                                        "\033",
                                        "\020",
                                        "evil",
                                        "\033",
                                        "\025:export " EVIL ".bad\r",
                                        "\025:export " EVIL "/x.txt\r",
                                        "\025:record " EVIL "/x\r",
                                        "\025:set " EVIL "\r",
                                        "\025:" EVIL "\r",
                                        "\025:set drafter " EVIL "\r",
                                        "\025:set theme " EVIL "\r",
                                        "\025:config load " EVIL "\r",
                                        "\025:compare " EVIL "\r",
                                        "\025:mark " EVIL "\r",
                                        "\025:export /tm\t\t",
                                        "\025\033[200~" EVIL "\033[201~",
                                        "\025/evil\r",
                                        "n",
                                        "\033"};
    for (size_t i = 0; i < sizeof typed / sizeof *typed; i++) {
        pty_type(pty, typed[i]);
        for (int n = 0; n < 3; n++)
            pty_read(pty, 0.03);
    }
}

static void visit(const char *what, const char *const *arguments)
{
    struct pty pty;
    pty_open(&pty, 120, 36, NULL, arguments);
    CHECK(pty_wait(&pty, "evil", SECONDS), "%s shows nothing", what);
    look_around(&pty);
    pty_resize(&pty, 60, 20);
    look_around(&pty);
    pty_type(&pty, "\003");
    pty_read(&pty, 0.1);
    pty_type(&pty, "\003\025:quit\r");
    int status = pty_end(&pty, SECONDS);
    CHECK(status != -1, "%s does not leave", what);
    check_output(pty.output, pty.count, true, what);
    pty_close(&pty);
}

TEST(the_interface_shows_hostile_text_as_text)
{
    make_attackers();
    const char *const live[] = {"--target",  model_path, "--draft", model_path,
                                "--drafter", "linear",   "--temp",  "2",
                                "-p",        EVIL,       NULL};
    visit("a session", live);
    const char *const replay[] = {"replay", recording_path, NULL};
    visit("a replay", replay);
    const char *const failed[] = {"--target", EVIL, NULL};
    visit("a session without a model", failed);
}
