/* pool.h - a thread pool: helper threads that share the parts of a step with their caller. */
#ifndef ESP_CPU_POOL_H
#define ESP_CPU_POOL_H

#include <stdbool.h>

struct esp_pool;

enum { ESP_POOL_MAX_PARTS = 16384 };

/* A pool of `threads` >= 1 threads, including the caller of esp_pool_run(). If the system
 * refuses to start that many, the pool has fewer. `uneven`: the cores differ in speed. NULL:
 * out of memory. */
struct esp_pool *esp_pool_open(int threads, bool uneven);

/* NULL is allowed. No step may be running. */
void esp_pool_close(struct esp_pool *pool);

/* Number of threads, including the caller. */
int esp_pool_threads(const struct esp_pool *pool);

/* Number of parts for a step of `units` equal pieces that is enough work for `threads` threads,
 * some for each, so that threads that finish early take some from others: two, and eight where
 * cores differ. NULL is allowed. */
int esp_pool_parts(const struct esp_pool *pool, int units, int threads);

typedef void esp_pool_part(void *arg, int part, int thread);

/* Calls run(arg, part, thread) once for each part 0..parts-1 (at most ESP_POOL_MAX_PARTS), and
 * returns when all are done. `thread` is 0..threads-1; two parts with the same `thread` never
 * run at the same time. The caller works on parts too, as thread 0; without a pool (NULL), or
 * while another thread uses the pool, it does all of them. Do not call it from within a
 * part. */
void esp_pool_run(struct esp_pool *pool, int parts, esp_pool_part *run, void *arg);

#endif
