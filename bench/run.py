#!/usr/bin/env python3
"""Writes docs/benchmarks.md: products, networks, nodes, training steps and eager calls beside torch and ONNX Runtime.

    python3 bench/run.py BUILD [--rounds 5]     BUILD: a release build with -DOM_TESTS=ON

Everything is measured in turn in one run and judged as a ratio: machines are noisy. Peers that are not installed are
left out. The C++ peer of eager.c is compiled against the installed torch.
"""
import argparse
import os
import pathlib
import platform
import subprocess
import sys
import tempfile

import sessions
import train

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent


def tables(build, rounds):
    with tempfile.TemporaryDirectory() as d:
        tsv = pathlib.Path(d) / "t.tsv"
        subprocess.run([sys.executable, HERE / "gemm.py", build / "bench/bench_gemm", "--what", "square,linear,conv",
                        "--rounds", str(rounds), "--tsv", tsv], check=True, stdout=sys.stderr)
        return [line.split("\t") for line in tsv.read_text().splitlines()]


def torch_peer(folder):
    try:
        import torch
        from torch.utils import cpp_extension
    except ImportError:
        return None
    lib = pathlib.Path(torch.__file__).parent / "lib"
    out = pathlib.Path(folder) / "eager_torch"
    include = [f"-I{p}" for p in cpp_extension.include_paths()]
    r = subprocess.run(["g++", "-O2", "-std=c++20", "-w", *include, HERE / "eager_torch.cpp", f"-L{lib}", "-ltorch",
                        "-ltorch_cpu", "-lc10", f"-Wl,-rpath,{lib}", "-o", out], capture_output=True, text=True)
    if r.returncode:
        print(r.stderr[-800:], file=sys.stderr)
        return None
    return out


def eager(build, rounds):
    """name -> (ours ns, libtorch ns or None), the best of interleaved runs."""
    with tempfile.TemporaryDirectory() as d:
        programs = {"ours": build / "bench/bench_eager", "torch": torch_peer(d)}
        times = {}
        for _ in range(rounds):
            for who, path in programs.items():
                if path:
                    for line in subprocess.run([path], capture_output=True, text=True, check=True).stdout.splitlines():
                        name, ns = line.split()
                        times.setdefault((name, who), []).append(float(ns))
        names = dict.fromkeys(n for n, _ in times)
        return {n: tuple(min(times[n, w]) if (n, w) in times else None for w in ("ours", "torch")) for n in names}


# Peer time / ours that is aimed at, and what a row that misses it spends most of its time in: the order of a profile made by
# hand (perf record) of an earlier tree, largest first, without shares, for no script here measures them.
GOALS = {"lenet b1": 0.9, "lenet b64": 0.9, "mobilenetv2 b1 with BN": 0.8, "squeezenet b1": 0.75,
         "100 nodes MatMul 4x4": 5, "MLP 784-512-512-10, b64": 1.9, "LeNet, b64": 1.25, "CNN with BN, b64": 1.15,
         "transformer block, 8x64x128": 1.1, "linear_1x784x256": 1.3, "matmul": 4}
BOUNDS = {"lenet b1": "the product's tiles, then one row times the large weight matrix, read from memory, then packing patches",
          "lenet b64": "the product's tiles, then packing patches, then pooling",
          "mobilenetv2 b1 with BN": "the product's tiles, then depthwise and the padded copies before it, then what follows a convolution",
          "squeezenet b1": "the product's tiles, then packing patches",
          "MLP 784-512-512-10, b64": "the product's tiles, then Adam's four arrays, then packing of operands",
          "LeNet, b64": "the product's tiles, then packing patches, relu and its gradient, copies of rows"}


def judged(rows):
    """Each row with a goal: met, or what bounds it. The last cell is the ratio."""
    out = []
    for r in rows:
        if r[0] in GOALS and r[-1]:
            met = float(r[-1]) >= GOALS[r[0]]
            why = f"its time goes to {BOUNDS[r[0]]}" if r[0] in BOUNDS else "it was not profiled"
            out.append(f"- {r[0]}: {r[-1]}, goal {GOALS[r[0]]}: " + ("met" if met else f"missed; {why}") + ".")
    return out


def row(cells):
    return "| " + " | ".join(cells) + " |"


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    p.add_argument("build", type=pathlib.Path)
    p.add_argument("--rounds", type=int, default=5)
    a = p.parse_args()
    build = a.build.resolve()
    if hasattr(os, "sched_setaffinity"):  # all on one core, so that they meet the same noise
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    cpu = next((l.split(":", 1)[1].strip() for l in open("/proc/cpuinfo") if l.startswith("model name")), platform.machine())
    version = subprocess.run([build / "onemodel", "version"], capture_output=True, text=True).stdout.splitlines()[0]
    commit = subprocess.run(["git", "-C", ROOT, "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
    rows = tables(build, a.rounds)
    calls = eager(build, a.rounds)
    runs = sessions.table(build / "bench/bench_session", a.rounds)
    steps = train.table(build / "bench/bench_train", a.rounds)
    out = ["# Benchmarks", "",
           f"Written by `python3 bench/run.py`; {cpu}, {version}, commit {commit}, {a.rounds} rounds in turn, one thread, CPU time "
           "of that thread, best of all rounds. Exact arithmetic throughout: we have no faster one for products. A ratio above 1 means "
           "that OneModel is faster. torch.mm packs its weight in every call; ONNX Runtime and our sessions have it packed.", "",
           row(rows[0]), row(["---"] * len(rows[0]))]
    out += [row(r) for r in rows[1:]]
    slow = [r[0] for r in rows[1:] if len(r) > 3 and r[3] and float(r[3]) < 0.85]
    out += ["", "Rows below 0.85 of torch: " + (", ".join(slow) if slow else "none") + "."]
    out += ["", "## One untraced call on 4 elements and one row", "", "Nanoseconds, best of all rounds; ours includes the end of the scope that frees the result.", "",
            row(["call", "onemodel", "libtorch", "/libtorch"]), row(["---"] * 4)]
    lines = [[n, f"{o:.0f}", f"{t:.0f}" if t else "", f"{t / o:.2f}" if t else ""] for n, (o, t) in calls.items()]
    out += [*map(row, lines), "", *judged(lines)]
    for title, note, table in (
            ("Prepared runs of networks and single nodes", "Exact on our side; ONNX Runtime with all optimisations.", runs),
            ("Training steps", "Forward, loss, backward and Adam; the ratio is to the faster of torch's two Adams.", steps)):
        out += ["", f"## {title}", "", note, "", row(table[0]), row(["---"] * len(table[0])), *map(row, table[1:]), "", *judged(table[1:])]
    (ROOT / "docs/benchmarks.md").write_text("\n".join(out) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
