/* streamed.h - describes how a model is stored if its weights do not fit into memory. This
 * header is part of the public interface. */
#ifndef ESP_STREAMED_H
#define ESP_STREAMED_H

#include <stddef.h>

struct esp_streamed {
    int layers, resident;  /* number of layers, and number of layers that stay in memory */
    size_t resident_bytes; /* memory that stays in use, including buffers */
    size_t buffer_bytes;   /* part of resident_bytes: buffers for streamed layers */
    size_t pass_bytes;     /* bytes read from disk, or copied to the device, per pass */
    /* Bytes read or copied so far, and the time that this took. Their quotient is the speed of
     * the disk or of copies to the device. */
    double bytes, seconds;
};

#endif
