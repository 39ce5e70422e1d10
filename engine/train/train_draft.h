/* train_draft.h - trains a draft head on a target's hidden states, or a draft model on its
 * distributions: `espalier train head`, `espalier train draft`.
 *
 * There are four steps. (1) The text is divided into pieces. (2) The target runs over all
 * pieces once. For loss TALF it also grows trees. The samples are stored in
 * OUTPUT/features.bin. (3) The draft is trained for some epochs, each over the pieces in random
 * order. (4) The folder is written. An interrupted run leaves OUTPUT/checkpoint; resuming from
 * it gives bit-identical results. Both files are removed at the end.
 */
#ifndef ESP_TRAIN_DRAFT_H
#define ESP_TRAIN_DRAFT_H

#include "engine/espalier.h"

enum esp_train_stage { ESP_TRAIN_READ, ESP_TRAIN_TARGET, ESP_TRAIN_STEPS, ESP_TRAIN_VALIDATE };

enum { ESP_TRAIN_DEPTHS = 16 };

/* Says how well draft and target agree on the held-out pieces, for drafted tokens of each
 * depth. */
struct esp_train_check {
    int epoch; /* number of epochs done; 0 means nothing was checked yet */
    int depths;
    double overlap[ESP_TRAIN_DEPTHS]; /* sum of min(p, q): the acceptance probability */
    double agrees[ESP_TRAIN_DEPTHS];  /* fraction of rows with the same likeliest token */
    double gap[ESP_TRAIN_DEPTHS];     /* KL divergence of the draft from the target, in nats */
};

struct esp_train_report {
    enum esp_train_stage stage;
    int64_t first, done, total; /* number of pieces or steps: at the start of this run, now, and
                                   at the end */
    int epoch, epochs;
    int64_t tokens;               /* number of tokens that this run has trained on so far */
    int64_t parameters;           /* number of trained parameters */
    const float *loss;            /* (done) loss of each step; NULL in the other stages */
    double rate;                  /* learning rate */
    struct esp_train_check check; /* results of the last check */
};

struct esp_train_options {
    bool head;          /* true: trains a draft head; false: trains a draft model */
    const char *target; /* model folder */
    const char *draft; /* the draft model to train, or a head to begin with; NULL: a new head */
    const char *output;       /* folder of the new draft */
    const char *loss;         /* "name:k=v,..."; NULL means talf. See esp_train_loss() */
    const char *const *texts; /* (text_count) files */
    int text_count;
    int64_t tokens; /* maximum number of tokens of the text to use; 0 means all */
    int length;     /* number of tokens in a piece; 0: 512, or the context if shorter */
    int batch;      /* number of pieces in a step; 0 means 8 */
    int epochs;     /* number of epochs; 0 means one */
    double rate;    /* the largest learning rate; 0 means 3e-4 */
    uint64_t seed;
    int threads;               /* 0 means one per performance core */
    bool resume;               /* true: continue from OUTPUT/checkpoint */
    bool force;                /* true: overwrite a model in OUTPUT */
    double checkpoint_seconds; /* time between checkpoints; 0 means one after every step */
    /* Called after every piece and step; returns false to stop with ESP_E_CANCELLED, which
     * leaves a checkpoint. */
    bool (*progress)(void *user, const struct esp_train_report *report);
    void *user;
};

int esp_train(const struct esp_train_options *options, char *err, size_t errlen);

struct esp_train_loss_info {
    const char *name, *summary, *source;
    const char *differs; /* how the loss differs from its source, and why; or "" */
    bool head;           /* true: the loss can train a draft head */
    bool draft;          /* true: the loss can train a draft model */
};
/* Fills in entry `index` of the list of losses. Returns false past its end. */
bool esp_train_loss(int index, struct esp_train_loss_info *info);
/* Fills in parameter `index` of a loss. Returns false past the end, or if there is no such
 * loss. */
bool esp_train_loss_param(const char *name, int index, struct esp_param_info *info);

#endif
