#!/usr/bin/env python3
"""Writes tests/runtime/nodes.txt: one small graph per node type and attribute, with ONNX Runtime's answer.

    make_node_cases.py > tests/runtime/nodes.txt        (needs numpy, onnx, onnxruntime)

Cases avoid what ONNX Runtime and docs/arithmetic.md answer differently by design: NaN in ReduceMax,
MaxPool and ArgMax, casts of NaN or out of range, means of nothing. Each is made once, from a fixed seed.
"""
import sys

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

NAMES = {"float32": "float32", "float64": "float64", "int64": "int64", "int32": "int32", "uint8": "uint8",
         "bool": "bool"}
rng = np.random.default_rng(20)
cases = []


def f(*shape, lo=-2, hi=2):
    return rng.uniform(lo, hi, shape).astype(np.float32)


def i64(*v):
    return np.array(v, np.int64)


def case(name, nodes, inputs, outputs, consts=None, opset=20):
    cases.append((name, nodes, inputs, outputs, consts or {}, opset))


def n(op, ins, outs, **attrs):
    return helper.make_node(op, ins.split(), outs.split(), name="op_" + outs.split()[0], **attrs) if "_" not in \
        ins.split() else helper.make_node(op, ["" if w == "_" else w for w in ins.split()], outs.split(),
                                          name="op_" + outs.split()[0], **attrs)


X23 = f(2, 3)
SPECIAL = np.array([0.0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 1e-40, 88.5, -103.5, 0.5, 3], np.float32)

# one operand
for op, x in [("Neg", SPECIAL), ("Abs", SPECIAL), ("Exp", SPECIAL), ("Log", f(7, lo=0.01)), ("Sqrt", f(7, lo=0)),
              ("Tanh", SPECIAL), ("Sigmoid", SPECIAL), ("Erf", SPECIAL), ("Relu", SPECIAL), ("Gelu", f(33, lo=-6, hi=6)),
              ("Reciprocal", f(9, lo=0.5)), ("Sin", f(9)), ("Cos", f(9)), ("Softmax", f(3, 5)),
              ("LogSoftmax", f(3, 5)), ("GlobalAveragePool", f(2, 3, 4, 5)), ("GlobalMaxPool", f(2, 3, 4, 5)),
              ("Identity", X23), ("Flatten", f(2, 3, 4)), ("Transpose", f(2, 3, 4)), ("Shape", f(2, 3, 4)),
              ("Size", f(2, 3, 4))]:
    case(op, [n(op, "x", "y")], {"x": x}, ["y"])
case("Gelu_tanh", [n("Gelu", "x", "y", approximate="tanh")], {"x": f(33, lo=-6, hi=6)}, ["y"])
case("Not", [n("Not", "x", "y")], {"x": np.array([True, False])}, ["y"])
for op in ("Neg", "Abs"):
    case(op + "_int64", [n(op, "x", "y")], {"x": i64(0, 5, -7)}, ["y"])
    case(op + "_int32", [n(op, "x", "y")], {"x": np.array([0, 5, -7], np.int32)}, ["y"])
for op in ("Neg", "Abs", "Sqrt"):
    case(op + "_float64", [n(op, "x", "y")], {"x": np.array([0, 5, 2.5])}, ["y"])

# two operands, broadcasting, types
for op in ("Add", "Sub", "Mul", "Div", "Max", "Min", "Sum", "Mean", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"):
    case(op, [n(op, "a b", "y")], {"a": f(2, 1, 3), "b": f(4, 1)}, ["y"])
case("Equal", [n("Equal", "a b", "y")], {"a": SPECIAL, "b": SPECIAL[::-1].copy()}, ["y"])
for op in ("Add", "Sub", "Mul", "Div", "Max", "Min", "Less", "Greater", "Equal"):
    for t in (np.int64, np.int32):
        case(f"{op}_{np.dtype(t)}", [n(op, "a b", "y")],
             {"a": np.array([[7, -7, 3, 2**31 - 1]], t), "b": np.array([[2, 2, -2, 3], [1, -1, 3, 2]], t)}, ["y"])
for op in ("Add", "Sub", "Mul", "Div"):
    case(op + "_float64", [n(op, "a b", "y")], {"a": np.array([1.5, 2e300]), "b": np.array([3.0, 1e-10])}, ["y"])
for op in ("And", "Or", "Xor"):
    case(op, [n(op, "a b", "y")], {"a": np.array([[True], [False]]), "b": np.array([True, False])}, ["y"])
for op in ("Max", "Min", "Sum", "Mean"):
    case(op + "_three", [n(op, "a b c", "y")], {"a": f(2, 3), "b": f(3), "c": f(2, 1)}, ["y"])
    case(op + "_one", [n(op, "a", "y")], {"a": f(2, 3)}, ["y"])
case("Where", [n("Where", "c a b", "y")], {"c": np.array([[True], [False]]), "a": f(3), "b": f(2, 3)}, ["y"])
case("Where_int64", [n("Where", "c a b", "y")], {"c": np.array([True, False]), "a": i64(1, 2), "b": i64(3)}, ["y"])
lo, hi = np.float32(-0.5), np.float32(0.75)
case("Clip", [n("Clip", "x lo hi", "y")], {"x": X23}, ["y"], {"lo": lo, "hi": hi})
case("Clip_low", [n("Clip", "x lo", "y")], {"x": X23}, ["y"], {"lo": lo})
case("Clip_high", [n("Clip", "x _ hi", "y")], {"x": X23, "hi": hi}, ["y"])
case("Clip_attributes", [n("Clip", "x", "y", min=-0.5, max=0.25)], {"x": X23}, ["y"], opset=10)
case("Clip_int64", [n("Clip", "x lo hi", "y")], {"x": i64(-9, 0, 9)}, ["y"], {"lo": np.int64(-1), "hi": np.int64(2)})
for a, b in [("float32", "int64"), ("float32", "bool"), ("int64", "float32"), ("bool", "float32"), ("float32", "float64"),
             ("float64", "float32"), ("int64", "int32"), ("float32", "uint8"), ("uint8", "int32"), ("int64", "int64")]:
    x = np.array([0, 1, 3, 2.75, 100], np.float64).astype(a)
    case(f"Cast_{a}_{b}", [n("Cast", "x", "y", to=helper.np_dtype_to_tensor_dtype(np.dtype(b)))], {"x": x}, ["y"])
case("CastLike", [n("CastLike", "x t", "y")], {"x": X23, "t": i64(1)}, ["y"])

# products
for sa, sb in [((2, 3), (3, 4)), ((5, 2, 3), (3, 4)), ((5, 2, 3), (5, 3, 4)), ((1, 2, 3), (5, 3, 1)), ((3,), (3,)),
               ((3,), (3, 4)), ((2, 3), (3,)), ((4, 2, 3), (3,)), ((3,), (4, 3, 2)), ((2, 0), (0, 3)), ((7, 70), (70, 18))]:
    nm = "x".join(map(str, sa)) + "_" + "x".join(map(str, sb))
    case("MatMul_" + nm, [n("MatMul", "a b", "y")], {"a": f(*sa), "b": f(*sb)}, ["y"])
    case("MatMul_const_" + nm, [n("MatMul", "a b", "y")], {"a": f(*sa)}, ["y"], {"b": f(*sb)})
case("MatMul_int64", [n("MatMul", "a b", "y")], {"a": i64(1, 2, 3, 4).reshape(2, 2), "b": i64(5, 6, 7, 8).reshape(2, 2)}, ["y"])
case("MatMul_float64", [n("MatMul", "a b", "y")], {"a": f(2, 3).astype(float), "b": f(3, 2).astype(float)}, ["y"])
case("Gemm", [n("Gemm", "a b c", "y", alpha=0.5, beta=2.0)], {"a": f(3, 4), "b": f(4, 5), "c": f(5)}, ["y"])
case("Gemm_transposed", [n("Gemm", "a b c", "y", transA=1, transB=1)], {"a": f(4, 3)}, ["y"], {"b": f(5, 4), "c": f(3, 1)})
case("Gemm_no_c", [n("Gemm", "a b", "y", transB=1)], {"a": f(3, 4), "b": f(5, 4)}, ["y"])
case("Gemm_scalar_c", [n("Gemm", "a b c", "y")], {"a": f(3, 4), "b": f(4, 5), "c": np.float32(2)}, ["y"])

# reductions
for op in ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceSumSquare"):
    case(op, [n(op, "x", "y", keepdims=0)], {"x": f(2, 3, 4)}, ["y"])
    case(op + "_axes", [n(op, "x a", "y", keepdims=0)], {"x": f(2, 3, 4)}, ["y"], {"a": i64(-2, 0)})
    case(op + "_keep", [n(op, "x a", "y")], {"x": f(2, 3, 4)}, ["y"], {"a": i64(1)})
    case(op + "_noop", [n(op, "x a", "y", noop_with_empty_axes=1)], {"x": f(2, 3)}, ["y"], {"a": np.zeros(0, np.int64)})
    case(op + "_attribute", [n(op, "x", "y", axes=[1])], {"x": f(2, 3, 4)}, ["y"], opset=12)
    case(op + "_scalar", [n(op, "x", "y")], {"x": np.float32(1.5)}, ["y"])
    if op not in ("ReduceMean", "ReduceSumSquare"):
        case(op + "_int64", [n(op, "x a", "y")], {"x": i64(3, -1, 4, 1, -5, 9).reshape(2, 3)}, ["y"], {"a": i64(1)})
case("ReduceSum_empty", [n("ReduceSum", "x a", "y")], {"x": f(2, 0)}, ["y"], {"a": i64(1)})
for op in ("ArgMax", "ArgMin"):
    case(op, [n(op, "x", "y")], {"x": f(3, 4)}, ["y"])
    case(op + "_axis", [n(op, "x", "y", axis=-1, keepdims=0)], {"x": np.array([[1, 3, 3], [0, 0, -1]], np.float32)}, ["y"])
for op in ("Softmax", "LogSoftmax"):
    case(op + "_axis1", [n(op, "x", "y", axis=1)], {"x": f(2, 3, 4)}, ["y"])
    case(op + "_opset11", [n(op, "x", "y")], {"x": f(2, 3, 4)}, ["y"], opset=11)
    case(op + "_large", [n(op, "x", "y")], {"x": np.array([[1000, 1001, -1000], [0, 0, 0]], np.float32)}, ["y"])

# norms
case("LayerNormalization", [n("LayerNormalization", "x w b", "y")], {"x": f(2, 3, 8)}, ["y"], {"w": f(8), "b": f(8)})
case("LayerNormalization_axis", [n("LayerNormalization", "x w", "y", axis=1, epsilon=1e-3)], {"x": f(2, 3, 4)}, ["y"], {"w": f(3, 4)})
bn = {"s": f(3), "b": f(3), "m": f(3), "v": f(3, lo=0.5)}
case("BatchNormalization", [n("BatchNormalization", "x s b m v", "y")], {"x": f(2, 3, 4, 5)}, ["y"], bn)
case("BatchNormalization_inputs", [n("BatchNormalization", "x s b m v", "y", epsilon=0.01)], {"x": f(2, 3), **bn}, ["y"])

# shape
for target, zero in [((6,), 0), ((-1, 2), 0), ((0, -1, 1), 0), ((3, 2, 1), 1)]:
    case("Reshape_" + "_".join(map(str, target)).replace("-", "m"), [n("Reshape", "x s", "y", allowzero=zero)],
         {"x": f(2, 3)}, ["y"], {"s": i64(*target)})
case("Reshape_zero_allowed", [n("Reshape", "x s", "y", allowzero=1)], {"x": f(0, 3)}, ["y"], {"s": i64(3, 0, 2)})
case("Reshape_operand_input", [n("Reshape", "x s", "y")], {"x": f(2, 3), "s": i64(3, 2)}, ["y"])
case("Flatten_axis", [n("Flatten", "x", "y", axis=-1)], {"x": f(2, 3, 4)}, ["y"])
case("Flatten_0", [n("Flatten", "x", "y", axis=0)], {"x": f(2, 3, 4)}, ["y"])
case("Squeeze", [n("Squeeze", "x", "y")], {"x": f(1, 3, 1)}, ["y"])
case("Squeeze_axes", [n("Squeeze", "x a", "y")], {"x": f(1, 3, 1)}, ["y"], {"a": i64(-1)})
case("Squeeze_attribute", [n("Squeeze", "x", "y", axes=[0])], {"x": f(1, 3, 1)}, ["y"], opset=11)
case("Unsqueeze", [n("Unsqueeze", "x a", "y")], {"x": f(2, 3)}, ["y"], {"a": i64(3, 0)})
case("Unsqueeze_attribute", [n("Unsqueeze", "x", "y", axes=[1])], {"x": f(2, 3)}, ["y"], opset=11)
case("Shape_range", [n("Shape", "x", "y", start=-2, end=3)], {"x": f(2, 3, 4)}, ["y"])
case("Shape_clamped", [n("Shape", "x", "y", start=-9, end=99)], {"x": f(2, 3, 4)}, ["y"])
case("ConstantOfShape", [n("ConstantOfShape", "s", "y", value=numpy_helper.from_array(i64(7)))], {"s": i64(2, 3)}, ["y"])
case("ConstantOfShape_default", [n("ConstantOfShape", "s", "y")], {}, ["y"], {"s": i64(2, 3)})
case("ConstantOfShape_scalar", [n("ConstantOfShape", "s", "y")], {}, ["y"], {"s": np.zeros(0, np.int64)})
for a, b, c in [(2, 11, 3), (11, 2, -3), (5, 5, 1), (-3, 4, 7)]:
    case(f"Range_{a}_{b}_{c}".replace("-", "m"), [n("Range", "a b c", "y")],
         {"a": np.int64(a), "b": np.int64(b), "c": np.int64(c)}, ["y"])
case("Range_float", [n("Range", "a b c", "y")], {}, ["y"], {"a": np.float32(1), "b": np.float32(2.2), "c": np.float32(0.25)})
case("Dropout", [n("Dropout", "x", "y m")], {"x": X23}, ["y", "m"])
case("Constant", [n("Constant", "", "k", value=numpy_helper.from_array(f(3))), n("Add", "x k", "y")], {"x": X23}, ["y"])
case("Constant_floats", [n("Constant", "", "k", value_floats=[1.0, 2.0, 3.0]), n("Mul", "x k", "y")], {"x": X23}, ["y"])
case("Constant_ints", [n("Constant", "", "k", value_ints=[3, 2]), n("Reshape", "x k", "y")], {"x": X23}, ["y"])
case("Constant_float", [n("Constant", "", "k", value_float=2.5), n("Mul", "x k", "y")], {"x": X23}, ["y"])
case("Constant_int", [n("Constant", "", "k", value_int=1), n("Gather", "x k", "y")], {"x": X23}, ["y"])

# movement
for perm in [(0, 2, 1), (2, 0, 1), (1, 0, 2)]:
    case("Transpose_%d%d%d" % perm, [n("Transpose", "x", "y", perm=perm)], {"x": f(2, 3, 4)}, ["y"])
case("Transpose_bool", [n("Transpose", "x", "y")], {"x": rng.random((2, 3)) > 0.5}, ["y"])
BIG = 2**63 - 1
for nm, s, e, a, t in [("head", [0], [2], [0], None), ("steps", [1, 5], [4, 0], [0, 1], [2, -2]), ("negative", [-2], [BIG], [1], None),
                       ("reverse", [BIG], [-BIG - 1], [0], [-1]), ("empty", [3], [3], [0], [1]), ("clamped", [-99, -99], [99, 99], None, None),
                       ("far_step", [0], [5], [0], [BIG]), ("back_far", [4], [-99], [0], [-3])]:
    consts = {"s": i64(*s), "e": i64(*e)}
    ins = "x s e"
    if a is not None:
        consts["a"] = i64(*a)
        ins += " a"
        if t is not None:
            consts["t"] = i64(*t)
            ins += " t"
    case("Slice_" + nm, [n("Slice", ins, "y")], {"x": f(5, 6)}, ["y"], consts)
case("Slice_attributes", [n("Slice", "x", "y", starts=[1], ends=[3], axes=[1])], {"x": f(5, 6)}, ["y"], opset=9)
case("Slice_inputs", [n("Slice", "x s e", "y")], {"x": f(5, 6), "s": i64(1, 2), "e": i64(-1, 5)}, ["y"])
for axis in (0, 1, -1):
    case(f"Gather_axis{axis}".replace("-", "m"), [n("Gather", "x i", "y", axis=axis)], {"x": f(4, 3, 5), "i": i64(0, -1, 2, 2).reshape(2, 2)}, ["y"])
case("Gather_scalar", [n("Gather", "x i", "y")], {"x": f(4, 3)}, ["y"], {"i": np.int64(-2)})
case("Gather_scalar_axis1", [n("Gather", "x i", "y", axis=1)], {"x": f(4, 3)}, ["y"], {"i": np.int64(1)})
case("Gather_int32", [n("Gather", "x i", "y")], {"x": i64(5, 6, 7), "i": np.array([2, 0], np.int32)}, ["y"])
case("Concat", [n("Concat", "a b c", "y", axis=1)], {"a": f(2, 1, 3), "b": f(2, 4, 3), "c": f(2, 0, 3)}, ["y"])
case("Concat_last", [n("Concat", "a b", "y", axis=-1)], {"a": f(2, 3), "b": f(2, 1)}, ["y"])
case("Split_sizes", [n("Split", "x s", "a b c", axis=1)], {"x": f(2, 6)}, ["a", "b", "c"], {"s": i64(1, 0, 5)})
case("Split_lead", [n("Split", "x s", "a b")], {"x": f(5, 2)}, ["b", "a"], {"s": i64(2, 3)})
case("Split_parts", [n("Split", "x", "a b c", num_outputs=3)], {"x": f(7, 2)}, ["a", "b", "c"])
case("Split_attribute", [n("Split", "x", "a b", axis=1, split=[2, 4])], {"x": f(2, 6)}, ["a", "b"], opset=11)
case("Split_even", [n("Split", "x", "a b", axis=1)], {"x": f(2, 6)}, ["a", "b"], opset=13)
for sh in [(2, 3), (4, 2, 3), (1, 1), (2, 1, 3), (1, 1, 1, 1)]:
    case("Expand_" + "_".join(map(str, sh)), [n("Expand", "x s", "y")], {"x": f(2, 1) if sh == (2, 3) else f(2, 3)}, ["y"], {"s": i64(*sh)})
case("Pad", [n("Pad", "x p v", "y")], {"x": f(2, 3)}, ["y"], {"p": i64(1, 0, 0, 2), "v": np.float32(9)})
case("Pad_default", [n("Pad", "x p", "y")], {"x": f(2, 3)}, ["y"], {"p": i64(1, 0, 0, 2)})
case("Pad_axes", [n("Pad", "x p _ a", "y")], {"x": f(2, 3)}, ["y"], {"p": i64(1, 2), "a": i64(-1)})
case("Pad_crop", [n("Pad", "x p", "y")], {"x": f(4, 5)}, ["y"], {"p": i64(-1, 2, 1, -3)})
case("Pad_attributes", [n("Pad", "x", "y", pads=[0, 1, 1, 0], value=0.5)], {"x": f(2, 3)}, ["y"], opset=10)
case("Trilu_upper", [n("Trilu", "x", "y")], {"x": f(2, 3, 4)}, ["y"])
case("Trilu_lower", [n("Trilu", "x k", "y", upper=0)], {"x": f(3, 4)}, ["y"], {"k": np.int64(-1)})
case("Trilu_far", [n("Trilu", "x k", "y")], {"x": i64(*range(6)).reshape(2, 3)}, ["y"], {"k": np.int64(5)})
for largest in (0, 1):
    case(f"TopK_{largest}", [n("TopK", "x k", "v i", largest=largest)], {"x": np.array([[3, 1, 3, -2], [5, 5, 0, 7]], np.float32)}, ["v", "i"], {"k": i64(3)})
case("TopK_axis0", [n("TopK", "x k", "v i", axis=0)], {"x": f(5, 3), "k": i64(2)}, ["v", "i"])
case("TopK_values_only", [n("TopK", "x k", "v i")], {"x": i64(4, 9, 2)}, ["v"], {"k": i64(2)})

# windows
W = f(4, 3, 3, 3)
for nm, attrs in [("plain", {}), ("pads", dict(pads=[1, 0, 2, 1])), ("stride", dict(strides=[2, 3], pads=[1, 1, 1, 1])),
                  ("dilation", dict(dilations=[2, 1])), ("same_upper", dict(auto_pad="SAME_UPPER", strides=[2, 2])),
                  ("same_lower", dict(auto_pad="SAME_LOWER", strides=[2, 2])), ("valid", dict(auto_pad="VALID"))]:
    case("Conv_" + nm, [n("Conv", "x w b", "y", **attrs)], {"x": f(2, 3, 7, 8)}, ["y"], {"w": W, "b": f(4)})
    case("Conv_traced_" + nm, [n("Conv", "x w", "y", **attrs)], {"x": f(2, 3, 7, 8), "w": W}, ["y"])
case("Conv_groups", [n("Conv", "x w", "y", group=2)], {"x": f(1, 4, 5, 5)}, ["y"], {"w": f(6, 2, 3, 3)})
case("Conv_depthwise", [n("Conv", "x w", "y", group=3, pads=[1, 1, 1, 1])], {"x": f(1, 3, 5, 5)}, ["y"], {"w": f(3, 1, 3, 3)})
case("Conv_1x1", [n("Conv", "x w b", "y")], {"x": f(2, 5, 3, 3)}, ["y"], {"w": f(7, 5, 1, 1), "b": f(7)})
case("Conv_1d", [n("Conv", "x w b", "y", strides=[2], pads=[2, 1], dilations=[2])], {"x": f(2, 3, 11)}, ["y"], {"w": f(4, 3, 3), "b": f(4)})
for op in ("MaxPool", "AveragePool"):
    for nm, attrs in [("plain", {}), ("stride", dict(strides=[2, 2])), ("pads", dict(strides=[2, 1], pads=[1, 0, 1, 1])),
                      ("ceil", dict(strides=[2, 2], ceil_mode=1)), ("ceil_pads", dict(strides=[3, 3], pads=[1, 1, 1, 1], ceil_mode=1)),
                      ("same_upper", dict(strides=[2, 2], auto_pad="SAME_UPPER")), ("same_lower", dict(strides=[2, 2], auto_pad="SAME_LOWER"))]:
        case(f"{op}_{nm}", [n(op, "x", "y", kernel_shape=[3, 2], **attrs)], {"x": f(2, 3, 7, 8)}, ["y"])
    case(op + "_1d", [n(op, "x", "y", kernel_shape=[3], strides=[2], pads=[1, 1])], {"x": f(2, 3, 8)}, ["y"])
    case(op + "_dilated", [n(op, "x", "y", kernel_shape=[2, 2], dilations=[2, 3])], {"x": f(1, 1, 7, 8)}, ["y"])
for nm, attrs in [("pads", dict(strides=[2, 1], pads=[1, 0, 1, 1])), ("ceil", dict(strides=[3, 3], pads=[1, 1, 1, 1], ceil_mode=1))]:
    case("AveragePool_include_" + nm, [n("AveragePool", "x", "y", kernel_shape=[3, 2], count_include_pad=1, **attrs)], {"x": f(2, 3, 7, 8)}, ["y"])

# several nodes: fusions and reuse must not change values
case("chain_in_place", [n("Exp", "x", "a"), n("Neg", "a", "b"), n("Add", "b a", "c"), n("Mul", "c c", "d"), n("Add", "d x", "y")], {"x": f(3, 4)}, ["y"])
case("view_then_add", [n("Abs", "x", "a"), n("Reshape", "a s", "b"), n("Add", "b r", "y"), n("Gather", "a k", "g"), n("Add", "a g", "z")],
     {"x": f(3, 4)}, ["y", "z"], {"s": i64(12), "r": f(12), "k": np.int64(1)})
case("output_twice", [n("Relu", "x", "y"), n("Reshape", "y s", "z"), n("Add", "y x", "w")], {"x": f(2, 3)}, ["y", "z", "w"], {"s": i64(6)})
case("slice_of_output", [n("Relu", "x", "y"), n("Slice", "y a b", "z")], {"x": f(4, 3)}, ["z", "y"], {"a": i64(1), "b": i64(3)})
case("conv_batch_norm", [n("Conv", "x w", "c", pads=[1, 1, 1, 1]), n("BatchNormalization", "c s b m v", "d"), n("Relu", "d", "y")], {"x": f(2, 3, 6, 6)}, ["y"],
     {"w": f(3, 3, 3, 3), **bn})
case("conv_batch_norm_shared", [n("Conv", "x w", "c"), n("BatchNormalization", "c s b m v", "d"), n("Add", "c d", "y")], {"x": f(1, 3, 4, 4)}, ["y"],
     {"w": f(3, 3, 1, 1), **bn})
case("attention", [n("MatMul", "q kt", "a"), n("Softmax", "a", "p"), n("MatMul", "p v", "y")], {"q": f(2, 4, 3), "kt": f(2, 3, 5), "v": f(2, 5, 3)}, ["y"])
case("constant_weights_fold", [n("Transpose", "w", "wt"), n("Mul", "wt h", "w2"), n("MatMul", "x w2", "y")], {"x": f(3, 4)}, ["y"],
     {"w": f(5, 4), "h": np.float32(0.5)})

# what a form of its version says: operands that broadcast, ranks, attributes that became inputs
for sw, sb in [((8,), (1,)), ((1,), (8,)), ((1, 8), (8,)), ((3, 1), (1, 1)), ((2, 1, 8), (8,)), ((2, 3, 8), (2, 1, 8)), ((1, 1, 8), (1, 1, 8)), ((), ())]:
    nm = "_".join("x".join(map(str, s)) or "scalar" for s in (sw, sb))
    case("LayerNormalization_spread_" + nm, [n("LayerNormalization", "x w b", "y")], {"x": f(2, 3, 8), "w": f(*sw), "b": f(*sb)}, ["y"])
case("LayerNormalization_spread_axis1", [n("LayerNormalization", "x w b", "y", axis=1)], {"x": f(2, 3, 4)}, ["y"], {"w": f(4), "b": f(3, 1)})
case("LayerNormalization_spread_no_bias", [n("LayerNormalization", "x w", "y")], {"x": f(2, 3, 4)}, ["y"], {"w": f(3, 4)})
for opset in (7, 9, 15):
    for sh in ((5,), (4, 1), (3, 2)):
        c = sh[1] if len(sh) > 1 else 1
        case(f"BatchNormalization_rank{len(sh)}_{c}_opset{opset}", [n("BatchNormalization", "x s b m v", "y", epsilon=0.5)], {"x": f(*sh)}, ["y"],
             {"s": f(c), "b": f(c), "m": f(c), "v": f(c, lo=0.5)}, opset=opset)
for op in ("ReduceMax", "ReduceMin"):
    case(op + "_bool", [n(op, "x a", "y", keepdims=0)], {"x": np.array([[1, 0, 1], [0, 0, 0], [1, 1, 1]], bool)}, ["y"], {"a": i64(1)})
    case(op + "_bool_all", [n(op, "x", "y")], {"x": np.array([[1, 0], [0, 0]], bool)}, ["y"])
    for opset in range(11, 18):
        case(f"{op}_attribute_opset{opset}", [n(op, "x", "y", axes=[-1], keepdims=0)], {"x": f(2, 3)}, ["y"], opset=opset)
for op in ("ArgMax", "ArgMin"):
    for axis, keep in ((0, 1), (1, 0), (-1, 1)):
        for t in (np.float32, np.int64):
            case(f"{op}_last_{axis}_{np.dtype(t)}".replace("-", "m"), [n(op, "x", "y", axis=axis, keepdims=keep, select_last_index=1)],
                 {"x": np.array([[[1, 3, 3], [0, 3, 0]], [[2, 2, 2], [0, 3, 0]]], t)}, ["y"])
    case(op + "_opset11", [n(op, "x", "y", axis=1)], {"x": np.array([[1, 3, 3], [0, 0, 2]], np.float32)}, ["y"], opset=11)
case("Clip_attributes_default", [n("Clip", "x", "y")], {"x": np.array([np.inf, -np.inf, 1, -3e38], np.float32)}, ["y"], opset=6)
case("Clip_attributes_one", [n("Clip", "x", "y", min=1.0)], {"x": np.array([np.inf, -np.inf, 1, 2], np.float32)}, ["y"], opset=10)
case("Split_parts_5_3", [n("Split", "x", "a b c", num_outputs=3)], {"x": f(5)}, ["a", "b", "c"], opset=18)
case("Split_operand_opset13", [n("Split", "x s", "a b", axis=-1)], {"x": f(2, 5)}, ["a", "b"], {"s": i64(4, 1)}, opset=13)
case("TopK_opset1", [n("TopK", "x", "v i", k=2, axis=0)], {"x": f(4, 2)}, ["v", "i"], opset=9)
case("TopK_opset10", [n("TopK", "x k", "v i")], {"x": f(2, 4)}, ["v", "i"], {"k": i64(3)}, opset=10)
for opset in (7, 10, 12):
    case(f"Dropout_opset{opset}", [n("Dropout", "x", "y m")], {"x": X23}, ["y", "m"], opset=opset)
for opset in (7, 10, 19):
    case(f"AveragePool_opset{opset}", [n("AveragePool", "x", "y", kernel_shape=[2, 2], count_include_pad=1, pads=[1, 0, 0, 1])], {"x": f(1, 2, 5, 5)}, ["y"], opset=opset)
for opset in (7, 8, 10):
    case(f"MaxPool_opset{opset}", [n("MaxPool", "x", "y", kernel_shape=[2, 2], pads=[1, 0, 0, 1])], {"x": f(1, 2, 5, 5)}, ["y"], opset=opset)
case("Shape_opset14", [n("Shape", "x", "y")], {"x": f(2, 0, 4)}, ["y"], opset=14)
case("Reshape_opset5", [n("Reshape", "x s", "y")], {"x": f(2, 6)}, ["y"], {"s": i64(0, -1, 2)}, opset=5)
case("Cast_opset13", [n("Cast", "x", "y", to=7)], {"x": np.array([0.5, -2.75, 3], np.float32)}, ["y"], opset=13)
case("CastLike_opset15", [n("CastLike", "x t", "y")], {"x": np.array([0, 2, -1], np.int64), "t": f(1)}, ["y"], opset=15)
for op in ("ReduceMax", "ReduceMin"):
    case(op + "_opset18", [n(op, "x a", "y", keepdims=0)], {"x": f(2, 3)}, ["y"], {"a": i64(0)}, opset=18)
case("Pad_opset11", [n("Pad", "x p v", "y")], {"x": f(2, 3)}, ["y"], {"p": i64(0, 1, 1, 0), "v": np.float32(4)}, opset=11)
case("Softmax_opset12_axis0", [n("Softmax", "x", "y", axis=0)], {"x": f(2, 3)}, ["y"], opset=12)

# subgraphs, and sizes that are met while running; sub(inputs, nodes, outputs): "name" or "name:type"
TYPES = {"f": TensorProto.FLOAT, "i": TensorProto.INT64, "b": TensorProto.BOOL}


def sub(ins, nodes, outs, consts=None):
    def info(w):
        name, _, t = w.partition(":")
        return helper.make_tensor_value_info(name, TYPES[t], [] if name in ("i", "go", "go_on") else None) if t else helper.make_empty_tensor_value_info(name)
    return helper.make_graph(nodes, "sub", [info(w) for w in ins.split()], [info(w) for w in outs.split()],
                             [numpy_helper.from_array(np.asarray(v), k) for k, v in (consts or {}).items()])


yes, no = np.array(True), np.array([False])
for word, c in (("then", yes), ("else", no)):
    case("If_" + word, [n("If", "c", "y", then_branch=sub("", [n("Add", "x x", "a")], "a:f"),
                          else_branch=sub("", [n("Neg", "x", "e")], "e:f")), n("Relu", "y", "z")],
         {"c": c, "x": f(2, 3)}, ["y", "z"])
    case("If_sizes_" + word, [n("If", "c", "y k", then_branch=sub("", [n("Concat", "x x", "a", axis=1), n("Shape", "a", "b")], "a:f b:i"),
                                else_branch=sub("", [n("Neg", "x", "e"), n("Shape", "w", "g")], "e:f g:i", {"w": f(3)})),
                              n("Mul", "y y", "z")], {"c": c, "x": f(2, 3)}, ["y", "k", "z"], opset=11 if c.ndim else 20)
turn = [n("Identity", "go", "go_on")]
for opset in (11, 20):
    case(f"Loop_opset{opset}", [n("Loop", "m c s0", "y ys", body=sub("i:i go:b s:f", turn + [n("Add", "s x", "t"), n("Mul", "t t", "q")],
                                                                   "go_on:b t:f q:f"))],
         {"m": np.array(4, np.int64), "c": yes, "s0": f(2), "x": f(2)}, ["y", "ys"], opset=opset)
case("Loop_while", [n("Loop", "_ c s0", "y ys", body=sub("i:i go:b s:f", [n("Add", "s x", "t"), n("ReduceSum", "t", "u", keepdims=0),
                                                                       n("Less", "u most", "go_on"), n("Identity", "i", "q")], "go_on:b t:f q:i"))],
     {"c": yes, "s0": f(2, lo=0), "x": f(2, lo=1)}, ["y", "ys"], {"most": np.float32(20)})
case("Loop_states_trade_places", [n("Loop", "m _ a b", "y z", body=sub("i:i go:b s:f t:f", turn + [n("Identity", "s", "u"), n("Identity", "t", "v")],
                                                                     "go_on:b v:f u:f"))], {"m": i64(3), "a": f(2), "b": f(3)}, ["y", "z"])
case("Loop_without_states", [n("Loop", "m c", "ys", body=sub("i:i go:b", turn + [n("Mul", "i i", "q")], "go_on:b q:i"))],
     {"m": np.array(5, np.int64), "c": yes}, ["ys"], opset=16)
case("Loop_grows", [n("Loop", "m _ x", "y", body=sub("i:i go:b s:f", turn + [n("Concat", "s x", "t", axis=0)], "go_on:b t:f"))],
     {"m": np.array(3, np.int64), "x": f(2, 2)}, ["y"])
nested = [n("Less", "i two", "early"), n("If", "early", "t", then_branch=sub("", [n("Add", "s x", "a")], "a:f"),
                                        else_branch=sub("", [n("Sub", "s w", "e")], "e:f"))]
case("Loop_If", [n("Exp", "v", "x"), n("Loop", "m _ s0", "y ys", body=sub("i:i go:b s:f", turn + nested + [n("Neg", "t", "q")], "go_on:b t:f q:f"))],
     {"m": np.array(4, np.int64), "v": f(3), "s0": f(3)}, ["y", "ys"], {"two": np.array(2, np.int64), "w": f(3)})
step = sub("s:f x:f", [n("Add", "s x", "t"), n("Mul", "t x", "q"), n("Neg", "x", "r")], "t:f q:f r:f")
for word, at in (("", {}), ("_back", {"scan_input_directions": [1], "scan_output_directions": [0, 1]}),
                 ("_axes", {"scan_input_axes": [1], "scan_output_axes": [1, 0]}), ("_last", {"scan_input_axes": [-1], "scan_output_axes": [-1, 0]})):
    case("Scan" + word, [n("Scan", "s0 x", "y ys zs", body=step, num_scan_inputs=1, **at)],
         {"s0": f(3), "x": f(3, 4) if "scan_input_axes" in at else f(4, 3)}, ["y", "ys", "zs"], opset=9 if not at else 20)
case("Scan_two", [n("Scan", "a b", "ys", body=sub("s:f x:f", [n("MatMul", "s x", "q")], "q:f"), num_scan_inputs=2)],
     {"a": f(3, 2, 2), "b": f(3, 2, 2)}, ["ys"])
for t in (np.float32, np.float64, np.int64, np.int32, np.uint8, np.bool_):
    case(f"NonZero_{np.dtype(t)}", [n("NonZero", "x", "i"), n("Transpose", "i", "y")], {"x": np.array([[[0, 1], [2, 0]], [[0, 0], [3, 4]]]).astype(t)},
         ["i", "y"], opset=9 if t is np.float32 else 20)
case("NonZero_none", [n("NonZero", "x", "i")], {"x": np.zeros((2, 2), np.float32)}, ["i"])
case("NonZero_Gather", [n("NonZero", "x", "i"), n("Squeeze", "i z", "j"), n("Gather", "x j", "y")], {"x": np.array([1, 0, 2, 0, 3], np.float32)}, ["y"], {"z": i64(0)})


def text(a):
    out = []
    for v in a.reshape(-1):
        if a.dtype == np.float32:
            out.append("nan" if np.isnan(v) else "%.9g" % v)
        elif a.dtype == np.float64:
            out.append("nan" if np.isnan(v) else "%.17g" % v)
        else:
            out.append(str(int(v)))
    return " ".join(out)


def tensor(word, name, a):
    a = np.asarray(a)
    dims = ",".join(map(str, a.shape)) or "-"
    print(f"{word} {name} {NAMES[str(a.dtype)]} {dims} : {text(a)}".rstrip())


def attribute(a):
    v = helper.get_attribute_value(a)
    if a.type == onnx.AttributeProto.INT:
        print("int", a.name, v)
    elif a.type == onnx.AttributeProto.FLOAT:
        print("float", a.name, "%.9g" % v)
    elif a.type == onnx.AttributeProto.STRING:
        print("text", a.name, v.decode())
    elif a.type == onnx.AttributeProto.INTS:
        print("ints", a.name, *v)
    elif a.type == onnx.AttributeProto.FLOATS:
        print("floats", a.name, *("%.9g" % x for x in v))
    elif a.type == onnx.AttributeProto.GRAPH:
        print("graph", a.name)
        for i in v.input:
            print("sin", i.name)
        for t in v.initializer:
            tensor("sconst", t.name, numpy_helper.to_array(t))
        body(v.node)
        for o in v.output:
            print("sout", o.name)
        print("endgraph")
    else:
        tensor("tensor", a.name, numpy_helper.to_array(v))


def body(nodes):
    for nd in nodes:
        print("node", nd.op_type, *(x or "_" for x in nd.input), "->", *nd.output)
        for a in nd.attribute:
            attribute(a)


print("# Made by tools/make_node_cases.py with onnxruntime", ort.__version__)
for name, nodes, inputs, outputs, consts, opset in cases:
    vi = [helper.make_tensor_value_info(k, helper.np_dtype_to_tensor_dtype(np.asarray(v).dtype), np.asarray(v).shape) for k, v in inputs.items()]
    vo = [helper.make_empty_tensor_value_info(o) for o in outputs]
    g = helper.make_graph(nodes, name, vi, vo, [numpy_helper.from_array(np.asarray(v), k) for k, v in consts.items()])
    m = helper.make_model(g, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)
    m = onnx.shape_inference.infer_shapes(m)
    so = ort.SessionOptions()
    so.log_severity_level = 4
    try:
        got = ort.InferenceSession(m.SerializeToString(), so, providers=["CPUExecutionProvider"]).run(outputs, {k: np.asarray(v) for k, v in inputs.items()})
    except Exception as e:  # noqa: BLE001
        print(f"{name}: {str(e)[:200]}", file=sys.stderr)
        continue
    print("case", name)
    print("opset", opset)
    for k, v in inputs.items():
        tensor("in", k, v)
    for k, v in consts.items():
        tensor("const", k, v)
    body(nodes)
    for o, v in zip(outputs, got):
        tensor("out", o, v)
    print("end")
