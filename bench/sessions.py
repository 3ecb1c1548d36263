#!/usr/bin/env python3
"""Prepared runs of whole networks and single nodes against torch and ONNX Runtime, interleaved, one thread.

    python3 bench/sessions.py BUILD/bench/bench_session [--rounds 5] [--only WORD] [--tsv out.tsv]

Times are CPU time of the one thread that computes, the best of all rounds; ratios are theirs / ours, so above 1 we are
faster. Exact arithmetic on our side. ONNX Runtime: one thread, sequential, all optimisations.
"""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

from gemm import best
from nets import networks, nodes

class Ours:
    name = "onemodel"

    def __init__(self, driver, net, path):
        self.p = subprocess.Popen([driver, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def time(self):
        self.p.stdin.write("time\n")
        self.p.stdin.flush()
        return float(self.p.stdout.readline())

    def close(self):
        self.p.stdin.close()
        self.p.wait()


class Torch:
    name = "torch"

    def __init__(self, driver, net, path):
        import torch
        torch.set_num_threads(1)
        torch.set_grad_enabled(False)
        self.x, self.f = torch.rand(*net.shape) - 0.5, net.torch()

    def time(self):
        return best(lambda: self.f(self.x))

    def close(self):
        pass


class Ort:
    name = "ort"

    def __init__(self, driver, net, path):
        import numpy
        import onnxruntime
        o = onnxruntime.SessionOptions()
        o.intra_op_num_threads = 1
        self.s = onnxruntime.InferenceSession(str(path), o, ["CPUExecutionProvider"])
        self.b = self.s.io_binding()
        x = (numpy.random.default_rng(0).random(net.shape) - 0.5).astype(numpy.float32)
        self.b.bind_ortvalue_input("x", onnxruntime.OrtValue.ortvalue_from_numpy(x))
        self.b.bind_output(self.s.get_outputs()[0].name)

    def time(self):
        return best(lambda: self.s.run_with_iobinding(self.b))

    def close(self):
        pass


def measure(driver, name, net, rounds):
    """{program: best seconds}"""
    with tempfile.TemporaryDirectory() as d:
        path = pathlib.Path(d) / "m.onnx"
        net.onnx(path)
        programs = []
        for kind in (Ours, Torch, Ort):
            try:
                programs.append(kind(driver, net, path))
            except ImportError:
                pass
        times = {p.name: [] for p in programs}
        for _ in range(rounds):
            for p in programs:
                times[p.name].append(p.time())
        for p in programs:
            p.close()
    return {k: min(v) for k, v in times.items()}


def text(seconds):
    return f"{seconds * 1e3:.3f}" if seconds > 1e-4 else f"{seconds * 1e6:.2f} us"


def table(driver, rounds, only=""):
    rows = [["work", "onemodel ms", "torch ms", "/torch", "ort ms", "/ort"]]
    for name, net in {**networks(), **nodes()}.items():
        if only in name:
            t = measure(driver, name, net, rounds)
            row = [name, text(t["onemodel"])]
            for peer in ("torch", "ort"):
                row += [text(t[peer]), f"{t[peer] / t['onemodel']:.2f}"] if peer in t else ["", ""]
            rows.append(row)
            print("  ".join(row), file=sys.stderr, flush=True)
    return rows


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    p.add_argument("driver")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--only", default="")
    p.add_argument("--tsv")
    a = p.parse_args()
    if hasattr(os, "sched_setaffinity"):  # all programs on one core, so that they meet the same noise
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    rows = table(a.driver, a.rounds, a.only)
    if a.tsv:
        pathlib.Path(a.tsv).write_text("".join("\t".join(r) + "\n" for r in rows))


if __name__ == "__main__":
    main()
