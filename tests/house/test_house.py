#!/usr/bin/env python3
"""The rules of the house, each with a fixture it must reject: dependency law, exports, format.

    test_house.py BUILD_DIR

Ends with "N passed, N failed, N skipped".
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(sys.argv[1])
results = {"passed": 0, "failed": 0, "skipped": 0}


def case(name, ok, detail=""):
    kind = "skipped" if ok is None else "passed" if ok else "failed"
    results[kind] += 1
    if kind != "passed":
        print(f"{'FAIL' if kind == 'failed' else 'skip'} {name}: {detail}")


def run(*args):
    return subprocess.run([str(a) for a in args], capture_output=True, text=True)


def layers():
    r = run(sys.executable, ROOT / "tools/check_layers.py", ROOT)
    case("the tree keeps the dependency law", r.returncode == 0, r.stdout)
    for file, text, what in [
        ("src/base/a.c", '#include "tensor/tensor.h"\n', "base may not include tensor"),
        ("src/ops/a.c", '#include "trace/lower.h"\n', "ops may not include trace"),
        ("src/graph/a.c", '#include "tensor/tensor.h"\n', "graph may not include tensor"),
        ("cli/a.c", '#include "graph/graph.h"\n', "public headers only"),
        ("src/nn/a.c", "void f(void) { abort(); }\n", "abort is banned"),
        ("src/ops/a.c", "#include <unistd.h>\n", "belongs behind base/os.h"),
        ("src/base/map.c", "#include <sys/mman.h>\n", "belongs behind base/os.h"),
        ("src/zoo/a.c", "\n", "not in tools/layers.txt"),
    ]:
        with tempfile.TemporaryDirectory() as d:
            d = pathlib.Path(d)
            for folder in ("src", "cli", "examples", "tools"):
                (d / folder).mkdir()
            shutil.copy(ROOT / "tools/layers.txt", d / "tools/layers.txt")
            (d / file).parent.mkdir(parents=True, exist_ok=True)
            (d / file).write_text(text)
            r = run(sys.executable, ROOT / "tools/check_layers.py", d)
            case(f"rejected: {what}", r.returncode == 1 and what in r.stdout, r.stdout)


def public_functions():
    names = set()
    for h in sorted((ROOT / "include").rglob("*.h")):
        text = re.sub(r"/\*.*?\*/", "", h.read_text(), flags=re.S)
        names |= set(re.findall(r"OM_API[^;]*?\b(om_\w+)\s*\(", text))
    return names


def exported(library):
    r = run("nm", "-D", "--defined-only", library)
    return {l.split()[2] for l in r.stdout.splitlines() if len(l.split()) == 3}


def exports():
    library = next(iter(sorted(BUILD.glob("libonemodel.so"))), None)
    if not library or not shutil.which("nm"):
        case("exports", None, "no shared library or no nm")
        return
    have, listed = exported(library), set((ROOT / "tools/exports.txt").read_text().split())
    case("exported symbols are those of tools/exports.txt", have == listed,
         f"extra {sorted(have - listed)[:8]}, missing {sorted(listed - have)[:8]}")
    declared = public_functions()
    case("every declared function is exported", declared <= have, f"not defined: {sorted(declared - have)[:20]}")
    case("nothing is exported that no header declares", have <= declared, f"{sorted(have - declared)[:20]}")
    case("a missing symbol would be seen", have != listed | {"om_no_such_function"})
    r = run("ldd", library)
    needs = {l.split()[0].split("/")[-1].split(".")[0] for l in r.stdout.splitlines() if l.strip()}
    case("the library needs libc, libm, pthreads only",
         needs <= {"libc", "libm", "libpthread", "libdl", "linux-vdso", "ld-linux-x86-64", "ld-linux-aarch64"}, str(needs))


def formatting():
    tool = shutil.which("clang-format-14") or shutil.which("clang-format")
    if not tool:
        case("format", None, "no clang-format")
        return
    files = [f for top in ("src", "include", "cli", "examples", "tests", "bench") for f in sorted((ROOT / top).rglob("*.[ch]"))]
    bad = [str(f.relative_to(ROOT)) for f in files if run(tool, "--dry-run", "-Werror", f).returncode]
    case("every C file is formatted by .clang-format", not bad, f"{len(bad)} files: {bad[:8]}")
    with tempfile.TemporaryDirectory() as d:
        shutil.copy(ROOT / ".clang-format", d)
        f = pathlib.Path(d) / "bad.c"
        f.write_text("int  f( void ){return 1 ;}\n")
        case("a badly formatted file is rejected", run(tool, "--dry-run", "-Werror", f).returncode != 0)


def no_machine_paths():
    # Assembled, so that this file does not find itself.
    words = ["/wo" + "rk/", "/ro" + "ot/", ".lib" + "rary"]
    bad = []
    if not shutil.which("git") or not (ROOT / ".git").exists():
        case("no machine paths", None, "not a git checkout")
        return
    for f in run("git", "-C", ROOT, "ls-files").stdout.split():
        try:
            text = (ROOT / f).read_text()
        except (UnicodeDecodeError, FileNotFoundError):
            continue
        bad += [f for w in words if w in text]
    case("no file carries a path of a machine", not bad, str(bad))


def one_reader_of_options():
    """Every option struct goes through base/opts.h: nobody else looks at a caller's struct_size."""
    bad = [str(f.relative_to(ROOT)) for f in sorted((ROOT / "src").rglob("*.c")) if re.search(r"(->|\bo\.|opts\.)struct_size", f.read_text())]
    case("option structs have one reader", not bad, f"{bad}: use OMI_OPTS of base/opts.h")
    text = "".join(f.read_text() for f in (ROOT / "include").rglob("*.h"))
    structs = re.findall(r"typedef struct (om_\w+) \{\s*uint32_t struct_size;", text)
    tested = (ROOT / "tests/nn/test_opts.c").read_text()
    missing = [s for s in structs if f"sizeof({s})" not in tested and s not in ("om_checkpoint", "om_custom_op")]
    case("every option struct is in test_opts.c", len(structs) > 12 and not missing, str(missing))


def locale_faults(top, text):
    """What would let the host's locale into a number, as a list of the words found."""
    text = re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.S)
    bad = re.findall(r"\b(setlocale|localeconv|strto(?:d|f|ld)|atof|strftime|is(?:alpha|alnum|print|space)|to(?:lower|upper))\s*\(", text)
    if top == "src":
        bad += re.findall(r"\b(v\w*printf)\s*\(", text)
        calls = re.findall(r"\b(f?s?n?printf)\s*(\((?:[^;\"]|\"(?:\\.|[^\"\\])*\")*;)", text)
        bad += [name for name, call in calls if re.search(r"%[-+ #0-9.*]*L?[aAeEfFgG]", call)]
    return bad


def no_locale():
    """src/ formats numbers by omi_vformat (base/str.h) only; the programs never leave the C locale."""
    files = [(top, f) for top in ("src", "cli", "examples") for f in sorted((ROOT / top).rglob("*.[ch]"))]
    bad = {str(f.relative_to(ROOT)): locale_faults(top, f.read_text()) for top, f in files
           if f.name != "os_posix.c"}
    bad = {f: b for f, b in bad.items() if b}
    case("no number goes through the host's locale", not bad, str(bad))
    for text in ('snprintf(t, sizeof t, "%s (%d)" " %.3g", s, 1, v);', "vsnprintf(t, n, fmt, ap);", "x = strtod(s, &end);"):
        case(f"rejected: {text}", locale_faults("src", text))
    case("integers pass", not locale_faults("src", 'snprintf(t, n, "%d;%d", 1);'))


def macros_of(compiler, flags):
    """The extensions these flags let a compiler use, beyond those of every x86-64, by flag name."""
    defined = lambda f: set(re.findall(r"#define __([A-Z0-9_]+)__ 1$", run(compiler, *f, "-dM", "-E", "-x", "c", "/dev/null").stdout, re.M))
    return {m.lower() for m in defined(flags) - defined([])} - {"crc32"}  # part of sse4_2


def columns():
    """base/cpu.c looks for exactly the extensions that the flags of each column let the compiler use."""
    cmake = (ROOT / "src/kernels/CMakeLists.txt").read_text()
    code = (ROOT / "src/base/cpu.c").read_text()
    flags = {c: re.search(rf"set\({c} ([^)]*)\)", cmake).group(1) for c in ("avx2", "avx512")}
    flags["avx512"] = flags["avx512"].replace("${avx2}", flags["avx2"])
    case("columns are built by single extensions", "-march" not in re.sub(r"#.*", "", cmake))
    for compiler in ("gcc", "clang-14"):
        if not shutil.which(compiler) or "__x86_64__" not in run(compiler, "-dM", "-E", "-x", "c", "/dev/null").stdout:
            case(f"extensions of {compiler}", None, "no such compiler for x86-64")
            continue
        for column, isas in (("avx2", "AVX2"), ("avx512", "AVX2|AVX512")):
            looked = set(re.findall(rf'\{{"([a-z0-9_]+)", OM_ISA_(?:{isas}),', code))
            used = macros_of(compiler, flags[column].split())
            case(f"every extension of the {column} column is looked for ({compiler})", used == looked,
                 f"not looked for: {sorted(used - looked)}; not in the flags: {sorted(looked - used)}")
    case("the builtin is not asked", "__builtin_cpu_supports" not in code)


def element_types(root):
    """What is wrong with code over element types: names outside the list, last cases that must be the other type."""
    bad, types = [], r"case OM_(F32|F64|I64|I32|U8|BOOL):|dtype\.def"
    fails = r"omi_no_type|omi_fail|OM_FAIL|return (NULL|-1|false);"
    for f in sorted((root / "src").rglob("*.[ch]")):
        text = re.sub(r"/\*.*?\*/|//[^\n]*", "", f.read_text(), flags=re.S)
        for m in re.finditer(r"\bswitch \(", text):
            end = text.index("{", m.start()) + 1
            depth = 1
            while depth and end < len(text):
                depth += {"{": 1, "}": -1}.get(text[end], 0)
                end += 1
            body = text[m.start():end]
            if not re.search(types, body) or "case OM_DTYPE_NONE:" in body:
                continue
            last = body.rsplit("default:", 1)
            if len(last) < 2 or not re.search(fails, last[1]):
                bad.append(f"{f.name}: a switch over types whose default does not fail")
        if re.search(r"\b(es|size) == [28]\b", text):
            bad.append(f"{f.name}: moves by size without OM_BY_SIZE")
        if re.search(r'"(float32|float64|int64|int32|uint8)"|"[<|][fiub][1248]"', text):
            bad.append(f"{f.name}: names an element type; dtype.def does")
    return bad


def one_list_of_types():
    bad = element_types(ROOT)
    case("element types are one list", not bad, str(bad))
    for text, what in [
        ("int f(int t) {\n switch (t) {\n case OM_F32:\n return 4;\n default:\n return 1;\n }\n}\n", "does not fail"),
        ("void f(int es) {\n if (es == 4) a();\n else if (es == 8) b();\n else c();\n}\n", "OM_BY_SIZE"),
        ('const char *f(void) {\n return "int64";\n}\n', "dtype.def does"),
    ]:
        with tempfile.TemporaryDirectory() as d:
            (pathlib.Path(d) / "src").mkdir()
            (pathlib.Path(d) / "src/a.c").write_text(text)
            found = element_types(pathlib.Path(d))
            case(f"rejected: {what}", len(found) == 1 and what in found[0], str(found))


STATIC = re.compile(r"^static\s+(?:(?:inline|const|unsigned|struct|_Atomic|_Thread_local|OM_\w+|__attribute__\(\(\w+\)\))\s+)*"
                    r"\w+[\s*]+(?:const\s+)?(\w+)\s*[\[(=;]", re.M)


def shared_statics(texts):
    """Names that two files give to something of their own: {name: files}. The columns of kernels/ are alike by design."""
    files = {}
    for f, text in texts.items():
        for name in set(STATIC.findall(text)) - {"OM_UNUSED"}:
            files.setdefault(name, []).append(str(f))
    return {name: sorted(f) for name, f in files.items() if len(f) > 1}


def unique_statics():
    texts = {f.relative_to(ROOT): f.read_text() for f in (ROOT / "src").rglob("*.[ch]") if "kernels" not in f.parts}
    bad = shared_statics(texts)
    case("a static has its name alone in the library", not bad, str(bad))
    seen = shared_statics({"a.c": "static OM_COLD om_status grow(om_vec *v) {\n", "b.c": "static int grow[3] = {0};\nstatic bool own(void) {\n",
                           "c.c": "int grow(void);\n"})
    case("rejected: one name in two files", seen == {"grow": ["a.c", "b.c"]}, str(seen))


def missing_oracle():
    """Where the oracle's venv cannot be made, ./test says why and where the whole log is."""
    with tempfile.TemporaryDirectory() as d:
        d = pathlib.Path(d)
        for folder in ("scripts", "tests", "bin", "build/test"):
            (d / folder).mkdir(parents=True)
        for f in ("scripts/run_tests.sh", "scripts/count_tests.awk"):
            shutil.copy(ROOT / f, d / f)
        (d / "scripts/bootstrap.sh").write_text(
            'om_jobs=1\nom_say() { echo "$@"; }\nom_bootstrap() { :; }\nom_build() { :; }\n')
        (d / "tests/groups.txt").write_text("oracle oracle models against others\n")
        (d / "tests/floor.txt").write_text("oracle 1\n")
        (d / "tests/requirements.txt").write_text("onnx==0 --hash=sha256:0\n")
        (d / "bin/python3").write_text("#!/bin/sh\necho first\necho 'ensurepip is not available' >&2\nexit 1\n")
        (d / "bin/python3").chmod(0o755)
        r = subprocess.run(["sh", "scripts/run_tests.sh"], cwd=d, capture_output=True, text=True,
                           env={**os.environ, "PATH": f"{d / 'bin'}:{os.environ['PATH']}"})
        case("the oracle is skipped by name", "skipped: oracle" in r.stdout, r.stdout + r.stderr)
        case("it says why the venv could not be made", "could not be made: ensurepip is not available" in r.stdout
             and "build/venv.log" in r.stdout, r.stdout + r.stderr)


def generated():
    r = run(sys.executable, ROOT / "tools/make_operators.py", "--check")
    case("docs/operators.md is what the lists give", r.returncode == 0, r.stdout)
    made = run(sys.executable, ROOT / "tools/make_callsite.py", ROOT).stdout
    kept = (ROOT / "include/onemodel/callsite.h").read_text()
    case("callsite.h is what make_callsite.py writes", made == kept,
         "tools/make_callsite.py > include/onemodel/callsite.h")
    with tempfile.TemporaryDirectory() as d:
        d = pathlib.Path(d)
        shutil.copytree(ROOT / "include", d / "include")
        (d / "src").mkdir()
        (d / "src/a.c").write_text('om_tensor *om_relu(om_tensor *x) {\n    OMI_ENTER("om_relu");\n}\n')
        made = run(sys.executable, ROOT / "tools/make_callsite.py", d).stdout
        case("a function that no longer enters loses its macro", "om_relu(...)" in made and "om_exp(...)" not in made)


for group in (layers, exports, formatting, one_reader_of_options, no_locale, columns, one_list_of_types, unique_statics,
              missing_oracle, generated, no_machine_paths):
    group()
print("%(passed)d passed, %(failed)d failed, %(skipped)d skipped" % results)
sys.exit(results["failed"] != 0)
