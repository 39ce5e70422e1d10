/* activation.h - the activation functions of an MLP, for one number. */
#ifndef ESP_CUDA_ACTIVATION_H
#define ESP_CUDA_ACTIVATION_H

#include "kernels/cuda/cuda.h"

static __device__ __forceinline__ float esp_gelu_tanh(float x)
{
    return 0.5f * x * (1.0f + tanhf(0.79788456f * (x + 0.044715f * x * x * x)));
}

/* Returns the value of the activation function ESP_SWIGLU_CLAMPED (see struct esp_clamp). */
static __device__ __forceinline__ float esp_swiglu_clamped(const struct esp_clamp &clamp,
                                                           float gate, float up)
{
    gate = fminf(gate, clamp.limit);
    up = fminf(fmaxf(up, -clamp.limit), clamp.limit);
    return gate / (1.0f + expf(-clamp.slope * gate)) * (up + 1.0f);
}

/* Returns the value of an activation function. If the function has no gate, the caller passes
 * the output of the matrix "up" as `gate`, and `up` is ignored. */
static __device__ __forceinline__ float esp_activated(enum esp_activation activation,
                                                      const struct esp_clamp &clamp, float gate,
                                                      float up)
{
    switch (activation) {
    case ESP_SWIGLU:
        return gate / (1.0f + expf(-gate)) * up;
    case ESP_GEGLU:
        return esp_gelu_tanh(gate) * up;
    case ESP_SWIGLU_CLAMPED:
        return esp_swiglu_clamped(clamp, gate, up);
    case ESP_GELU_TANH:
        return esp_gelu_tanh(gate);
    case ESP_RELU2:
        return fmaxf(gate, 0.0f) * fmaxf(gate, 0.0f);
    default:
        return 0.5f * gate * (1.0f + erff(gate * 0.70710678f));
    }
}

#endif
