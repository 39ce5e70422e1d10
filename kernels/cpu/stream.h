/* stream.h - the matrices of layers that do not stay in memory, read again for every pass.
 *
 * A stream knows the matrices of all layers by their places in the files, and which layers are
 * streamed. A pass asks for them in order, layer by layer; a thread reads the next ones
 * meanwhile. What is in the buffers are rows as the files have them: whoever multiplies packs
 * them on the way (esp_cpu_pack_stored()), 128 outputs at a time, which stay in the cache.
 */
#ifndef ESP_CPU_STREAM_H
#define ESP_CPU_STREAM_H

#include "kernels/kernels.h"

struct esp_cpu_stream;

/* NULL: out of memory. No layer is streamed yet. */
struct esp_cpu_stream *esp_cpu_stream_open(int layers);
/* NULL is allowed. */
void esp_cpu_stream_close(struct esp_cpu_stream *stream);

/* A matrix of a layer. *stored becomes the matrix in memory, to be read while the layer is
 * held; it belongs to the stream. ESP_E_UNSUPPORTED if it is not stored in a file as it is. */
int esp_cpu_stream_add(struct esp_cpu_stream *stream, int layer,
                       const struct esp_tensor *tensor, const struct esp_tensor **stored,
                       char *err, size_t errlen);
/* After all matrices were added: bytes that are read for a layer. */
int esp_cpu_stream_plan(struct esp_cpu_stream *stream, char *err, size_t errlen);
size_t esp_cpu_stream_layer_bytes(const struct esp_cpu_stream *stream, int layer);

/* Chooses `count` layers that are streamed, evenly among all; 0: none. */
void esp_cpu_stream_choose(struct esp_cpu_stream *stream, int count);
bool esp_cpu_stream_has(const struct esp_cpu_stream *stream, int layer);
/* Of the two buffers for the layers chosen. */
size_t esp_cpu_stream_buffer_bytes(const struct esp_cpu_stream *stream);

/* Opens the files and begins to read the first layers. The files of the tensors need not stay
 * open after that. */
int esp_cpu_stream_start(struct esp_cpu_stream *stream, char *err, size_t errlen);

/* One pass at a time: passes of other threads wait in begin(). Between them, layers are taken
 * in order; hold() waits until the layer has been read. ESP_E_FILE: see failure(). Nothing
 * happens for layers that are not streamed, and without a stream (NULL). */
void esp_cpu_stream_begin(struct esp_cpu_stream *stream);
int esp_cpu_stream_hold(struct esp_cpu_stream *stream, int layer);
void esp_cpu_stream_release(struct esp_cpu_stream *stream, int layer);
void esp_cpu_stream_end(struct esp_cpu_stream *stream);

/* One sentence about a file that could not be read again, or "". */
const char *esp_cpu_stream_failure(const struct esp_cpu_stream *stream);
/* Fills in layers, resident, pass_bytes, bytes, seconds. Waits until the buffers
 * were full once. */
void esp_cpu_stream_count(struct esp_cpu_stream *stream, struct esp_streamed *streamed);

#endif
