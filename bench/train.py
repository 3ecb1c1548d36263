#!/usr/bin/env python3
"""Training steps (forward, loss, backward, Adam) against torch, interleaved, one thread.

    python3 bench/train.py BUILD/bench/bench_train [--rounds 5]

CPU time of the one thread, the best of all rounds; ratios are torch / ours, above 1 we are faster. torch runs eagerly with
its plain and with its fused Adam; the ratio is to the faster of the two.
"""
import argparse
import os
import subprocess
import sys
import time

NAMES = {"mlp": "MLP 784-512-512-10, b64", "lenet": "LeNet, b64", "cnn": "CNN with BN, b64", "block": "transformer block, 8x64x128"}


class Ours:
    name = "onemodel"

    def __init__(self, driver, net):
        self.p = subprocess.Popen([driver, net], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def time(self):
        self.p.stdin.write("time\n")
        self.p.stdin.flush()
        return float(self.p.stdout.readline())


def make(net):
    import torch
    from torch import nn
    b, t, d, h = 8, 64, 128, 4

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.n1, self.n2 = nn.LayerNorm(d), nn.LayerNorm(d)
            self.q, self.k, self.v, self.o = (nn.Linear(d, d) for _ in range(4))
            self.up, self.down = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

        def forward(self, x):
            n = self.n1(x)
            q, k, v = (f(n).view(b, t, h, d // h).transpose(1, 2) for f in (self.q, self.k, self.v))
            a = torch.softmax((q * 0.17677669529663687) @ k.transpose(2, 3), -1) @ v
            x = x + self.o(a.transpose(1, 2).reshape(b, t, d))
            return x + self.down(nn.functional.gelu(self.up(self.n2(x))))
    if net == "mlp":
        m = nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
        return m, torch.rand(64, 784) - 0.5
    if net == "lenet":
        m = nn.Sequential(nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                          nn.Linear(9216, 128), nn.ReLU(), nn.Linear(128, 10))
        return m, torch.rand(64, 1, 28, 28) - 0.5
    if net == "cnn":
        m = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
                          nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                          nn.Linear(32 * 7 * 7, 10))
        return m, torch.rand(64, 1, 28, 28) - 0.5
    return Block(), torch.rand(b, t, d) - 0.5


class Torch:
    def __init__(self, net, fused):
        import torch
        torch.set_num_threads(1)
        torch.set_grad_enabled(True)  # sessions.py turns it off
        torch.manual_seed(0)
        self.name = "torch fused" if fused else "torch"
        self.m, self.x = make(net)
        block = net == "block"
        self.y = torch.rand_like(self.x) if block else torch.randint(0, 10, (64,))
        self.loss = torch.nn.functional.mse_loss if block else torch.nn.functional.cross_entropy
        self.opt = torch.optim.Adam(self.m.parameters(), 1e-3, fused=fused)
        self.step()

    def step(self):
        self.opt.zero_grad(set_to_none=True)
        self.loss(self.m(self.x), self.y).backward()
        self.opt.step()

    def time(self):
        clock = time.process_time  # its backward runs on a thread of its own
        t = clock()
        self.step()
        reps, best = int(2e-2 / (clock() - t + 1e-9)) + 1, 1e9
        for _ in range(3):
            t = clock()
            for _ in range(reps):
                self.step()
            best = min(best, (clock() - t) / reps)
        return best


def table(driver, rounds):
    rows = [["training step", "onemodel ms", "torch ms", "torch fused ms", "/torch"]]
    for net, title in NAMES.items():
        programs = [Ours(driver, net)]
        try:
            programs += [Torch(net, False), Torch(net, True)]
        except ImportError:
            pass
        times = {p.name: 1e9 for p in programs}
        for _ in range(rounds):
            for p in programs:
                times[p.name] = min(times[p.name], p.time())
        programs[0].p.stdin.close()
        ours, theirs = times["onemodel"], [times[k] for k in ("torch", "torch fused") if k in times]
        rows.append([title, f"{ours * 1e3:.2f}"] + [f"{t * 1e3:.2f}" for t in theirs] + ([f"{min(theirs) / ours:.2f}"] if theirs else []))
        print("  ".join(rows[-1]), file=sys.stderr, flush=True)
    return rows


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    p.add_argument("driver")
    p.add_argument("--rounds", type=int, default=5)
    a = p.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    table(a.driver, a.rounds)


if __name__ == "__main__":
    main()
