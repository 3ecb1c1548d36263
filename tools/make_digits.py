#!/usr/bin/env python3
"""Makes examples/data/digits.npy from digits.csv.gz (64 pixels and a label per line).

The file is the test part of "Optical Recognition of Handwritten Digits" as scikit-learn ships it; see
examples/data/README.md. Usage: tools/make_digits.py digits.csv.gz
"""
import gzip
import pathlib
import sys

import numpy as np

rows = np.loadtxt(gzip.open(sys.argv[1], "rt"), delimiter=",")
out = rows.astype(np.uint8)
assert out.shape == (1797, 65) and (out == rows).all()
assert out[:, :64].max() == 16 and set(out[:, 64]) == set(range(10))
path = pathlib.Path(__file__).resolve().parent.parent / "examples" / "data" / "digits.npy"
np.save(path, out)
print(path.name, out.shape, out.dtype)
