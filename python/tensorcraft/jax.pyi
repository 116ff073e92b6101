# SPDX-License-Identifier: Apache-2.0
# The functions are those of the registry, whose stubs are written from it.
from ._ops import *
from ._ops import __all__ as _names
from ._ops import astype as astype
from ._ops import clip as clip
from ._ops import matmul as matmul

__all__ = [*_names, "astype", "clip", "matmul"]
