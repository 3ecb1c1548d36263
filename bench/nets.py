"""Networks for the benchmarks, each described once: as an ONNX file and as a function of torch tensors.

A Net records steps. `onnx(path)` writes them as opset 20 nodes with seeded weights, `torch()` gives a function that
computes the same with torch.nn.functional. So every program is timed on the same work.
"""
import numpy as np


class Net:
    def __init__(self, *shape):
        self.shape, self.steps, self.weights, self.rng = shape, [], {}, np.random.default_rng(0)
        self.n = 0

    def weight(self, *shape, scale=None, around=0.0):
        name = f"w{len(self.weights)}"
        fan = int(np.prod(shape[1:])) if len(shape) > 1 else 1
        scale = scale if scale is not None else fan ** -0.5
        self.weights[name] = (around + scale * (self.rng.random(shape) - 0.5)).astype(np.float32)
        return name

    def add(self, op, ins, torch_fn, **attrs):
        self.n += 1
        out = f"v{self.n}"
        self.steps.append((op, ins, out, attrs, torch_fn))
        return out

    # ---- steps ----
    def conv(self, x, i, o, k, s=1, g=1, bias=True):
        w = self.weight(o, i // g, k, k)
        ins = [x, w] + ([self.weight(o)] if bias else [])
        p = k // 2
        return self.add("Conv", ins, lambda F, x, w, b=None: F.conv2d(x, w, b, s, p, 1, g),
                        strides=[s, s], pads=[p] * 4, group=g, kernel_shape=[k, k])

    def bn(self, x, c):
        ins = [x, self.weight(c, around=1), self.weight(c), self.weight(c), self.weight(c, around=1)]
        return self.add("BatchNormalization", ins, lambda F, x, w, b, m, v: F.batch_norm(x, m, v, w, b), epsilon=1e-5)

    def relu(self, x):
        return self.add("Relu", [x], lambda F, x: F.relu(x))

    def relu6(self, x):
        lo, hi = self.number(0), self.number(6)
        return self.add("Clip", [x, lo, hi], lambda F, x, lo, hi: F.relu6(x))

    def number(self, v):
        name = f"w{len(self.weights)}"
        self.weights[name] = np.array(v, np.float32)
        return name

    def plus(self, a, b):
        return self.add("Add", [a, b], lambda F, a, b: a + b)

    def times(self, a, b):
        return self.add("MatMul", [a, b], lambda F, a, b: a @ b)

    def pool(self, x, k, s, kind="Max", p=0):
        if kind == "Max":
            return self.add("MaxPool", [x], lambda F, x: F.max_pool2d(x, k, s, p), kernel_shape=[k, k], strides=[s, s], pads=[p] * 4)
        return self.add("AveragePool", [x], lambda F, x: F.avg_pool2d(x, k, s, p), kernel_shape=[k, k], strides=[s, s], pads=[p] * 4)

    def mean(self, x):
        x = self.add("GlobalAveragePool", [x], lambda F, x: F.adaptive_avg_pool2d(x, 1))
        return self.add("Flatten", [x], lambda F, x: x.flatten(1), axis=1)

    def flat(self, x):
        return self.add("Flatten", [x], lambda F, x: x.flatten(1), axis=1)

    def linear(self, x, i, o):
        return self.add("Gemm", [x, self.weight(o, i), self.weight(o)], lambda F, x, w, b: F.linear(x, w, b), transB=1)

    def unary(self, op, x, fn, **attrs):
        return self.add(op, [x], fn, **attrs)

    def layer_norm(self, x, c):
        return self.add("LayerNormalization", [x, self.weight(c, around=1), self.weight(c)],
                        lambda F, x, w, b: F.layer_norm(x, (c,), w, b), axis=-1, epsilon=1e-5)

    def cat(self, *xs):
        return self.add("Concat", list(xs), lambda F, *xs: F_cat(xs), axis=1)

    # ---- the two forms ----
    def onnx(self, path):
        import onnx
        from onnx import TensorProto, helper, numpy_helper
        nodes = [helper.make_node(op, ins, [out], **attrs) for op, ins, out, attrs, _ in self.steps]
        g = helper.make_graph(nodes, "net", [helper.make_tensor_value_info("x", TensorProto.FLOAT, self.shape)],
                              [helper.make_tensor_value_info(self.steps[-1][2], TensorProto.FLOAT, None)],
                              [numpy_helper.from_array(v, k) for k, v in self.weights.items()])
        onnx.save(helper.make_model(g, opset_imports=[helper.make_opsetid("", 20)], ir_version=9), path)

    def torch(self):
        import torch
        weights = {k: torch.from_numpy(v.copy()) for k, v in self.weights.items()}

        def run(x):
            v = dict(weights, x=x)
            for _, ins, out, _, fn in self.steps:
                v[out] = fn(torch.nn.functional, *(v[i] for i in ins))
            return v[out]
        return run


def F_cat(xs):
    import torch
    return torch.cat(xs, 1)


# ---- whole networks -----------------------------------------------------------------------------
def mlp(b):
    n = Net(b, 784)
    x = n.relu(n.linear("x", 784, 512))
    n.linear(n.relu(n.linear(x, 512, 512)), 512, 10)
    return n


def lenet(b):
    n = Net(b, 1, 28, 28)
    x = n.relu(n.conv(n.relu(n.conv("x", 1, 32, 3)), 32, 64, 3))
    x = n.flat(n.pool(x, 2, 2))
    n.linear(n.relu(n.linear(x, 64 * 14 * 14, 128)), 128, 10)
    return n


def resnet18(b):
    n = Net(b, 3, 224, 224)
    x = n.pool(n.relu(n.bn(n.conv("x", 3, 64, 7, 2, bias=False), 64)), 3, 2, p=1)
    i = 64
    for o, s in ((64, 1), (64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), (512, 1)):
        y = n.relu(n.bn(n.conv(x, i, o, 3, s, bias=False), o))
        y = n.bn(n.conv(y, o, o, 3, bias=False), o)
        x = n.relu(n.plus(y, x if s == 1 and i == o else n.bn(n.conv(x, i, o, 1, s, bias=False), o)))
        i = o
    n.linear(n.mean(x), 512, 1000)
    return n


def mobilenetv2(b):
    n = Net(b, 3, 224, 224)
    x, i = n.relu6(n.bn(n.conv("x", 3, 32, 3, 2, bias=False), 32)), 32
    for t, c, m, s in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)):
        for j in range(m):
            h, st = i * t, s if j == 0 else 1
            y = n.relu6(n.bn(n.conv(x, i, h, 1, bias=False), h)) if t != 1 else x
            y = n.relu6(n.bn(n.conv(y, h, h, 3, st, g=h, bias=False), h))
            y = n.bn(n.conv(y, h, c, 1, bias=False), c)
            x = n.plus(x, y) if st == 1 and i == c else y
            i = c
    n.linear(n.mean(n.relu6(n.bn(n.conv(x, 320, 1280, 1, bias=False), 1280))), 1280, 1000)
    return n


def squeezenet(b):
    n = Net(b, 3, 224, 224)
    x, i = n.pool(n.relu(n.conv("x", 3, 64, 3, 2)), 3, 2), 64
    for k, (s, e) in enumerate(((16, 64), (16, 64), (32, 128), (32, 128), (48, 192), (48, 192), (64, 256), (64, 256))):
        if k in (2, 4):
            x = n.pool(x, 3, 2)
        y = n.relu(n.conv(x, i, s, 1))
        x, i = n.cat(n.relu(n.conv(y, s, e, 1)), n.relu(n.conv(y, s, e, 3))), 2 * e
    n.mean(n.relu(n.conv(x, 512, 1000, 1)))
    return n


# ---- one node, or a chain of them -----------------------------------------------------------------
def chain(shape, times, step):
    n, x = Net(*shape), "x"
    for _ in range(times):
        x = step(n, x)
    return n


def nodes():
    """name -> Net, the rows of the table of single nodes."""
    def erf_gelu(n, x):
        return n.unary("Gelu", x, lambda F, x: F.gelu(x))

    def tanh_gelu(n, x):
        return n.unary("Gelu", x, lambda F, x: F.gelu(x, approximate="tanh"), approximate="tanh")

    def softmax(n, x):
        return n.unary("Softmax", x, lambda F, x: F.softmax(x, -1), axis=-1)

    def depthwise(c, s=1):
        return lambda n, x: n.conv(x, c, c, 3, s, g=c)
    rows = {
        "relu 1 Mi": chain((1024, 1024), 1, lambda n, x: n.relu(x)),
        "add 1 Mi": chain((1024, 1024), 1, lambda n, x: n.plus(x, x)),
        "exp 1 Mi": chain((1024, 1024), 1, lambda n, x: n.unary("Exp", x, lambda F, x: x.exp())),
        "gelu (erf) 128x3072": chain((128, 3072), 1, erf_gelu),
        "gelu (tanh) 128x3072": chain((128, 3072), 1, tanh_gelu),
        "softmax 1536x128": chain((1536, 128), 1, softmax),
        "layer norm 128x768": chain((128, 768), 1, lambda n, x: n.layer_norm(x, 768)),
        "transpose 1024x1024": chain((1024, 1024), 1, lambda n, x: n.unary("Transpose", x, lambda F, x: x.t().contiguous(), perm=[1, 0])),
        "max pool 3x3 stride 2, 64x112x112": chain((1, 64, 112, 112), 1, lambda n, x: n.pool(x, 3, 2, p=1)),
        "max pool 2x2 stride 2, 64x112x112": chain((1, 64, 112, 112), 1, lambda n, x: n.pool(x, 2, 2)),
        "average pool 3x3 stride 2, 64x112x112": chain((1, 64, 112, 112), 1, lambda n, x: n.pool(x, 3, 2, "Average", 1)),
        "depthwise 32x112x112": chain((1, 32, 112, 112), 1, depthwise(32)),
        "depthwise 192x28x28": chain((1, 192, 28, 28), 1, depthwise(192)),
        "depthwise 384x14x14": chain((1, 384, 14, 14), 1, depthwise(384)),
        "depthwise 960x7x7": chain((1, 960, 7, 7), 1, depthwise(960)),
        "1x1 stride 2 256x56x56>512": chain((1, 256, 56, 56), 1, lambda n, x: n.conv(x, 256, 512, 1, 2)),
        "1x1 16x112x112>96 relu": chain((1, 16, 112, 112), 1, lambda n, x: n.relu(n.conv(x, 16, 96, 1))),
        "product 2048x8x2048": chain((2048, 8), 1, lambda n, x: n.times(x, n.weight(8, 2048))),
    }
    for op, shape, step in (("Add", (1, 4), lambda n, x: n.plus(x, x)), ("Relu", (1, 4), lambda n, x: n.relu(x)),
                            ("MatMul 4x4", (4, 4), lambda n, x: n.times(x, n.weight(4, 4)))):
        rows[f"100 nodes {op}"] = chain(shape, 100, step)
    return rows


def networks():
    return {"mlp b1": mlp(1), "mlp b64": mlp(64), "lenet b1": lenet(1), "lenet b64": lenet(64), "squeezenet b1": squeezenet(1),
            "resnet18 b1 with BN": resnet18(1), "mobilenetv2 b1 with BN": mobilenetv2(1)}
