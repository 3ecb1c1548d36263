"""The rows of src/compute/unary.def and binary.def, as the other lists include them: for tools that read those as text."""
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent
UNARY = "name ID types saves loop made node since node_types attributes gradient".split()
BINARY = "name OP ID types result saves backward loop kernel made node since node_types gradient".split()
OPERATORS = {"WHOLE", "CALLED", "COMPOSED", "MANY"}  # what is an operator of its own
NODES = {"OM_UNARY": {"WHOLE", "CALLED", "NODE"}, "OM_BINARY": {"WHOLE"}}  # and a row of opset.def


def split_args(text):
    """Arguments at the top level of a macro call, and the text behind its closing parenthesis."""
    out, depth, word, quoted = [], 0, "", False
    for k, c in enumerate(text):
        quoted ^= c == '"'
        depth += (not quoted) * ((c == "(") - (c == ")"))
        if depth < 0:
            return out + [word.strip()], text[k + 1:]
        if c == "," and depth == 0 and not quoted:
            out.append(word.strip())
            word = ""
        else:
            word += c
    raise SystemExit("a row does not end")


def rows(kind, columns):
    text = (ROOT / f"src/compute/{kind}.def").read_text()
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    for m in re.finditer(rf"^OM_{kind.upper()}\(", text, flags=re.M):
        row = dict(zip(columns, split_args(text[m.end():])[0], strict=True))
        row["macro"], row["gradient"] = f"OM_{kind.upper()}", row["gradient"].strip('"')
        yield row


def unary():
    return list(rows("unary", UNARY))


def binary():
    return list(rows("binary", BINARY))


def operators():
    """The rows that are operators."""
    return [r for r in unary() + binary() if r["made"] in OPERATORS]


def _expand(path, one):
    text = (ROOT / path).read_text()
    for kind, made in (("unary", unary), ("binary", binary)):
        text = text.replace(f'#include "compute/{kind}.def"', "\n".join(filter(None, map(one, made()))))
    return re.sub(r"^#define [^\n]*(\\\n[^\n]*)*\n", "", text, flags=re.M)


def ops_text():
    """src/ops/ops.def with the rows that it includes."""
    def one(r):
        n = 2 if r["macro"] == "OM_BINARY" else 1
        return f"OM_OP({r['name']}, {r.get('OP', r['ID'])}, {n}, {n}, 1, 1, OM_NONE, OM_NONE)" if r["made"] in OPERATORS else ""
    return _expand("src/ops/ops.def", one)


def opset_text():
    """src/graphops/opset.def with the rows that it includes."""
    def one(r):
        if r["made"] not in NODES[r["macro"]]:
            return ""
        t = f"T({r['node_types']})"
        if r["macro"] == "OM_UNARY":
            return (f'OM_NODE("", {r["node"]}, {r["since"]}, 0, IN({t}), OUT(SAME), {r["attributes"]},\n'
                    f'        omi_parse_unary, omi_infer_unary, omi_fold_known, omi_sel_unary, OM_U_{r["ID"]})')
        out = "OF(BOOL)" if r["result"] == "BOOLS" else "SAME"
        return (f'OM_NODE("", {r["node"]}, {r["since"]}, 0, IN({t}, {t}), OUT({out}), NO_ATTRS,\n'
                f'        omi_parse_none, omi_infer_binary, omi_fold_known, omi_sel_binary, OM_B_{r["ID"]})')
    return _expand("src/graphops/opset.def", one)


def lowerings():
    """operator -> node, for those that are lowered to one node by their row."""
    return {r["name"]: r["node"] for r in operators() if r["made"] in ("WHOLE", "MANY")}
