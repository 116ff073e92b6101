# SPDX-License-Identifier: Apache-2.0
"""Every operator as one of JAX, for `jax.jit`; imported only if you ask for it.

    import tensorcraft.jax as tcj
    step = jax.jit(lambda x, w: tcj.softmax(tcj.rms_norm(x, w) * 2))

A function takes what its operator takes, but for `out`, `stream` and `device`, which JAX has itself, and returns arrays of JAX.
Shapes and dtypes of the results are known by the operator's own checks while JAX traces. Gradients and `jax.vmap` are refused.

XLA calls the operators by its FFI, on the CPU and on GPUs of CUDA. Nothing of JAX is linked. `docs/jax.md` says more.
"""

from ._jax_operators import FUNCTIONS
from ._ops import RESULTS

_members = {**FUNCTIONS, **{made.__name__: made for made in RESULTS.values()}}
globals().update(_members)
__all__ = list(_members)
del FUNCTIONS, RESULTS
