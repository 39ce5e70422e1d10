/* desc_wire.h - serialises the description of a model, so that ranks can load their parts of
 * it.
 *
 * A tensor in a file is sent as its position in that file. The rank opens the same path. It
 * refuses a file with a different size or different contents (64 pieces are compared). A tensor
 * in memory is sent with its values. All ranks run the same build of the program, which is
 * checked before. Structs can therefore be sent in the form that they have in memory. The
 * reader checks counts and lengths, and the backend checks the description before it is used
 * (esp_model_desc_check()).
 */
#ifndef ESP_DESC_WIRE_H
#define ESP_DESC_WIRE_H

#include "kernels/kernels.h"

/* A growing buffer of bytes. After memory has run out, `failed` is set, and writing does
 * nothing. */
struct esp_wire {
    char *bytes;
    size_t size, room;
    bool failed;
};

void esp_wire_write(struct esp_wire *wire, const void *bytes, size_t size);

/* Writes a description, without its lender. Reads the files of its tensors to hash them. */
void esp_desc_write(struct esp_wire *wire, const struct esp_model_desc *desc);

/* A description that was read, and the memory and files that it uses. */
struct esp_desc_copy {
    struct esp_model_desc desc;
    struct esp_tensor_file *file;
    int files;
    struct esp_tensor_file none; /* for tensors that are quantised when they are read */
    void **block;                /* all other memory of the description */
    size_t blocks, room;
};

/* Reads a description. Close the copy even after an error. On failure, err says what is wrong:
 * the bytes are not a description, or a file is missing or different. */
int esp_desc_read(struct esp_desc_copy *copy, const void *bytes, size_t size, char *err,
                  size_t errlen);
/* Closes the files. Returns ESP_E_FILE if one of them could not be read to its end. */
int esp_desc_close_files(struct esp_desc_copy *copy, char *err, size_t errlen);
void esp_desc_copy_close(struct esp_desc_copy *copy);

#endif
