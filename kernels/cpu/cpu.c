/* cpu.c - detects the processor and chooses the instruction set; see cpu.h.
 *
 * The instruction set is chosen once, when a backend opens. All sets except AMX (amx.c) give
 * bit-identical results, so the choice among them changes only the speed and the device's name.
 */
#include "kernels/cpu/cpu.h"

#include "kernels/status.h"
#include "kernels/system.h"
#include "kernels/version.h"

#if defined ESP_HAVE_avx2 || defined ESP_HAVE_amx
#include <cpuid.h>
#endif
#include <stdio.h>
#include <string.h>
#ifdef ESP_HAVE_amx
#include <sys/syscall.h>
#include <unistd.h>
#endif

/* ------------------------------------------------------------------ the processor */

/* Compilers differ in the names that __builtin_cpu_supports() accepts. Features that some
 * compilers cannot name are read with cpuid. */

#ifdef ESP_HAVE_avx2
static bool has_avx2(void)
{
    unsigned a, b, c, d;
    bool f16c = __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
    return f16c && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}
#endif

#ifdef ESP_HAVE_avxvnni
static bool has_avxvnni(void)
{
    unsigned a, b, c, d;
    return has_avx2() && __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a >> 4 & 1);
}
#endif

#ifdef ESP_HAVE_avx512
static bool has_avx512(void)
{
    return has_avx2() && __builtin_cpu_supports("avx512f") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl");
}
#endif

#ifdef ESP_HAVE_vnni
static bool has_vnni(void)
{
    unsigned a, b, c, d;
    return has_avx512() && __get_cpuid_count(7, 0, &a, &b, &c, &d) && (c >> 11 & 1);
}
#endif

#ifdef ESP_HAVE_amx
static bool has_amx(void)
{
    enum { REQUEST_PERMISSION = 0x1023, TILE_DATA = 18 };
    unsigned a, b, c, d;
    /* The bits are AMX-BF16, AMX-TILE and AMX-INT8. */
    const bool tiles = __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d >> 22 & 13) == 13;
    const bool bf16 = __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a & bit_AVX512BF16);
    /* A process may use the tiles only after it has asked the system for permission. */
    return tiles && bf16 && has_vnni() &&
           syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0;
}
#endif

#ifdef ESP_HAVE_dotprod
static bool has_dotprod(void)
{
    return esp_arm_has(ESP_ARM_DOTPROD);
}
#endif

#ifdef ESP_HAVE_i8mm
static bool has_i8mm(void)
{
    return esp_arm_has(ESP_ARM_DOTPROD) && esp_arm_has(ESP_ARM_I8MM);
}
#endif

static bool has_c(void)
{
    return true;
}

/* Lists the instruction sets, the best first. */
static const struct {
    const char *name;
    const struct esp_cpu_isa *isa;
    bool (*here)(void);
    bool by_name; /* chosen only if the user names it */
} isas[] = {
#ifdef ESP_HAVE_amx
    {"amx", &esp_cpu_isa_amx, has_amx, false},
#endif
#ifdef ESP_HAVE_vnni
    {"vnni", &esp_cpu_isa_vnni, has_vnni, false},
#endif
#ifdef ESP_HAVE_avx512
    {"avx512", &esp_cpu_isa_avx512, has_avx512, false},
#endif
#ifdef ESP_HAVE_avxvnni
    {"avxvnni", &esp_cpu_isa_avxvnni, has_avxvnni, false},
#endif
#ifdef ESP_HAVE_avx2
    {"avx2", &esp_cpu_isa_avx2, has_avx2, false},
#endif
#ifdef ESP_HAVE_i8mm
    {"i8mm", &esp_cpu_isa_i8mm, has_i8mm, false},
#endif
#ifdef ESP_HAVE_dotprod
    {"dotprod", &esp_cpu_isa_dotprod, has_dotprod, false},
#endif
#ifdef ESP_HAVE_neon
    {"neon", &esp_cpu_isa_neon, has_c, false}, /* every 64-bit ARM processor has it */
#endif
    {"generic", &esp_cpu_isa_generic, has_c, false},
#ifdef ESP_HAVE_dpbusd
    {"dpbusd", &esp_cpu_isa_dpbusd, has_avx2, true},
#endif
#ifdef ESP_HAVE_tiles
    {"tiles", &esp_cpu_isa_tiles, has_avx2, true},
#endif
};

enum { ISAS = sizeof isas / sizeof *isas };

const char *esp_cpu_isa_name(int i)
{
    for (int j = 0; j < ISAS; j++)
        if (isas[j].here() && i-- == 0)
            return isas[j].name;
    return NULL;
}

static const struct esp_cpu_isa *choose(const char *name)
{
    for (int i = 0; i < ISAS; i++)
        if ((name ? strcmp(name, isas[i].name) == 0 : !isas[i].by_name) && isas[i].here())
            return isas[i].isa;
    return NULL;
}

const struct esp_cpu_isa *esp_cpu_vectors(void)
{
    static const char *const names[] = {"avx512", "avx2", "neon", "generic"};
    const struct esp_cpu_isa *isa = NULL;
    for (size_t i = 0; !isa; i++)
        isa = choose(names[i]);
    return isa;
}

int esp_cpu_choose(const struct esp_cpu_isa **isa, const char *name, char *err, size_t errlen)
{
    char names[100] = "";
    *isa = choose(name);
    if (*isa)
        return ESP_OK;
    for (int i = 0; esp_cpu_isa_name(i); i++)
        snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", i ? ", " : "",
                 esp_cpu_isa_name(i));
    return esp_fail(err, errlen, ESP_E_DEVICE,
                    "this processor or this build lacks the instruction set '%s'; set "
                    "ESPALIER_ISA to one of %s, or leave it unset",
                    name, names);
}

void esp_cpu_name_ways(struct esp_cpu_backend *cpu)
{
    char brand[49] = "";
#ifdef ESP_HAVE_amx
    unsigned part[4];
    for (unsigned i = 0; i < 3; i++)
        if (__get_cpuid(0x80000002u + i, &part[0], &part[1], &part[2], &part[3]))
            memcpy(brand + i * sizeof part, part, sizeof part);
#endif
    if (cpu->isa->two_ways)
        snprintf(cpu->way_key, sizeof cpu->way_key, "%s, %s, version %s", brand, cpu->isa->name,
                 ESP_VERSION);
}
