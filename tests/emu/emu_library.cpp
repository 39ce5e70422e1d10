/* emu_library.cpp - opens the emulated cuBLASLt and NCCL by their file names, like dlopen(). */
#include "tests/emu/emu_lt.h"

#include <cstdio>

#include "tests/emu/emu_nccl.h"
#include "tests/emu/emu_state.h"

void *emu_library_open(const char *name)
{
    char lt[40];
    snprintf(lt, sizeof lt, "libcublasLt.so.%d", emu_lt_version());
    const bool found =
        strcmp(name, lt) == 0 || (emu_has_nccl() && strcmp(name, "libnccl.so.2") == 0);
    return found ? const_cast<char *>("an emulated library") : nullptr;
}

void *emu_library_symbol(void *library, const char *name)
{
    static const struct {
        const char *name;
        void *function;
    } all[] = {
#define X(function) {#function, reinterpret_cast<void *>(function)},
        X(cublasLtCreate) X(cublasLtDestroy) X(cublasLtMatmulDescCreate)
            X(cublasLtMatmulDescSetAttribute) X(cublasLtMatmulDescDestroy)
                X(cublasLtMatrixLayoutCreate) X(cublasLtMatrixLayoutDestroy)
                    X(cublasLtMatmulPreferenceCreate) X(cublasLtMatmulPreferenceSetAttribute)
                        X(cublasLtMatmulPreferenceDestroy) X(cublasLtMatmulAlgoGetHeuristic)
                            X(cublasLtMatmul) X(ncclCommInitAll) X(ncclCommDestroy)
                                X(ncclAllGather) X(ncclGroupStart) X(ncclGroupEnd)
                                    X(ncclGetErrorString)
#undef X
    };
    for (const auto &one : all)
        if (library && strcmp(name, one.name) == 0)
            return one.function;
    return nullptr;
}
