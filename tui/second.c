/* second.c - opens, runs and ends the session that is compared with; see second.h. */
#include "second.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ out: snapshots */

__attribute__((format(printf, 3, 4))) static void tell(struct esp_second *s, int type,
                                                       const char *format, ...)
{
    struct esp_snapshot *snapshot = esp_ring_write(s->ring, type);
    if (!snapshot)
        return;
    va_list args;
    va_start(args, format);
    vsnprintf(snapshot->text, sizeof snapshot->text, format, args);
    va_end(args);
    esp_ring_publish(s->ring);
    s->wake(s->user, false);
}

/* What is compared with now; empty names: nothing. */
static void tell_choice(struct esp_second *s)
{
    struct esp_snapshot *snapshot = esp_ring_write(s->ring, ESP_SNAPSHOT_COMPARE);
    const struct esp_session *session = s->compare.second;
    if (!snapshot)
        return;
    struct esp_loaded *loaded = &snapshot->loaded;
    *loaded = (struct esp_loaded){.seconds = 0};
    if (session) {
        esp_session_get(session, "drafter", loaded->drafter, sizeof loaded->drafter);
        esp_session_get(session, "verifier", loaded->verifier, sizeof loaded->verifier);
    }
    esp_ring_publish(s->ring);
    s->wake(s->user, false);
}

static void observe(void *user, const struct esp_event *event)
{
    struct esp_second *s = user;
    if (event->type != ESP_EVENT_ITERATION)
        return;
    if (esp_ring_write_second(s->ring, event) < 0)
        tell(s, ESP_SNAPSHOT_ERROR, "out of memory: an iteration could not be shown");
    s->wake(s->user, true);
}

/* ------------------------------------------------------------------ beginning and ending */

void esp_second_end(struct esp_second *s)
{
    if (!s->compare.second)
        return;
    esp_compare_close(&s->compare);
    tell_choice(s);
}

static void give_up(struct esp_second *s, const char *why)
{
    esp_second_end(s);
    tell(s, ESP_SNAPSHOT_ERROR, "%.400s; the comparison has ended", why);
}

/* Splits "DRAFTER VERIFIER"; false if there is more. */
static bool read_choice(struct esp_second *s, const char *choice)
{
    size_t length = strcspn(choice, " ");
    const char *rule = choice + length + strspn(choice + length, " ");
    if (strchr(rule, ' ') || length >= sizeof s->drafter || strlen(rule) >= sizeof s->verifier)
        return false;
    snprintf(s->drafter, sizeof s->drafter, "%.*s", (int)length, choice);
    snprintf(s->verifier, sizeof s->verifier, "%s", rule);
    return true;
}

/* Opens what is named, and only then closes what was there. */
static int open_choice(struct esp_second *s, struct esp_session *first, char *err,
                       size_t errlen)
{
    struct esp_compare next;
    struct esp_session_options options = {.drafter = s->drafter,
                                          .verifier = *s->verifier ? s->verifier : NULL,
                                          .observer = observe,
                                          .user = s};
    int status = esp_compare_open(&next, first, &options, err, errlen);
    if (status < 0)
        return status;
    esp_second_end(s);
    s->compare = next;
    s->differed = false;
    tell_choice(s);
    return status;
}

void esp_second_choose(struct esp_second *s, struct esp_session *first, const char *choice)
{
    char err[256] = "";
    int status;
    const struct esp_second before = *s;
    if (strcmp(choice, "off") == 0) {
        bool had = s->compare.second != NULL;
        esp_second_end(s);
        tell(s, ESP_SNAPSHOT_MESSAGE,
             had ? "the comparison has ended" : "nothing was compared; :compare linear begins");
        return;
    }
    if (!read_choice(s, choice)) {
        tell(s, ESP_SNAPSHOT_ERROR,
             "write :compare DRAFTER[:key=value,...] [VERIFIER], or :compare off");
    } else if ((status = open_choice(s, first, err, sizeof err)) < 0) {
        *s = before;
        tell(s, ESP_SNAPSHOT_ERROR, "%s%s",
             status == ESP_E_MEMORY ? "a second choice needs caches of its own: " : "", err);
    }
}

void esp_second_again(struct esp_second *s, struct esp_session *first)
{
    char err[256] = "";
    if (open_choice(s, first, err, sizeof err) < 0)
        tell(s, ESP_SNAPSHOT_ERROR, "%.400s; the comparison has ended", err);
}

/* ------------------------------------------------------------------ running */

void esp_second_begin(struct esp_second *s)
{
    char err[256] = "";
    if (s->compare.second && esp_compare_begin(&s->compare, err, sizeof err) < 0)
        give_up(s, err);
}

void esp_second_set(struct esp_second *s, const char *key, const char *value)
{
    static const char *const shared[] = {"temp", "top_p", "top_k", "seed", "order"};
    char err[256] = "";
    if (!s->compare.second)
        return;
    for (size_t i = 0; i < sizeof shared / sizeof *shared; i++) {
        if (strcmp(key, shared[i]) != 0)
            continue;
        if (esp_session_set(s->compare.second, key, value, err, sizeof err) < 0)
            give_up(s, err);
        else
            tell_choice(s);
        return;
    }
}

/* At temperature 0 both must write the same: if they do not, it has to be known. */
static void check_texts(struct esp_second *s)
{
    char temperature[32] = "";
    if (s->differed || s->compare.difference < 0)
        return;
    esp_session_get(s->compare.first, "temp", temperature, sizeof temperature);
    if (strtod(temperature, NULL) > 0)
        return;
    s->differed = true;
    tell(s, ESP_SNAPSHOT_ERROR, "at token %d the second choice would have gone another way",
         s->compare.difference);
}

bool esp_second_run(struct esp_second *s)
{
    char err[256] = "";
    if (!s->compare.second)
        return false;
    bool turn = esp_compare_turn(&s->compare);
    check_texts(s);
    if (turn && esp_compare_step(&s->compare, err, sizeof err) < 0)
        give_up(s, err);
    return turn;
}
