/* espalier_stats.h - defines the counts and times that a session has collected so far.
 *
 * Part of the public interface (espalier.h includes it).
 */
#ifndef ESPALIER_STATS_H
#define ESPALIER_STATS_H

#include <stddef.h>
#include <stdint.h>

#include "engine/espalier_event.h"

#ifdef __cplusplus
extern "C" {
#endif

struct esp_stats {
    int prompt_tokens, generated_tokens, iterations;
    int64_t drafted_nodes;  /* number of drafted nodes that the target verified */
    int64_t accepted_nodes; /* number of drafted nodes that were accepted */
    /* Drafted and accepted nodes, counted separately for each source (enum esp_source). */
    int64_t source_nodes[ESP_SOURCES], source_accepted[ESP_SOURCES];
    int64_t draft_passes, target_passes;
    int64_t draft_rows; /* number of rows that the draft passes computed */
    /* Statistics of the states of the target's recurrent layers, in passes that verify trees.
     * All are 0 if the target has no recurrent layers. */
    int64_t state_steps;               /* how often a row updated the state of a layer */
    int64_t state_read, state_written; /* bytes of states that were read and written */
    int64_t state_copies; /* bytes that would be written if every row stored the states */
    double mean_path_length;
    double tokens_per_iteration;
    double acceptance_rate; /* accepted / drafted, 0 if nothing was drafted */
    int64_t prefill_rows;   /* number of rows of prompts that the target computed */
    double prefill_seconds, decode_seconds;
    double first_token_seconds; /* time of the prefill and the first iteration together */
    double stage_seconds[ESP_STAGES];
    double exchange_seconds; /* part of stage_seconds; see struct esp_iteration */
    /* Seconds that draft passes took. The other time of the draft stage is the time in which
     * the tree was built. On an asynchronous device, a pass can still be running when the
     * drafter continues with the tree. */
    double draft_pass_seconds;
    double baseline; /* seconds of one plain decoding step; 0 if not measured */
    /* Seconds per token over the last iterations. As in `baseline`, times with interruptions
     * by other programs are left out. The speed-up is baseline / token_seconds. */
    double token_seconds;
    double draft_temp; /* divisor of the draft's logits; 0 if there is no draft model */
    /* Expected calibration error of draft probabilities against the target's, for the tokens
     * drafted in the last iterations: without tempering (raw), and at draft_temp. NaN means
     * unknown. */
    double calibration_error_raw, calibration_error;
    size_t peak_bytes;   /* peak memory of the whole process on the host */
    size_t device_bytes; /* memory that was allocated on the device since the engine was opened;
                            0 means that the device shares the host's memory */
};

#ifdef __cplusplus
}
#endif
#endif
