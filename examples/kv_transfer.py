# SPDX-License-Identifier: Apache-2.0
"""A KV cache goes to the host and comes back, and a step waits for each of its layers."""

import threading

import numpy as np

import tensorcraft as tc

DEVICE = "cuda:0" if "cuda:0" in tc.devices() else "cpu"
LAYERS, TOKENS, DIM = 4, 64, 128


def main() -> None:
    values = (np.random.default_rng(i).standard_normal((LAYERS, TOKENS, DIM), np.float32) for i in (1, 2))
    k_cache, v_cache = (tc.asarray(x, device=DEVICE) for x in values)
    here, there = (tc.asarray(np.random.default_rng(i).permutation(TOKENS)[:32], device=DEVICE) for i in (3, 4))
    # out and back
    k_host, v_host = (tc.memory.pinned((TOKENS, LAYERS, DIM), tc.float32, DEVICE) for _ in range(2))
    tc.transfer_hicache_all_layer(k_host, v_host, there, k_cache, v_cache, here, dst_layout="page_first")
    k_back, v_back = tc.zeros_like(k_cache), tc.zeros_like(v_cache)
    tc.transfer_hicache_all_layer(k_back, v_back, here, k_host, v_host, there, src_layout="page_first")
    # end
    at = here.numpy()
    np.testing.assert_array_equal(k_back.numpy()[:, at], k_cache.numpy()[:, at])
    np.testing.assert_array_equal(v_back.numpy()[:, at], v_cache.numpy()[:, at])

    # a step that waits for its layers
    loaded = [tc.Event(DEVICE) for _ in range(LAYERS)]
    sums = tc.zeros((LAYERS, TOKENS), device=DEVICE)

    def step() -> None:
        for layer in range(LAYERS):
            loaded[layer].wait(1)  # by the GPU, when its turn comes
            tc.sum(k_back[layer], axis=1, out=sums[layer])
            loaded[layer].reset()  # for the next launch

    def load(layer: int) -> None:
        of_host = k_host[:, layer], v_host[:, layer]
        tc.transfer_hicache_one_layer(k_back[layer], v_back[layer], here, *of_host, there)
        loaded[layer].record(1)

    # end
    k_back[...] = 0.0
    if DEVICE == "cpu":  # where a thread waits
        thread = threading.Thread(target=step)
        thread.start()
        for layer in range(LAYERS):
            load(layer)
        thread.join()
    else:
        tc.sum(k_back[0], axis=1, out=sums[0])  # compiles, which a recording cannot
        recorded, loads = tc.Stream(DEVICE), tc.Stream(DEVICE)
        graph = tc.Graph(step, recorded)
        tc.synchronize(DEVICE)
        graph.launch(recorded)
        with loads:
            for layer in range(LAYERS):
                load(layer)
        recorded.synchronize()
    np.testing.assert_allclose(sums.numpy()[:, at], k_cache.numpy().sum(axis=2)[:, at], rtol=1e-4, atol=1e-4)
    print("every layer came back, and was there when it was read")


if __name__ == "__main__":
    main()
