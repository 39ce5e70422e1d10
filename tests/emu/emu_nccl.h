/* emu_nccl.h - the part of NCCL that is emulated: all-gathers between emulated GPUs of this
 * process. The signatures are the same as in nccl.h.
 *
 * As in NCCL, a thread that has several communicators must begin their operations together, in
 * a group. Either all or none of a group's streams must be in a capture. On each stream, an
 * all-gather waits until all other streams of the group have reached it.
 */
#ifndef EMU_NCCL_H
#define EMU_NCCL_H

#include "tests/emu/emu_runtime.h"

enum ncclResult_t {
    ncclSuccess = 0,
    ncclUnhandledCudaError = 1,
    ncclInvalidArgument = 4,
    ncclInvalidUsage = 5
};
enum ncclDataType_t { ncclInt8 = 0, ncclUint8 = 1 };
typedef struct ncclComm *ncclComm_t;

ncclResult_t ncclCommInitAll(ncclComm_t *comm, int count, const int *devices);
ncclResult_t ncclCommDestroy(ncclComm_t comm);
ncclResult_t ncclAllGather(const void *from, void *to, size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclGroupStart();
ncclResult_t ncclGroupEnd();
const char *ncclGetErrorString(ncclResult_t result);

#endif
