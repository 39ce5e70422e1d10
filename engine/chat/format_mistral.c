/* format_mistral.c - Mistral, Mixtral, Nemo, Small.
 *
 *     [INST] TEXT [/INST] TEXT</s>
 *
 * The versions of the format differ in their spaces. Versions 1 and 2 have a space before and
 * after both [INST] and [/INST]. Version 3 (0.3) has spaces only after [INST] and before an
 * answer, and version 4 (Tekken) has no spaces. The newest versions have a separate part for
 * the system prompt. In older versions, the system prompt comes before the user's first
 * message. In the chat templates of versions 3 and 4, it comes before the user's last message.
 * espalier always keeps the system prompt in the first turn. If it were moved, earlier turns
 * would have to be computed again.
 */
#include "engine/chat/chat_format.h"

enum {
    BLANK_BEFORE = ESP_CHAT_OWN,      /* " [INST]" */
    BLANK_AFTER = ESP_CHAT_OWN << 1,  /* "[INST] " */
    BLANK_END = ESP_CHAT_OWN << 2,    /* " [/INST]" */
    BLANK_ANSWER = ESP_CHAT_OWN << 3, /* " " before an earlier answer; the model itself writes
                                         it before a new answer */
    STRIPS_ANSWER = ESP_CHAT_OWN << 4,
    SYSTEM_PART = ESP_CHAT_OWN << 5,
};

const struct esp_chat_format esp_chat_format_mistral = {
    .name = "mistral",
    .summary = "Mistral, Mixtral, Nemo, Small",
    .marks = {"[INST]", "[/INST]", "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]", "<s>", "</s>"},
    .ends = {"</s>"},
    .signs = {{ESP_CHAT_KNOWN, "[INST]", NULL, "<<SYS>>"},
              {BLANK_BEFORE, "' [INST]", NULL, NULL},
              {BLANK_AFTER, "[INST] '", NULL, NULL},
              {BLANK_END, "' [/INST]", NULL, NULL},
              {BLANK_ANSWER, "' ' + message", NULL, NULL},
              {BLANK_ANSWER, "' ' + content", NULL, NULL},
              {STRIPS_ANSWER, "content'] | trim + eos", NULL, NULL},
              {STRIPS_ANSWER, "content']|trim + eos", NULL, NULL},
              {ESP_CHAT_SYSTEM_IS_LAST, "loop.last and system_message is defined", NULL, NULL},
              {SYSTEM_PART, "[SYSTEM_PROMPT]", NULL, NULL}},
    .pieces = {{.at = ESP_AT_BEGIN, .content = ESP_PUT_BOS},
               {ESP_AT_BEGIN, SYSTEM_PART, 0, "[SYSTEM_PROMPT]", ESP_SAY_SYSTEM,
                "[/SYSTEM_PROMPT]"},
               {.at = ESP_AT_USER, .needs = BLANK_BEFORE, .before = " "},
               {.at = ESP_AT_USER, .before = "[INST]"},
               {.at = ESP_AT_USER, .needs = BLANK_AFTER, .before = " "},
               {ESP_AT_USER, 0, SYSTEM_PART, NULL, ESP_SAY_SYSTEM, "\n\n"},
               {.at = ESP_AT_USER, .content = ESP_SAY_TEXT},
               {.at = ESP_AT_USER, .needs = BLANK_END, .before = " "},
               {.at = ESP_AT_USER, .before = "[/INST]"},
               {.at = ESP_AT_ANSWER, .needs = BLANK_ANSWER, .before = " "},
               {.at = ESP_AT_ANSWER, .lacks = STRIPS_ANSWER, .content = ESP_SAY_TEXT},
               {.at = ESP_AT_ANSWER, .needs = STRIPS_ANSWER, .content = ESP_SAY_STRIPPED_TEXT},
               {.at = ESP_AT_CLOSE, .content = ESP_PUT_EOS}},
};
