#!/usr/bin/env python3
"""Matrix products and convolutions against torch and ONNX Runtime, interleaved.

    python3 bench/gemm.py build/release/bench/bench_gemm [--what square,linear,conv,grad] [--rounds 5]
                          [--threads 1] [--tsv out.tsv]

Each round times every program once on each shape, with one thread in CPU time of that thread; the
table has the best of all rounds, since noise only adds, and the ratios ours / theirs (above 1: we are
faster). torch.mm packs in every call, ONNX Runtime has packed its weight, as our sessions have.
Programs that are not installed are left out.
"""
import argparse
import subprocess
import sys
import time

SQUARE = [64, 128, 192, 256, 384, 512, 768, 1024]
LINEAR = [(384, 384), (768, 768), (1024, 1024), (3072, 768), (768, 3072), (4096, 1024)]
ROWS = [1, 8, 32, 128, 512]
# n c h w oc k stride pad
CONV = [(1, 64, 56, 56, 64, 3, 1, 1), (1, 128, 28, 28, 128, 3, 1, 1), (1, 256, 14, 14, 256, 3, 1, 1),
        (1, 512, 7, 7, 512, 3, 1, 1), (1, 128, 56, 56, 128, 3, 2, 1), (1, 64, 56, 56, 256, 1, 1, 0),
        (1, 256, 56, 56, 64, 1, 1, 0), (1, 3, 224, 224, 64, 7, 2, 3), (64, 1, 8, 8, 16, 3, 1, 1),
        (64, 16, 8, 8, 32, 3, 1, 1)]


class Ours:
    name = "onemodel"

    def __init__(self, path, threads):
        self.p = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.ask(f"threads {threads}")

    def ask(self, line):
        self.p.stdin.write(line + "\n")
        self.p.stdin.flush()
        return float(self.p.stdout.readline())

    def mm(self, m, n, k):
        return self.ask(f"mm {m} {n} {k} 1")

    def mm_packing(self, m, n, k):
        return self.ask(f"mm {m} {n} {k} 0")

    def conv(self, shape, direction):
        return self.ask("conv " + " ".join(map(str, shape)) + f" {direction}")


clock = time.thread_time


def best(fn):
    """Seconds per call: the best of three stretches of about 5 ms, as the driver does it."""
    fn()
    t = clock()
    fn()
    one = clock() - t
    reps = 1 if one > 5e-3 else int(5e-3 / (one + 1e-9)) + 1
    r = 1e9
    for _ in range(3):
        t = clock()
        for _ in range(reps):
            fn()
        r = min(r, (clock() - t) / reps)
    return r


class Torch:
    name = "torch"

    def __init__(self, threads):
        import torch
        self.t = torch
        torch.set_num_threads(threads)
        torch.set_grad_enabled(False)

    def mm(self, m, n, k):
        a, w = self.t.rand(m, k) - 0.5, self.t.rand(n, k) - 0.5
        y, b = self.t.empty(m, n), w.t()
        return best(lambda: self.t.mm(a, b, out=y))

    mm_packing = mm

    def conv(self, shape, direction):
        n, c, h, w, oc, k, s, p = shape
        x, f = self.t.rand(n, c, h, w) - 0.5, self.t.rand(oc, c, k, k) - 0.5
        if direction == 0:
            return best(lambda: self.t.nn.functional.conv2d(x, f, stride=s, padding=p))
        g = self.t.nn.functional.conv2d(x, f, stride=s, padding=p) * 0.1
        mask = (direction == 1, direction == 2, False)
        return best(lambda: self.t.ops.aten.convolution_backward(
            g, x, f, None, [s, s], [p, p], [1, 1], False, [0, 0], 1, mask))


class Ort:
    name = "ort"

    def __init__(self, threads):
        import numpy
        import onnx
        import onnxruntime
        self.np, self.onnx, self.ort, self.threads = numpy, onnx, onnxruntime, threads

    def run(self, node, x, weight, out_shape):
        h = self.onnx.helper
        f = self.onnx.TensorProto.FLOAT
        g = h.make_graph([node], "g", [h.make_tensor_value_info("x", f, x.shape)],
                         [h.make_tensor_value_info("y", f, out_shape)],
                         [self.onnx.numpy_helper.from_array(weight, "w")])
        model = h.make_model(g, opset_imports=[h.make_opsetid("", 20)], ir_version=9)
        o = self.ort.SessionOptions()
        o.intra_op_num_threads = self.threads
        s = self.ort.InferenceSession(model.SerializeToString(), o, ["CPUExecutionProvider"])
        b = s.io_binding()
        b.bind_ortvalue_input("x", self.ort.OrtValue.ortvalue_from_numpy(x))
        b.bind_ortvalue_output("y", self.ort.OrtValue.ortvalue_from_shape_and_type(
            out_shape, self.np.float32))
        return best(lambda: s.run_with_iobinding(b))

    def mm(self, m, n, k):
        r = self.np.random.default_rng(0)
        x = (r.random((m, k)) - 0.5).astype(self.np.float32)
        w = (r.random((k, n)) - 0.5).astype(self.np.float32)
        return self.run(self.onnx.helper.make_node("MatMul", ["x", "w"], ["y"]), x, w, [m, n])

    def mm_packing(self, m, n, k):
        return None

    def conv(self, shape, direction):
        if direction:
            return None
        n, c, h, w, oc, k, s, p = shape
        r = self.np.random.default_rng(0)
        x = (r.random((n, c, h, w)) - 0.5).astype(self.np.float32)
        f = (r.random((oc, c, k, k)) - 0.5).astype(self.np.float32)
        node = self.onnx.helper.make_node("Conv", ["x", "w"], ["y"], strides=[s, s], pads=[p] * 4)
        return self.run(node, x, f, [n, oc, (h + 2 * p - k) // s + 1, (w + 2 * p - k) // s + 1])


def cases(what):
    if "square" in what:
        for n in SQUARE:
            yield f"{n}x{n}x{n}", 2 * n ** 3, "mm", (n, n, n)
    if "packing" in what:
        for n in SQUARE:
            yield f"{n}x{n}x{n} packing", 2 * n ** 3, "mm_packing", (n, n, n)
    if "linear" in what:
        for n, k in LINEAR:
            for m in ROWS:
                yield f"linear {k}>{n} M={m}", 2 * m * n * k, "mm", (m, n, k)
    for key, direction in (("conv", 0), ("grad", 1), ("grad", 2)):
        if key in what:
            for s in CONV:
                n, c, h, w, oc, k, st, p = s
                oh, ow = (h + 2 * p - k) // st + 1, (w + 2 * p - k) // st + 1
                label = ["conv", "grad x", "grad w"][direction]
                yield (f"{label} {n}x{c}x{h}x{w}>{oc} k{k}s{st}", 2 * n * oc * oh * ow * c * k * k,
                       "conv", (s, direction))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    p.add_argument("driver")
    p.add_argument("--what", default="square,linear,conv")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--tsv")
    a = p.parse_args()
    global clock
    clock = time.thread_time if a.threads == 1 else time.perf_counter
    programs = [Ours(a.driver, a.threads)]
    for other in (Torch, Ort):
        try:
            programs.append(other(a.threads))
        except ImportError:
            print(f"{other.name} is not installed; left out", file=sys.stderr)
    todo = list(cases(a.what.split(",")))
    seconds = {}
    for _ in range(a.rounds):
        for case in todo:
            for q in programs:
                t = getattr(q, case[2])(*case[3])
                seconds.setdefault((case[0], q.name), []).append(t)
    rows = []
    for label, flops, _, _ in todo:
        row, ours = [label], min(seconds[label, "onemodel"])
        for q in programs:
            t = [x for x in seconds[label, q.name] if x is not None]
            row.append(f"{flops / min(t) / 1e9:.1f}" if t else "")
            if q.name != "onemodel":
                row.append(f"{min(t) / ours:.2f}" if t else "")
        rows.append(row)
    head = ["case", "onemodel GF/s"]
    for q in programs[1:]:
        head += [f"{q.name} GF/s", f"/{q.name}"]
    widths = [max(len(r[i]) for r in [head] + rows) for i in range(len(head))]
    for r in [head] + rows:
        print("  ".join(c.ljust(w) for c, w in zip(r, widths)).rstrip())
    if a.tsv:
        with open(a.tsv, "w") as f:
            for r in [head] + rows:
                f.write("\t".join(r) + "\n")


if __name__ == "__main__":
    main()
