/* format_phi.c - Phi 3, 3.5, 4 and 4 mini.
 *
 *     <|ROLE|>\nTEXT<|end|>\n                      Phi 3 and 3.5; Phi 4 mini without the \n
 *     <|im_start|>ROLE<|im_sep|>TEXT<|im_end|>     Phi 4
 *
 * Some templates write the begin-of-text token first, and some leave out an empty system text.
 */
#include "engine/chat/chat_format.h"

enum { LINES = 1, SEPARATED = 2, BEGINS = 4, LEAVES_OUT_EMPTY = 8 };

static bool recognise(const char *text)
{
    return esp_chat_has(text, "<|im_sep|>") ||
           (esp_chat_has(text, "<|end|>") && esp_chat_has(text, "<|assistant|>"));
}

static void read(struct esp_chat *chat, const char *text)
{
    const bool separated = esp_chat_has(text, "<|im_sep|>");
    chat->variant = separated ? SEPARATED : 0;
    /* A template may write the role by name, so the line break is looked for behind the cue. */
    if (!separated && (!*text || esp_chat_has(text, "<|assistant|>\n") ||
                       esp_chat_has(text, "'<|assistant|>' + '\n'")))
        chat->variant |= LINES;
    if (esp_chat_has(text, "{{ bos_token }}") || esp_chat_has(text, "{{- bos_token }}"))
        chat->variant |= BEGINS;
    if (esp_chat_has(text, "== 'system' and message['content']"))
        chat->variant |= LEAVES_OUT_EMPTY;
}

static void open(struct esp_chat_text *out, const struct esp_chat *chat, const char *role)
{
    const bool separated = chat->variant & SEPARATED;
    esp_chat_put(out, separated ? "<|im_start|>" : "<|");
    esp_chat_put(out, role);
    esp_chat_put(out, separated ? "<|im_sep|>" : chat->variant & LINES ? "|>\n" : "|>");
}

static void close(struct esp_chat_text *out, const struct esp_chat *chat)
{
    esp_chat_put(out, chat->variant & SEPARATED ? "<|im_end|>"
                      : chat->variant & LINES   ? "<|end|>\n"
                                                : "<|end|>");
}

static void begin(struct esp_chat_text *out, const struct esp_chat *chat, const char *system)
{
    esp_chat_put(out, chat->variant & BEGINS ? chat->bos : "");
    if (!system || (!*system && chat->variant & LEAVES_OUT_EMPTY))
        return;
    open(out, chat, "system");
    esp_chat_say(out, system, strlen(system));
    close(out, chat);
}

static void user(struct esp_chat_text *out, const struct esp_chat *chat, const char *text,
                 size_t length, const char *system)
{
    (void)system;
    open(out, chat, "user");
    esp_chat_say(out, text, length);
    close(out, chat);
}

static void cue(struct esp_chat_text *out, const struct esp_chat *chat)
{
    open(out, chat, "assistant");
}

static const char *const marks[] = {"<|system|>",   "<|user|>",   "<|assistant|>", "<|end|>",
                                    "<|im_start|>", "<|im_sep|>", "<|im_end|>",    NULL};
static const char *const ends[] = {"<|end|>", "<|im_end|>", "<|endoftext|>", NULL};

const struct esp_chat_format esp_chat_format_phi = {
    .name = "phi",
    .summary = "Phi 3, 3.5, 4 and 4 mini",
    .marks = marks,
    .ends = ends,
    .recognise = recognise,
    .read = read,
    .begin = begin,
    .user = user,
    .cue = cue,
    .close = close,
};
