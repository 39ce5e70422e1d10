/* streamed.h - how weights that do not fit in memory are stored; part of the public interface.
 */
#ifndef ESP_STREAMED_H
#define ESP_STREAMED_H

#include <stddef.h>

struct esp_streamed {
    int layers, resident;  /* of the model; of these, in memory */
    size_t resident_bytes; /* memory that stays in use, buffers included */
    size_t buffer_bytes;   /* of that, buffers for streamed layers */
    size_t pass_bytes;     /* read from disk, or copied to the device, per pass */
    /* Bytes read so far and the time it took: the speed of the disk, or of copies to the
     * device. */
    double bytes, seconds;
};

#endif
