/* goodput_account.c - see goodput_account.h. */
#include "engine/drafters/goodput_account.h"

#include <math.h>

enum {
    SHORTEST_WAIT = 16,
    REFRESH = 128,     /* iterations after which plain decoding is timed again */
    PROVEN_TREES = 32, /* number of trees that must be verified before their mean saving is
                          used */
    MANY_TREES = 256,  /* maximum number of trees in this mean */
};

/* START: balance at the start of the first text. PROVEN: balance at the start of a later text
 * if drafting saved time in earlier texts. ASIDE: steps that are added to the balance for each
 * token of plain decoding. */
static const double START = ESP_FIRST_SAVINGS, PROVEN = 4, ASIDE = 0.01;

void esp_account_open(struct esp_account *a)
{
    *a = (struct esp_account){.balance = START, .interval = SHORTEST_WAIT};
}

bool esp_account_read(struct esp_account *a, int length, bool pays)
{
    const bool new = length < a->length;
    a->length = length;
    if (new)
        a->balance = pays ? PROVEN : fmax(fmin(a->balance, START), START / 2);
    return new;
}

bool esp_account_is_plain(struct esp_account *a, double step, double look, double catch_up)
{
    a->probing = a->plain;
    a->timed = a->since_plain >= REFRESH;
    a->forgiven = a->plain && a->trees >= PROVEN_TREES && a->worth > 0 ? catch_up : 0;
    a->stake = a->balance * step + a->forgiven;
    if (!(step > 0))
        return true;
    if (!a->plain && a->stake < look) {
        a->plain = true;
        a->wait = a->interval;
        a->interval = a->interval < ESP_LONGEST_WAIT ? 2 * a->interval : ESP_LONGEST_WAIT;
    } else if (a->plain && a->wait <= 0 && a->stake >= look) {
        a->plain = false;
    }
    return a->plain || a->timed;
}

void esp_account_waited(struct esp_account *a, int tokens)
{
    a->wait -= tokens;
    a->balance += ASIDE * tokens;
}

void esp_account_settle(struct esp_account *a, double saved)
{
    a->worth += (saved - a->worth) / fmin(++a->trees, MANY_TREES);
    a->trees = a->trees < MANY_TREES ? a->trees : MANY_TREES;
    a->balance = fmin(a->balance + saved, ESP_SAVINGS);
    if (a->balance >= 1)
        a->interval = SHORTEST_WAIT;
}
