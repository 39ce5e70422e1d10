/* format_phi.c - Phi 3, 3.5, 4 and 4 mini.
 *
 *     <|ROLE|>\nTEXT<|end|>\n                      Phi 3 and 3.5; Phi 4 mini without the \n
 *     <|im_start|>ROLE<|im_sep|>TEXT<|im_end|>     Phi 4
 *
 * Some chat templates write the begin-of-text token first, and some leave out an empty system
 * prompt.
 */
#include "engine/chat/chat_format.h"

enum { LINES = ESP_CHAT_OWN, SEPARATED = ESP_CHAT_OWN << 1, BEGINS = ESP_CHAT_OWN << 2 };

#define OPEN(role) "<|im_start|>" role "<|im_sep|>"

const struct esp_chat_format esp_chat_format_phi = {
    .name = "phi",
    .summary = "Phi 3, 3.5, 4 and 4 mini",
    .marks = {"<|system|>", "<|user|>", "<|assistant|>", "<|end|>", "<|im_start|>",
              "<|im_sep|>", "<|im_end|>"},
    .ends = {"<|end|>", "<|im_end|>", "<|endoftext|>"},
    /* A chat template may write the roles with a variable, so the template is searched for the
     * line break after the cue. */
    .signs = {{ESP_CHAT_KNOWN | SEPARATED, "<|im_sep|>", NULL, NULL},
              {ESP_CHAT_KNOWN, "<|end|>", "<|assistant|>", NULL},
              {LINES, "<|assistant|>\n", NULL, "<|im_sep|>"},
              {LINES, "'<|assistant|>' + '\n'", NULL, "<|im_sep|>"},
              {BEGINS, "{{ bos_token }}", NULL, NULL},
              {BEGINS, "{{- bos_token }}", NULL, NULL},
              {ESP_CHAT_OMITS_EMPTY, "== 'system' and message['content']", NULL, NULL}},
    .usual = LINES,
    .pieces =
        {{.at = ESP_AT_BEGIN, .needs = BEGINS, .content = ESP_PUT_BOS},
         {ESP_AT_BEGIN, SEPARATED, 0, OPEN("system"), ESP_SAY_SYSTEM, "<|im_end|>"},
         {ESP_AT_BEGIN, LINES, 0, "<|system|>\n", ESP_SAY_SYSTEM, "<|end|>\n"},
         {ESP_AT_BEGIN, 0, LINES | SEPARATED, "<|system|>", ESP_SAY_SYSTEM, "<|end|>"},
         {ESP_AT_USER, SEPARATED, 0, OPEN("user"), ESP_SAY_TEXT, "<|im_end|>"},
         {ESP_AT_USER, LINES, 0, "<|user|>\n", ESP_SAY_TEXT, "<|end|>\n"},
         {ESP_AT_USER, 0, LINES | SEPARATED, "<|user|>", ESP_SAY_TEXT, "<|end|>"},
         {.at = ESP_AT_CUE | ESP_AT_ANSWER, .needs = SEPARATED, .before = OPEN("assistant")},
         {.at = ESP_AT_CUE | ESP_AT_ANSWER, .lacks = SEPARATED, .before = "<|assistant|>"},
         {.at = ESP_AT_CUE | ESP_AT_ANSWER, .needs = LINES, .before = "\n"},
         {.at = ESP_AT_ANSWER, .content = ESP_SAY_TEXT},
         {.at = ESP_AT_CLOSE, .needs = SEPARATED, .before = "<|im_end|>"},
         {.at = ESP_AT_CLOSE, .lacks = SEPARATED, .before = "<|end|>"},
         {.at = ESP_AT_CLOSE, .needs = LINES, .before = "\n"}},
};
