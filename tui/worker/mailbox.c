/* mailbox.c - one lock, one condition, a list of commands and some flags; see mailbox.h. */
#include "tui/worker/mailbox.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void esp_mailbox_open(struct esp_mailbox *mailbox)
{
    pthread_condattr_t monotonic;
    *mailbox = (struct esp_mailbox){.last = &mailbox->first, .working = true, .busy = true};
    pthread_mutex_init(&mailbox->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&mailbox->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

void esp_mailbox_close(struct esp_mailbox *mailbox)
{
    while (mailbox->first) {
        struct esp_message *next = mailbox->first->next;
        if (mailbox->first->type == ESP_COMMAND_JOB)
            mailbox->first->job.release(mailbox->first->job.user);
        free(mailbox->first);
        mailbox->first = next;
    }
    pthread_cond_destroy(&mailbox->changed);
    pthread_mutex_destroy(&mailbox->lock);
}

/* Ends a change that the engine's thread may be waiting for. */
static void announce(struct esp_mailbox *mailbox)
{
    pthread_cond_broadcast(&mailbox->changed);
    pthread_mutex_unlock(&mailbox->lock);
}

/* ------------------------------------------------------------------ the interface's side */

/* A string of a command: where it hangs, and its bytes without a NUL. */
struct string {
    const char **at;
    size_t length;
};

enum { MOST_STRINGS = 3 };

/* Adds a string, if there is one. */
static int add(struct string *strings, int count, const char **at)
{
    if (*at)
        strings[count++] = (struct string){at, strlen(*at)};
    return count;
}

/* All strings of a command; returns how many. */
static int strings_of(struct esp_message *posted, struct string strings[MOST_STRINGS])
{
    int count = 0;
    switch (posted->type) {
    case ESP_COMMAND_PROMPT:
        strings[count++] = (struct string){&posted->prompt.text, posted->prompt.length};
        break;
    case ESP_COMMAND_SET:
        count = add(strings, count, &posted->setting.key);
        count = add(strings, count, &posted->setting.value);
        count = add(strings, count, &posted->setting.origin);
        break;
    case ESP_COMMAND_ASK:
        count = add(strings, count, &posted->key);
        break;
    case ESP_COMMAND_COMPARE:
        count = add(strings, count, &posted->compare.drafter);
        count = add(strings, count, &posted->compare.verifier);
        break;
    case ESP_COMMAND_LOAD:
        count = add(strings, count, &posted->load.key);
        count = add(strings, count, &posted->load.value);
        count = add(strings, count, &posted->load.draft);
        break;
    case ESP_COMMAND_RECORD:
        count = add(strings, count, &posted->record.path);
        break;
    case ESP_COMMAND_MARK:
        count = add(strings, count, &posted->mark);
        break;
    case ESP_COMMAND_LIMIT:
    case ESP_COMMAND_CLEAR:
    case ESP_COMMAND_REWIND:
    case ESP_COMMAND_RETIRE:
    case ESP_COMMAND_JOB:
        break;
    }
    return count;
}

/* The copy's strings lie behind it in one piece of memory. */
static struct esp_message *copy_of(const struct esp_message *command)
{
    struct esp_message from = *command, *copy;
    struct string strings[MOST_STRINGS];
    const int count = strings_of(&from, strings);
    size_t size = sizeof *copy;
    for (int i = 0; i < count; i++)
        size += strings[i].length + 1;
    char *memory = malloc(size), *end = memory + sizeof *copy;
    if (!memory)
        return NULL;
    for (int i = 0; i < count; i++) {
        if (strings[i].length > 0)
            memcpy(end, *strings[i].at, strings[i].length);
        end[strings[i].length] = '\0';
        *strings[i].at = end;
        end += strings[i].length + 1;
    }
    from.next = NULL;
    copy = (struct esp_message *)memory;
    *copy = from;
    return copy;
}

void esp_mailbox_post(struct esp_mailbox *mailbox, const struct esp_message *command)
{
    struct esp_message *posted = copy_of(command);
    if (!posted && command->type == ESP_COMMAND_JOB)
        command->job.release(command->job.user);
    if (!posted)
        return;
    pthread_mutex_lock(&mailbox->lock);
    *mailbox->last = posted;
    mailbox->last = &posted->next;
    announce(mailbox);
}

char *esp_mailbox_stop(struct esp_mailbox *mailbox)
{
    char *prompt = NULL;
    pthread_mutex_lock(&mailbox->lock);
    struct esp_message **at = &mailbox->first;
    mailbox->stop = mailbox->busy;
    while (*at) {
        struct esp_message *posted = *at;
        if (posted->type == ESP_COMMAND_PROMPT) {
            *at = posted->next;
            free(prompt);
            prompt = strndup(posted->prompt.text, posted->prompt.length);
            free(posted);
        } else {
            at = &posted->next;
        }
    }
    mailbox->last = at;
    announce(mailbox);
    return prompt;
}

void esp_mailbox_quit(struct esp_mailbox *mailbox)
{
    pthread_mutex_lock(&mailbox->lock);
    mailbox->quit = true;
    announce(mailbox);
}

void esp_mailbox_pace(struct esp_mailbox *mailbox, double iterations)
{
    pthread_mutex_lock(&mailbox->lock);
    mailbox->pace = iterations;
    announce(mailbox);
}

void esp_mailbox_break(struct esp_mailbox *mailbox, struct esp_breakpoints breakpoints)
{
    pthread_mutex_lock(&mailbox->lock);
    mailbox->breakpoints = breakpoints;
    pthread_mutex_unlock(&mailbox->lock);
}

void esp_mailbox_step_mode(struct esp_mailbox *mailbox, bool on)
{
    pthread_mutex_lock(&mailbox->lock);
    mailbox->stepping = on;
    mailbox->steps = 0;
    announce(mailbox);
}

void esp_mailbox_step(struct esp_mailbox *mailbox)
{
    pthread_mutex_lock(&mailbox->lock);
    mailbox->steps++;
    announce(mailbox);
}

bool esp_mailbox_settled(struct esp_mailbox *mailbox)
{
    pthread_mutex_lock(&mailbox->lock);
    bool stopped = mailbox->stepping && mailbox->steps == 0 && !mailbox->stop;
    bool settled = !mailbox->working && !mailbox->first && (!mailbox->busy || stopped);
    pthread_mutex_unlock(&mailbox->lock);
    return settled;
}

/* ------------------------------------------------------------------ the engine's side */

struct esp_message *esp_mailbox_take(struct esp_mailbox *mailbox, bool wait, bool *stop,
                                     bool *quit)
{
    pthread_mutex_lock(&mailbox->lock);
    while (wait && !mailbox->first && !mailbox->quit) {
        mailbox->working = mailbox->busy = mailbox->stop = false;
        mailbox->steps = 0;
        pthread_cond_wait(&mailbox->changed, &mailbox->lock);
    }
    mailbox->working = mailbox->busy = true;
    struct esp_message *posted = mailbox->first;
    if (posted) {
        mailbox->first = posted->next;
        if (!mailbox->first)
            mailbox->last = &mailbox->first;
    }
    *stop = mailbox->stop;
    *quit = mailbox->quit;
    mailbox->stop = false;
    pthread_mutex_unlock(&mailbox->lock);
    return posted;
}

bool esp_mailbox_quits(struct esp_mailbox *mailbox)
{
    pthread_mutex_lock(&mailbox->lock);
    bool quits = mailbox->quit;
    pthread_mutex_unlock(&mailbox->lock);
    return quits;
}

bool esp_mailbox_stops(struct esp_mailbox *mailbox)
{
    pthread_mutex_lock(&mailbox->lock);
    bool stops = mailbox->stop || mailbox->quit;
    pthread_mutex_unlock(&mailbox->lock);
    return stops;
}

bool esp_mailbox_steps(struct esp_mailbox *mailbox)
{
    pthread_mutex_lock(&mailbox->lock);
    bool stepping = mailbox->stepping && !mailbox->stop && !mailbox->quit;
    pthread_mutex_unlock(&mailbox->lock);
    return stepping;
}

bool esp_mailbox_watched(struct esp_mailbox *mailbox)
{
    pthread_mutex_lock(&mailbox->lock);
    bool watched = mailbox->stepping || mailbox->pace > 0;
    pthread_mutex_unlock(&mailbox->lock);
    return watched;
}

struct esp_breakpoints esp_mailbox_breakpoints(struct esp_mailbox *mailbox)
{
    pthread_mutex_lock(&mailbox->lock);
    struct esp_breakpoints breakpoints = mailbox->breakpoints;
    pthread_mutex_unlock(&mailbox->lock);
    return breakpoints;
}

void esp_mailbox_wait_step(struct esp_mailbox *mailbox)
{
    pthread_mutex_lock(&mailbox->lock);
    while (mailbox->stepping && mailbox->steps == 0 && !mailbox->stop && !mailbox->quit) {
        mailbox->working = false;
        pthread_cond_wait(&mailbox->changed, &mailbox->lock);
        mailbox->working = true;
    }
    if (mailbox->stepping && mailbox->steps > 0)
        mailbox->steps--;
    pthread_mutex_unlock(&mailbox->lock);
}

static bool earlier(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec < b->tv_sec || (a->tv_sec == b->tv_sec && a->tv_nsec < b->tv_nsec);
}

/* The end of the last iteration, and then `share` of what an iteration takes at the pace. */
static struct timespec next_due(const struct esp_mailbox *mailbox, double share)
{
    struct timespec due = mailbox->iterated;
    double pause = mailbox->pace > 0 ? share / mailbox->pace : 0;
    due.tv_sec += (time_t)pause;
    due.tv_nsec += (long)((pause - (double)(time_t)pause) * 1e9);
    if (due.tv_nsec >= 1000000000) {
        due.tv_nsec -= 1000000000;
        due.tv_sec++;
    }
    return due;
}

void esp_mailbox_wait_pace(struct esp_mailbox *mailbox, double share)
{
    pthread_mutex_lock(&mailbox->lock);
    const double pace = mailbox->pace;
    struct timespec due = next_due(mailbox, share);
    while (pace > 0 && mailbox->pace == pace && !mailbox->first && !mailbox->stop &&
           !mailbox->quit && !mailbox->stepping)
        if (pthread_cond_timedwait(&mailbox->changed, &mailbox->lock, &due) != 0)
            break;
    pthread_mutex_unlock(&mailbox->lock);
    clock_gettime(CLOCK_MONOTONIC, &mailbox->iterated);
    if (pace > 0 && earlier(&mailbox->iterated, &due))
        mailbox->iterated = due;
}
