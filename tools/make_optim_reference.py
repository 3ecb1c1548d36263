#!/usr/bin/env python3
"""Makes tests/nn/data/optim_{init,grad,weight}.npy: what PyTorch 2.13.0's optimizers do in 100 steps.

One small model (weight [4,3], bias [4], tanh, squared error) is trained under every option that the
library has; gradients and weights of every step are kept. The C test feeds the gradients to om_step and
compares the weights. foreach=False: the plain loop. Rows of CASES are in the order of the test.
Usage: python tools/make_optim_reference.py
"""
import math
import pathlib

import numpy as np
import torch

OUT = pathlib.Path(__file__).resolve().parent.parent / "tests" / "nn" / "data"
STEPS = 100
SGD, ADAM, ADAMW = torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW
CASES = [
    (SGD, dict(lr=0.1)),
    (SGD, dict(lr=0.1, weight_decay=0.01)),
    (SGD, dict(lr=0.05, momentum=0.9)),
    (SGD, dict(lr=0.05, momentum=0.9, dampening=0.3)),
    (SGD, dict(lr=0.05, momentum=0.9, nesterov=True)),
    (SGD, dict(lr=0.05, momentum=0.8, nesterov=True, weight_decay=0.02)),
    (ADAM, dict(lr=0.01)),
    (ADAM, dict(lr=0.01, betas=(0.8, 0.95), eps=1e-6)),
    (ADAM, dict(lr=0.01, weight_decay=0.05)),
    (ADAMW, dict(lr=0.01, weight_decay=0.05)),
    (SGD, dict(lr=0.1), dict(clip_norm=0.05)),
    (SGD, dict(lr=0.1), dict(clip_value=0.01)),
    (SGD, dict(lr=0.1, momentum=0.9), dict(step=(30, 0.5))),
    (ADAM, dict(lr=0.02), dict(cosine=(80, 0.002))),
    (ADAMW, dict(lr=0.01, weight_decay=0.1), dict(groups=True)),
]


def run(kind, options, extra):
    g = torch.Generator().manual_seed(7)
    x = torch.randn(8, 3, generator=g)
    y = torch.rand(8, 4, generator=g) * 2 - 1
    w = torch.randn(4, 3, generator=g).requires_grad_()
    b = torch.randn(4, generator=g).requires_grad_()
    params = [w, b]
    if extra.get("groups"):  # the bias without decay, at three times the rate
        params = [dict(params=[w]), dict(params=[b], lr=3 * options["lr"], weight_decay=0.0)]
    opt = kind(params, foreach=False, **options)
    schedule = None
    if "step" in extra:
        schedule = torch.optim.lr_scheduler.StepLR(opt, *extra["step"])
    if "cosine" in extra:
        total, low = extra["cosine"]
        base = options["lr"]
        schedule = torch.optim.lr_scheduler.LambdaLR(
            opt,
            lambda t: (low + (base - low) * (1 + math.cos(math.pi * min(t, total) / total)) / 2) / base,
        )
    start = torch.cat([w.detach().flatten(), b.detach()]).numpy().copy()
    grads, weights = [], []
    for _ in range(STEPS):
        opt.zero_grad()
        loss = ((torch.tanh(x @ w.T + b) - y) ** 2).mean()
        loss.backward()
        grads.append(torch.cat([w.grad.flatten(), b.grad]).numpy().copy())
        if "clip_norm" in extra:
            torch.nn.utils.clip_grad_norm_([w, b], extra["clip_norm"], foreach=False)
        if "clip_value" in extra:
            torch.nn.utils.clip_grad_value_([w, b], extra["clip_value"], foreach=False)
        opt.step()
        if schedule:
            schedule.step()
        weights.append(torch.cat([w.detach().flatten(), b.detach()]).numpy().copy())
    return start, grads, weights


assert torch.__version__.startswith("2.13.0"), torch.__version__
torch.set_num_threads(1)
results = [run(c[0], c[1], c[2] if len(c) > 2 else {}) for c in CASES]
np.save(OUT / "optim_init.npy", np.stack([r[0] for r in results]).astype(np.float32))
np.save(OUT / "optim_grad.npy", np.stack([np.stack(r[1]) for r in results]).astype(np.float32))
np.save(OUT / "optim_weight.npy", np.stack([np.stack(r[2]) for r in results]).astype(np.float32))
print(len(CASES), "cases of", STEPS, "steps")
