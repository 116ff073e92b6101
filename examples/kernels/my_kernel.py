# SPDX-License-Identifier: Apache-2.0
"""MyKernel, out = 2 * x, in full C++ and CUDA C++: a file, its host side, a function of Python."""

from pathlib import Path

import numpy as np

import tensorcraft as tc

# the module
HERE = Path(__file__).parent


def my_module(threads: int, *, cuda: bool) -> tc.JitModule:
    """The function my_kernel(out, x) of the host, or of a GPU with so many threads a block."""
    if not cuda:
        return tc.load_jit(
            "my_kernel", cpp_files=[HERE / "my_kernel.cpp"], cpp_wrappers=[("my_kernel", "my_kernel_of_host")]
        )
    args = tc.make_cpp_args(threads)
    return tc.load_jit(
        "my_kernel",
        *args,
        cuda_files=[HERE / "my_kernel.cu"],
        cuda_wrappers=[("my_kernel", f"MyKernel<{args}>::run")],
    )


# end


def main() -> None:
    on_gpu = any(device.startswith("cuda") for device in tc.devices())
    device = "cuda:0" if on_gpu else "cpu"
    module = my_module(256, cuda=on_gpu)
    # the call
    x = tc.asarray(np.arange(1000, dtype=np.float32), device=device)
    out = tc.empty_like(x)
    module.my_kernel(out, x)
    # end
    np.testing.assert_array_equal(out.numpy(), 2 * x.numpy())
    print(module, "on", device, "gives", out[999].item())
    try:
        module.my_kernel(out, x[:10])
    except ValueError as error:
        print(error)


if __name__ == "__main__":
    main()
