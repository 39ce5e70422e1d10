/* goodput_account.h - what drafting may cost: an account of the time that it saved.
 *
 * Time saved over plain decoding goes to the account, up to ESP_SAVINGS steps of plain
 * decoding; time lost is taken from it. A tree may cost no more than the account holds. If
 * that is too little for one look at the text (the draft catches up and drafts one node),
 * nothing is drafted for 16, 32, ... 512 tokens, while one step in 100 is saved for the next
 * look. So speculation costs at most a few steps of a text, one percent, and its own savings,
 * however bad the draft is. If the trees of a draft have saved time on average, catching up at
 * the next look is free; it costs more than a percent, so it would never be paid for.
 */
#ifndef ESP_GOODPUT_ACCOUNT_H
#define ESP_GOODPUT_ACCOUNT_H

#include <stdbool.h>

enum { ESP_LONGEST_WAIT = 512, ESP_SAVINGS = 8, ESP_FIRST_SAVINGS = 2 };

/* Times are in steps of plain decoding, unless they are in seconds. */
struct esp_account {
    double balance;
    double worth;       /* mean saving of a tree of the draft model */
    int trees;          /* in that mean */
    int wait, interval; /* tokens until the next look; the first value of the next wait */
    int since_plain;    /* iterations since one timed plain decoding */
    int length;         /* of the text, last time */
    bool plain;         /* nothing is drafted until the next look */

    /* Of the running iteration. */
    bool probing;    /* it is the first after a wait */
    bool timed;      /* it times plain decoding */
    double stake;    /* seconds: the most that the tree may cost over plain decoding */
    double forgiven; /* seconds that are not charged to the account */
};

void esp_account_open(struct esp_account *account);

/* Starts the account for a text of `length` tokens if it is another one; returns whether it
 * is. `pays`: drafting paid in earlier texts. */
bool esp_account_read(struct esp_account *account, int length, bool pays);

/* Is this an iteration of plain decoding? In seconds: a step of it (0: nothing is known yet),
 * a look at the text, and what of that is for catching up. */
bool esp_account_is_plain(struct esp_account *account, double step, double look,
                          double catch_up);

/* Learns from an iteration of plain decoding, and from a tree of the draft model. */
void esp_account_waited(struct esp_account *account, int tokens);
void esp_account_settle(struct esp_account *account, double saved);

#endif
