/* foreign.h - writes the built-in draft with another vocabulary to a temporary folder
 * (folder.h).
 *
 * The model itself stays the same: when a token gets another id, its row of the embedding moves
 * with it. (The embedding is also the head.) So the model must draft the same text as the
 * built-in draft.
 */
#ifndef ESP_FOREIGN_H
#define ESP_FOREIGN_H

enum foreign_kind {
    FOREIGN_PERMUTED,      /* the same tokens with other ids */
    FOREIGN_RARE_REPLACED, /* also, other tokens replace the last fifth of the merged tokens:
                              the target knows 80 of 100 tokens */
    FOREIGN_EACH_FIFTH_REPLACED, /* also, every fifth token is replaced, even frequent tokens */
    FOREIGN_SENTENCEPIECE,       /* byte fallback: a space is U+2581, a newline <0x0A> */
};

/* Makes the folder, at folder_path(). */
void foreign_draft(enum foreign_kind kind);

#endif
