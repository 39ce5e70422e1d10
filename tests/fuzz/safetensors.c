/* Fuzzes model.safetensors: every tensor that is opened must be readable to its last byte.
 * The input is the file. */
#include "engine/model/safetensors.h"

#include <stdlib.h>

#include "kernels/model_desc.h"
#include "tests/fuzz/support/fuzz.h"

enum { MOST_READ = 64 /* tensors */ };

static void read_all(const struct esp_stored *stored)
{
    const size_t bytes = stored->end - stored->begin;
    void *copy = malloc(bytes + 1);
    if (copy)
        esp_tensor_file_read(stored->source, stored->offset, copy, bytes);
    free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    struct esp_stored_set *set;
    const char *name;
    char err[512];
    fuzz_folder_write("model.safetensors", bytes, length, 0);
    if (esp_safetensors_open(&set, fuzz_folder(), NULL, err, sizeof err) < 0)
        return 0;
    for (int i = 0; i < MOST_READ && esp_stored_unused(set, &name) > 0; i++) {
        struct esp_stored *tensor = esp_stored_find(set, name);
        FUZZ_REQUIRE(tensor && !tensor->used, "tensor %s is found by its name", name);
        read_all(tensor);
        tensor->used = true;
    }
    esp_stored_close(set);
    return 0;
}
