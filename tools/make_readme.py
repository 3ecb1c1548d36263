#!/usr/bin/env python3
"""Puts real output into README.md: the first program and what it prints, a tour of the command, the demo's hash.

    make_readme.py BUILD [--check]    BUILD holds examples/xor, examples/digits_cnn and the command

Everything between a marker comment <!-- name --> and its closing <!-- / --> is replaced. --check compares instead.
"""
import pathlib
import re
import subprocess
import sys
import tempfile

import families

ROOT = pathlib.Path(__file__).resolve().parent.parent


def run(folder, *args):
    r = subprocess.run([str(a) for a in args], capture_output=True, text=True, cwd=folder)
    if r.returncode:
        sys.exit(f"{args}: exit code {r.returncode}\n{r.stderr}")
    return r.stdout.rstrip("\n")


def fenced(text, language=""):
    return f"```{language}\n{text}\n```"


def parts(build):
    out = {"program": fenced((ROOT / "examples/xor.c").read_text().rstrip("\n"), "c")}
    with tempfile.TemporaryDirectory() as d:
        out["printed"] = fenced(run(d, build / "examples/xor"))
        tour = []
        for command in ("inspect xor.onnx", "run xor.onnx --input x=ones:shape=1x2",
                        "verify xor.onnx --isa scalar,avx2 --threads 1,2"):
            tour += [f"$ onemodel {command}", run(d, build / "onemodel", *command.split())]
        out["tour"] = fenced("\n".join(tour))
        demo = run(d, build / "examples/digits_cnn", "--dir", d, "--data", ROOT / "examples/data/digits.npy")
        digest = re.search(r"sha256\D*([0-9a-f]{64})", demo)
        out["digits"] = fenced(f"digits.onnx sha256 {digest[1]}")
    nodes = len(set(re.findall(r'^OM_NODE\("[^"]*", (\w+),', families.opset_text(), flags=re.M)))
    out["nodes"] = str(nodes)
    return out


def main():
    path = ROOT / "README.md"
    text = path.read_text()
    new = text
    for name, value in parts(pathlib.Path(sys.argv[1]).resolve()).items():
        line = "" if name == "nodes" else "\n"
        pattern = rf"(<!-- {name} -->).*?(<!-- / -->)"
        if not re.search(pattern, new, flags=re.S):
            sys.exit(f"README.md has no place for {name}")
        new = re.sub(pattern, lambda m: m[1] + line + value + line + m[2], new, flags=re.S)
    if "--check" in sys.argv:
        print("README.md is true" if new == text else "README.md is old: run tools/make_readme.py")
        print(f"{int(new == text)} passed, {int(new != text)} failed, 0 skipped")
        return new != text
    path.write_text(new)
    return 0


if __name__ == "__main__":
    sys.exit(main())
