/*
 * test_cpu.c -- a column of kernels runs only where the machine has all that it was built with.
 */
#include "harness.h"

#include <stdio.h>

#include "base/cpu.h"
#include "kernels/table.h"

#define ALL ((omi_cpu){{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}})

/* Bits of the manuals, not of cpu.c. */
typedef struct lack {
    int word;
    uint32_t bit;
    om_isa left; /* the best column without it */
    const char *name;
} lack;
static const lack lacks[] = {
    {OMI_CPU_1C, 0x00001000, OM_ISA_SCALAR, "fma"},
    {OMI_CPU_1C, 0x00100000, OM_ISA_SCALAR, "sse4_2"},
    {OMI_CPU_1C, 0x00400000, OM_ISA_SCALAR, "movbe"},
    {OMI_CPU_1C, 0x00800000, OM_ISA_SCALAR, "popcnt"},
    {OMI_CPU_1C, 0x08000000, OM_ISA_SCALAR, "xsave"},
    {OMI_CPU_1C, 0x10000000, OM_ISA_SCALAR, "avx"},
    {OMI_CPU_1C, 0x20000000, OM_ISA_SCALAR, "f16c"},
    {OMI_CPU_7B, 0x00000008, OM_ISA_SCALAR, "bmi"},
    {OMI_CPU_7B, 0x00000020, OM_ISA_SCALAR, "avx2"},
    {OMI_CPU_7B, 0x00000100, OM_ISA_SCALAR, "bmi2"},
    {OMI_CPU_EXT_1C, 0x00000020, OM_ISA_SCALAR, "lzcnt"},
    {OMI_CPU_XCR0, 0x00000004, OM_ISA_SCALAR, "os:ymm"},
    {OMI_CPU_7B, 0x00010000, OM_ISA_AVX2, "avx512f"},
    {OMI_CPU_7B, 0x00020000, OM_ISA_AVX2, "avx512dq"},
    {OMI_CPU_7B, 0x10000000, OM_ISA_AVX2, "avx512cd"},
    {OMI_CPU_7B, 0x40000000, OM_ISA_AVX2, "avx512bw"},
    {OMI_CPU_7B, 0x80000000, OM_ISA_AVX2, "avx512vl"},
    {OMI_CPU_XCR0, 0x00000020, OM_ISA_AVX2, "os:zmm"},
};

static void a_column_is_refused_without_one_of_its_extensions(void **state) {
    (void)state;
    omi_cpu cpu = ALL;
    assert_int_equal(omi_isa_of(&cpu), OM_ISA_AVX512);
    for (size_t i = 0; i < OM_COUNT(lacks); i++) {
        cpu = ALL;
        cpu.words[lacks[i].word] &= ~lacks[i].bit;
        if (omi_isa_of(&cpu) != lacks[i].left) fail_msg("without %s", lacks[i].name);
        omi_cpu_pretend(&cpu);
        om_isa above = (om_isa)(lacks[i].left + 1);
        assert_null(omi_kernels_of((om_column)above));
        assert_int_equal(om_set_isa(above), OM_ERR_UNSUPPORTED);
        om_error e;
        om_catch(&e);
        char want[64];
        snprintf(want, sizeof want, "%s is missing", lacks[i].name);
        assert_non_null(strstr(e.message, want));
        char text[512];
        snprintf(want, sizeof want, "-%s", lacks[i].name);
        om_cpu_features(text, sizeof text);
#if defined(__x86_64__)
        assert_non_null(strstr(text, want));
#endif
    }
    omi_cpu_pretend(NULL);
}

/* With AVX2 but an empty xcr0: a system that saves no ymm registers, or xgetbv that was not asked.
 */
static void nothing_known_is_scalar(void **state) {
    (void)state;
    omi_cpu cpu = {{0}};
    assert_int_equal(omi_isa_of(&cpu), OM_ISA_SCALAR);
}

/* The words that are read, against another reader: the compiler's builtin knows its own machine. */
static void the_machine_is_read_as_the_compiler_reads_it(void **state) {
    (void)state;
#if defined(__x86_64__) && defined(__GNUC__)
    omi_cpu cpu = omi_cpu_read();
    __builtin_cpu_init();
    assert_int_equal(!!(cpu.words[OMI_CPU_7B] & 1u << 8), !!__builtin_cpu_supports("bmi2"));
    if (__builtin_cpu_supports("avx2")) assert_int_equal(cpu.words[OMI_CPU_XCR0] & 6, 6);
    if (__builtin_cpu_supports("avx512vl")) assert_int_equal(cpu.words[OMI_CPU_XCR0] & 0xe6, 0xe6);
    assert_int_equal(omi_isa_best() >= OM_ISA_AVX2,
                     __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                         __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("bmi"));
#else
    skip();
#endif
}

static void the_list_of_features_is_cut_to_fit(void **state) {
    (void)state;
    char text[512], small[8] = "xxxxxxx";
    size_t n = om_cpu_features(text, sizeof text);
    assert_int_equal(n, strlen(text));
    assert_int_equal(om_cpu_features(NULL, 0), n);
    assert_int_equal(om_cpu_features(small, sizeof small), n);
    assert_memory_equal(small, text, n < 7 ? n : 7);
    assert_int_equal(small[n < 7 ? n : 7], 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_column_is_refused_without_one_of_its_extensions),
        cmocka_unit_test(nothing_known_is_scalar),
        cmocka_unit_test(the_machine_is_read_as_the_compiler_reads_it),
        cmocka_unit_test(the_list_of_features_is_cut_to_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
