# SPDX-License-Identifier: Apache-2.0
"""Every operator as `torch.ops.tensorcraft.NAME`, for graphs of torch; imported only if you ask for it.

    import tensorcraft.torch as tct
    step = torch.compile(lambda x, w: tct.rms_norm(x, w), fullgraph=True)

A function takes what its operator takes. Outside of a graph it is the operator's call, at once; while `torch.compile` traces,
it is the operator of `torch.ops`, whose results are known by the operator's own checks. Sizes are numbers in a graph: other
sizes compile again. Gradients are not computed: an array that requires them is refused.

Nothing of torch is linked. `docs/torch.md` says how parameters that torch has no type for are written.
"""

from ._ops import RESULTS
from ._torch_operators import FUNCTIONS

_members = {**FUNCTIONS, **{made.__name__: made for made in RESULTS.values()}}
globals().update(_members)
__all__ = list(_members)
del FUNCTIONS, RESULTS
