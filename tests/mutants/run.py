#!/usr/bin/env python3
"""Mutants: each patch beside this file is one fault of one line; the test that it names must notice.

    run.py [--build DIR] [--table FILE] [NAME...]

A copy of the tree is built once and every named test must pass on it. Then each patch in turn is applied to the copy,
built incrementally, and only its test program is run. A mutant is killed when that program reports a failed assertion of
the named case, or a sanitizer speaks. A crash alone is no kill, nor is a patch that no longer applies or builds.

A patch begins with two lines,
    # test: GROUP.NAME CASE        the ctest name of a test program, and the cmocka case that fails
    # fault: what the line does wrong
Ends with "N passed, N failed": killed, and survived or spoilt.
"""
import argparse
import filecmp
import pathlib
import re
import shutil
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
FOLDERS = ["src", "include", "tests", "cmake", "cli", "examples", "bench", "tools", "docs", "scripts"]
SPOKE = re.compile(r"(Address|UndefinedBehavior|Thread|Leak)Sanitizer|runtime error:")


def run(args, **more):
    try:
        return subprocess.run([str(a) for a in args], capture_output=True, text=True, errors="replace", timeout=900, **more)
    except subprocess.TimeoutExpired as e:
        return subprocess.CompletedProcess(args, 124, (e.stdout or b"").decode(errors="replace"), "timed out")


class Mutant:
    def __init__(self, path):
        text = path.read_text()
        self.path, self.name = path, path.stem
        self.test, self.case = re.search(r"^# test: (\S+) (\S+)", text, re.M).groups()
        self.fault = re.search(r"^# fault: (.*)$", text, re.M).group(1)
        self.files = re.findall(r"^\+\+\+ b/(\S+)", text, re.M)


class Copy:
    """A tree of its own beside the build, so that what is mutated is never what a person edits."""

    def __init__(self, folder):
        self.tree, self.build = folder / "tree", folder / "build"
        self.tree.mkdir(parents=True, exist_ok=True)
        for f in FOLDERS:
            self.sync(ROOT / f, self.tree / f)
        for f in ROOT.glob("*"):
            if f.is_file():
                shutil.copy2(f, self.tree / f.name)
        r = run(["cmake", "-S", self.tree, "-B", self.build, "-G", "Ninja" if shutil.which("ninja") else "Unix Makefiles",
                 "-DCMAKE_BUILD_TYPE=Release", "-DOM_TESTS=ON"])
        if r.returncode:
            sys.exit(r.stdout[-2000:] + r.stderr[-2000:])

    def sync(self, source, copy):
        """Only files that differ are written, so that the next build is incremental and misses nothing."""
        copy.mkdir(parents=True, exist_ok=True)
        for f in source.iterdir():
            to = copy / f.name
            if f.is_dir():
                self.sync(f, to)
            elif not to.exists() or not filecmp.cmp(f, to, shallow=False):
                shutil.copyfile(f, to)
                shutil.copymode(f, to)
        for f in copy.iterdir():
            if not (source / f.name).exists():
                shutil.rmtree(f) if f.is_dir() else f.unlink()

    def target(self, test):
        """The program of a test: several tests may share one."""
        for f in self.build.glob("tests/*/CTestTestfile.cmake"):
            found = re.search(r"add_test\(" + re.escape(test) + r' "[^"]*/([^"/]+)"', f.read_text())
            if found:
                return found.group(1)
        return "test_" + test.split(".", 1)[1]

    def make(self, test):
        return run(["cmake", "--build", self.build, "--target", self.target(test), "-j2"])

    def try_test(self, test):
        return run(["ctest", "--test-dir", self.build, "-V", "-R", "^" + re.escape(test) + "$"])

    def restore(self, files):
        for f in files:
            shutil.copyfile(ROOT / f, self.tree / f)  # a new time, so that it is built again


def judge(copy, m):
    """killed, survived or what was wrong."""
    p = run(["patch", "-p1", "-s", "-f", "--no-backup-if-mismatch", "-d", copy.tree, "-i", m.path])
    if p.returncode:
        return "does not apply"
    try:
        if copy.make(m.test).returncode:
            return "does not build"
        r = copy.try_test(m.test)
        if re.search(r"\[  (FAILED |ERROR  ) \] " + re.escape(m.case) + r"\b", r.stdout) or SPOKE.search(r.stdout):
            return "killed"
        return "survived" if r.returncode == 0 else "crashed without an assertion"
    finally:
        copy.restore(m.files)


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--build", default=str(ROOT / "build/mutants"))
    a.add_argument("--table")
    a.add_argument("names", nargs="*")
    args = a.parse_args()
    mutants = [Mutant(p) for p in sorted(HERE.glob("*.patch")) if not args.names or p.stem in args.names]
    copy, rows, bad = Copy(pathlib.Path(args.build)), [], 0
    for test in sorted({m.test for m in mutants}):
        made = copy.make(test)
        r = copy.try_test(test)
        if made.returncode or r.returncode or "100% tests passed" not in r.stdout:
            sys.exit(f"{test} does not pass without a mutant:\n{made.stdout[-1500:]}{r.stdout[-1500:]}")
    for m in mutants:
        start = time.time()
        verdict = judge(copy, m)
        bad += verdict != "killed"
        rows.append(f"| {m.name} | {m.fault} | {m.test} {m.case} | {verdict} |")
        print(f"{m.name}: {verdict} ({time.time() - start:.0f} s)", flush=True)
    if args.table:
        head = "| mutant | fault | test | verdict |\n|---|---|---|---|\n"
        pathlib.Path(args.table).write_text(head + "\n".join(rows) + "\n")
    print(f"{len(mutants) - bad} passed, {bad} failed")
    sys.exit(bad != 0)


main()
