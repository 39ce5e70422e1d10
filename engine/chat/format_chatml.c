/* format_chatml.c - ChatML: Qwen, SmolLM2, and many fine-tuned models.
 *
 *     <|im_start|>ROLE\nTEXT<|im_end|>\n
 *
 * If no system prompt is given, each chat template writes a different one. Some templates also
 * drop the reasoning of earlier answers, and some begin an answer with <think>.
 */
#include "engine/chat/chat_format.h"

enum {
    BEGINS_REASONING = ESP_CHAT_OWN,
    DROPS = ESP_CHAT_DROPS_REASONING | ESP_CHAT_DROPS_LINES
};

const struct esp_chat_format esp_chat_format_chatml = {
    .name = "chatml",
    .summary = "ChatML, of Qwen, SmolLM2 and many others",
    .marks = {"<|im_start|>", "<|im_end|>"},
    .ends = {"<|im_end|>", "<|endoftext|>"},
    .signs = {{ESP_CHAT_KNOWN, "<|im_start|>", NULL, "<|im_sep|>"},
              {DROPS, "split('</think>')", NULL, NULL},
              {BEGINS_REASONING, "'<think>\n'", NULL, NULL},
              {BEGINS_REASONING, "assistant\n<think>\n'", NULL, NULL}},
    .system_after = "<|im_start|>system\n",
    .system_before = "<|im_end|>",
    .pieces = {{ESP_AT_BEGIN, 0, 0, "<|im_start|>system\n", ESP_SAY_SYSTEM, "<|im_end|>\n"},
               {ESP_AT_USER, 0, 0, "<|im_start|>user\n", ESP_SAY_TEXT, "<|im_end|>\n"},
               {.at = ESP_AT_CUE | ESP_AT_ANSWER, .before = "<|im_start|>assistant\n"},
               {.at = ESP_AT_CUE, .needs = BEGINS_REASONING, .before = "<think>\n"},
               {.at = ESP_AT_ANSWER, .content = ESP_SAY_TEXT},
               {.at = ESP_AT_CLOSE, .before = "<|im_end|>\n"}},
};
