#!/usr/bin/env python3
"""guide.py CC ROOT: every C block of docs/guide-tracing.md compiles, each in a function of its own."""
import pathlib
import re
import subprocess
import sys

cc, root = sys.argv[1], pathlib.Path(sys.argv[2])
given = """om_module *net, om_tensor *example, om_tensor *other_batch, om_graph *graph, om_session *session, om_tracer *tr,
om_tensor *x"""
text = (root / "docs/guide-tracing.md").read_text()
blocks = re.findall(r"^```c\n(.*?)^```", text, re.S | re.M)
code = "#include <onemodel.h>\n#include <stdio.h>\n"
for i, block in enumerate(blocks):
    own = [p for p in given.replace("\n", " ").split(", ") if not re.search(r"\*%s\b *=" % p.split("*")[1], block)]
    code += f"void block_{i}({', '.join(own)});\nvoid block_{i}({', '.join(own)}) {{\n{block}}}\n"
r = subprocess.run([cc, "-std=c11", "-Wall", "-Werror", "-Wno-unused-variable", "-Wno-unused-but-set-variable",
                    "-Wno-unused-parameter", "-I", str(root / "include"), "-x", "c", "-fsyntax-only", "-"],
                   input=code, text=True, capture_output=True)
print(r.stderr, end="")
print(f"{len(blocks) if r.returncode == 0 else 0} passed, {0 if r.returncode == 0 else len(blocks)} failed")
sys.exit(r.returncode or len(blocks) < 6)
