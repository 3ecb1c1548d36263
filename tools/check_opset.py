#!/usr/bin/env python3
"""Compares src/graphops/opset.def with ONNX's own schemas: for every row and every opset of its range, the
attributes (names, types, defaults, which are required) and how many inputs and outputs there are.

    check_opset.py [-v]      needs onnx. Ends with "N passed, N failed, N skipped"
"""
import pathlib
import re
import sys

import onnx
from onnx import defs

import families

ROOT = pathlib.Path(__file__).resolve().parent.parent
KINDS = {"INT": "INT", "FLAG": "INT", "FLOAT": "FLOAT", "TEXT": "STRING", "INTS": "INTS", "TENSOR": "TENSOR", "GRAPH": "GRAPH"}
CONSTANTS = {"FLT_MAX": 3.4028234663852886e38, "-FLT_MAX": -3.4028234663852886e38}
# Where a row says less than ONNX on purpose: outputs that are not computed, an input that may be absent earlier.
OUTPUTS_LEFT_OUT = {"BatchNormalization", "LayerNormalization", "MaxPool"}
OPTIONAL_EARLIER = {("Gemm", 2), ("TopK", 1)}


def rows():
    text = re.sub(r"/\*.*?\*/", "", families.opset_text(), flags=re.S)
    for m in re.finditer(r"^OM_NODE\(", text, flags=re.M):
        yield families.split_args(text[m.end():])[0]


def operands(text):
    """'one', 'opt' or 'many' for each."""
    words = families.split_args(text[text.index("(") + 1:])[0]
    return ["many" if "_MANY" in w or "_ANY" in w else "opt" if "_OPT" in w else "one" for w in words]


def attributes(text):
    out = {}
    for w in families.split_args(text[text.index("(") + 1:])[0] if text != "NO_ATTRS" else []:
        kind, need = re.match(r"(A|NEED)_(\w+)\(", w), w.startswith("NEED")
        args = families.split_args(w[w.index("(") + 1:])[0]
        default = args[1] if len(args) > 1 else None
        if default in CONSTANTS:
            default = CONSTANTS[default]
        elif default and kind[2] == "FLOAT":
            default = float(default.rstrip("f"))
        elif default and kind[2] == "TEXT":
            default = default.strip('"')
        elif default and re.fullmatch(r"-?\d+", default):
            default = int(default)
        out[args[0]] = (KINDS[kind[2]], need, default)
    return out


def onnx_default(a):
    d = a.default_value
    return {1: d.f, 2: d.i, 3: d.s.decode()}.get(d.type)


def compare(row, schema, opset):
    ours, bad = attributes(row[6]), []
    theirs = dict(schema.attributes)
    bad += [f"attribute {n} is not ONNX's" for n in ours.keys() - theirs.keys()]
    bad += [f"attribute {n} is missing" for n in theirs.keys() - ours.keys()]
    for n in ours.keys() & theirs.keys():
        kind, need, default = ours[n]
        if str(theirs[n].type).split(".")[-1] != kind or theirs[n].required != need:
            bad.append(f"attribute {n}: type or requirement")
        want = onnx_default(theirs[n])
        if want is not None and (default is None or abs(default - want) > 1e-6 * abs(want) if not isinstance(want, str) else default != want):
            bad.append(f"attribute {n}: default {default}, ONNX has {want}")
    for what, mine, its in (("input", operands(row[4]), schema.inputs), ("output", operands(row[5]), schema.outputs)):
        kinds = [{"Single": "one", "Optional": "opt", "Variadic": "many"}[str(p.option).split(".")[-1]] for p in its]
        if what == "output" and row[1] in OUTPUTS_LEFT_OUT:
            kinds = kinds[:len(mine)]
        kinds = [mine[k] if (row[1], k) in OPTIONAL_EARLIER and k < len(mine) else w for k, w in enumerate(kinds)]
        if mine != kinds:
            bad.append(f"{what}s {mine}, ONNX has {kinds}")
    return bad


def main():
    passed = failed = 0
    newest = min(28, defs.onnx_opset_version())
    for row in rows():
        since, until = int(row[2]), int(row[3]) or newest
        for opset in range(since, min(until, newest) + 1):
            bad = compare(row, defs.get_schema(row[1], opset, ""), opset)
            passed += not bad
            failed += bool(bad)
            if bad:
                print(f"FAIL {row[1]} at opset {opset}: {'; '.join(bad)}")
    for op in sorted({r[1] for r in rows()}):  # no gap between the ranges of one type
        spans = sorted((int(r[2]), int(r[3])) for r in rows() if r[1] == op)
        whole = all(a[1] + 1 == b[0] for a, b in zip(spans, spans[1:])) and spans[-1][1] == 0
        passed += whole
        failed += not whole
        if not whole:
            print(f"FAIL {op}: ranges {spans}")
    print(f"onnx {onnx.__version__}, opsets up to {newest}")
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
