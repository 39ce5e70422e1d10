/* goodput_account.h - an account of the time that drafting saved, which limits what drafting
 * may cost.
 *
 * Time saved compared with plain decoding is added to the account, up to ESP_SAVINGS steps of
 * plain decoding; time lost is subtracted. A tree may cost no more than the balance. The
 * cheapest trial is called a look at the text: the draft model catches up and drafts one node.
 * If the balance is too low for a look, nothing is drafted for 16, 32, ... 512 tokens; for each
 * of these tokens, 0.01 steps are added to the balance. However bad the draft is, speculation
 * therefore costs at most a few steps per text, plus one percent, plus what it saved before. If
 * a draft's trees have saved time on average, the account is not charged for the time in which
 * the draft model catches up before the next look. The one percent would never pay for this
 * time.
 */
#ifndef ESP_GOODPUT_ACCOUNT_H
#define ESP_GOODPUT_ACCOUNT_H

#include <stdbool.h>

enum { ESP_LONGEST_WAIT = 512, ESP_SAVINGS = 8, ESP_FIRST_SAVINGS = 2 };

/* Times are in steps of plain decoding, unless the comment says seconds. */
struct esp_account {
    double balance;
    double worth;    /* mean time saved by a tree of the draft model */
    int trees;       /* number of trees in that mean */
    int wait;        /* tokens until the next look */
    int interval;    /* length of the next wait, in tokens */
    int since_plain; /* iterations since plain decoding was last timed */
    int length;      /* length of the text in the last iteration, in tokens */
    bool plain;      /* nothing is drafted until the next look */

    /* These belong to the current iteration. */
    bool probing;    /* this is the first iteration after a wait */
    bool timed;      /* this iteration times plain decoding */
    double stake;    /* seconds that the tree may cost beyond plain decoding */
    double forgiven; /* seconds of this iteration that are not charged to the account */
};

void esp_account_open(struct esp_account *account);

/* Returns whether this is a new text. A text that is shorter than before is assumed to be new.
 * For a new text, sets the balance. length: length of the text, in tokens; pays: true if
 * drafting saved time in earlier texts. */
bool esp_account_read(struct esp_account *account, int length, bool pays);

/* Starts an iteration. Returns whether it decodes without a draft. All times are in seconds.
 * step: the time of a step of plain decoding (0 means unknown yet); look: the cost of a look at
 * the text; catch_up: the part of `look` in which the draft model catches up. */
bool esp_account_is_plain(struct esp_account *account, double step, double look,
                          double catch_up);

/* Updates the account after an iteration of plain decoding. */
void esp_account_waited(struct esp_account *account, int tokens);
/* Updates the account after a tree of the draft model. saved: the time that the tree saved. */
void esp_account_settle(struct esp_account *account, double saved);

#endif
