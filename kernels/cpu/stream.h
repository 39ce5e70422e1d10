/* stream.h - the matrices of layers that do not stay in memory and are read again for every
 * pass.
 *
 * A stream knows the places of all layers' matrices in the files, and which layers are
 * streamed. A pass asks for them in order, layer by layer, while a thread reads the next ones.
 * Buffers hold rows in the file's form. Products pack them on the way (esp_cpu_pack_stored()),
 * 128 outputs at a time, which stay in the cache.
 */
#ifndef ESP_CPU_STREAM_H
#define ESP_CPU_STREAM_H

#include "kernels/kernels.h"

struct esp_cpu_stream;

/* NULL: out of memory. No layer is streamed yet. */
struct esp_cpu_stream *esp_cpu_stream_open(int layers);
/* NULL is allowed. */
void esp_cpu_stream_close(struct esp_cpu_stream *stream);

/* Adds a matrix of a layer. *stored becomes the matrix in memory, valid while the layer is
 * held; the stream owns it. ESP_E_UNSUPPORTED if its stored form is not in a file. */
int esp_cpu_stream_add(struct esp_cpu_stream *stream, int layer,
                       const struct esp_tensor *tensor, const struct esp_tensor **stored,
                       char *err, size_t errlen);
/* Call it after all matrices were added: computes the bytes to read for a layer. */
int esp_cpu_stream_plan(struct esp_cpu_stream *stream, char *err, size_t errlen);

/* Chooses `count` layers to stream, spread evenly; 0: none. */
void esp_cpu_stream_choose(struct esp_cpu_stream *stream, int count);
bool esp_cpu_stream_has(const struct esp_cpu_stream *stream, int layer);
/* Size of the two buffers for the chosen layers. */
size_t esp_cpu_stream_buffer_bytes(const struct esp_cpu_stream *stream);

/* Opens the files and starts reading the first layers. The tensors' own files may be closed
 * afterwards. */
int esp_cpu_stream_start(struct esp_cpu_stream *stream, char *err, size_t errlen);

/* One pass at a time: passes of other threads wait in begin(). Layers are held in order; hold()
 * waits until the layer has been read. ESP_E_FILE: see failure(). Does nothing for layers that
 * are not streamed, or without a stream (NULL). */
void esp_cpu_stream_begin(struct esp_cpu_stream *stream);
int esp_cpu_stream_hold(struct esp_cpu_stream *stream, int layer);
void esp_cpu_stream_release(struct esp_cpu_stream *stream, int layer);
void esp_cpu_stream_end(struct esp_cpu_stream *stream);

/* One sentence about a file that could not be reread, or "". */
const char *esp_cpu_stream_failure(const struct esp_cpu_stream *stream);
/* Sets layers, resident, pass_bytes, bytes, seconds. Waits until both buffers were full
 * once. */
void esp_cpu_stream_count(struct esp_cpu_stream *stream, struct esp_streamed *streamed);

#endif
