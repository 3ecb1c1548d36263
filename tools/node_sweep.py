#!/usr/bin/env python3
"""Random nodes with default, plausible and extreme attributes, at every version of their form, against ONNX Runtime.

    node_sweep.py ONNX_CASES [COUNT] [SEED] [TYPE]

Writes COUNT models of one node into a temporary folder in the layout of ONNX's backend tests, with what ONNX
Runtime answers, and lets ONNX_CASES (tests/runtime/cases.c) run them. Where ONNX Runtime has an answer ours must
be equal or a refusal by name (OM_ERR_UNSUPPORTED); a refusal of another kind is a fault. Models that ONNX Runtime
refuses must not crash; with TYPE they are listed when they run here. Ends with "N passed, N failed, N skipped".

Values are finite, divisors not 0 and reduced axes not empty: there docs/arithmetic.md and ONNX Runtime differ by
design. Comments say where else it does not answer what ONNX defines.
"""
import collections
import json
import pathlib
import random
import re
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime as ort
from onnx import helper, numpy_helper

import families

F32, F64, I64, I32, U8, BOOL = (np.dtype(t) for t in ("f4", "f8", "i8", "i4", "u1", "?"))
NUM = [F32, F32, F32, F64, I64, I32, U8]
ALL = NUM + [BOOL]


class Maker:
    """One node: inputs, which of them are constants, attributes."""

    def __init__(self, seed):
        self.r = random.Random(seed)
        self.g = np.random.default_rng(seed)
        self.inputs, self.consts, self.attrs = [], {}, {}

    def chance(self, percent):
        return self.r.randrange(100) < percent

    def shape(self, lo=0, hi=4, sizes=(1, 2, 3, 3, 4, 5, 7, 0)):
        return tuple(self.r.choice(sizes) for _ in range(self.r.randint(lo, hi)))

    def values(self, shape, t, lo=-3, hi=3):
        if t == BOOL:
            return self.g.random(shape) < 0.5
        if t.kind == "f":
            return np.asarray(self.g.uniform(lo, hi, shape)).astype(t)
        return self.g.integers(max(lo, 0) if t == U8 else lo, hi + 1, shape).astype(t)

    def put(self, a, const=None):
        """Appends an operand; None is an absent one."""
        name = "" if a is None else f"i{len(self.inputs)}"
        self.inputs.append((name, None if a is None else np.asarray(a)))
        if a is not None and (self.chance(40) if const is None else const):
            self.consts[name] = np.asarray(a)
        return a

    def attr(self, name, plain, extreme=(), percent=60):
        if self.chance(percent):
            self.attrs[name] = self.r.choice(list(extreme)) if extreme and self.chance(15) else plain() if callable(plain) else plain

    def axis(self, rank):
        return self.r.randrange(-rank, rank) if rank else 0

    def ints(self, n, lo, hi):
        return [self.r.randint(lo, hi) for _ in range(n)]

    def list_operand(self, v):
        self.put(np.array(v, np.int64), const=self.chance(75))

    def spread(self, shape):
        """A shape that broadcasts with this one."""
        s = [1 if self.chance(30) else d for d in shape]
        return tuple(s[self.r.randint(0, len(s)):])


def unary(m, opset):
    m.put(m.values(m.shape(), m.r.choice(NUM)))


def floats(m, opset):
    m.put(m.values(m.shape(), m.r.choice([F32, F64])))


def positive(m, opset):
    m.put(m.values(m.shape(), m.r.choice([F32, F64]), 1, 3))


def gelu(m, opset):
    m.put(m.values(m.shape(), F32))
    m.attr("approximate", lambda: m.r.choice(["none", "tanh"]), ["", "TANH"])


def two(m, opset, types=NUM, lo=-3):
    t, s = m.r.choice(types), m.shape()
    m.put(m.values(s, t))
    m.put(m.values(m.spread(s), t, lo))


def divide(m, opset):
    two(m, opset, lo=1)


def logic(m, opset):
    two(m, opset, [BOOL])


def compare(m, opset):
    two(m, opset, ALL)


def many(m, opset):
    t, s = m.r.choice(NUM), m.shape()
    for _ in range(m.r.randint(1, 4)):
        m.put(m.values(m.spread(s), t))


def where(m, opset):
    t, s = m.r.choice(ALL), m.shape()
    m.put(m.values(m.spread(s), BOOL))
    m.put(m.values(s, t))
    m.put(m.values(m.spread(s), t))


def clip(m, opset):
    t = F32 if opset < 12 else m.r.choice(NUM)
    m.put(m.values(m.shape(), t))
    if opset < 11:
        m.attr("min", lambda: float(m.r.randint(-3, 1)), [3.0, float("inf"), float("-inf")])
        m.attr("max", lambda: float(m.r.randint(0, 3)), [-3.0, float("inf")])
        return
    for lo in (-2, 1):
        m.put(m.values((), t, lo, 3) if m.chance(70) else None)


def cast(m, opset):
    m.put(m.values(m.shape(), m.r.choice(ALL), 0, 3))
    m.attrs["to"] = m.r.choice([1, 11, 7, 6, 2, 9])
    if opset >= 19:
        m.attr("saturate", lambda: m.r.randint(0, 1), percent=30)


def cast_like(m, opset):
    m.put(m.values(m.shape(), m.r.choice(ALL), 0, 3))
    m.put(m.values(m.shape(), m.r.choice(ALL)))


def matmul(m, opset):
    t = m.r.choice([F32, F32, F64, I64, I32])
    a, b, k = m.shape(1, 3), m.shape(1, 3), m.r.choice([1, 2, 3, 5])
    a = a[:-1] + (k,)
    b = b[:-2] + (k,) + b[-1:] if len(b) > 1 else (k,)
    if len(a) > 2 and len(b) > 2:
        b = (m.r.choice([1, a[0]]),) + b[1:]
    m.put(m.values(a, t))
    m.put(m.values(b, t))


def gemm(m, opset):
    t, (r, k, c) = m.r.choice([F32, F32, F64]), (m.r.choice([1, 2, 3, 5]) for _ in range(3))
    m.attr("transA", lambda: m.r.randint(0, 1))
    m.attr("transB", lambda: m.r.randint(0, 1))
    m.attr("alpha", lambda: m.r.choice([0.5, 1.0, -2.0]), [0.0])
    m.attr("beta", lambda: m.r.choice([0.5, 1.0, -2.0]), [0.0])
    m.put(m.values((k, r) if m.attrs.get("transA") else (r, k), t))
    m.put(m.values((c, k) if m.attrs.get("transB") else (k, c), t))
    if opset < 11 or m.chance(60):
        m.put(m.values(m.spread((r, c)), t))


def reduce_many(m, opset, op="ReduceSum"):
    t = m.r.choice(NUM + ([BOOL] if op in ("ReduceMax", "ReduceMin") and opset >= 20 else []))
    x = m.put(m.values(m.shape(sizes=(1, 2, 3, 4)), t, -2, 2))
    axes = [m.axis(x.ndim) for _ in range(m.r.randint(0, 2))] if x.ndim else []
    if len({a % x.ndim for a in axes}) < len(axes):
        axes = axes[:1]
    if m.chance(5) and x.ndim:
        axes = [m.r.choice([99, -99])]
    m.attr("keepdims", lambda: m.r.randint(0, 1))
    if opset < (13 if op == "ReduceSum" else 18):
        if axes:
            m.attrs["axes"] = axes
        return
    m.attr("noop_with_empty_axes", lambda: m.r.randint(0, 1))
    if m.chance(80):
        m.list_operand(axes)


def arg(m, opset):
    x = m.put(m.values(m.shape(1, 4, (1, 2, 3, 5, 17)), m.r.choice([F32, F32, F64, I64, I32, U8]), 0, 3))
    m.attr("axis", lambda: m.axis(x.ndim), [99, -99])
    m.attr("keepdims", lambda: m.r.randint(0, 1))
    if opset >= 12:
        m.attr("select_last_index", lambda: m.r.randint(0, 1))


def softmax(m, opset):
    x = m.put(m.values(m.shape(1), F32))
    m.attr("axis", lambda: m.axis(x.ndim), [99, -99, x.ndim] if x.size else [])


def layer_norm(m, opset):
    x = m.put(m.values(m.shape(1, 4, (1, 2, 3, 4, 7)), F32))
    m.attr("axis", lambda: m.axis(x.ndim), [99, -99])
    a = m.attrs.get("axis", -1)
    s = x.shape[a if abs(a) < 99 else 0:]
    m.attr("epsilon", lambda: m.r.choice([1e-5, 1e-3]), [0.0, 10.0])
    m.attr("stash_type", 1)
    for _ in range(m.r.randint(1, 2)):
        m.put(m.values(m.spread(x.shape) if m.chance(20) else s, F32))


def batch_norm(m, opset):
    x = m.put(m.values(m.shape(1, 5, (1, 2, 3, 4)), F32))
    c = x.shape[1] if x.ndim > 1 else 1
    for lo in (-2, -2, -2, 1):
        m.put(m.values((c,), F32, lo))
    m.attr("epsilon", lambda: m.r.choice([1e-5, 1e-3]), [0.0, 10.0])
    m.attr("momentum", lambda: 0.5)
    if opset < 9:
        m.attr("spatial", 1)
    if opset >= 14:
        m.attr("training_mode", 0, [1])


def anything(m, opset):
    m.put(m.values(m.shape(), m.r.choice(ALL)))


def dropout(m, opset):
    m.put(m.values(m.shape(), F32))
    if opset < 12:
        m.attr("ratio", 0.25)
    else:
        m.attr("seed", 7)
        if m.chance(40):
            m.put(np.float32(0.25), const=True)
            if m.chance(50):
                m.put(np.array(False), const=True)


def reshape(m, opset):
    x = m.put(m.values(m.shape(0, 4, (1, 2, 3, 4, 6)), m.r.choice(ALL)))
    t = list(x.shape)
    m.r.shuffle(t)
    for i in range(len(t)):
        if m.chance(15):
            t[i] = m.r.choice([0, -1, -1, 7])
    if m.chance(20):
        t = [-1]
    if opset >= 14:
        m.attr("allowzero", lambda: m.r.randint(0, 1), percent=40)
    m.list_operand(t)


def flatten(m, opset):
    x = m.put(m.values(m.shape(), m.r.choice(ALL)))
    m.attr("axis", lambda: m.r.randint(-x.ndim if opset >= 11 else 0, x.ndim), [9, -9])


def squeeze(m, opset):
    x = m.put(m.values(m.shape(0, 4, (1, 1, 3)), m.r.choice(ALL)))
    ones = [i for i, d in enumerate(x.shape) if d == 1]
    axes = m.r.sample(ones, m.r.randint(0, len(ones)))
    axes = [a - x.ndim if opset >= 11 and m.chance(30) else a for a in axes]
    if m.chance(8):
        axes.append(9)
    if m.chance(25):
        return
    if opset < 13:
        m.attrs["axes"] = axes
    else:
        m.list_operand(axes)


def unsqueeze(m, opset):
    x = m.put(m.values(m.shape(0, 3), m.r.choice(ALL)))
    n = m.r.randint(1, 3)
    axes = m.r.sample(range(x.ndim + n), n)
    axes = [a - x.ndim - n if opset >= 11 and m.chance(30) else a for a in axes]
    if m.chance(8):
        axes[0] = m.r.choice([9, -9, axes[-1]])
    if opset < 13:
        m.attrs["axes"] = axes
    else:
        m.list_operand(axes)


def shape_of(m, opset):
    m.put(m.values(m.shape(), m.r.choice(ALL)))
    if opset >= 15:
        m.attr("start", lambda: m.r.randint(-4, 4), [99, -99])
        m.attr("end", lambda: m.r.randint(-4, 4), [99, -99])


def fill(m, opset):
    m.list_operand(m.ints(m.r.randint(0, 4), 0, 4))
    if m.chance(70):
        m.attrs["value"] = numpy_helper.from_array(m.values((1,), m.r.choice(ALL), 0, 3))


def count(m, opset):
    t = m.r.choice([I64, I32, F32])
    a, b, s = m.r.randint(-9, 9), m.r.randint(-9, 9), m.r.choice([1, 2, -1, -3, 7])
    for v in (a, b, s):
        m.put(np.array(v + (0.25 if t == F32 and m.chance(50) and v != s else 0)).astype(t))


def transpose(m, opset):
    x = m.put(m.values(m.shape(), m.r.choice(ALL)))
    m.attr("perm", lambda: m.r.sample(range(x.ndim), x.ndim), [[0, 0], [1], [5, 0, 1]])
    if m.attrs.get("perm") == []:
        del m.attrs["perm"]


def slices(m, opset):
    x = m.put(m.values(m.shape(1, 4, (1, 3, 5, 7)), m.r.choice(ALL)))
    n = m.r.randint(1, x.ndim)
    axes = m.r.sample(range(x.ndim), n)
    edge = [2**31 - 1, -(2**31), 2**63 - 1, -(2**63) + 1]
    starts, ends = ([m.r.choice(edge) if m.chance(15) else m.r.randint(-8, 8) for _ in axes] for _ in range(2))
    if opset < 10:
        m.attrs.update(starts=starts, ends=ends)
        if m.chance(70):
            m.attrs["axes"] = axes
        return
    m.list_operand(starts)
    m.list_operand(ends)
    if m.chance(80):
        m.list_operand([a - x.ndim if m.chance(30) else a for a in axes])
        if m.chance(70):  # ONNX Runtime reads INT_MAX as an open end going down, too; NumPy and ONNX do not
            steps = [m.r.choice([1, 2, -1, -2, 5, -5, 99, -99]) for _ in axes]
            m.list_operand([abs(s) if e in edge else s for s, e in zip(steps, ends)])


def gather(m, opset):
    x = m.put(m.values(m.shape(1, 4, (1, 3, 5)), m.r.choice(ALL)))
    m.attr("axis", lambda: m.axis(x.ndim), [99, -99])
    a = m.attrs.get("axis", 0)
    d = x.shape[a] if abs(a) < 99 else 1
    m.put(m.g.integers(-d if opset >= 11 else 0, d, m.shape(0, 2)).astype(m.r.choice([I64, I32])))


def concat(m, opset):
    t, s = m.r.choice(ALL), m.shape(1)
    a = m.axis(len(s))
    for _ in range(m.r.randint(1, 4)):
        u = list(s)
        u[a] = m.r.choice([0, 1, 2, 5])
        m.put(m.values(u, t))
    m.attrs["axis"] = a if m.chance(95) else 99


def split(m, opset):
    x = m.put(m.values(m.shape(1, 4, (1, 2, 4, 5, 6, 7)), m.r.choice(ALL)))
    m.attr("axis", lambda: m.axis(x.ndim), [99, -99])
    a = m.attrs.get("axis", 0)
    d = x.shape[a] if abs(a) < 99 else 1
    m.outputs = m.r.randint(1, 5)
    if m.chance(50):
        cuts = sorted(m.r.randint(0, d) for _ in range(m.outputs - 1))
        sizes = [b - a for a, b in zip([0] + cuts, cuts + [d])]
        if m.chance(10):
            sizes[0] += m.r.choice([1, -1])
        if opset < 13:
            m.attrs["split"] = sizes
        else:
            m.list_operand(sizes)
    elif opset >= 18:
        m.attrs["num_outputs"] = m.outputs


def expand(m, opset):
    s = m.shape(0, 4, (1, 2, 3, 0))
    m.put(m.values(m.spread(s), m.r.choice(ALL)))
    m.list_operand([1 if m.chance(20) else d for d in s])


def pad(m, opset):
    x = m.put(m.values(m.shape(1, 4, (1, 3, 5)), F32 if opset < 11 else m.r.choice(ALL)))
    some = [m.r.randint(-1, 3) for _ in range(2 * x.ndim)]
    m.attr("mode", "constant", ["reflect", "edge", "wrap"], 40)
    if opset < 11:
        m.attrs["pads"] = some
        m.attr("value", 2.5)
        return
    axes = m.r.sample(range(x.ndim), m.r.randint(1, x.ndim)) if opset >= 18 and m.chance(40) else None
    m.list_operand(some[:2 * len(axes)] if axes else some)
    if m.chance(50) or axes:
        m.put(m.values((), x.dtype) if m.chance(60) else None)
    if axes:
        m.list_operand([a - x.ndim if m.chance(30) else a for a in axes])


def trilu(m, opset):
    m.put(m.values(m.shape(2), m.r.choice(ALL)))
    m.attr("upper", lambda: m.r.randint(0, 1))
    if m.chance(60):
        m.put(np.array(m.r.choice([-2, -1, 0, 1, 2, 9, -9]), np.int64))


def topk(m, opset):
    x = m.put(m.values(m.shape(1, 3, (1, 3, 5, 40)), m.r.choice([F32, F32, F64, I64, I32, U8]), 0, 9))
    m.attr("axis", lambda: m.axis(x.ndim), [99, -99])
    a = m.attrs.get("axis", -1)
    k = m.r.randint(0, x.shape[a] if abs(a) < 99 else 1) if m.chance(95) else 99
    m.outputs = 2
    if opset < 10:
        m.attrs["k"] = k
    else:
        m.list_operand([k])
    if opset >= 11:
        m.attr("largest", lambda: m.r.randint(0, 1))
        m.attr("sorted", 1)


def window(m, spatial, opset, conv, dilates=True):
    k = m.ints(spatial, 1, 3)
    if not conv or m.chance(50):
        m.attrs["kernel_shape"] = k
    m.attr("strides", lambda: m.ints(spatial, 1, 3), [[5] * spatial])
    if dilates:
        m.attr("dilations", lambda: m.ints(spatial, 1, 2), [[3] * spatial], 30)
    if m.chance(25):
        m.attrs["auto_pad"] = m.r.choice(["VALID", "SAME_UPPER", "SAME_LOWER", "NOTSET"])
    elif m.chance(60):
        m.attrs["pads"] = [m.r.randint(0, 2 if conv else v - 1) for v in k + k]
    return k


def conv(m, opset):
    spatial, groups = m.r.randint(1, 2), m.r.choice([1, 1, 2, 3])
    k = window(m, spatial, opset, True)
    c, oc = m.r.choice([1, 2, 4]), m.r.choice([1, 2, 5])
    m.put(m.values((m.r.randint(0, 2) if m.chance(10) else 1, c * groups) + tuple(m.ints(spatial, 1, 9)), F32))
    m.put(m.values((oc * groups, c) + tuple(k), F32))
    if m.chance(50):
        m.put(m.values((oc * groups,), F32))
    if groups > 1 or m.chance(30):
        m.attrs["group"] = groups if m.chance(95) else 7


def pool(m, opset, average=False):
    spatial = m.r.randint(1, 2)
    k = window(m, spatial, opset, False, opset >= (19 if average else 10))
    d = m.attrs.get("dilations", [1] * spatial)
    far = any(a > b for a, b in zip(m.attrs.get("strides", [1] * spatial), k))
    if (far or max(d) > 1) and m.attrs.get("auto_pad", "").startswith("SAME"):
        del m.attrs["auto_pad"]  # ONNX Runtime leaves the dilation out of these pads, and may make them negative
    least = [(a - 1) * b + 1 for a, b in zip(k, d)]  # of a window that fits nowhere it makes one output
    m.put(m.values((1, m.r.randint(1, 3)) + tuple(m.r.randint(a, 9) for a in least), F32))
    if opset >= 10:
        m.attr("ceil_mode", lambda: m.r.randint(0, 1), percent=40)
    if average:
        m.attr("count_include_pad", lambda: m.r.randint(0, 1), percent=40)
    elif opset >= 8:
        m.attr("storage_order", lambda: m.r.randint(0, 1), percent=20)


def average_pool(m, opset):
    pool(m, opset, True)


def global_pool(m, opset):
    m.put(m.values((1, 2) + m.shape(1, 3, (1, 2, 5)), F32))


def subgraph(nodes, ins, outs, consts=None):
    def info(name):
        kind = {"i": onnx.TensorProto.INT64, "go": onnx.TensorProto.BOOL}.get(name)
        return helper.make_tensor_value_info(name, kind or onnx.TensorProto.FLOAT, [] if kind else None)
    return helper.make_graph(nodes, "sub", [info(n) for n in ins], [helper.make_empty_tensor_value_info(n) for n in outs],
                             [numpy_helper.from_array(np.asarray(v), k) for k, v in (consts or {}).items()])


def branch_of(m, word):
    made = [helper.make_node("Cast", ["i0"], [word + "c"], to=1), helper.make_node("Add", [word + "c", word + "w"], [word])]
    if m.chance(30):
        made.append(helper.make_node("Concat", [word, word], [word + "y"], axis=0))
    return subgraph(made, [], [made[-1].output[0]], {word + "w": m.values(m.shape(1, 3), F32)})


def if_node(m, v):
    m.put(m.values(m.r.choice([(), (), (1,)]), BOOL))
    m.attrs["then_branch"] = branch_of(m, "a")
    m.attrs["else_branch"] = branch_of(m, "b")


def loop(m, v):
    m.put(None if m.chance(5) else np.array(m.r.randint(-1, 4)), const=m.chance(40))
    m.put(None if m.inputs[0][1] is not None and m.chance(40) else np.array(m.chance(70 if m.inputs[0][1] is not None else 0)))
    shape = m.shape(1, 3, sizes=(1, 2, 3, 5))  # ONNX Runtime stacks empty outputs of different sizes
    m.put(m.values(shape, F32))
    m.put(m.values(shape, F32))
    step = m.r.choice([helper.make_node("Add", ["s", "t"], ["u"]), helper.make_node("Concat", ["s", "t"], ["u"], axis=m.axis(len(shape))),
                       helper.make_node("Mul", ["s", "i3"], ["u"]), helper.make_node("Neg", ["s"], ["u"])])
    body = [helper.make_node("Identity", ["go"], ["on"]), step, helper.make_node("Identity", ["s" if step.op_type == "Neg" else "t"], ["x"]),
            helper.make_node("Relu", ["u"], ["q"])]
    m.outputs = 3
    m.attrs["body"] = subgraph(body, ["i", "go", "s", "t"], ["on", "u", "x", "q"])


def scan(m, v):
    item, long = m.shape(0, 2, sizes=(1, 2, 3)), m.r.randint(1, 4)
    axis, back, to = m.r.randint(0, len(item)), m.r.randint(0, 1), m.r.randint(0, len(item))
    m.put(m.values(item, F32))
    m.put(m.values(item[:axis] + (long,) + item[axis:], F32))
    m.attrs["body"] = subgraph([helper.make_node("Add", ["s", "x"], ["u"]), helper.make_node("Mul", ["u", "x"], ["q"])], ["s", "x"], ["u", "q"])
    m.attrs["num_scan_inputs"] = 1
    if axis or m.chance(50):
        m.attrs["scan_input_axes"] = [axis - (len(item) + 1 if m.chance(30) else 0)]
    m.attr("scan_input_directions", [back])
    m.attr("scan_output_directions", [1 - back])
    m.attr("scan_output_axes", [to])
    m.outputs = 2


def nonzero(m, v):  # of a scalar ONNX gives [0, n], ONNX Runtime [1, n]
    t = m.r.choice([F32, I64, I32, U8, BOOL])
    m.put(m.values(m.shape(1, 4), t, -1, 1) * (m.values((), I64, 0, 1).astype(t) if t != BOOL else True))


TYPES = {
    **dict.fromkeys(["Neg", "Abs", "Relu"], unary), **dict.fromkeys(["Exp", "Tanh", "Sigmoid", "Erf", "Sin", "Cos"], floats),
    **dict.fromkeys(["Log", "Sqrt", "Reciprocal"], positive), "Gelu": gelu, "Not": lambda m, v: m.put(m.values(m.shape(), BOOL)),
    **dict.fromkeys(["Add", "Sub", "Mul"], two), "Div": divide, **dict.fromkeys(["And", "Or", "Xor"], logic), "Equal": compare,
    **dict.fromkeys(["Less", "LessOrEqual", "Greater", "GreaterOrEqual"], two), **dict.fromkeys(["Max", "Min", "Sum", "Mean"], many),
    "Where": where, "Clip": clip, "Cast": cast, "CastLike": cast_like, "MatMul": matmul, "Gemm": gemm,
    **{op: lambda m, v, op=op: reduce_many(m, v, op) for op in
       ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceSumSquare")},
    "ArgMax": arg, "ArgMin": arg, "Softmax": softmax, "LogSoftmax": softmax, "LayerNormalization": layer_norm,
    "BatchNormalization": batch_norm, "Identity": anything, "Dropout": dropout, "Reshape": reshape, "Flatten": flatten,
    "Squeeze": squeeze, "Unsqueeze": unsqueeze, "Shape": shape_of, "Size": anything, "ConstantOfShape": fill, "Range": count,
    "Transpose": transpose, "Slice": slices, "Gather": gather, "Concat": concat, "Split": split, "Expand": expand, "Pad": pad,
    "Trilu": trilu, "TopK": topk, "Conv": conv, "MaxPool": pool, "AveragePool": average_pool,
    **dict.fromkeys(["GlobalAveragePool", "GlobalMaxPool"], global_pool), "If": if_node, "Loop": loop, "Scan": scan, "NonZero": nonzero,
}


def versions(op):
    """Opsets to try: each at which ONNX changed the type, and what lies between, as far as we read it."""
    rows = families.opset_text()
    first = min(int(v) for v in re.findall(rf'^OM_NODE\("", {op}, (\d+),', rows, flags=re.M))
    return list(range(max(first, 7), 22))


def make(op, seed):
    m = Maker(seed)
    m.outputs = 2 if op == "Dropout" and m.chance(30) else 1
    opset = m.r.choice(versions(op))
    TYPES[op](m, opset)
    while m.inputs and m.inputs[-1][1] is None:
        m.inputs.pop()
    vi = []
    for name, a in m.inputs:
        if name and name not in m.consts:
            dims = [f"{name}_{k}" if m.chance(30) else d for k, d in enumerate(a.shape)]
            vi.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(a.dtype), dims))
    outs = [f"o{k}" for k in range(m.outputs)]
    node = helper.make_node(op, [n for n, _ in m.inputs], outs, name="op")
    for k, v in m.attrs.items():
        node.attribute.append(helper.make_attribute(k, v, attr_type=onnx.AttributeProto.INTS if isinstance(v, list) else None))
    graph = helper.make_graph([node], "sweep", vi, [helper.make_empty_tensor_value_info(o) for o in outs],
                              [numpy_helper.from_array(a, n) for n, a in m.consts.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)
    try:
        model = onnx.shape_inference.infer_shapes(model)
    except Exception:  # a model may be wrong
        pass
    feeds = [(n, a) for n, a in m.inputs if n and n not in m.consts]
    return model, feeds, outs, f"opset {opset} {[a.shape for _, a in m.inputs if a is not None]} {m.attrs}"


def write(folder, model, feeds, outs):
    """The model and ONNX Runtime's answer, if it has one."""
    folder.mkdir()
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    try:
        got = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"]).run(outs, dict(feeds))
    except Exception as e:  # it raises many kinds
        return str(e)
    data = folder / "test_data_set_0"
    data.mkdir()
    for word, arrays in (("input", [a for _, a in feeds]), ("output", got)):
        for k, a in enumerate(arrays):
            (data / f"{word}_{k}.pb").write_bytes(numpy_helper.from_array(np.ascontiguousarray(a).reshape(a.shape), f"{word}{k}").SerializeToString())
    return None


def main():
    cases = sys.argv[1]
    n = int(sys.argv[2]) if len(sys.argv) > 2 else 600
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else random.SystemRandom().randrange(1 << 40)
    only = sys.argv[4] if len(sys.argv) > 4 else None
    ops = [only] if only else sorted(TYPES)
    rows = families.opset_text()
    missing = set(re.findall(r'^OM_NODE\("", (\w+),', rows, flags=re.M)) - TYPES.keys()
    if missing:
        print(f"FAIL node types without a maker here: {sorted(missing)}")
        return 1
    print(f"node_sweep: {n} nodes, seed {seed}")
    bad, counts, silent = 0, collections.Counter(), collections.Counter()
    for first in range(0, n, 3000):
        with tempfile.TemporaryDirectory() as d:
            folder, said, what, index = pathlib.Path(d), {}, {}, []
            for i in range(first, min(n, first + 3000)):
                op = ops[i % len(ops)]
                name = f"{i:06d}_{op}"
                model, feeds, outs, what[name] = make(op, seed + i)
                said[name] = write(folder / name, model, feeds, outs)
                index.append({"name": name, "expect": "output" if said[name] is None else "no_crash", "tol": 1e-5})
            (folder / "index.json").write_text(json.dumps(index))
            run = subprocess.run([cases, str(folder)], capture_output=True, text=True)
            seen = dict(re.findall(r"^(?:ok  |FAIL) (\w+): (.*)$", run.stdout, flags=re.M))
            for name in said:
                verdict = seen.get(name, "crashed")
                word = verdict.split(":")[0]
                counts[word if said[name] is None else "ONNX Runtime refuses"] += 1
                if verdict == "crashed" or (said[name] is None and word not in ("passed", "refused")):
                    bad += 1
                    print(f"FAIL {name} (seed {seed}): {what[name]}\n     {verdict}")
                if said[name] is not None and word == "passed":
                    silent[name[7:]] += 1
                    if only:
                        print(f"runs here {name}: {what[name]}\n     {said[name][:200]}")
    print(dict(counts))
    print("ONNX Runtime refuses, but a session is made here:", dict(silent.most_common(12)))
    print(f"{n - bad} passed, {bad} failed, 0 skipped")
    return bad != 0


if __name__ == "__main__":
    sys.exit(main())
