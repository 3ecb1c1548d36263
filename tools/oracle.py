#!/usr/bin/env python3
"""Checks the models that oracle_dump wrote against the ONNX checker and ONNX Runtime.

    oracle.py ORACLE_DUMP     runs that program into a temporary folder and compares

For each model: full_check accepts the file; ONNX Runtime agrees with eager at the traced and two other size
sets, max|a-b| <= 1e-5 max|b|; outputs vary (standard deviation above 0.05 max|b|) and differ between inputs.
A fixture with one weight changed must fail the comparison. Ends with "N passed, N failed, N skipped".
"""
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime as ort

count = {"passed": 0, "failed": 0, "skipped": 0}


def case(name, ok, detail=""):
    count["passed" if ok else "failed"] += 1
    if not ok:
        print(f"FAIL {name}: {detail}")


def session(model):
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    return ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def error(a, b):
    return float(np.max(np.abs(a.astype(np.float64) - b)) / np.max(np.abs(b)))


def check_model(path, folder):
    name = path.stem
    model = onnx.load(path)
    try:
        onnx.checker.check_model(model, full_check=True)
        case(f"{name}: checker", True)
    except Exception as e:  # the checker raises several kinds
        case(f"{name}: checker", False, str(e).splitlines()[0])
    case(f"{name}: IR 9, opset 20", model.ir_version == 9 and [(o.domain, o.version) for o in model.opset_import] == [("", 20)])
    case(f"{name}: parse and serialise gives the same bytes", model.SerializeToString(deterministic=True) == path.read_bytes())
    run = session(path.read_bytes())
    outputs = []
    for k in range(3):
        x, want = (np.load(folder / f"{name}.{k}.{v}.npy") for v in "xy")
        got = run.run(None, {run.get_inputs()[0].name: x})[0]
        outputs.append(want)
        case(f"{name}: shape at size set {k}", got.shape == want.shape, f"{got.shape} {want.shape}")
        e = error(got, want)
        print(f"{name} {list(x.shape)}: {e:.2e}")
        case(f"{name}: ONNX Runtime agrees at size set {k}", e <= 1e-5, f"{e:.2e}")
        case(f"{name}: outputs vary at size set {k}", np.std(want) > 0.05 * np.max(np.abs(want)), np.std(want))
    case(f"{name}: outputs differ between inputs", len({o.tobytes()[:64] for o in outputs}) == 3)
    # The comparison itself must be able to fail: one weight changed by a tenth.
    for w in model.graph.initializer:
        if w.data_type == onnx.TensorProto.FLOAT and len(w.dims) > 1:
            a = onnx.numpy_helper.to_array(w).copy()
            a.flat[0] += 0.1 * max(1, abs(a.flat[0])) + 0.1
            w.CopyFrom(onnx.numpy_helper.from_array(a, w.name))
    x, want = (np.load(folder / f"{name}.0.{v}.npy") for v in "xy")
    changed = session(model.SerializeToString()).run(None, {run.get_inputs()[0].name: x})[0]
    case(f"{name}: a changed weight is noticed", error(changed, want) > 1e-5, error(changed, want))


def main():
    with tempfile.TemporaryDirectory() as d:
        folder = pathlib.Path(d)
        r = subprocess.run([sys.argv[1], d], capture_output=True, text=True)
        case("oracle_dump ran", r.returncode == 0, r.stderr)
        for path in sorted(folder.glob("*.onnx")):
            check_model(path, folder)
    case("five models", count["passed"] + count["failed"] > 5 * 12, "files are missing")
    print("%(passed)d passed, %(failed)d failed, %(skipped)d skipped" % count)
    return count["failed"] != 0


if __name__ == "__main__":
    sys.exit(main())
