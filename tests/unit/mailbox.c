/* Tests the mailbox between two threads: commands keep their order, and a waiting thread is
 * woken. */
#include "tui/worker/mailbox.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernels/clock.h"
#include "tests/check.h"

enum { COMMANDS = 2000 };

struct served {
    struct esp_mailbox mailbox;
    int taken, disordered, steps, stops;
};

/* Receives commands as the engine's thread does, until it receives the command to quit. */
static void *serve(void *user)
{
    struct served *served = user;
    bool stop, quit = false;
    while (!quit) {
        struct esp_message *posted = esp_mailbox_take(&served->mailbox, true, &stop, &quit);
        served->stops += stop;
        if (posted) {
            char want[32];
            snprintf(want, sizeof want, "text %d", served->taken);
            served->disordered +=
                posted->type != ESP_COMMAND_MARK || strcmp(posted->text[0], want) != 0;
            served->taken++;
            if (esp_mailbox_steps(&served->mailbox)) {
                esp_mailbox_wait_step(&served->mailbox);
                served->steps++;
            }
            esp_mailbox_wait_pace(&served->mailbox, 1);
        }
        free(posted);
    }
    return NULL;
}

static void open_served(struct served *served, pthread_t *thread)
{
    *served = (struct served){.taken = 0};
    esp_mailbox_open(&served->mailbox);
    CHECK(pthread_create(thread, NULL, serve, served) == 0);
}

static void post(struct served *served, int number)
{
    char text[32];
    snprintf(text, sizeof text, "text %d", number);
    esp_mailbox_post(&served->mailbox,
                     &(struct esp_message){.type = ESP_COMMAND_MARK, .text = {text}});
}

static void wait_settled(struct served *served)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    for (int i = 0; i < 20000 && !esp_mailbox_settled(&served->mailbox); i++)
        nanosleep(&pause, NULL);
    CHECK(esp_mailbox_settled(&served->mailbox));
}

static void close_served(struct served *served, pthread_t thread)
{
    esp_mailbox_quit(&served->mailbox);
    CHECK(pthread_join(thread, NULL) == 0);
    esp_mailbox_close(&served->mailbox);
}

TEST(commands_keep_their_order)
{
    struct served served;
    pthread_t thread;
    open_served(&served, &thread);
    for (int i = 0; i < COMMANDS; i++) {
        post(&served, i);
        if (i % 100 == 0)
            esp_mailbox_pace(&served.mailbox, i % 200 ? 0 : 1e6);
        if (i % 100 == 50) {
            /* a stop removes prompts, but no other commands */
            free(esp_mailbox_stop(&served.mailbox));
            esp_mailbox_break(&served.mailbox, (struct esp_breakpoints){.path = i});
        }
    }
    wait_settled(&served);
    close_served(&served, thread);
    CHECK(served.taken == COMMANDS && served.disordered == 0, "%d taken, %d out of order",
          served.taken, served.disordered);
}

/* Posts a command and frees its strings. Then takes the command from the mailbox. */
static struct esp_message *through(struct esp_mailbox *mailbox, struct esp_message command)
{
    bool stop, quit;
    esp_mailbox_post(mailbox, &command);
    struct esp_message *taken = esp_mailbox_take(mailbox, false, &stop, &quit);
    CHECK(taken && taken->type == command.type && !stop && !quit);
    return taken;
}

/* A stop must remove all waiting prompts and return the last of them. */
TEST(stop_withdraws_prompts)
{
    struct esp_mailbox mailbox;
    bool stop, quit;
    esp_mailbox_open(&mailbox);
    CHECK(!esp_mailbox_stop(&mailbox));
    esp_mailbox_post(&mailbox, &(struct esp_message){
                                   .type = ESP_COMMAND_PROMPT, .text = {"first"}, .length = 5});
    esp_mailbox_post(&mailbox, &(struct esp_message){.type = ESP_COMMAND_LIMIT, .number = {7}});
    esp_mailbox_post(
        &mailbox,
        &(struct esp_message){.type = ESP_COMMAND_PROMPT, .text = {"second"}, .length = 6});
    char *prompt = esp_mailbox_stop(&mailbox);
    CHECK(prompt && strcmp(prompt, "second") == 0);
    free(prompt);
    struct esp_message *taken = esp_mailbox_take(&mailbox, false, &stop, &quit);
    CHECK(taken && taken->type == ESP_COMMAND_LIMIT);
    free(taken);
    CHECK(!esp_mailbox_take(&mailbox, false, &stop, &quit));
    esp_mailbox_close(&mailbox);
}

/* Every kind of command must arrive unchanged, with its own copies of strings. */
TEST(commands_are_copied_whole)
{
    struct esp_mailbox mailbox;
    struct esp_message *p;
    char a[] = "a\0b", b[] = "second", c[] = "";
    esp_mailbox_open(&mailbox);
    p = through(&mailbox, (struct esp_message){
                              .type = ESP_COMMAND_PROMPT, .text = {a, NULL, b}, .length = 3});
    CHECK(p->text[0] != a && p->length == 3 && memcmp(p->text[0], "a\0b", 4) == 0);
    CHECK(!p->text[1] && p->text[2] != b && strcmp(p->text[2], "second") == 0);
    free(p);
    p = through(&mailbox, (struct esp_message){.type = ESP_COMMAND_PROMPT, .text = {c}});
    CHECK(p->length == 0 && p->text[0] != c && !*p->text[0]);
    free(p);
    p = through(&mailbox, (struct esp_message){.type = ESP_COMMAND_SET, .text = {a, b, c}});
    CHECK(p->text[0] != a && p->text[1] != b && p->text[2] != c);
    CHECK(strcmp(p->text[0], "a") == 0 && strcmp(p->text[1], "second") == 0 && !*p->text[2]);
    free(p);
    p = through(&mailbox,
                (struct esp_message){
                    .type = ESP_COMMAND_RECORD, .text = {b}, .number = {80, 24}, .flag = true});
    CHECK(strcmp(p->text[0], "second") == 0 && p->number[0] == 80 && p->number[1] == 24 &&
          p->flag);
    free(p);
    p = through(&mailbox, (struct esp_message){.type = ESP_COMMAND_CLEAR});
    CHECK(!p->text[0] && !p->text[1] && !p->text[2] && p->length == 0);
    free(p);
    esp_mailbox_close(&mailbox);
}

TEST(a_step_wakes_the_thread_that_waits_for_it)
{
    struct served served;
    pthread_t thread;
    open_served(&served, &thread);
    esp_mailbox_step_mode(&served.mailbox, true);
    for (int i = 0; i < 50; i++) {
        post(&served, i);
        esp_mailbox_step(&served.mailbox);
    }
    for (int i = 0; i < 50; i++)
        esp_mailbox_step(&served.mailbox);
    /* leaving step mode discards steps that were requested too early */
    esp_mailbox_step_mode(&served.mailbox, false);
    wait_settled(&served);
    close_served(&served, thread);
    CHECK(served.taken == 50 && served.disordered == 0, "%d taken", served.taken);
}

/* The command to quit must be noticed while the thread pauses to keep the pace, and while it
 * waits for the next step in step mode. */
TEST(quitting_takes_effect_at_once)
{
    for (int round = 0; round < 2; round++) {
        struct served served;
        struct timespec before, after;
        pthread_t thread;
        open_served(&served, &thread);
        if (round == 0)
            esp_mailbox_pace(&served.mailbox, 1e-3);
        else
            esp_mailbox_step_mode(&served.mailbox, true);
        post(&served, 0);
        clock_gettime(CLOCK_MONOTONIC, &before);
        close_served(&served, thread);
        clock_gettime(CLOCK_MONOTONIC, &after);
        CHECK(after.tv_sec - before.tv_sec < 10);
    }
}

/* Waits until the next iteration may begin. Then waits for the fraction `share` of the time
 * between iterations that the pace sets. Returns the seconds that the second wait took. */
static double wait_twice(struct esp_mailbox *mailbox, double share)
{
    esp_mailbox_wait_pace(mailbox, 1e-9);
    double start = esp_clock();
    esp_mailbox_wait_pace(mailbox, share);
    return esp_clock() - start;
}

/* In a comparison, each side waits for a fraction of the time between iterations that the pace
 * sets. */
TEST(each_side_of_a_comparison_waits_a_fraction_of_the_pace)
{
    struct esp_mailbox mailbox;
    double whole, quarter = 1;
    esp_mailbox_open(&mailbox);
    esp_mailbox_pace(&mailbox, 5);
    whole = wait_twice(&mailbox, 1);
    for (int i = 0; i < 20 && quarter > 0.15; i++)
        quarter = fmin(quarter, wait_twice(&mailbox, 0.25));
    esp_mailbox_close(&mailbox);
    CHECK(whole > 0.19, "%g s", whole);
    CHECK(quarter > 0.04 && quarter <= 0.15, "%g s", quarter);
}
