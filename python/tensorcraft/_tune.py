# SPDX-License-Identifier: Apache-2.0
"""`tc.tune`: which variant and tile of a call is the fastest, measured."""

from collections.abc import Callable
from typing import Any, NamedTuple

from . import _tensorcraft as native
from ._arguments import to_flag, to_number
from ._explain import _record
from .errors import TensorCraftTypeError, TensorCraftValueError


class TuningTrial(NamedTuple):
    """A candidate that was measured."""

    variant: str  # its name
    config: str  # of the operator's settings; empty if they are left to the cost model
    us: float  # a call; 0 if it failed
    error: str  # why it failed


class TuningResult(NamedTuple):
    """The fastest way to compute a call, and what the cost model chooses; str() is a line."""

    op: str  # the name of the operator
    device: str  # its name
    call: str  # as text, by which the result is found
    variant: str  # the fastest
    config: str  # its settings; empty if they are left to the cost model
    us: float  # a call takes so long
    model_variant: str  # what the cost model chooses
    model_config: str  # its settings; empty if it has none
    model_us: float  # measured in turns with the fastest
    tflops: float  # that the fastest reaches
    end: str  # why the session ended: "converged", ...; "known" if nothing was measured
    trials: tuple[TuningTrial, ...]  # in the order they were measured

    @property
    def speedup(self) -> float:
        """How many times as fast as the cost model's choice."""
        return self.model_us / self.us

    def __str__(self) -> str:
        choice = f"{self.variant} {self.config}".strip()
        return f"{self.op}: {choice}: {self.us:.4g} us, the cost model's choice {self.model_us:.4g} us ({self.end})"


def tune(
    op: str | Callable[..., Any],
    /,
    *args: Any,
    seconds: float | None = None,
    every: bool = False,
    again: bool = False,
    **options: Any,
) -> TuningResult:
    """Measures which variant and tile of a call is the fastest, and lets later calls take it.

    `op` is an operator's function or its name, the rest is the call: `tc.tune(tc.softmax, x)`. It runs many times on
    these arrays; one that it changes in place changes. What is found is kept for the device in the cache's folder, so
    other processes take it too, and a session that was cut off goes on where it was. `seconds`: about how long it may
    take. `every`: measure all candidates, however many there are. `again`: measure what is known already once more.

    Raises Unsupported for a call that only the cost model may choose for, TypeError for one that gives variant or out,
    ValueError for one that gives config, and what the call itself would raise.
    """
    limit = 0.0 if seconds is None else to_number(seconds, "tune: seconds")
    if not limit >= 0:
        raise TensorCraftValueError(f"tune: seconds must be at least 0, got {seconds}")
    measures_all, measures_again = to_flag(every, "tune: every"), to_flag(again, "tune: again")
    record = _record(op)
    from inspect import signature  # slow to import, and few programs tune

    bound = signature(record.function).bind(*args, **options)
    bound.apply_defaults()
    values = dict(bound.arguments)
    common = {name: values.pop(name) for name in ("out", "stream", "variant", "device")}
    for name in ("out", "variant"):
        if common[name] is not None:
            raise TensorCraftTypeError(f"tune: {name} is what tuning chooses or makes; leave it out")
    chosen = {name: values.pop(name) for name in record._options}
    found = native.tune(
        record._index, tuple(values.values()), tuple(chosen.values()), common["stream"], common["device"],
        limit, measures_all, measures_again,
    )  # fmt: skip
    trials = tuple(TuningTrial(*one) for one in found.pop("trials"))
    return TuningResult(trials=trials, **found)
