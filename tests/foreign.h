/* foreign.h - writes the built-in draft with another vocabulary to a temporary folder
 * (folder.h).
 *
 * The weights stay the same. Only the rows of the embedding, which is also the head, are
 * reordered: if a token gets another id, its row moves to the new id. So the model must draft
 * the same text as the built-in draft.
 */
#ifndef ESP_FOREIGN_H
#define ESP_FOREIGN_H

enum foreign_kind {
    FOREIGN_PERMUTED,      /* the same tokens with other ids */
    FOREIGN_RARE_REPLACED, /* in addition, other tokens replace the last fifth of the merged
                              tokens, so the target has only 80 % of the tokens */
    FOREIGN_EACH_FIFTH_REPLACED, /* every fifth token is replaced, even frequent tokens */
    FOREIGN_SENTENCEPIECE,       /* byte fallback: a space is U+2581, a newline <0x0A> */
};

/* Writes the draft to the temporary folder folder_path(). */
void foreign_draft(enum foreign_kind kind);

#endif
