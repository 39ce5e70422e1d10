/* parts.h - declares the functions of kernels/cpu/isa, with the names that they have in this
 * build.
 *
 * ISA(argmax) is esp_argmax_avx2 in the AVX2 build, so no two builds define the same symbol.
 * ESP_BASE names the instruction set from which an extension takes its functions (AVX-512 for
 * VNNI and AMX). OWN marks functions that each extension compiles again.
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

/* Functions that other functions of the instruction set call. */
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
