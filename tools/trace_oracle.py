#!/usr/bin/env python3
"""Checks the models of tests/trace/zoo.c against the ONNX checker and ONNX Runtime.

    trace_oracle.py TRACE_DUMP     runs that program into a temporary folder and compares
    trace_oracle.py DIR            compares what it wrote before

For every MODEL.onnx: full_check accepts it, and ONNX Runtime agrees with eager at three size sets:
max|a-b| <= 1e-5 max|b| for floats, equal values for integers and bools, equal shapes and types. A model
with one weight changed must fail the comparison. Ends with "N passed, N failed, N skipped".
"""
import pathlib
import subprocess
import sys
import tempfile

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


def compare(model, folder, name):
    """(worst, faults, size sets) of a serialised model."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    outputs = [o.name for o in session.get_outputs()]
    inputs = [i.name for i in session.get_inputs()]
    worst, wrong, sets = 0, [], 0
    while (folder / f"{name}.{sets}.in.{inputs[0]}.npy").exists():
        feed = {i: np.load(folder / f"{name}.{sets}.in.{i}.npy") for i in inputs}
        for out, got in zip(outputs, session.run(outputs, feed)):
            d, text = difference(got, np.load(folder / f"{name}.{sets}.out.{out}.npy"))
            worst = max(worst, d)
            if text:
                wrong.append(f"size set {sets}, {out}: {text}")
        sets += 1
    if sets != 3:
        wrong.append(f"{sets} size sets instead of 3")
    return worst, wrong, sets


def changed(model):
    """The model with the first weight of at least four elements changed by a tenth, or None."""
    for i in model.graph.initializer:
        v = onnx.numpy_helper.to_array(i)
        if v.dtype == np.float32 and v.size >= 4:
            other = onnx.ModelProto.FromString(model.SerializeToString())
            at = [k.name for k in model.graph.initializer].index(i.name)
            v = v.copy()
            v.flat[0] += 0.1 * np.abs(v).max()
            other.graph.initializer[at].CopyFrom(onnx.numpy_helper.from_array(v, i.name))
            return other.SerializeToString()
    return None


def check(folder):
    passed = failed = caught = 0
    for path in sorted(folder.glob("*.onnx")):
        worst, wrong = 0, []
        try:
            model = onnx.load(path)
            onnx.checker.check_model(model, full_check=True)
            worst, wrong, _ = compare(path.read_bytes(), folder, path.stem)
            other = changed(model)
            if other is not None:
                caught += 1
                if not compare(other, folder, path.stem)[1]:
                    wrong.append("a changed weight was not noticed")
        except Exception as e:  # a refused file is a result, not a crash
            wrong = [f"{type(e).__name__}: {str(e).splitlines()[0]}"]
        passed += not wrong
        failed += bool(wrong)
        print(f"{'FAIL' if wrong else 'ok'} {path.stem}: worst {worst:.1e}")
        for line in wrong:
            print(f"     {line}")
    if caught < 5:
        print(f"FAIL only {caught} models with a changed weight were tried")
        failed += 1
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


def main(what):
    path = pathlib.Path(what).resolve()
    if path.is_dir():
        return check(path)
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([path, folder], check=True)
        return check(pathlib.Path(folder))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1]))
