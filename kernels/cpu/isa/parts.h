/* parts.h - declares the functions of kernels/cpu/isa. The files in that folder are compiled
 * once for each instruction set, and the macros below give each function a different name every
 * time.
 *
 * For example, ISA(argmax) is esp_argmax_avx2 when the files are compiled for AVX2. Some
 * instruction sets are extensions of another set; for example, VNNI and AMX extend AVX-512.
 * ESP_BASE is the name of the set that is extended. Functions named with ISA are taken from
 * that set, and functions named with OWN are compiled again for each extension.
 */
#ifndef ESP_CPU_ISA_PARTS_H
#define ESP_CPU_ISA_PARTS_H

#include "kernels/cpu/gradients.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/simd.h"

#ifndef ESP_BASE
#define ESP_BASE ESP_ISA
#endif
#define ESP_PASTE3(a, b, c) ESP_PASTE(ESP_PASTE(a, b), c)
#define ISA(name) ESP_PASTE3(esp_, name, ESP_PASTE(_, ESP_BASE))
#define OWN(name) ESP_PASTE3(esp_, name, ESP_PASTE(_, ESP_ISA))
#ifdef ESP_AMX
#define PRODUCT OWN
#else
#define PRODUCT ISA
#endif

#define X(place, result, name, ...) result place(name)(__VA_ARGS__);
#include "kernels/cpu/isa/isa_ops.def"

/* These functions are not in isa_ops.def. Other functions of the same instruction set call
 * them. */
#ifdef ESP_AMX
void ISA(matmul)(const struct esp_packed *w, int begin, int end, const struct esp_matmul *p);
void OWN(split)(const struct esp_vectors *vectors, int row, int begin, int end);
#endif
#ifdef ESP_VNNI
void esp_matmul_blocks_vnni(const struct esp_packed *w, int begin, int end,
                            const struct esp_matmul *p);
#endif
double ISA(row_sum)(const float *x, int n);
/* Computes the whole product. scratch: ESP_GEMM_SCRATCH floats. */
void ISA(gemm_whole)(const struct esp_gemm *g, float *scratch);

extern const struct esp_cpu_gradients ISA(cpu_gradients);

#endif
