/* streamed.h - how weights that do not fit in memory are kept; part of the public interface. */
#ifndef ESP_STREAMED_H
#define ESP_STREAMED_H

#include <stddef.h>

struct esp_streamed {
    int layers, resident;  /* of the model; of these stay in memory */
    size_t resident_bytes; /* all that stays, buffers included */
    size_t buffer_bytes;   /* of these: for layers that are read */
    size_t pass_bytes;     /* that a pass reads from the disk, or copies to the device */
    /* Read so far, and the time it took: their ratio is the speed of the disk, or of copies to
     * the device. */
    double bytes, seconds;
};

#endif
