#!/usr/bin/env python3
"""Writes docs/operators.md from the lists of the code; with --check only compares.

Operators and attributes from src/ops/ops.def, ONNX nodes and refusals from src/trace/lower_*.c, node types and
Exact kernels from src/graphops/opset.def, gradients from tools/gradients.txt; all of these for the rows of
src/compute/unary.def and binary.def from there (families.py).
"""
import pathlib
import re
import sys

import families

ROOT = pathlib.Path(__file__).resolve().parent.parent


def operators():
    text = re.sub(r"/\*.*?\*/", "", families.ops_text(), flags=re.S)
    row = r"OM_OP\((\w+),\s*(\w+),\s*(\d+),\s*(\d+),\s*(\d+),\s*(\d+),\s*([^,]*),\s*([^\n]*)\)\s*$"
    for m in re.finditer(row, text, flags=re.M):
        fields = re.findall(r"OM_([IFDL])\((\w+)\)", m[7])
        kinds = {"I": "int", "F": "float", "D": "double", "L": "ints"}
        yield m[1], (int(m[3]), int(m[4]), int(m[5]), int(m[6])), [f"{n} {kinds[k]}" for k, n in fields]


def node_types():
    """type -> has an Exact step"""
    text = re.sub(r"/\*.*?\*/", "", families.opset_text(), flags=re.S)
    rows = re.finditer(r'^OM_NODE\("[^"]*", (\w+),.*?,\s*(\w+), [^,\n]*\)$', text, flags=re.M | re.S)
    return {m[1]: m[2] != "NULL" for m in rows}


def functions(text):
    """Bodies of the C functions of a file, by name."""
    out = {}
    for m in re.finditer(r"^\w[^\n;={]*?\b(\w+)\([^;{]*?\)\s*\{\n", text, flags=re.M):
        end = text.find("\n}", m.end())
        out[m[1]] = text[m.end():end]
    return out


def lowerings(types):
    """name -> (node types in order of appearance, refusal text, alias)"""
    rules, bodies, texts = {name: ([node], None, False) for name, node in families.lowerings().items()}, {}, []
    for f in sorted((ROOT / "src/trace").glob("*.c")):
        text = re.sub(r"//[^\n]*|/\*.*?\*/", "", f.read_text(), flags=re.S)
        bodies.update(functions(text))
        texts += [text] if f.name.startswith("lower_") else []
    for text in texts:
        def collect(name, seen):
            if name in seen or name not in bodies:
                return []
            seen.add(name)
            found = []
            for t in re.finditer(r'"(\w+)"|\b(\w+)\(', bodies[name]):
                found += [t[1]] if t[1] in types else collect(t[2], seen) if t[2] else []
            return found

        for m in re.finditer(r"om_lower_rule omi_lower_(\w+)\s*=\s*\{(.*?)\};", text, flags=re.S):
            if "##" in m[1]:
                continue
            emit = re.search(r"\.emit\s*=\s*(\w+)", m[2])
            refusal = "".join(re.findall(r'"([^"]*)"', m[2])) if ".refusal" in m[2] else None
            nodes = list(dict.fromkeys(collect(emit[1], set()))) if emit else []
            rules[m[1]] = (nodes, refusal, ".alias" in m[2])
    return rules


def arity(a):
    one = lambda lo, hi: str(lo) if lo == hi else f"{lo} or more" if hi == 255 else f"{lo} to {hi}"
    return f"{one(a[0], a[1])} → {one(a[2], a[3])}"


def main():
    types = node_types()
    rules = lowerings(types)
    gradients = dict(line.split(": ", 1) for line in (ROOT / "tools/gradients.txt").read_text().splitlines()
                     if line and not line.startswith("#"))
    twice = [r["name"] for r in families.operators() if r["name"] in gradients]
    gradients.update({r["name"]: r["gradient"] for r in families.unary() + families.binary() if r["gradient"]})
    ops = list(operators())
    problems = [f"{n}: no lowering found" for n, _, _ in ops if n not in rules]
    problems += [f"{n}: a line in tools/gradients.txt and a row of a family" for n in twice]
    problems += [f"{n}: no line in tools/gradients.txt" for n, _, _ in ops if n not in gradients]
    problems += [f"{n}: no such operator" for n in gradients if n not in {o[0] for o in ops}]
    out = ["# Operators", "",
           "Written by `tools/make_operators.py` from the lists of the code; do not edit. What each function takes is in "
           "`include/onemodel/ops.h`; composites (om_flatten, om_stack, om_mse_loss, om_cross_entropy, om_zeros_like, ...) are "
           "traced through their parts.", "",
           "Bits = rule: an eager operator *is* the node sequence it is traced to, rounded after each node (AR-7.1). "
           "y is the output, g its gradient, U(.) sums over the axes that broadcasting added, f(S64 .) is a float64 sum "
           "rounded once.", "",
           "| operator | inputs → outputs | attributes | gradient | ONNX nodes (opset 20) | Exact |", "|---|---|---|---|---|---|"]
    for name, a, fields in ops:
        nodes, refusal, alias = rules.get(name, ([], None, False))
        form = "none (alias)" if alias else f"refused: {refusal}" if refusal else ", ".join(nodes)
        exact = "-" if alias or refusal else "yes" if nodes and all(types.get(t) for t in nodes) else "no"
        out.append(f"| {name} | {arity(a)} | {', '.join(fields) or '-'} | {gradients.get(name, '?')} | {form} | {exact} |")
    out += ["", "## Node types that a session runs", "",
            "At opset 20, for the element types of `docs/arithmetic.md`; everything else is listed by `onemodel inspect` "
            "with its node's name.", "", ", ".join(sorted(types)) + ".", ""]
    text = "\n".join(out)
    path = ROOT / "docs/operators.md"
    if problems:
        print("\n".join(problems))
        return 1
    if "--check" in sys.argv:
        same = path.read_text() == text
        print("docs/operators.md is current" if same else "docs/operators.md is old: run tools/make_operators.py")
        return not same
    path.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
