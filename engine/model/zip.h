/* zip.h - finds uncompressed files inside a zip archive.
 *
 * PyTorch stores weights in such archives (torch_file.h). The format is described in
 * APPNOTE.TXT of PKWARE, sections 4.3.7, 4.3.12 to 4.3.16 and 4.5.3 (sizes of more than 32
 * bits). An archive is untrusted: an entry that is not inside the file is refused.
 */
#ifndef ESP_ZIP_H
#define ESP_ZIP_H

#include "kernels/kernels.h"

struct esp_zip_entry {
    const char *name;    /* not NUL-terminated; owned by struct esp_zip */
    size_t length;       /* length of the name */
    size_t offset, size; /* position and size of the contents in the file */
};

struct esp_zip {
    struct esp_zip_entry *entries; /* sorted by name */
    size_t count;
    char *directory;
};

/* Reads the directory of a file of `size` bytes; `path` is its name in error messages. */
int esp_zip_open(struct esp_zip *zip, struct esp_tensor_file *file, size_t size,
                 const char *path, char *err, size_t errlen);
void esp_zip_close(struct esp_zip *zip);

/* Finds an entry by its name, which is given in two parts: a folder and the name after it.
 * Returns NULL if there is no such entry. */
const struct esp_zip_entry *esp_zip_find(const struct esp_zip *zip, const char *folder,
                                         size_t folder_length, const char *name,
                                         size_t name_length);

#endif
