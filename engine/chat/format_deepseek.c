/* format_deepseek.c - DeepSeek V2 to V3.1, R1 and the models distilled from it.
 *
 *     <｜User｜>TEXT<｜Assistant｜>TEXT<｜end▁of▁sentence｜>
 *     User: TEXT\n\nAssistant: TEXT<｜end▁of▁sentence｜>        V2
 *
 * The system prompt comes first, without a control token. R1 begins answers with <think>, V3.1
 * with </think>, so that it does not reason. Chat templates drop the reasoning of earlier
 * answers.
 */
#include "engine/chat/chat_format.h"

enum {
    WORDS = ESP_CHAT_OWN,
    BEGINS_REASONING = ESP_CHAT_OWN << 1,
    SKIPS_REASONING = ESP_CHAT_OWN << 2,
};

#define USER "<｜User｜>"
#define ASSISTANT "<｜Assistant｜>"
#define END "<｜end▁of▁sentence｜>"

const struct esp_chat_format esp_chat_format_deepseek = {
    .name = "deepseek",
    .summary = "DeepSeek V2 to V3.1, R1 and its distilled models",
    .marks = {USER, ASSISTANT, END, "<｜begin▁of▁sentence｜>"},
    .ends = {END},
    .signs = {{ESP_CHAT_KNOWN, ASSISTANT, NULL, NULL},
              {ESP_CHAT_KNOWN | WORDS, "'User: '", "'Assistant: '", ASSISTANT},
              {BEGINS_REASONING, ASSISTANT "<think>\n'", NULL, NULL},
              {SKIPS_REASONING, "{{'</think>'}}", NULL, NULL},
              {ESP_CHAT_DROPS_REASONING, "split('</think>'", NULL, NULL}},
    .pieces = {{.at = ESP_AT_BEGIN, .content = ESP_PUT_BOS},
               {ESP_AT_BEGIN, 0, WORDS, NULL, ESP_SAY_SYSTEM, NULL},
               {ESP_AT_BEGIN, WORDS, 0, NULL, ESP_SAY_SYSTEM, "\n\n"},
               {ESP_AT_USER, 0, WORDS, USER, ESP_SAY_TEXT, NULL},
               {ESP_AT_USER, WORDS, 0, "User: ", ESP_SAY_TEXT, "\n\n"},
               {.at = ESP_AT_CUE | ESP_AT_ANSWER, .lacks = WORDS, .before = ASSISTANT},
               {.at = ESP_AT_CUE, .needs = WORDS, .before = "Assistant:"},
               {.at = ESP_AT_ANSWER, .needs = WORDS, .before = "Assistant: "},
               {.at = ESP_AT_CUE | ESP_AT_ANSWER,
                .needs = SKIPS_REASONING,
                .before = "</think>"},
               {.at = ESP_AT_CUE,
                .needs = BEGINS_REASONING,
                .lacks = SKIPS_REASONING,
                .before = "<think>\n"},
               {.at = ESP_AT_ANSWER, .content = ESP_SAY_TEXT},
               {.at = ESP_AT_CLOSE, .content = ESP_PUT_EOS}},
};
