#!/usr/bin/env python3
"""Prints the constants of tests/tensor/test_random.c.

An independent implementation of AR-12 (docs/arithmetic.md): Philox4x32-10 from its paper (Salmon,
Moraes, Dror, Shaw 2011) on Python integers, and the draws in exact or 200-bit arithmetic with one
rounding to float32 where the rule has one.
"""
import struct
from decimal import Decimal, getcontext
from fractions import Fraction

getcontext().prec = 80
M32, M64 = (1 << 32) - 1, (1 << 64) - 1


def philox(seed, stream, block):
    key = [seed & M32, seed >> 32]
    c = [block & M32, block >> 32, stream & M32, stream >> 32]
    for _ in range(10):
        hi0, lo0 = divmod(0xD2511F53 * c[0], 1 << 32)
        hi1, lo1 = divmod(0xCD9E8D57 * c[2], 1 << 32)
        c = [hi1 ^ c[1] ^ key[0], lo1, hi0 ^ c[3] ^ key[1], lo0]
        key = [(key[0] + 0x9E3779B9) & M32, (key[1] + 0xBB67AE85) & M32]
    return c


def words(seed, stream, block, n):
    out = []
    while len(out) < n:
        out += philox(seed, stream, block)
        block += 1
    return out[:n]


def f32(x):
    """x (Fraction, Decimal or float) rounded once to float32, ties to even."""
    x = Fraction(x)
    if x == 0:
        return 0.0
    sign, x = (-1, -x) if x < 0 else (1, x)
    e = 0
    while x >= 2:
        x /= 2
        e += 1
    while x < 1:
        x *= 2
        e -= 1
    shift = 23 if e >= -126 else 23 + (e + 126)
    n = x * (1 << shift)
    k = n.numerator // n.denominator
    rest = n - k
    if rest > Fraction(1, 2) or (rest == Fraction(1, 2) and k & 1):
        k += 1
    return float(sign * Fraction(k) / (1 << shift) * (Fraction(2) ** e))


PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459230781640628620899")


def ln(x):
    return Decimal(Fraction(x).numerator).ln() - Decimal(Fraction(x).denominator).ln()


def dec(x):
    x = Fraction(x)
    return Decimal(x.numerator) / Decimal(x.denominator)


def sincos(x):
    x = dec(x)
    s, c, term, k = Decimal(0), Decimal(0), Decimal(1), 0
    while abs(term) > Decimal(10) ** -70:
        if k % 2 == 0:
            c += term if k % 4 == 0 else -term
        else:
            s += term if k % 4 == 1 else -term
        k += 1
        term = term * x / k
    return s, c


def sqrt_f32(x):
    return f32(dec(x).sqrt())


def u01(w):
    return Fraction(w >> 8, 1 << 24)


def uniform(w, lo, hi):
    d = f32(Fraction(hi) - Fraction(lo))
    v = f32(Fraction(lo) + Fraction(f32(Fraction(d) * u01(w))))
    if v >= hi:
        bits = struct.unpack("<I", struct.pack("<f", hi))[0]
        v = struct.unpack("<f", struct.pack("<I", bits - 1 if hi > 0 else bits + 1))[0]
    return v


def normal(a, b, mean, std):
    log = f32(ln(Fraction((a >> 8) + 1, 1 << 24))) if (a >> 8) + 1 != 1 << 24 else 0.0
    r = sqrt_f32(Fraction(-2) * Fraction(log)) if log != 0 else 0.0
    theta = f32(Fraction(float.fromhex("0x1.921fb6p+2")) * u01(b))
    s, c = sincos(theta)
    out = []
    for t in (c, s):
        z = f32(Fraction(r) * Fraction(f32(t)))
        out.append(f32(Fraction(mean) + Fraction(f32(Fraction(std) * Fraction(z)))))
    return out


def value64(seed, stream, block, i):
    w = philox(seed, stream, block + i // 2)
    return w[i % 2 * 2] | w[i % 2 * 2 + 1] << 32


def randint(r, lo, hi):
    return lo + (r * (hi - lo) >> 64)


def row(name, kind, values):
    print(f"static const {kind} {name}[] = {{{', '.join(values)}}};")


def hexf(v):
    return float.hex(v) + "f"


SEED, BLOCK = 0x0123456789ABCDEF, (1 << 32) - 2  # the block crosses 2^32
row("want_words", "uint32_t", [f"0x{w:08x}u" for w in words(SEED, 7, BLOCK, 12)])
lo, hi = f32(Fraction(-1, 3)), f32(Fraction(7, 2))
row("want_uniform", "float", [hexf(uniform(w, lo, hi)) for w in words(SEED, 3, BLOCK, 11)])
w = words(SEED, 3, BLOCK, 12)
mean, std = f32(Fraction(1, 10)), f32(Fraction(3, 2))
pairs = [normal(w[i], w[i + 1], mean, std) for i in range(0, 12, 2)]
row("want_normal", "float", [hexf(v) for p in pairs for v in p][:11])
row("want_randint", "int64_t", [f"{randint(value64(SEED, 3, BLOCK, i), -5, 1000)}" for i in range(7)])
wide = [randint(value64(SEED, 3, BLOCK, i), -(1 << 63), (1 << 63) - 1) for i in range(3)]
row("want_wide", "int64_t", [str(v) for v in wide])
p = list(range(10))
for k, i in enumerate(range(9, 0, -1)):
    j = randint(value64(SEED, 1, BLOCK, k), 0, i + 1)
    p[i], p[j] = p[j], p[i]
row("want_permutation", "int64_t", [str(v) for v in p])
assert philox(0, 0, 0) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
