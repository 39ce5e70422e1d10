/* format_llama3.c - the chat format of Llama 3 to 3.3.
 *
 *     <|start_header_id|>ROLE<|end_header_id|>\n\nTEXT<|eot_id|>
 *
 * White space at both ends of a message is dropped. Llama 3.1 and later models always have a
 * system message. It begins with two dates: the date of the training data and today's date. In
 * Llama 3.1, the second date is fixed.
 */
#include "engine/chat/chat_format.h"

enum { DATES = ESP_CHAT_OWN, TODAY = ESP_CHAT_OWN << 1 };

#define KNOWLEDGE "Cutting Knowledge Date: December 2023"
#define HEADER(role) "<|start_header_id|>" role "<|end_header_id|>\n\n"
#define END "<|eot_id|>"

const struct esp_chat_format esp_chat_format_llama3 = {
    .name = "llama3",
    .summary = "Llama 3 to 3.3",
    .marks = {"<|start_header_id|>", "<|end_header_id|>", END, "<|begin_of_text|>",
              "<|eom_id|>"},
    .ends = {END, "<|eom_id|>", "<|end_of_text|>"},
    .signs = {{ESP_CHAT_KNOWN, "<|start_header_id|>", NULL, NULL},
              {DATES, KNOWLEDGE, NULL, NULL},
              {TODAY, "strftime_now", NULL, NULL}},
    .pieces = {{.at = ESP_AT_BEGIN, .content = ESP_PUT_BOS},
               {ESP_AT_BEGIN, 0, DATES, HEADER("system"), ESP_SAY_STRIPPED_SYSTEM, END},
               {.at = ESP_AT_BEGIN,
                .needs = DATES,
                .before = HEADER("system") KNOWLEDGE "\nToday Date: "},
               {.at = ESP_AT_BEGIN, .needs = DATES, .lacks = TODAY, .before = "26 Jul 2024"},
               {.at = ESP_AT_BEGIN, .needs = DATES | TODAY, .content = ESP_PUT_DAY_IN_WORDS},
               {.at = ESP_AT_BEGIN, .needs = DATES, .before = "\n\n"},
               {.at = ESP_AT_BEGIN, .needs = DATES, .content = ESP_SAY_STRIPPED_SYSTEM},
               {.at = ESP_AT_BEGIN, .needs = DATES, .before = END},
               {ESP_AT_USER, 0, 0, HEADER("user"), ESP_SAY_STRIPPED_TEXT, END},
               {.at = ESP_AT_CUE | ESP_AT_ANSWER, .before = HEADER("assistant")},
               {.at = ESP_AT_ANSWER, .content = ESP_SAY_STRIPPED_TEXT},
               {.at = ESP_AT_CLOSE, .before = END}},
};
