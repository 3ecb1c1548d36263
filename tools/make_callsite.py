#!/usr/bin/env python3
"""Writes include/onemodel/callsite.h: macros that note file and line before each call (CD-14).

    make_callsite.py [ROOT] > include/onemodel/callsite.h

A function gets a macro when a public header declares it and OMI_ENTER is the first thing it does in
src/, or it is made of a row of unary.def or binary.def: only such a call takes its line along when it returns. om_forward has no frame while the module's function runs
and takes its line along itself (omi_forward_begin). Names come out in the order of the headers, so the
file changes only where the API does.
"""
import pathlib
import re
import sys

import families

HEADERS = ["tensor", "ops", "autograd", "nn", "optim", "graph", "onnx", "session", "trace"]

HEAD = '''/*
 * callsite.h -- opt-in, C only: errors and refused traces name the file and line of the call.
 *
 * Include it after the other headers. Each macro has the name of the function it calls, so taking a
 * function's address and passing it on still work. A call written over several lines may report any
 * of them: compilers differ.
 *
 * Made by tools/make_callsite.py. Do not edit.
 */
#ifndef ONEMODEL_CALLSITE_H
#define ONEMODEL_CALLSITE_H

#include <onemodel.h>

#ifndef __cplusplus
// clang-format off
'''
TAIL = '''// clang-format on
#endif

#endif
'''


def declared(root):
    for h in HEADERS:
        text = (root / "include/onemodel" / f"{h}.h").read_text()
        text = re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.S)
        for m in re.finditer(r"OM_API[^;(]*?\b(om_\w+)\s*\(", text):
            yield m.group(1)


def entered(root):
    names = set()
    for f in (root / "src").rglob("*.c"):
        names |= set(re.findall(r'\b(om_\w+)\([^;{}]*\)\s*\{\s*(?:\\\s*)?OMI_ENTER\("\1"\)', f.read_text()))
    families.ROOT = root
    if (root / "src/compute/unary.def").exists():  # those that macros make of rows
        names |= {f"om_{r['name']}" for r in families.operators()}
    return names | {"om_forward"}


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[1])
    can_fail = entered(root)
    out = [HEAD]
    for name in declared(root):
        if name in can_fail:
            out.append(f"#define {name}(...) (om_here_call(__FILE__, __LINE__), {name}(__VA_ARGS__))\n")
    print("".join(out) + TAIL, end="")


main()
