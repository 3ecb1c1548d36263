#!/usr/bin/env python3
"""Every fault of tests/found.txt names a test that ran, and every mutant of tests/mutants still applies.

    test_found.py BUILD_DIR

Runs last, over the logs that ./test leaves in BUILD_DIR (test-GROUP.log): a case counts when its log says OK. Without a
log of its group (./test house alone) the case must at least stand in a file of tests/. Ends with "N passed, N failed, N
skipped"; a row that is still open is a skipped case.
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(sys.argv[1])
COUNT = {"A": 12, "B": 18, "C": 22, "D": 17, "E": 9, "F": 34}  # rows of the inspection, by kind
results = {"passed": 0, "failed": 0, "skipped": 0}


def case(name, ok, detail=""):
    kind = "skipped" if ok is None else "passed" if ok else "failed"
    results[kind] += 1
    if kind != "passed":
        print(f"{'FAIL' if kind == 'failed' else 'skip'} {name}: {detail}")


def rows():
    for line in (ROOT / "tests/found.txt").read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            id_, group, *rest = line.split(None, 2)
            yield id_, group, rest[0].strip() if rest else ""


def sources():
    texts = {}
    for f in (ROOT / "tests").rglob("*"):
        if f.suffix in (".c", ".h", ".py", ".sh", ".txt", ".def") and f.name != "found.txt":
            texts[f] = f.read_text(errors="replace")
    texts[ROOT / "scripts/run_long.sh"] = (ROOT / "scripts/run_long.sh").read_text()
    return texts


def log_of(group):
    log = BUILD / f"test-{group}.log"
    return log.read_text(errors="replace") if log.exists() else None


def holds(group, name, logs, texts):
    """Whether the case ran and passed, and what is wrong when not."""
    standing = [f for f, t in texts.items() if name in t]
    if not standing:
        return False, f"no file of tests/ has the case '{name}'"
    if group not in logs:
        logs[group] = log_of(group)
    log = logs[group]
    if log is None or f"[       OK ] {name}" in log:
        return True, ""
    if f"[  FAILED  ] {name}" in log or f"[  ERROR   ] {name}" in log or re.search(r"FAIL:? .*" + re.escape(name), log):
        return False, f"'{name}' failed in group {group}"
    if f"[  SKIPPED ] {name}" in log:
        return None, f"'{name}' was skipped in group {group}"
    if any(f.suffix in (".py", ".sh") for f in standing):  # scripts print only what fails
        return True, ""
    return False, f"'{name}' did not run in group {group}"


def found():
    groups = {l.split()[0] for l in (ROOT / "tests/groups.txt").read_text().splitlines() if l and l[0] != "#"} | {"long"}
    texts, logs, seen = sources(), {}, set()
    for id_, group, name in rows():
        seen.add(id_.split(".")[0])
        if group == "open":
            case(id_, None, f"open: {name}")
        elif group not in groups:
            case(id_, False, f"there is no group '{group}'")
        else:
            case(id_, *holds(group, name, logs, texts))
    missing = [f"{k}{i}" for k, n in COUNT.items() for i in range(1, n + 1) if f"{k}{i}" not in seen]
    case("every row of the inspection is in tests/found.txt", not missing, str(missing))
    case("a case that does not exist is seen", holds("unit", "no_such" + "_case_here", {"unit": None}, texts)[0] is False)


def mutants():
    for patch in sorted((ROOT / "tests/mutants").glob("*.patch")):
        text = patch.read_text()
        head = re.search(r"^# test: (\S+) (\S.*)$", text, re.M)
        r = subprocess.run(["patch", "-p1", "--dry-run", "-s", "-f", "-d", ROOT, "-i", patch], capture_output=True, text=True)
        case(f"mutant {patch.stem} applies and names its test", bool(head) and r.returncode == 0, r.stdout.strip()[:300])


found()
mutants()
print("%(passed)d passed, %(failed)d failed, %(skipped)d skipped" % results)
sys.exit(results["failed"] != 0)
