#!/usr/bin/env python3
"""Work must grow with the size of a model, not with its square.

    run.py SCALE [--long] [KIND...]

Runs each kind of tests/scale/scale.c with 5,000 and 20,000 things under callgrind, which counts instructions and so does
not care how busy the machine is: 4 times the things may cost at most 4.6 times the instructions. --long: 100,000 of each,
once, without callgrind, within a minute. Ends with "N passed, N failed".
"""
import re
import shutil
import subprocess
import sys
import time

SMALL, LARGE, MOST = 5000, 20000, 4.6
args = [a for a in sys.argv[1:] if a != "--long"]
long, scale, wanted = "--long" in sys.argv, args[0], args[1:]
kinds = subprocess.run([scale, "--list"], capture_output=True, text=True, check=True).stdout.split()


def instructions(kind, n):
    r = subprocess.run(["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", scale, kind, str(n)],
                       capture_output=True, text=True)
    found = re.search(r"Collected : (\d+)", r.stderr)
    return int(found.group(1)) if found and r.returncode == 0 else None


def check(kind):
    if long:
        start = time.time()
        r = subprocess.run([scale, kind, "100000"], capture_output=True, text=True, timeout=600)
        took = time.time() - start
        return r.returncode == 0 and took < 60, f"100,000 in {took:.1f} s {r.stderr[-300:]}"
    a, b = instructions(kind, SMALL), instructions(kind, LARGE)
    if not a or not b:
        return False, "did not run"
    return b <= MOST * a, f"{b / a:.2f} times the instructions for 4 times as many ({a / 1e6:.0f} M, {b / 1e6:.0f} M)"


def main():
    if not long and not shutil.which("valgrind"):
        print(f"needs valgrind\n0 passed, 0 failed, {len(kinds)} skipped")
        return 0
    failed = 0
    for kind in wanted or kinds:
        ok, text = check(kind)
        failed += not ok
        print(f"{'ok  ' if ok else 'FAIL'} scale_{kind}: {text}", flush=True)
    print(f"{len(wanted or kinds) - failed} passed, {failed} failed")
    return failed


sys.exit(main() != 0)
