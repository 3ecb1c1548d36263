#!/usr/bin/env python3
"""Checks the dependency law of tools/layers.txt over every #include "..." of the tree.

    check_layers.py [ROOT]     prints each violation as file:line and the count; exit 1 when there is one

Also refuses: <onemodel/...> reaching src/, an include of a .c file, and in src/ the calls that the
project bans (they print, abort, or go around the one allocation function).
"""
import pathlib
import re
import sys

BANNED = re.compile(r"(?<![\w.>])(malloc|calloc|realloc|free|strcpy|strcat|sprintf|strtok|printf|abort|assert)\s*\(")
# Files that are themselves the exception: the allocator, and the one place that may exit.
ALLOWED = {"base/alloc.c", "base/error.c", "base/words.c"}
# What only base/os_posix*.c includes, and who else still does: types of the threads and files that base wraps for all
# others (CD-44). The list may only become shorter.
SYSTEM = re.compile(r"(unistd|fcntl|pthread|dirent|sched|dlfcn|locale|signal|time|poll)\.h$|sys/")
SYSTEM_USERS = {
    "base/os.h": {"signal.h"},
    "base/lock.h": {"pthread.h"},
    "base/thread.c": {"pthread.h"},
    "base/state.c": {"pthread.h"},
    "base/sys.h": {"sys/stat.h", "sys/types.h"},
    "base/file.c": {"fcntl.h"},
    "base/error.c": {"dlfcn.h"},
    "runtime/cache.c": {"time.h"},
}


def read_law(path):
    law = {}
    for line in path.read_text().splitlines():
        line = line.split("#")[0].strip()
        if line:
            folder, _, rest = line.partition(":")
            law[folder.strip()] = set(rest.split())
    return law


def strip_comments(text):
    keep_lines = lambda m: "\n" * m.group(0).count("\n")
    text = re.sub(r"/\*.*?\*/", keep_lines, text, flags=re.S)
    text = re.sub(r"//[^\n]*", "", text)
    return re.sub(r'"(\\.|[^"\\\n])*"', lambda m: m.group(0) if m.group(0).endswith('.h"') or m.group(0).endswith('.def"') else '""', text)


def check(root):
    law = read_law(root / "tools" / "layers.txt")
    bad = []
    for top in ("src", "cli", "examples"):
        for f in sorted((root / top).rglob("*.[ch]")):
            rel = f.relative_to(root)
            folder = rel.parts[1] if top == "src" else top
            if folder not in law:
                bad.append(f"{rel}: folder {folder} is not in tools/layers.txt")
                continue
            for n, line in enumerate(strip_comments(f.read_text()).splitlines(), 1):
                m = re.match(r'\s*#\s*include\s*["<]([^">]+)[">]', line)
                if m:
                    bad += [f"{rel}:{n}: {why}" for why in judge(m.group(1), folder, law, top)]
                    if top == "src" and asks_the_system(m.group(1), "/".join(rel.parts[1:])):
                        bad.append(f"{rel}:{n}: <{m.group(1)}> belongs behind base/os.h")
                elif top == "src" and BANNED.search(line) and "/".join(rel.parts[1:]) not in ALLOWED:
                    bad.append(f"{rel}:{n}: {BANNED.search(line).group(1)} is banned in src/")
    return bad


def asks_the_system(target, file):
    return bool(SYSTEM.match(target)) and not file.startswith("base/os_posix") and target not in SYSTEM_USERS.get(file, ())


def judge(target, folder, law, top):
    first = target.split("/")[0]
    if target.endswith(".c"):
        yield f"includes {target}"
    if first == "onemodel" or "/" not in target:
        return
    if first in law and top != "src" and first != folder:
        yield f"{top}/ stands on public headers only, but includes {target}"
    elif top == "src" and first in law and first != folder and first not in law[folder]:
        yield f"{folder} may not include {first} ({target})"


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent)
    bad = check(root)
    print("\n".join(bad))
    print(f"{len(bad)} violations")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
