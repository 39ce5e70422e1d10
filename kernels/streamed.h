/* streamed.h - how weights that do not fit into memory are stored. This header is part of the
 * public interface. */
#ifndef ESP_STREAMED_H
#define ESP_STREAMED_H

#include <stddef.h>

struct esp_streamed {
    int layers, resident;  /* layers of the model; how many of them stay in memory */
    size_t resident_bytes; /* memory that stays in use, buffers included */
    size_t buffer_bytes;   /* how much of it is used by buffers for streamed layers */
    size_t pass_bytes;     /* bytes read from disk, or copied to the device, per pass */
    /* Bytes read or copied so far, and the time that this took; they give the speed of the
     * disk or of copies to the device. */
    double bytes, seconds;
};

#endif
