#!/usr/bin/env python3
"""Runs the models that tests/trace/trace_dump wrote in ONNX Runtime and compares with eager.

usage: trace_oracle.py DIR [MODEL...]

For every DIR/MODEL.onnx: onnx.checker with full_check, then each size set K of DIR/MODEL.K.in.*.npy
against DIR/MODEL.K.out.*.npy: max|a-b| <= 1e-5 max|b| for floats, equal for integers and bools, equal
shapes. Prints one line a model; exit 1 when one fails. Needs onnx, onnxruntime, numpy.
"""
import pathlib
import sys

import numpy as np
import onnx
import onnxruntime

TOLERANCE = 1e-5


def difference(got, want):
    """(worst scaled difference, what is wrong or '')"""
    if got.shape != want.shape or got.dtype != want.dtype:
        return 0, f"{got.dtype}{list(got.shape)} instead of {want.dtype}{list(want.shape)}"
    if want.dtype.kind != "f":
        return 0, "" if np.array_equal(got, want) else "values differ"
    if want.size == 0:
        return 0, ""
    special = ~np.isfinite(want)
    if not np.array_equal(got[special], want[special], equal_nan=True):
        return 0, "infinities or NaNs differ"
    got, want = got[~special].astype("f8"), want[~special].astype("f8")
    if want.size == 0:
        return 0, ""
    scale = np.abs(want).max()
    worst = np.abs(got - want).max() / scale if scale else np.abs(got).max()
    return worst, "" if worst <= TOLERANCE else f"scaled difference {worst:.3g}"


def check(folder, name):
    path = folder / f"{name}.onnx"
    onnx.checker.check_model(onnx.load(path), full_check=True)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(path.read_bytes(), options, providers=["CPUExecutionProvider"])
    outputs = [o.name for o in session.get_outputs()]
    inputs = [i.name for i in session.get_inputs()]
    worst, wrong, sets = 0, [], 0
    for k in range(100):
        if not (folder / f"{name}.{k}.in.{inputs[0]}.npy").exists():
            break
        feed = {i: np.load(folder / f"{name}.{k}.in.{i}.npy") for i in inputs}
        for out, got in zip(outputs, session.run(outputs, feed)):
            d, text = difference(got, np.load(folder / f"{name}.{k}.out.{out}.npy"))
            worst = max(worst, d)
            if text:
                wrong.append(f"size set {k}, {out}: {text}")
        sets += 1
    if sets == 0:
        wrong.append("no size set was found")
    return worst, wrong, sets, len(outputs)


def main(folder, only):
    names = sorted(p.stem for p in folder.glob("*.onnx") if not only or p.stem in only)
    failed = 0
    for name in names:
        try:
            worst, wrong, sets, outputs = check(folder, name)
        except Exception as e:  # a refused file is a result, not a crash
            worst, wrong, sets, outputs = 0, [f"{type(e).__name__}: {str(e).splitlines()[0]}"], 0, 0
        failed += bool(wrong)
        print(f"{'FAIL' if wrong else 'ok  '} {name}: {sets} size sets, {outputs} outputs, worst {worst:.2g}")
        for line in wrong:
            print(f"     {line}")
    print(f"{len(names) - failed} passed, {failed} failed")
    return 1 if failed or not names else 0


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.exit(main(pathlib.Path(sys.argv[1]), set(sys.argv[2:])))
