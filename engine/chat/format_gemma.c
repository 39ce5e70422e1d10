/* format_gemma.c - Gemma 1 to 3.
 *
 *     <start_of_turn>user\nTEXT<end_of_turn>\n<start_of_turn>model\nTEXT<end_of_turn>\n
 *
 * White space at both ends of a message is dropped. The format has no part for a system prompt.
 * espalier puts the system prompt before the user's first message, like the chat template of
 * Gemma 3. The chat templates of Gemma 1 and 2 refuse a system prompt; espalier treats these
 * models like Gemma 3.
 */
#include "engine/chat/chat_format.h"

const struct esp_chat_format esp_chat_format_gemma = {
    .name = "gemma",
    .summary = "Gemma 1 to 3",
    .marks = {"<start_of_turn>", "<end_of_turn>"},
    .ends = {"<end_of_turn>"},
    .signs = {{ESP_CHAT_KNOWN, "<start_of_turn>", NULL, NULL}},
    .pieces = {{.at = ESP_AT_BEGIN, .content = ESP_PUT_BOS},
               {.at = ESP_AT_USER, .before = "<start_of_turn>user\n"},
               {ESP_AT_USER, 0, 0, NULL, ESP_SAY_SYSTEM, "\n\n"},
               {ESP_AT_USER, 0, 0, NULL, ESP_SAY_STRIPPED_TEXT, "<end_of_turn>\n"},
               {.at = ESP_AT_CUE | ESP_AT_ANSWER, .before = "<start_of_turn>model\n"},
               {.at = ESP_AT_ANSWER, .content = ESP_SAY_STRIPPED_TEXT},
               {.at = ESP_AT_CLOSE, .before = "<end_of_turn>\n"}},
};
