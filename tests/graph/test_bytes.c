/*
 * test_bytes.c -- hashes against published vectors, UTF-8, safe text, the wire cursor.
 */
#include "graph/sample.h"

#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/utf8.h"
#include "onnx/wire.h"

/* The buffer and values of xxHash's own sanity check. */
static void xxh64_vectors(void **state) {
    (void)state;
    uint8_t buf[222];
    const uint32_t prime = 2654435761u;
    uint32_t gen         = prime;
    for (size_t i = 0; i < sizeof buf; i++) {
        buf[i] = (uint8_t)(gen >> 24);
        gen *= gen;
    }
    const struct {
        size_t n;
        uint64_t seed, want;
    } v[] = {{0, 0, 0xEF46DB3751D8E999ull},   {0, prime, 0xAC75FDA2929B17EFull},
             {1, 0, 0x4FCE394CC88952D8ull},   {1, prime, 0x739840CB819FA723ull},
             {14, 0, 0xCFFA8DB881BC3A3Dull},  {14, prime, 0x5B9611585EFCC9CBull},
             {101, 0, 0x0EAB543384F878ADull}, {101, prime, 0xCAA65939306F1E21ull}};
    assert_true(omi_xxh64("a", 1, 0) == 0xD24EC4F1A98C6E5Bull);
    assert_true(omi_xxh64("abc", 3, 0) == 0x44BC2CF5AD770999ull);
    for (size_t i = 0; i < sizeof v / sizeof *v; i++) {
        uint64_t got = omi_xxh64(buf, v[i].n, v[i].seed);
        if (got != v[i].want)
            fail_msg("n %zu seed %llx: %llx", v[i].n, (unsigned long long)v[i].seed,
                     (unsigned long long)got);
    }
    for (size_t cut = 0; cut <= sizeof buf; cut++) { // in two pieces
        om_xxh64 h;
        omi_xxh64_init(&h, 7);
        omi_put(&h.sink, buf, cut);
        omi_put(&h.sink, buf + cut, sizeof buf - cut);
        assert_true(omi_xxh64_end(&h) == omi_xxh64(buf, sizeof buf, 7));
    }
}

static void sha_is(const char *text, size_t times, const char *want) {
    om_sha256 h;
    uint8_t out[32];
    char hex[65];
    omi_sha256_init(&h);
    for (size_t i = 0; i < times; i++)
        omi_sha256_add(&h, text, strlen(text));
    omi_sha256_end(&h, out);
    omi_hex(out, 32, hex);
    assert_string_equal(hex, want);
}

/* FIPS 180-4 examples and the million a. */
static void sha256_vectors(void **state) {
    (void)state;
    sha_is("", 1, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    sha_is("abc", 1, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    sha_is("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 1,
           "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    sha_is("a", 1000000, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    sha_is("aaaaaaaaaa", 100000,
           "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

static bool valid(const char *s) {
    return omi_utf8_valid(s, strlen(s));
}

static void utf8_borders(void **state) {
    (void)state;
    assert_true(valid("plain \xc2\x80 \xdf\xbf \xe0\xa0\x80 \xef\xbf\xbf \xf0\x90\x80\x80"));
    assert_true(valid("\xf4\x8f\xbf\xbf") && valid("\xed\x9f\xbf") && valid("\xee\x80\x80"));
    const char *wrong[] = {"\x80",
                           "\xc0\x80",
                           "\xc1\xbf",
                           "\xe0\x9f\xbf",
                           "\xed\xa0\x80",
                           "\xed\xbf\xbf",
                           "\xf0\x8f\xbf\xbf",
                           "\xf4\x90\x80\x80",
                           "\xf5\x80",
                           "\xff",
                           "\xe2\x82",
                           "\xc2",
                           "\xe2\x28\xa1",
                           "\xf0\x90\x80\x28",
                           "ok\xc3"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_false(valid(wrong[i]));
}

static void safe_text(void **state) {
    (void)state;
    char buf[64], tiny[8];
    assert_string_equal(omi_escape_buf(buf, sizeof buf, "a\nb\x1b[1m\\\xff\xc2\x9b\0z", 13),
                        "a\\nb\\x1b[1m\\\\\\xff\\xc2\\x9b\\x00z");
    assert_string_equal(omi_escape_buf(buf, sizeof buf, "\xe2\x80\xae\xc3\xa9", 5),
                        "\\xe2\\x80\\xae\xc3\xa9");
    assert_string_equal(omi_escape_buf(tiny, sizeof tiny, "1234567", 7), "1234567");
    assert_string_equal(omi_escape_buf(tiny, sizeof tiny, "12345678", 8), "1234...");
    assert_string_equal(omi_escape_buf(tiny, sizeof tiny, "\x01\x02\x03", 3), "\\x01...");
    om_str s = {0};
    omi_escape(&s, "x\ty", 3);
    assert_string_equal(s.v, "x\\ty");
    omi_str_free(&s);
}

static void varints(void **state) {
    (void)state;
    const uint8_t max[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01};
    om_wire w           = {.p = max, .end = max + 10};
    uint64_t v;
    assert_true(omi_wire_varint(&w, &v) && v == UINT64_MAX && w.p == w.end);
    w = (om_wire){.p = max, .end = max + 9};
    assert_false(omi_wire_varint(&w, &v));
    assert_non_null(w.why);
    const uint8_t three[] = {0x01, 0x80, 0x01, 0x00, 0xff};
    assert_int_equal(omi_wire_count_varints(three, 5), 3);
    om_field f;
    assert_false(omi_wire_next(&w, &f)); // stays failed
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(xxh64_vectors), cmocka_unit_test(sha256_vectors),
        cmocka_unit_test(utf8_borders),  cmocka_unit_test(safe_text),
        cmocka_unit_test(varints),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
