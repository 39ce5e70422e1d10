/* nccl_library.h - loads NCCL at run time, because it may be missing.
 *
 * NCCL comes with neither the driver nor the CUDA toolkit, and is needed only for several GPUs.
 * So its header nccl.h may be missing, too. The few functions that are needed are declared here
 * as in the nccl.h of all releases of version 2.
 */
#ifndef ESP_CUDA_NCCL_LIBRARY_H
#define ESP_CUDA_NCCL_LIBRARY_H

#include "kernels/cuda/device.h"

typedef void *esp_nccl_comm;   /* ncclComm_t */
enum { ESP_NCCL_BYTES = 1 };   /* ncclUint8 */
enum { ESP_NCCL_SUCCESS = 0 }; /* ncclSuccess; other results are failures */

/* Each entry is X(result, name, parameters). The types ncclResult_t and ncclDataType_t are
 * written as int. */
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

/* Loads the file that the environment variable ESPALIER_NCCL names. If the variable is not set,
 * loads libnccl.so.2 from the system's library folders. Returns false if the library is
 * missing or lacks one of the functions. The library stays loaded. */
bool esp_nccl_load(struct esp_nccl_library *library);

#endif
