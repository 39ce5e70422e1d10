/* foreign.h - the built-in draft with another vocabulary, as a temporary folder (folder.h).
 *
 * The model is the same: the rows of its embedding, which is also its head, go where their tokens
 * go. So what it drafts is known from the built-in draft.
 */
#ifndef ESP_FOREIGN_H
#define ESP_FOREIGN_H

enum foreign_kind {
    FOREIGN_PERMUTED,      /* the same tokens with other ids */
    FOREIGN_RARE_REPLACED, /* and the last fifth of the merges are other tokens: of 100 tokens, the
                              target knows 80 */
    FOREIGN_EACH_FIFTH_REPLACED, /* and each fifth token is another one, whether frequent or rare */
    FOREIGN_SENTENCEPIECE,       /* byte fallback: spaces are U+2581, newlines <0x0A> */
};

/* Makes the folder, at folder_path(). */
void foreign_draft(enum foreign_kind kind);

#endif
