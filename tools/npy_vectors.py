#!/usr/bin/env python3
"""Writes tests/tensor/npy_vectors.h: .npy files as NumPy writes them.

Element k of each array, in row-major order, is k % 3 - 1 (uint8: k % 3, bool: k % 3 == 1).
Usage: npy_vectors.py > tests/tensor/npy_vectors.h   (needs numpy 2.x)
"""
import io

import numpy as np

TYPES = {"<f4": "OM_F32", "<i8": "OM_I64", "<i4": "OM_I32", "|u1": "OM_U8", "|b1": "OM_BOOL", "<f8": "OM_F64"}
CASES = [
    ("<f4", (2, 3), "C", (1, 0)), ("<i8", (4,), "C", (1, 0)), ("<i4", (), "C", (1, 0)),
    ("|u1", (2, 2, 5), "C", (1, 0)), ("|b1", (3, 1), "C", (1, 0)), ("<f8", (1, 2, 1, 2), "C", (1, 0)),
    ("<f4", (0, 7), "C", (1, 0)), ("<f8", (1,) * 8, "C", (1, 0)),
    ("<f4", (2, 3), "F", (1, 0)), ("<i8", (2, 3, 2), "F", (1, 0)), ("|b1", (2, 2), "F", (1, 0)),
    ("<i4", (3,), "C", (2, 0)), ("<f8", (2, 2), "F", (3, 0)),
]


def array(descr, shape):
    k = np.arange(int(np.prod(shape, dtype=np.int64))).reshape(shape) % 3
    return (k == 1 if descr == "|b1" else k if descr == "|u1" else k - 1).astype(np.dtype(descr))


print("/* Made by tools/npy_vectors.py with NumPy. Do not edit. */")
print("// clang-format off")
rows = []
for i, (descr, shape, order, version) in enumerate(CASES):
    a = np.asarray(array(descr, shape), order=order)
    b = io.BytesIO()
    np.lib.format.write_array(b, a, version=version)
    data = b.getvalue()
    print(f"static const unsigned char npy_{i}[] = {{")
    for at in range(0, len(data), 24):
        print("    " + ",".join(str(x) for x in data[at:at + 24]) + ",")
    print("};")
    dims = ", ".join(str(d) for d in shape) or "0"
    plain = order == "C" and version == (1, 0)
    rows.append(f"    {{npy_{i}, sizeof npy_{i}, {TYPES[descr]}, {len(shape)}, {{{dims}}}, {str(plain).lower()}}},")
print("static const struct npy_vector {\n    const unsigned char *bytes;\n    size_t n;\n    om_dtype dtype;\n"
      "    int rank;\n    int64_t shape[OM_MAX_RANK];\n    bool as_saved; /* om_npy_save writes these bytes */\n"
      "} npy_vectors[] = {")
print("\n".join(rows))
print("};\n// clang-format on")
