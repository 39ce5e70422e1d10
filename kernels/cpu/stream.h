/* stream.h - the matrices of layers that do not stay in memory and are read again for every
 * pass.
 *
 * A stream knows where the matrices of all layers are in the files, and which layers are
 * streamed. A pass uses the layers in order, while a thread reads the next layers. Buffers
 * contain rows in the format of the file. Products pack these rows (esp_cpu_pack_stored()), 128
 * outputs at a time, and multiply the packed rows while they are in the processor's cache.
 */
#ifndef ESP_CPU_STREAM_H
#define ESP_CPU_STREAM_H

#include "kernels/kernels.h"

struct esp_cpu_stream;

/* Opens a stream in which no layer is streamed yet. Returns NULL if memory runs out. */
struct esp_cpu_stream *esp_cpu_stream_open(int layers);
/* `stream` may be NULL. */
void esp_cpu_stream_close(struct esp_cpu_stream *stream);

/* Adds a matrix of a layer. *stored becomes a description of the matrix in memory, which is
 * valid while the layer is held. The stream owns it. Returns ESP_E_UNSUPPORTED if the matrix is
 * not stored in a file. */
int esp_cpu_stream_add(struct esp_cpu_stream *stream, int layer,
                       const struct esp_tensor *tensor, const struct esp_tensor **stored,
                       char *err, size_t errlen);
/* Must be called after all matrices were added. Plans which bytes to read for each layer. */
int esp_cpu_stream_plan(struct esp_cpu_stream *stream, char *err, size_t errlen);

/* Chooses the layers to stream: `count` layers, spread evenly over the model. If `count` is 0,
 * no layer is streamed. */
void esp_cpu_stream_choose(struct esp_cpu_stream *stream, int count);
bool esp_cpu_stream_has(const struct esp_cpu_stream *stream, int layer);
/* Returns the total size of the two buffers that the chosen layers need. */
size_t esp_cpu_stream_buffer_bytes(const struct esp_cpu_stream *stream);

/* Opens the files and starts reading the first layers. The tensors' own files may be closed
 * afterwards. */
int esp_cpu_stream_start(struct esp_cpu_stream *stream, char *err, size_t errlen);

/* begin() starts a pass. Only one pass runs at a time; other threads wait for its end. hold()
 * waits until a layer has been read. Layers must be held in order. hold() returns ESP_E_FILE if
 * reading failed, and failure() then returns the message. All of these functions do nothing if
 * the stream is NULL. hold() and release() do nothing for a layer that is not streamed. */
void esp_cpu_stream_begin(struct esp_cpu_stream *stream);
int esp_cpu_stream_hold(struct esp_cpu_stream *stream, int layer);
void esp_cpu_stream_release(struct esp_cpu_stream *stream, int layer);
void esp_cpu_stream_end(struct esp_cpu_stream *stream);

/* Returns a message about a file that could not be read again, or "". */
const char *esp_cpu_stream_failure(const struct esp_cpu_stream *stream);
/* Sets layers, resident, pass_bytes, bytes and seconds of *streamed. Waits until both buffers
 * have been filled once. */
void esp_cpu_stream_count(struct esp_cpu_stream *stream, struct esp_streamed *streamed);

#endif
