/* format_harmony.c - harmony, the chat format of gpt-oss.
 *
 *     <|start|>ROLE<|message|>TEXT<|end|>
 *
 * The chat template itself writes the first part, which has the date and the names of the
 * channels. The system prompt follows as a message of the role "developer". An answer consists
 * of several messages: the reasoning in channel "analysis", which ends with <|end|>, and the
 * text in channel "final", which ends with <|return|>. The chat template keeps only the text of
 * earlier answers. espalier also keeps their reasoning, because it never changes earlier text.
 */
#include "engine/chat/chat_format.h"

#define FIRST                                                                                  \
    "<|start|>system<|message|>You are ChatGPT, a large language model trained by OpenAI.\n"   \
    "Knowledge cutoff: 2024-06\nCurrent date: "
#define CHANNELS                                                                               \
    "\n\nReasoning: medium\n\n# Valid channels: analysis, commentary, final. "                 \
    "Channel must be included for every message.<|end|>"
#define DEVELOPER "<|start|>developer<|message|># Instructions\n\n"

const struct esp_chat_format esp_chat_format_harmony = {
    .name = "harmony",
    .summary = "harmony, of gpt-oss",
    .marks = {"<|start|>", "<|end|>", "<|message|>", "<|channel|>", "<|constrain|>",
              "<|return|>", "<|call|>"},
    /* <|end|> also ends the reasoning, so it does not end an answer. */
    .ends = {"<|return|>", "<|call|>"},
    .signs = {{ESP_CHAT_KNOWN | ESP_CHAT_OMITS_EMPTY, "<|start|>", "<|channel|>", NULL}},
    .usual = ESP_CHAT_OMITS_EMPTY,
    .pieces = {{ESP_AT_BEGIN, 0, 0, FIRST, ESP_PUT_DAY, CHANNELS},
               {ESP_AT_BEGIN, 0, 0, DEVELOPER, ESP_SAY_SYSTEM, "\n\n<|end|>"},
               {ESP_AT_USER, 0, 0, "<|start|>user<|message|>", ESP_SAY_TEXT, "<|end|>"},
               {.at = ESP_AT_CUE | ESP_AT_ANSWER, .before = "<|start|>assistant"},
               {ESP_AT_ANSWER, 0, 0, "<|channel|>final<|message|>", ESP_SAY_TEXT, NULL},
               {.at = ESP_AT_CLOSE, .before = "<|end|>"}},
};
