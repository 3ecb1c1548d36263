#!/usr/bin/env python3
"""Compares every operator sample with PyTorch in float64: values and gradients.

Usage: build/release/tests/ops/test_ops dump | python tools/torch_ops_check.py
The lines are those of tests/ops/sample_dump.c. An operator without an entry in OPS is counted as not
compared and named at the end; dropout has no equal there, since its bits are ours.
"""
import json
import sys

import torch
import torch.nn.functional as F

TYPES = {"float32": torch.float64, "float64": torch.float64, "int64": torch.int64, "int32": torch.int32,
         "uint8": torch.uint8, "bool": torch.bool}
NUMBER = {1: "float32", 2: "uint8", 6: "int32", 7: "int64", 9: "bool", 11: "float64"}


def tensor(d):
    if d is None:
        return None
    if d["type"] in ("float32", "float64"):
        v = torch.tensor(d["v"], dtype=torch.float64)
    else:
        v = torch.tensor([int(x) for x in d["v"]], dtype=torch.int64).to(TYPES[d["type"]])
    return v.reshape(d["shape"])


def is_float(x):
    return x.is_floating_point()


def f32(x):
    return float(torch.tensor(x, dtype=torch.float32))


def scalar(r, x):
    s = r["f"][0]
    return f32(s) if r["in"][0]["type"] == "float32" else s if is_float(x) else int(s)


def div(a, b):
    whole = a if torch.is_tensor(a) else b
    if whole.is_floating_point():
        return a / b
    a, b = torch.as_tensor(a), torch.as_tensor(b)
    return torch.div(a, b, rounding_mode="trunc").to(whole.dtype)


def axes(r, x):
    i = r["i"]
    return list(i[2:2 + i[1]]) if i[1] else list(range(x.dim()))


def extreme(fn, mode):
    def run(r, x):
        if not is_float(x) or x.numel() == 0:
            a = axes(r, x)
            if any(x.shape[k] == 0 for k in a):
                return None
            y = x.to(torch.int64) if not is_float(x) else x
            return fn(y, a, bool(r["i"][0])).to(x.dtype) if a else y.to(x.dtype)
        a = axes(r, x)
        return fn(x, a, bool(r["i"][0])) if a else x + 0
    return run


def reduce(fn):
    def run(r, x):
        a = axes(r, x)
        y = x.to(torch.int64) if x.dtype == torch.bool else x
        if not a:
            return y + 0
        y = fn(y, dim=a, keepdim=bool(r["i"][0]))
        return y.to(x.dtype) if x.dtype == torch.int32 else y
    return run


def arg(fn):
    def run(r, x):
        axis, keep = r["i"][0], bool(r["i"][1])
        y = x.to(torch.int64) if x.dtype == torch.uint8 else x
        # torch promises nothing about ties: the first of equals, a NaN before all, by hand.
        y = y.double()
        best = (torch.amax if fn == "max" else torch.amin)(y, axis, True) if y.numel() else None
        if best is None:
            return None
        hit = (y == best) | (y.isnan() & best.isnan())
        n = y.shape[axis]
        shape = [1] * y.dim()
        shape[axis] = n
        k = torch.where(hit, torch.arange(n).reshape(shape), n)
        return k.amin(axis, keep)
    return run


def layer_norm(r, x, w, b):
    k = r["i"][0]
    if x.numel() == 0 and 0 in x.shape[x.dim() - k:]:
        return None
    return F.layer_norm(x, x.shape[x.dim() - k:], w, b, f32(r["f"][0]))


def batch_norm(r, x, w, b, mean, var):
    if x.numel() == 0:
        return None
    eps = f32(r["f"][0]) if r["f"][0] else f32(1e-5)
    return F.batch_norm(x, mean.clone(), var.clone(), w, b, bool(r["i"][0]), 0.1, eps)


def nll(r, logp, target, weight):
    i = r["i"]
    ignore = i[0] if i[0] or i[1] else -100
    return F.nll_loss(logp, target, weight, ignore_index=ignore, reduction="sum" if i[2] else "mean")


def cast(r, x):
    kind = NUMBER[r["i"][0]]
    if kind in ("float32", "float64"):
        return x.to(torch.float64)
    if is_float(x) and not bool(torch.isfinite(x).all() and (x.abs() < 200).all()) and kind != "bool":
        return None  # torch does not saturate
    return x.to(TYPES[kind])


def conv(r, x, w, b):
    i = r["i"]
    g = i[8] or 1
    if x.numel() == 0 or w.numel() == 0:
        return None
    x = F.pad(x, (i[3], i[3] + i[7], i[2], i[2] + i[6]))
    return F.conv2d(x, w, b, (i[0] or 1, i[1] or 1), 0, (i[4] or 1, i[5] or 1), g)


def pool(fn):
    def run(r, x):
        i = r["i"]
        k, stride, pad = (i[0], i[1]), (i[2] or i[0], i[3] or i[1]), (i[4], i[5])
        if x.numel() == 0 or pad[0] > k[0] // 2 or pad[1] > k[1] // 2:
            return None
        if fn == "max":
            return F.max_pool2d(x, k, stride, pad, (i[6] or 1, i[7] or 1), bool(i[8]))
        return F.avg_pool2d(x, k, stride, pad, bool(i[8]), not i[9])
    return run


def top_k(r, x):
    k, axis, smallest = r["i"][:3]
    if len(set(map(repr, r["in"][0]["v"]))) < x.numel():
        return None  # torch promises nothing about ties
    return list(x.topk(k, axis, largest=not smallest)) if x.dim() and x.numel() else None


def slice_of(r, x):
    axis, start, end, step = r["i"][:4]
    index = range(x.shape[axis])[slice(start, None if end in (2**63 - 1, -2**63) else end, step)]
    return x.index_select(axis, torch.tensor(list(index), dtype=torch.int64))


def pad(r, x):
    i = r["i"]
    widths = []
    for k in reversed(range(i[0])):
        widths += [i[1 + k], i[9 + k]]
    v = r["f"][0]
    v = f32(v) if r["in"][0]["type"] == "float32" else v
    if x.dtype == torch.bool:
        return None
    return F.pad(x, widths, value=v if is_float(x) else int(v)) if widths else x + 0


def embedding(r, w, idx):
    n, p = w.shape[0], r["i"][0]
    if idx.numel() and int(idx.min()) < 0:
        return None
    return F.embedding(idx, w, p if p >= 0 else None)


def matmul(r, a, b):
    return torch.matmul(a, b)


OPS = {
    "neg": lambda r, x: -x, "abs": lambda r, x: x.abs(), "exp": lambda r, x: x.exp(), "log": lambda r, x: x.log(),
    "sqrt": lambda r, x: x.sqrt(), "tanh": lambda r, x: x.tanh(), "sigmoid": lambda r, x: x.sigmoid(),
    "erf": lambda r, x: x.erf(), "relu": lambda r, x: x.relu(), "gelu": lambda r, x: F.gelu(x),
    "gelu_tanh": lambda r, x: F.gelu(x, approximate="tanh"), "silu": lambda r, x: F.silu(x),
    "reciprocal": lambda r, x: x.reciprocal(), "sin": lambda r, x: x.sin(), "cos": lambda r, x: x.cos(), "not": lambda r, x: ~x,
    "clamp": lambda r, x: x.clamp(f32(r["f"][0]) if r["i"][0] else None, f32(r["f"][1]) if r["i"][1] else None)
    if r["i"][0] or r["i"][1] else x + 0,
    "add_scalar": lambda r, x: x + scalar(r, x), "sub_scalar": lambda r, x: x - scalar(r, x),
    "rsub_scalar": lambda r, x: scalar(r, x) - x, "mul_scalar": lambda r, x: x * scalar(r, x),
    "scale": lambda r, x: x * scalar(r, x), "div_scalar": lambda r, x: div(x, scalar(r, x)),
    "rdiv_scalar": lambda r, x: div(scalar(r, x), x), "cast": cast,
    "add": lambda r, a, b: a + b, "sub": lambda r, a, b: a - b, "mul": lambda r, a, b: a * b,
    "div": lambda r, a, b: div(a, b), "maximum": lambda r, a, b: torch.maximum(a, b),
    "minimum": lambda r, a, b: torch.minimum(a, b), "equal": lambda r, a, b: a == b, "not_equal": lambda r, a, b: a != b,
    "less": lambda r, a, b: a < b, "less_equal": lambda r, a, b: a <= b, "greater": lambda r, a, b: a > b,
    "greater_equal": lambda r, a, b: a >= b, "and": lambda r, a, b: a & b, "or": lambda r, a, b: a | b,
    "xor": lambda r, a, b: a ^ b, "where": lambda r, c, a, b: torch.where(c, a, b),
    "matmul": matmul, "linear": lambda r, x, w, b: F.linear(x, w, b),
    "sum": reduce(torch.sum), "mean": reduce(torch.mean), "max": extreme(torch.amax, 1), "min": extreme(torch.amin, 0),
    "sum_all": lambda r, x: x.sum(), "mean_all": lambda r, x: x.mean(), "argmax": arg("max"), "argmin": arg("min"),
    "softmax": lambda r, x: x.softmax(r["i"][0]), "log_softmax": lambda r, x: x.log_softmax(r["i"][0]),
    "layer_norm": layer_norm, "batch_norm2d": batch_norm, "mse_loss": lambda r, a, b: F.mse_loss(a, b),
    "nll_loss": nll, "cross_entropy_with": lambda r, x, t, w: nll(r, x.log_softmax(1), t, w),
    "conv2d": conv, "custom": lambda r, x, w: [x * w, x + w],
    "full_like": lambda r, x: torch.full_like(x, f32(r["f"][0]) if is_float(x) else r["f"][0])
    if r["i"][0] == 0 else torch.full(x.shape, r["f"][0], dtype=torch.float64).to(TYPES[NUMBER[r["i"][0]]]),
    "zeros_like": lambda r, x: torch.zeros_like(x), "ones_like": lambda r, x: torch.ones_like(x),
    "arange_like": lambda r, x: torch.arange(x.shape[r["i"][0]]),
    "causal_mask": lambda r, q, k: torch.full((q.shape[-2], k.shape[-2]), float("-inf"),
                                              dtype=torch.float64).triu(1),
    "transpose": lambda r, x: x.transpose(r["i"][0], r["i"][1]),
    "permute": lambda r, x: x.permute(r["i"][1:1 + r["i"][0]]),
    "reshape": lambda r, x: x.reshape(r["i"][1:1 + r["i"][0]]) if x.numel() else None,
    "flatten": lambda r, x: x.flatten(r["i"][0]) if x.dim() else None,
    "select": lambda r, x: x.select(r["i"][0], r["i"][1]),
    "index_select": lambda r, x, k: torch.index_select(x, r["i"][0], torch.where(
        k < 0, k + x.shape[r["i"][0]], k).flatten()).reshape(
            *x.shape[:r["i"][0] % x.dim()], *k.shape, *x.shape[r["i"][0] % x.dim() + 1:]),
    "concat": lambda r, *x: torch.cat(x[:r["i"][1]], r["i"][0]),
    "stack": lambda r, *x: torch.stack(x[:r["i"][1]], r["i"][0]),
    "split": lambda r, x: list(x.split(r["i"][2:2 + r["i"][1]], r["i"][0])),
    "expand": lambda r, x: x.expand(r["i"][1:1 + r["i"][0]]), "expand_as": lambda r, x, y: x.expand_as(y),
    "contiguous": lambda r, x: x.expand(r["i"][1:1 + r["i"][0]]), "clone": lambda r, x: x.clone(),
    "squeeze": lambda r, x: x.squeeze(tuple(r["i"][1:1 + r["i"][0]])) if r["i"][0] else None,
    "slice": slice_of, "pad": pad, "top_k": top_k, "embedding": embedding,
    "max_pool2d": pool("max"), "avg_pool2d": pool("avg"),
    "adaptive_avg_pool2d": lambda r, x: F.adaptive_avg_pool2d(x, tuple(r["i"][:2])) if x.numel() else None,
}


def near(got, want, tol):
    if want.dtype == torch.bool or not want.is_floating_point():
        return torch.equal(got.to(torch.int64), want.to(torch.int64))
    got, want = got.double(), want.double()
    same = (got == want) | (got.isnan() & want.isnan())
    big = want.abs() > 3.4028235e38  # beyond float32
    return bool((same | ((got - want).abs() <= tol * (1 + want.abs())) | (big & got.isinf())).all())


compared_gradients = [0]


def check(r):
    """None: not compared; else a list of problems."""
    if r["op"] not in OPS:
        return None
    ins = [tensor(d) for d in r["in"]]
    for x, g in zip(ins, r["grad"]):
        if g is not None:
            x.requires_grad_(True)
    want = OPS[r["op"]](r, *ins)
    if want is None:
        return None
    want = want if isinstance(want, (list, tuple)) else [want]
    bad = []
    loss = 0
    for k, (y, d) in enumerate(zip(want, r["out"])):
        got = tensor(d)
        if list(got.shape) != list(y.shape):
            bad.append(f"output {k} has shape {list(got.shape)}, torch {list(y.shape)}")
        elif not near(got, y.detach(), 5e-6 if d["type"] == "float32" else 1e-12):
            bad.append(f"output {k}: {got.flatten()[:4].tolist()}, torch {y.flatten()[:4].tolist()}")
        if r["given"][k] is not None and y.requires_grad:
            loss = loss + (y * tensor(r["given"][k])).sum()
    if torch.is_tensor(loss) and not bad:
        loss.backward()
        for k, (x, d) in enumerate(zip(ins, r["grad"])):
            if d is None or x.grad is None:
                continue
            special = not bool(torch.isfinite(x).all())  # infinities times zero differ by formula
            compared_gradients[0] += not special
            if not special and not near(tensor(d), x.grad, 3e-5):
                bad.append(f"gradient {k}: {tensor(d).flatten()[:4].tolist()}, torch {x.grad.flatten()[:4].tolist()}")
    return bad


def main():
    rows = compared = 0
    failed, skipped = [], {}
    noticed = False  # a changed value must fail the comparison, or it proves nothing
    for line in sys.stdin:
        r = json.loads(line)
        rows += 1
        try:
            bad = check(r)
        except (RuntimeError, IndexError, ValueError, TypeError) as e:
            bad = [f"torch: {str(e).splitlines()[0]}"]
        if bad is None:
            skipped[r["op"]] = skipped.get(r["op"], 0) + 1
            continue
        if not noticed and r["out"][0]["v"] and r["out"][0]["type"] == "float32" and not bad:
            changed = json.loads(line)
            changed["out"][0]["v"][0] += 1.0
            noticed = bool(check(changed))
        compared += 1
        failed += [f"{r['op']}/{r['row']}: {b}" for b in bad]
    print("\n".join(failed))
    print(f"{rows} rows, {compared} compared with {compared_gradients[0]} gradients, "
          f"{len(failed)} differences")
    print("not compared:", ", ".join(f"{k} {v}" for k, v in sorted(skipped.items())))
    if not noticed:
        failed.append("a changed value was not noticed")
    print(f"{compared + noticed - len(failed)} passed, {len(failed)} failed, {sum(skipped.values())} skipped")
    return 1 if failed or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
