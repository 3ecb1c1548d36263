/*
 * test_spill.c -- no micro-kernel touches the stack in the loop that does the work.
 *
 * One spilled accumulator costs a third of the speed and no other test would notice. The test
 * disassembles itself with objdump, finds every om_tile_* function, and in it every loop (from the
 * target of a backward jump to the jump) that has fused multiply-adds. Without objdump it is
 * skipped.
 *
 * gcc keeps all of them in registers. clang 14 puts an operand of the rarer tiles on the stack, so
 * from it only the tile that does nearly all AVX2 work is held to the rule.
 */
#include "exact/exact.h"

#include <unistd.h>

#define LINES 4096

#if defined(__clang__)
#    define TILES     "om_tile_p6x1"
#    define TILE_MIN  1  /* functions and loops at least */
#    define TILE_FMAS 12 /* in the largest loop          */
#else
#    define TILES     "om_tile_"
#    define TILE_MIN  41
#    define TILE_FMAS 28
#endif

typedef struct insn {
    unsigned long long at;
    char text[112];
} insn;

static insn code[LINES];
static size_t count;
static char name[128];
static int functions, loops, best_fma;

/* Target of a jump inside the function, or 0. */
static unsigned long long jump_target(const char *text) {
    char op[16];
    unsigned long long to;
    return text[0] == 'j' && sscanf(text, "%15s %llx", op, &to) == 2 ? to : 0;
}

static bool touches_stack(const char *text, bool frame) {
    return strstr(text, "(%rsp") || (frame && strstr(text, "(%rbp"));
}

static void check_function(void) {
    bool frame = false;
    for (size_t i = 0; i < count; i++)
        frame |= strstr(code[i].text, "%rsp,%rbp") != NULL;
    for (size_t i = 0; i < count; i++) {
        unsigned long long to = jump_target(code[i].text);
        if (!to || to >= code[i].at || to < code[0].at) continue;
        int fma         = 0;
        const char *bad = NULL;
        for (size_t j = 0; j <= i; j++) {
            if (code[j].at < to) continue;
            fma += strstr(code[j].text, "vfmadd") != NULL;
            if (!bad && touches_stack(code[j].text, frame)) bad = code[j].text;
        }
        if (!fma) continue;
        if (bad) fail_msg("%s: the loop with %d fused multiply-adds has '%s'", name, fma, bad);
        loops++;
        if (fma > best_fma) best_fma = fma;
    }
    functions++;
}

static void test_tiles(void **state) {
    (void)state;
#if !defined(__x86_64__) || !defined(__OPTIMIZE__) || OM_SANITIZED
    skip(); /* the columns with FMA are x86-64; other builds do not keep registers */
#endif
    char cmd[4200], self[4096];
    if (system("objdump --version > /dev/null 2>&1") != 0) {
        print_message("skipped: no objdump\n");
        skip();
    }
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    assert_true(n > 0);
    self[n] = 0;
    snprintf(cmd, sizeof cmd, "objdump -d --no-show-raw-insn '%s'", self);
    FILE *f = popen(cmd, "r");
    assert_non_null(f);
    char line[512];
    bool inside = false;
    while (fgets(line, sizeof line, f)) {
        unsigned long long at;
        char sym[128];
        if (sscanf(line, "%llx <%127[^>]>:", &at, sym) == 2) {
            if (inside) check_function();
            inside = strncmp(sym, TILES, strlen(TILES)) == 0;
            count  = 0;
            snprintf(name, sizeof name, "%s", sym);
        } else if (inside && count < LINES && sscanf(line, " %llx:", &at) == 1) {
            char *tab = strchr(line, '\t');
            if (!tab) continue;
            code[count].at = at;
            snprintf(code[count++].text, sizeof code[0].text, "%.100s", tab + 1);
        }
    }
    if (inside) check_function();
    assert_int_equal(pclose(f), 0);
    /* the tiles of both x86 columns were there, up to 14 x 32 */
    assert_true(functions >= TILE_MIN);
    assert_true(loops >= TILE_MIN);
    assert_true(best_fma >= TILE_FMAS);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_tiles)};
    /* keep the kernels in this executable */
    if (!omi_kernels()) return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
