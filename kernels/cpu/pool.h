/* pool.h - a thread pool: helper threads that share the parts of a step with their caller. */
#ifndef ESP_CPU_POOL_H
#define ESP_CPU_POOL_H

#include <stdbool.h>

struct esp_pool;

enum { ESP_POOL_MAX_PARTS = 16384 };

/* Opens a pool of `threads` >= 1 threads, including the caller of esp_pool_run(). If the
 * system refuses to start that many, the pool has fewer. `uneven` says that the cores differ in
 * speed. Returns NULL if memory runs out. */
struct esp_pool *esp_pool_open(int threads, bool uneven);

/* Ends the helper threads. No step may be running. `pool` may be NULL. */
void esp_pool_close(struct esp_pool *pool);

/* Returns the number of threads, including the caller. */
int esp_pool_threads(const struct esp_pool *pool);

/* esp_pool_nodes() returns the number of memory nodes whose cores the pool uses.
 * esp_pool_node_of() returns the memory node that usually computes unit `unit` of a step of
 * `units` units, as the system numbers the nodes. A thread of another node can take over the
 * unit. */
int esp_pool_nodes(const struct esp_pool *pool);
int esp_pool_node_of(const struct esp_pool *pool, int unit, int units);

/* Returns the number of parts into which a step of `units` equal pieces should be divided.
 * `threads` is the number of threads for which the step has enough work. There are two parts
 * for each thread, or eight if cores differ in speed, so that threads that finish early can
 * take over parts. `pool` may be NULL. */
int esp_pool_parts(const struct esp_pool *pool, int units, int threads);

typedef void esp_pool_part(void *arg, int part, int thread);

/* Calls run(arg, part, thread) once for each part 0..parts-1 (at most ESP_POOL_MAX_PARTS), and
 * returns when all parts are done. `thread` is 0..threads-1; two parts with the same `thread`
 * never run at the same time. The caller also runs parts, as thread 0. It runs all parts if
 * there is no pool (NULL), or while another thread uses the pool. A part must not call this
 * function. */
void esp_pool_run(struct esp_pool *pool, int parts, esp_pool_part *run, void *arg);

#endif
