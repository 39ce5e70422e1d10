/* sessions.c - `espalier sessions`: lists, shows and changes the sessions that the interface
 * has kept. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/support/write_file.h"
#include "kernels/status.h"
#include "sessions/library_export.h"
#include "tui/cli/cli.h"
#include "tui/cli/json_object.h"
#include "tui/cli/recordings/verify.h"
#include "viz/safe.h"

struct job {
    const struct cli_options *o;
    struct esp_library *library;
    cJSON *array; /* the output with --json; NULL if the output is text */
    int printed;
    char err[700];
};

/* ------------------------------------------------------------------ lists */

static void print_time(char *to, size_t size, time_t time)
{
    struct tm parts;
    *to = '\0';
    if (localtime_r(&time, &parts))
        strftime(to, size, "%Y-%m-%d %H:%M", &parts);
}

static int print_session(void *user, const struct esp_kept_session *s)
{
    struct job *job = user;
    char time[32];
    job->printed++;
    print_time(time, sizeof time, s->changed);
    if (job->array) {
        cJSON_AddItemToArray(
            job->array,
            cli_object(CLI_NUMBER("session", (double)s->id),
                       CLI_TEXT("name", *s->name ? s->name : NULL),
                       CLI_NUMBER("created", (double)s->created),
                       CLI_NUMBER("changed", (double)s->changed), CLI_TEXT("target", s->target),
                       CLI_TEXT("draft", *s->draft ? s->draft : NULL),
                       CLI_NUMBER("branches", s->branches), CLI_NUMBER("tokens", s->tokens),
                       CLI_BOOL("open", s->open), CLI_TEXT("words", s->words)));
        return 0;
    }
    esp_safe_print(stdout, "%4lld  %s  %3d branch%s  %6d tokens  %-24.24s  %s%s%s%.40s%s\n",
                   (long long)s->id, time, s->branches, s->branches == 1 ? "  " : "es",
                   s->tokens, s->target, s->open ? "(open) " : "", s->name,
                   *s->name ? ": " : "", s->words, strlen(s->words) > 40 ? "..." : "");
    return 0;
}

static int list(struct job *job)
{
    const int status =
        esp_library_list(job->library, print_session, job, job->err, sizeof job->err);
    if (status == ESP_OK && job->printed == 0 && !job->array)
        puts("no sessions are kept");
    return status;
}

static int print_match(void *user, const struct esp_kept_match *match)
{
    struct job *job = user;
    char words[sizeof match->words];
    job->printed++;
    if (job->array) {
        cJSON_AddItemToArray(job->array,
                             cli_object(CLI_NUMBER("session", (double)match->session),
                                        CLI_NUMBER("branch", match->branch + 1),
                                        CLI_TEXT("words", match->words)));
        return 0;
    }
    snprintf(words, sizeof words, "%s", match->words);
    for (char *c = words; *c; c++)
        if (*c == '\n' || *c == '\t')
            *c = ' ';
    esp_safe_print(stdout, "%4lld, branch %d: %s\n", (long long)match->session,
                   match->branch + 1, words);
    return 0;
}

/* Joins the arguments with blanks between them, beginning with argument `first`. */
static void join(char *to, size_t size, const struct cli_options *o, int first)
{
    size_t used = 0;
    *to = '\0';
    for (int i = first; i < o->argument_count && used < size; i++)
        used += (size_t)snprintf(to + used, size - used, "%s%s", i > first ? " " : "",
                                 o->arguments[i]);
}

static int search(struct job *job)
{
    char words[1024];
    join(words, sizeof words, job->o, 1);
    if (!words[strspn(words, " \t\n")])
        return esp_fail(job->err, sizeof job->err, ESP_E_ARGUMENT,
                        "there are no words to search");
    const int status =
        esp_library_search(job->library, words, print_match, job, job->err, sizeof job->err);
    if (status == ESP_OK && job->printed == 0 && !job->array)
        esp_safe_print(stdout, "no text has these words: %s\n", words);
    return status;
}

/* ------------------------------------------------------------------ one session */

static int find(struct job *job, struct esp_kept_session *session)
{
    const char *which = job->o->argument_count > 1 ? job->o->arguments[1] : NULL;
    return esp_library_find(job->library, which, session, job->err, sizeof job->err);
}

/* Prints a line about a branch: where it begins, its name and its first words. */
static void print_branch(struct job *job, const struct esp_kept_text *text, int number)
{
    const struct esp_branch *branch = &text->branches.branch[number];
    char words[64];
    size_t used = 0, length;
    for (int i = 0; i < branch->count && used + 1 < sizeof words; i++) {
        const char *bytes = esp_library_piece(job->library, text->vocabulary_hash,
                                              branch->tokens[i].token, &length);
        for (size_t j = 0; bytes && j < length && used + 1 < sizeof words; j++)
            words[used++] = strchr("\n\t", bytes[j]) ? ' ' : bytes[j];
    }
    words[used] = '\0';
    esp_safe_print(
        stdout, "%4d  %s%s %5d tokens of its own, from token %d of %s%-4.0d  %s%s%s\n",
        number + 1, number == text->branches.at.branch ? ">" : " ", branch->marked ? "*" : " ",
        branch->count, branch->fork, branch->parent < 0 ? "nothing" : "branch ",
        branch->parent + 1, branch->name, *branch->name ? ": " : "", words);
}

static int show(struct job *job)
{
    struct esp_kept_session session;
    struct esp_kept_text text = {.vocabulary = 0};
    int status = find(job, &session);
    if (status == ESP_OK)
        status = esp_library_load(job->library, session.id, &text, job->err, sizeof job->err);
    for (int i = 0; status == ESP_OK && i < text.branches.count; i++)
        if (!text.branches.branch[i].deleted)
            print_branch(job, &text, i);
    esp_kept_text_free(&text);
    return status;
}

static int export(struct job *job)
{
    struct esp_kept_session session;
    const char *branch = job->o->argument_count > 2 ? job->o->arguments[2] : NULL;
    char *bytes = NULL;
    size_t length = 0;
    int status = find(job, &session);
    if (status < 0)
        return status;
    if (branch && atoi(branch) < 1)
        return esp_fail(
            job->err, sizeof job->err, ESP_E_ARGUMENT,
            "'%.40s' is not the number of a branch; espalier sessions show %lld lists the "
            "branches",
            branch, (long long)session.id);
    FILE *file = open_memstream(&bytes, &length);
    if (!file)
        return esp_fail(job->err, sizeof job->err, ESP_E_MEMORY,
                        "not enough memory for the recording");
    status = esp_library_export(job->library, session.id, branch ? atoi(branch) - 1 : -1, file,
                                job->err, sizeof job->err);
    if (fclose(file) != 0 && status == ESP_OK)
        status = esp_fail(job->err, sizeof job->err, ESP_E_MEMORY,
                          "not enough memory for the recording");
    const int written = (status < 0 && status != ESP_E_FORMAT) || length == 0 ? status
                        : job->o->output
                            ? esp_write_file(job->o->output, bytes, length, job->o->force,
                                             job->err, sizeof job->err)
                        : fwrite(bytes, 1, length, stdout) == length ? (int)ESP_OK
                                                                     : (int)ESP_E_FILE;
    free(bytes);
    if (status == ESP_E_FORMAT && length > 0 && written == ESP_OK)
        return esp_fail(job->err, sizeof job->err, status,
                        "session %lld is damaged; its text before the damage was exported",
                        (long long)session.id);
    return status < 0 ? status : written;
}

static int delete (struct job *job)
{
    struct esp_kept_session session;
    if (job->o->argument_count < 2)
        return esp_fail(job->err, sizeof job->err, ESP_E_ARGUMENT,
                        "name a session; espalier sessions lists them");
    int status = find(job, &session);
    if (status == ESP_OK)
        status = esp_library_delete(job->library, session.id, job->err, sizeof job->err);
    if (status == ESP_OK)
        esp_safe_print(stdout, "session %lld is deleted: %s\n", (long long)session.id,
                       session.words);
    return status;
}

static int name(struct job *job)
{
    struct esp_kept_session session;
    char words[48];
    if (job->o->argument_count < 2)
        return esp_fail(job->err, sizeof job->err, ESP_E_ARGUMENT,
                        "name a session; espalier sessions lists them");
    int status = find(job, &session);
    join(words, sizeof words, job->o, 2);
    if (status == ESP_OK && *words && strtol(words, NULL, 10) > 0)
        status = esp_fail(job->err, sizeof job->err, ESP_E_ARGUMENT,
                          "a name must not begin with a number: it would be taken for the "
                          "number of a session");
    if (status == ESP_OK)
        status = esp_library_rename(job->library, session.id, words, job->err, sizeof job->err);
    return status;
}

static int verify(struct job *job)
{
    struct esp_kept_session session;
    const int status = find(job, &session);
    return status < 0
               ? status
               : cli_verify_session(job->o, job->library, &session, job->err, sizeof job->err);
}

/* ------------------------------------------------------------------ the command */

static const struct {
    const char *name;
    int (*run)(struct job *job);
} actions[] = {{"list", list},     {"search", search}, {"show", show},    {"export", export},
               {"delete", delete}, {"name", name},     {"verify", verify}};

enum { ACTIONS = sizeof actions / sizeof *actions };

static int run(struct cli_options *o)
{
    struct job job = {.o = o, .array = o->json ? cJSON_CreateArray() : NULL};
    char path[PATH_MAX];
    int i = 0;
    while (o->argument_count > 0 && i < ACTIONS &&
           strcmp(o->arguments[0], actions[i].name) != 0)
        i++;
    if (i == ACTIONS) {
        esp_complain(
            "sessions takes list, search, show, export, delete, name or verify, not '%s'",
            o->arguments[0]);
        return EXIT_USAGE;
    }
    int status = esp_library_path(path, sizeof path);
    if (status < 0)
        return cli_fail("there is no home folder, so no sessions are kept");
    status = esp_library_open(&job.library, path, ESP_LIBRARY_READ, job.err, sizeof job.err);
    if (status == ESP_OK)
        status = actions[i].run(&job);
    esp_library_close(job.library);
    if (job.array && status == ESP_OK)
        return cli_print_json(job.array);
    cJSON_Delete(job.array);
    return cli_code(status, job.err);
}

const struct cli_command cli_sessions = {
    .name = "sessions",
    .arguments = "list|search|show|export|delete|name|verify [SESSION] [WORDS]",
    .summary = "list, show or change the sessions that the interface has kept",
    .flags = CLI(JSON) | CLI(OUTPUT) | CLI(FORCE) | CLI_ENGINE | CLI(CONTEXT),
    .most = 64,
    .details =
        "list (the default) prints the date, branches, tokens, models and first words of each\n"
        "session. search WORDS finds texts that have all words. show prints the branches of a\n"
        "session. export [BRANCH] makes a recording of the current text, or of a branch. name\n"
        "gives a session a name. verify generates all texts again with the session's models,\n"
        "and compares them. SESSION is the number or the name of a session; without it, the\n"
        "last one is used. espalier --resume SESSION opens a session.",
    .run = run,
};
