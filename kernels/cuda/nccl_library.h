/* nccl_library.h - NCCL, loaded at run time because it may be missing.
 *
 * It comes with neither the driver nor the CUDA toolkit, and it is needed only for several
 * GPUs. So the few functions used here are declared here, in the form that they have in nccl.h
 * of all versions 2.
 */
#ifndef ESP_CUDA_NCCL_LIBRARY_H
#define ESP_CUDA_NCCL_LIBRARY_H

#include "kernels/cuda/device.h"

typedef void *esp_nccl_comm;   /* ncclComm_t */
enum { ESP_NCCL_BYTES = 1 };   /* ncclUint8 */
enum { ESP_NCCL_SUCCESS = 0 }; /* ncclSuccess; other results are failures */

/* X(result, name, parameters); an int stands for ncclResult_t and ncclDataType_t. */
#define ESP_NCCL_FUNCTIONS(X)                                                                  \
    X(int, CommInitAll, esp_nccl_comm *comms, int count, const int *devices)                   \
    X(int, CommDestroy, esp_nccl_comm comm)                                                    \
    X(int, AllGather, const void *from, void *to, size_t count, int type, esp_nccl_comm comm,  \
      cudaStream_t stream)                                                                     \
    X(int, GroupStart, void)                                                                   \
    X(int, GroupEnd, void)                                                                     \
    X(const char *, GetErrorString, int result)

struct esp_nccl_library {
#define X(result, name, ...) result (*name)(__VA_ARGS__);
    ESP_NCCL_FUNCTIONS(X)
#undef X
};

/* Looks for libnccl.so.2 where the system looks for libraries, or for the file that
 * ESPALIER_NCCL names. Returns false if it is missing or lacks one of the functions. The library
 * stays loaded. */
bool esp_nccl_load(struct esp_nccl_library *library);

#endif
