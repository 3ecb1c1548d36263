#!/usr/bin/env python3
"""Asks python onnx about ONNX files that we wrote.

usage: check_onnx.py [--loose] FILE...

For each file: onnx.checker with full_check accepts it, and python's parse followed by serialize gives
the same bytes, so every field is one that onnx.proto knows, in the order and packing protobuf uses.
--loose leaves the checker out (for graphs with operators of our own). Prints "N passed, N failed" and
exits 1 when a file failed. Needs onnx (tests use 1.23.2).
"""
import sys

import onnx


def problem(path, loose):
    data = open(path, "rb").read()
    model = onnx.ModelProto()
    model.ParseFromString(data)
    again = model.SerializeToString(deterministic=True)
    if again != data:
        at = next((i for i, (a, b) in enumerate(zip(again, data)) if a != b), min(len(again), len(data)))
        return f"python writes {len(again)} bytes, the file has {len(data)}; they differ at byte {at}"
    if not loose:
        onnx.checker.check_model(model, full_check=True)
    return None


def main(args):
    loose = "--loose" in args
    failed = 0
    files = [a for a in args if a != "--loose"]
    for path in files:
        try:
            why = problem(path, loose)
        except Exception as e:  # the checker and the parser raise many types
            why = f"{type(e).__name__}: {e}"
        if why:
            failed += 1
            print(f"{path}: {why}")
    print(f"{len(files) - failed} passed, {failed} failed")
    return 1 if failed or not files else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
