// eager_torch.cpp -- the same calls as eager.c through libtorch's C++ API, without gradients: "name ns" lines.
#include <torch/torch.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

template <class F> static void row(const char *name, F call, int calls = 20000) {
    constexpr int rounds = 41;
    std::vector<double> ns;
    for (int k = 0; k < rounds; k++) {
        auto t = std::chrono::steady_clock::now();
        for (int i = 0; i < calls; i++) call();
        ns.push_back(std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - t).count() / calls);
    }
    std::nth_element(ns.begin(), ns.begin() + rounds / 2, ns.end());
    std::printf("%s %.1f\n", name, ns[rounds / 2]);
}

int main() {
    torch::NoGradGuard off;
    torch::set_num_threads(1);
    auto a = torch::tensor({1.f, -2.f, 3.f, -4.f}), b = a.clone(), m = a.reshape({2, 2}).clone(), w = m.clone();
    row("add", [&] { auto y = torch::add(a, b); });
    row("relu", [&] { auto y = torch::relu(a); });
    row("matmul", [&] { auto y = torch::matmul(m, w); });
    row("reshape", [&] { auto y = a.reshape({2, 2}); });
    row("sum", [&] { auto y = a.sum(); });
    auto x = torch::rand({1, 784}), layer = torch::rand({256, 784}), bias = torch::rand({256});
    row("linear_1x784x256", [&] { auto y = torch::linear(x, layer, bias); }, 200);
}
