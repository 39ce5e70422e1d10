/* table.c - defines the table of functions of an instruction set (struct esp_cpu_isa). */
#include "kernels/cpu/isa/parts.h"

#ifdef __AMX_TILE__
#define NAME "AMX"
#elif defined ESP_AMX
#define NAME "emulated AMX"
#elif defined ESP_VNNI && ESP_SIMD == 3
#define NAME "AVX-512 VNNI"
#elif defined __AVXVNNI__
#define NAME "AVX-VNNI"
#elif defined ESP_VNNI
#define NAME "emulated AVX-VNNI"
#elif ESP_SIMD == 3
#define NAME "AVX-512"
#elif ESP_SIMD == 2
#define NAME "AVX2"
#elif defined ESP_I8MM
#define NAME "NEON i8mm"
#elif defined ESP_DOTPROD
#define NAME "NEON dotprod"
#elif ESP_SIMD == 4
#define NAME "NEON"
#else
#define NAME "portable C"
#endif

const struct esp_cpu_isa OWN(cpu_isa) = {
    .name = NAME,
#ifdef ESP_AMX
    .pairs = true,
    .two_ways = true,
    .split = OWN(split),
#endif
#define X(place, result, name, ...) .name = place(name),
#include "kernels/cpu/isa/isa_ops.def"
    .gradients = &ISA(cpu_gradients),
};
