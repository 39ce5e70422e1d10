/* mailbox.c - implements a list of commands and some flags, protected by one lock; see
 * mailbox.h. */
#include "tui/worker/mailbox.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/system.h"

void esp_mailbox_open(struct esp_mailbox *mailbox)
{
    *mailbox = (struct esp_mailbox){.last = &mailbox->first, .working = true, .busy = true};
    pthread_mutex_init(&mailbox->lock, NULL);
    esp_condition_open(&mailbox->changed);
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

/* Wakes the engine thread after a change, and unlocks the mailbox. */
static void announce(struct esp_mailbox *mailbox)
{
    pthread_cond_broadcast(&mailbox->changed);
    pthread_mutex_unlock(&mailbox->lock);
}

/* ------------------------------------------------------------------ for the UI thread */

/* Returns the number of bytes of text `i`, without the final NUL. */
static size_t length_of(const struct esp_message *command, int i)
{
    if (i == 0 && command->length > 0)
        return command->length;
    return command->text[i] ? strlen(command->text[i]) : 0;
}

/* Copies a command and its texts into a single block of memory. */
static struct esp_message *copy_of(const struct esp_message *command)
{
    size_t size = sizeof *command;
    for (int i = 0; i < ESP_MESSAGE_TEXTS; i++)
        size += length_of(command, i) + 1;
    struct esp_message *copy = malloc(size);
    if (!copy)
        return NULL;
    *copy = *command;
    copy->next = NULL;
    char *end = (char *)(copy + 1);
    for (int i = 0; i < ESP_MESSAGE_TEXTS; i++) {
        const size_t length = length_of(command, i);
        if (!command->text[i])
            continue;
        copy->text[i] = memcpy(end, command->text[i], length);
        end[length] = '\0';
        end += length + 1;
    }
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
    mailbox->now.stop = mailbox->busy;
    while (*at) {
        struct esp_message *posted = *at;
        if (posted->type == ESP_COMMAND_PROMPT) {
            *at = posted->next;
            free(prompt);
            prompt = posted->text[0] ? strdup(posted->text[0]) : NULL;
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
    mailbox->now.quit = true;
    announce(mailbox);
}

void esp_mailbox_pace(struct esp_mailbox *mailbox, double iterations)
{
    pthread_mutex_lock(&mailbox->lock);
    mailbox->now.pace = iterations;
    announce(mailbox);
}

void esp_mailbox_break(struct esp_mailbox *mailbox, struct esp_breakpoints breakpoints)
{
    pthread_mutex_lock(&mailbox->lock);
    mailbox->now.breakpoints = breakpoints;
    announce(mailbox);
}

void esp_mailbox_step_mode(struct esp_mailbox *mailbox, bool on)
{
    pthread_mutex_lock(&mailbox->lock);
    mailbox->now.stepping = on;
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
    bool stopped = mailbox->now.stepping && mailbox->steps == 0 && !mailbox->now.stop;
    bool settled = !mailbox->working && !mailbox->first && (!mailbox->busy || stopped);
    pthread_mutex_unlock(&mailbox->lock);
    return settled;
}

/* ------------------------------------------------------------------ for the engine thread */

struct esp_message *esp_mailbox_take(struct esp_mailbox *mailbox, bool wait, bool *stop,
                                     bool *quit)
{
    pthread_mutex_lock(&mailbox->lock);
    while (wait && !mailbox->first && !mailbox->now.quit) {
        mailbox->working = mailbox->busy = mailbox->now.stop = false;
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
    *stop = mailbox->now.stop;
    *quit = mailbox->now.quit;
    mailbox->now.stop = false;
    pthread_mutex_unlock(&mailbox->lock);
    return posted;
}

struct esp_mailbox_now esp_mailbox_now(struct esp_mailbox *mailbox)
{
    pthread_mutex_lock(&mailbox->lock);
    const struct esp_mailbox_now now = mailbox->now;
    pthread_mutex_unlock(&mailbox->lock);
    return now;
}

bool esp_mailbox_steps(struct esp_mailbox *mailbox)
{
    const struct esp_mailbox_now now = esp_mailbox_now(mailbox);
    return now.stepping && !now.stop && !now.quit;
}

void esp_mailbox_wait_step(struct esp_mailbox *mailbox)
{
    pthread_mutex_lock(&mailbox->lock);
    while (mailbox->now.stepping && mailbox->steps == 0 && !mailbox->now.stop &&
           !mailbox->now.quit) {
        mailbox->working = false;
        pthread_cond_wait(&mailbox->changed, &mailbox->lock);
        mailbox->working = true;
    }
    if (mailbox->now.stepping && mailbox->steps > 0)
        mailbox->steps--;
    pthread_mutex_unlock(&mailbox->lock);
}

static bool earlier(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec < b->tv_sec || (a->tv_sec == b->tv_sec && a->tv_nsec < b->tv_nsec);
}

/* Returns the time of the next iteration. It is the end of the latest iteration plus the
 * fraction `share` of the time per iteration that the pace sets. */
static struct timespec next_due(const struct esp_mailbox *mailbox, double share)
{
    struct timespec due = mailbox->iterated;
    double pause = mailbox->now.pace > 0 ? share / mailbox->now.pace : 0;
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
    const double pace = mailbox->now.pace;
    struct timespec due = next_due(mailbox, share);
    while (pace > 0 && mailbox->now.pace == pace && !mailbox->first && !mailbox->now.stop &&
           !mailbox->now.quit && !mailbox->now.stepping)
        if (esp_condition_wait(&mailbox->changed, &mailbox->lock, &due) != 0)
            break;
    pthread_mutex_unlock(&mailbox->lock);
    clock_gettime(CLOCK_MONOTONIC, &mailbox->iterated);
    if (pace > 0 && earlier(&mailbox->iterated, &due))
        mailbox->iterated = due;
}
