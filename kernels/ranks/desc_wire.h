/* desc_wire.h - the description of a model as bytes, for ranks that load their part of it.
 *
 * Tensors of files go as the places in these files: a rank opens the same paths, and refuses a
 * file that has another size or other contents (64 pieces are compared). Tensors in memory go
 * with their numbers. Both sides are the same build of the program, which is checked before,
 * so structs go unchanged; counts and lengths are checked, and the backend checks the
 * description before it uses it (esp_model_desc_check()).
 */
#ifndef ESP_DESC_WIRE_H
#define ESP_DESC_WIRE_H

#include "kernels/kernels.h"

/* Bytes that grow. Once `failed` (no memory), nothing more is written. */
struct esp_wire {
    char *bytes;
    size_t size, room;
    bool failed;
};

void esp_wire_write(struct esp_wire *wire, const void *bytes, size_t size);

/* Writes a description; its lender does not go. Reads the files of its tensors. */
void esp_desc_write(struct esp_wire *wire, const struct esp_model_desc *desc);

/* A description that was read, with what it points to. */
struct esp_desc_copy {
    struct esp_model_desc desc;
    struct esp_tensor_file *file;
    int files;
    struct esp_tensor_file none; /* of tensors that are quantised while they are read */
    void **block;                /* other memory */
    size_t blocks, room;
};

/* Reads a description; close it in any case. One sentence in err if the bytes are none, or a
 * file is missing or differs. */
int esp_desc_read(struct esp_desc_copy *copy, const void *bytes, size_t size, char *err,
                  size_t errlen);
/* Closes the files. ESP_E_FILE if one of them could not be read whole. */
int esp_desc_close_files(struct esp_desc_copy *copy, char *err, size_t errlen);
void esp_desc_copy_close(struct esp_desc_copy *copy);

#endif
