#!/usr/bin/env python3
"""Makes tests/nn/data/layers.txt: outputs and gradients of PyTorch 2.13.0's modules.

Text, so that it can be read and compared: a line "case NAME", then one line per tensor,
"tensor NAME DTYPE RANK DIMS... VALUES..." with floats in hexadecimal. Tensors of a case: "x", the state
dict before ("p.weight"), the gradient given ("g"), the output "y", gradients "dx", "d.weight", and the
state dict after where it changed ("after.running_mean"). Usage: python tools/make_layer_reference.py
"""
import pathlib

import torch
from torch import nn

OUT = pathlib.Path(__file__).resolve().parent.parent / "tests" / "nn" / "data" / "layers.txt"
lines = []


def put(name, t):
    t = t.detach()
    kind = {torch.float32: "float32", torch.int64: "int64"}[t.dtype]
    values = [float(v).hex() if kind == "float32" else str(int(v)) for v in t.flatten()]
    lines.append(" ".join(["tensor", name, kind, str(t.dim())] + [str(d) for d in t.shape] + values))


def case(name, module, x, train=True):
    lines.append(f"case {name}")
    module.train(train)
    g = torch.Generator().manual_seed(len(lines))
    with torch.no_grad():
        for key, t in module.state_dict().items():
            if key.endswith("num_batches_tracked"):
                continue
            r = torch.rand(t.shape, generator=g)
            t.copy_(r + 0.5 if "var" in key else r * 1.6 - 0.8)
    put("x", x)
    for key, t in module.state_dict().items():
        put("p." + key, t)
    before = {k: t.clone() for k, t in module.state_dict().items()}
    needs = x.is_floating_point()
    xr = x.clone().requires_grad_(needs)
    y = module(xr)
    gy = torch.rand(y.shape, generator=g) * 2 - 1
    y.backward(gy)
    put("g", gy)
    put("y", y)
    if needs:
        put("dx", xr.grad)
    for key, t in module.named_parameters():
        put("d." + key, t.grad)
    for key, t in module.state_dict().items():
        if not torch.equal(t, before[key]):
            put("after." + key, t)


assert torch.__version__.startswith("2.13.0"), torch.__version__
torch.set_num_threads(1)
gen = torch.Generator().manual_seed(1)


def randn(*shape):
    return torch.randn(*shape, generator=gen)


case("linear", nn.Linear(5, 3), randn(2, 4, 5))
case("linear_no_bias", nn.Linear(5, 3, bias=False), randn(4, 5))
case("conv2d", nn.Conv2d(4, 6, (3, 2), stride=(2, 1), padding=(1, 2), groups=2), randn(2, 4, 5, 6))
case("conv2d_dilated", nn.Conv2d(2, 3, 3, dilation=2, padding=2, bias=False), randn(1, 2, 6, 6))
case("batch_norm2d_train", nn.BatchNorm2d(3), randn(4, 3, 2, 3))
case("batch_norm2d_eval", nn.BatchNorm2d(3), randn(4, 3, 2, 3), train=False)
case("layer_norm", nn.LayerNorm(6), randn(2, 3, 6))
case("layer_norm_2", nn.LayerNorm([3, 4], eps=1e-3), randn(2, 3, 4))
case("embedding", nn.Embedding(7, 4, padding_idx=2), torch.tensor([[0, 2, 6], [3, 3, 1]]))
case("dropout_eval", nn.Dropout(0.5), randn(3, 4), train=False)
case("relu", nn.ReLU(), randn(3, 5))
case("gelu", nn.GELU(), randn(3, 5))
case("gelu_tanh", nn.GELU(approximate="tanh"), randn(3, 5))
case("silu", nn.SiLU(), randn(3, 5))
case("tanh", nn.Tanh(), randn(3, 5))
case("sigmoid", nn.Sigmoid(), randn(3, 5))
case("softmax", nn.Softmax(dim=1), randn(3, 5))
case("log_softmax", nn.LogSoftmax(dim=-1), randn(3, 5))
case("flatten", nn.Flatten(), randn(2, 3, 2, 2))
case("max_pool2d", nn.MaxPool2d((3, 2), stride=(2, 1), padding=(1, 1)), randn(2, 3, 6, 5))
case("avg_pool2d", nn.AvgPool2d(3, stride=2, padding=1, count_include_pad=False), randn(2, 3, 6, 5))
case("adaptive_avg_pool2d", nn.AdaptiveAvgPool2d((2, 3)), randn(2, 3, 4, 6))
case(
    "sequential",
    # No bias before a norm: its gradient is zero but for rounding, which nobody can agree on.
    nn.Sequential(nn.Conv2d(1, 4, 3, padding=1, bias=False), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2),
                  nn.Flatten(), nn.Linear(16, 3)),
    randn(3, 1, 4, 4),
)
OUT.write_text("\n".join(lines) + "\n")
print(sum(l.startswith("case") for l in lines), "cases,", OUT.stat().st_size, "bytes")
