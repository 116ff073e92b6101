# SPDX-License-Identifier: Apache-2.0
"""Sums of a great many values, inside every operator that adds, are as exact as those of a few."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import pytest

import tensorcraft as tc

LENGTHS = {"cpu": 2**25, "simt": 2**20, "cuda": 2**25}
ULP = 2.0**-23
EDGE = 512  # of a long result, so many at both ends are compared


@dataclass(frozen=True)
class Values:
    """Values of float32, and what is known of them in double."""

    x: np.ndarray

    @cached_property
    def exact(self) -> np.ndarray:
        return self.x.astype(np.float64)

    @cached_property
    def mean(self) -> float:
        return float(self.exact.mean())

    @cached_property
    def variance(self) -> float:
        return float(self.exact.var())

    @cached_property
    def squares(self) -> float:
        return float(np.square(self.exact).sum())

    @cached_property
    def sum_of_exp(self) -> float:
        """Relative to the largest value."""
        return float(np.exp(self.exact - self.exact.max()).sum())

    @property
    def n(self) -> int:
        return self.x.size

    def edges(self) -> np.ndarray:
        return edges(self.exact)


def edges(array: Any) -> np.ndarray:
    """The first and last values of a result, in double."""
    flat = tc.reshape(array, (-1,)) if isinstance(array, tc.Tensor) else np.asarray(array).reshape(-1)
    if flat.shape[0] <= 2 * EDGE:
        return np.asarray(flat, dtype=np.float64)
    return np.concatenate([np.asarray(flat[:EDGE], dtype=np.float64), np.asarray(flat[-EDGE:], dtype=np.float64)])


@lru_cache(maxsize=2)
def values(kind: str, n: int) -> Values:
    random = np.random.default_rng(48)
    if kind == "1000 and 1001":
        return Values(np.tile(np.float32([1000, 1001]), n // 2))
    if kind == "uniform":
        return Values(random.random(n, np.float32))
    if kind == "tenth":  # each addition rounds to the same side
        return Values(np.full(n, 0.1, np.float32))
    return Values(np.float32(1000) + np.float32(0.5) * random.standard_normal(n, np.float32))


KINDS = ["1000 and 1001", "uniform", "tenth", "normal"]


@dataclass(frozen=True)
class Sum:
    """A call of an operator that adds n values, and what its results are."""

    operator: str
    call: Callable[..., Any]
    right: Callable[[Values], Any]
    most: float = 8 * ULP
    kinds: tuple[str, ...] = ("1000 and 1001", "uniform", "tenth")
    label: str = ""
    length: int = 1  # n is divided by this


SPREAD = {"most": 1e-5, "kinds": ("1000 and 1001", "uniform", "normal")}  # of equal values there is none


def centered(v: Values, eps: float = 1e-5) -> np.ndarray:
    return (v.edges() - v.mean) / np.sqrt(v.variance + eps)


def row(x: Any, *shape: int) -> Any:
    return tc.reshape(x, shape)


def of_matrix(x: Any, **how: Any) -> Any:
    """The product of a matrix of one row and a vector of one number."""
    n, device = x.shape[0], str(x.device)
    ends = tc.asarray(np.int32([0, n]), device=device)
    return tc.spmv(x, tc.zeros(n, "int32", device), ends, tc.ones(1, "float32", device), **how)


def gradients(x: Any, **how: Any) -> Any:
    """Of batch_norm, of the values as gradients and those less 0.5, with a factor of 0.5, as x."""
    device = str(x.device)
    statistics = (tc.asarray(np.float32([v]), device=device) for v in (0.5, 0.5))
    x = row(x, 1, 1, -1)
    result = tc.batch_norm_backward(x, x, None, *statistics, **how)
    return [result.grad_bias, result.grad_weight]


def losses(x: Any, **how: Any) -> Any:
    """The mean and the sum of the losses log(1 + e^-v) of values v."""
    targets = tc.zeros(x.shape[0], "int32", str(x.device))
    logits = tc.stack([x, tc.multiply(x, 0.0)], axis=1)
    return [tc.cross_entropy(logits, targets, reduction=r, **how) for r in ("mean", "sum")]


SUMS = [
    Sum("sum", tc.sum, lambda v: v.mean * v.n),
    Sum(
        "sum",
        lambda x, **how: tc.sum(row(x, -1, 2), axis=0, **how),
        lambda v: v.exact.reshape(-1, 2).sum(axis=0),
        label="of columns",
    ),
    Sum("mean", tc.mean, lambda v: v.mean),
    Sum("var", tc.var, lambda v: v.variance, **SPREAD),
    Sum(
        "var",
        lambda x, **how: tc.var(row(x, -1, 2), axis=0, **how),
        lambda v: v.exact.reshape(-1, 2).var(axis=0),
        label="of columns",
        most=1e-5,
        kinds=("uniform", "normal"),
    ),
    Sum("std", tc.std, lambda v: np.sqrt(v.variance), **SPREAD),
    Sum(
        "masked_mean",
        lambda x, **how: tc.masked_mean(
            row(x, 1, -1, 1), tc.asarray(np.int32([x.shape[0]]), device=str(x.device)), **how
        ),
        lambda v: v.mean,
    ),
    Sum("cumulative_sum", lambda x, **how: tc.cumulative_sum(x, **how)[-1:], lambda v: v.mean * v.n),
    Sum("layer_norm", lambda x, **how: tc.layer_norm(row(x, 1, -1), **how), centered, **SPREAD),
    Sum(
        "layer_norm",
        lambda x, **how: tc.layer_norm(row(x, 1, -1), out_dtype="int8", scale=1.0, return_stats=True, **how)[1:],
        lambda v: [v.mean, 1 / np.sqrt(v.variance + 1e-5)],
        label="of codes",
        **SPREAD,
    ),
    Sum(
        "rms_norm",
        lambda x, **how: tc.rms_norm(row(x, 1, -1), **how),
        lambda v: v.edges() / np.sqrt(v.squares / v.n + 1e-6),
    ),
    Sum("group_norm", lambda x, **how: tc.group_norm(row(x, 1, 1, -1), 1, **how), centered, **SPREAD),
    Sum(
        "batch_norm",
        lambda x, **how: tc.batch_norm(row(x, 1, 1, -1), training=True, **how)[0],
        centered,
        **SPREAD,
    ),
    Sum("batch_norm_backward", gradients, lambda v: [v.mean * v.n, 0.5 * (v.squares - 0.5 * v.mean * v.n)]),
    Sum("l2_normalize", tc.l2_normalize, lambda v: v.edges() / np.sqrt(v.squares)),
    Sum("softmax", tc.softmax, lambda v: np.exp(v.edges() - v.exact.max()) / v.sum_of_exp),
    Sum("log_softmax", tc.log_softmax, lambda v: v.edges() - v.exact.max() - np.log(v.sum_of_exp)),
    Sum("logsumexp", tc.logsumexp, lambda v: v.exact.max() + np.log(v.sum_of_exp)),
    Sum(
        "cross_entropy",
        lambda x, **how: tc.cross_entropy(row(x, 1, -1), tc.zeros(1, "int32", str(x.device)), **how),
        lambda v: np.log(v.sum_of_exp) + v.exact.max() - v.exact[0],
        label="of classes",
    ),
    Sum(
        "cross_entropy",
        losses,
        lambda v: [f(np.log1p(np.exp(-v.exact))) for f in (np.mean, np.sum)],
        kinds=("uniform", "tenth"),
        label="of rows",
        length=16,
    ),
    Sum("spmv", of_matrix, lambda v: v.mean * v.n),
]

# Operators of the groups "reduce", "normalise" and "sparse" that need no call above.
EXEMPT = {
    "no sum": {"max", "min", "argmax", "argmin", "any", "all", "prod", "cumulative_prod", "topk"},
    "whole numbers": {
        "count_nonzero",
        "csr_report",
        "csr_starts",
        "csr_offsets",
        "csr_from_dense",
        "csr_to_dense",
        "csr_transpose",
    },
    "a product of matrices, whose tests state its error": {"spmm"},
}


def test_every_operator_that_reduces_is_in_the_list_or_exempt() -> None:
    reducing = {name for name, o in tc.ops().items() if o.group in ("reduce", "normalise", "sparse")}
    listed, exempt = {s.operator for s in SUMS}, set().union(*EXEMPT.values())
    assert listed | exempt == reducing and not listed & exempt


def variants(operator: str, device: str) -> list[str]:
    kind = "cpu" if device == "cpu" else "cuda"
    return [v.name for v in tc.ops()[operator].variants if v.device == kind and v.name != "reference"]


def error(result: Any, right: Any) -> float:
    """The largest of all results, relative to what is right or, of what is centered, to 1."""
    results, rights = (result, right) if isinstance(right, list) else ([result], [right])
    worst = 0.0
    for got, want in zip(results, rights, strict=True):
        got, want = edges(got), np.reshape(np.asarray(want, dtype=np.float64), -1)
        assert got.shape == want.shape
        scale = np.abs(want) if want.min() > 0 else np.maximum(np.abs(want), 1)
        worst = max(worst, float((np.abs(got - want) / scale).max()))
    return worst


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("one", SUMS, ids=lambda s: f"{s.operator} {s.label}".strip())
def test_a_long_sum_keeps_its_digits(one: Sum, kind: str, device: str) -> None:
    if kind not in one.kinds:
        pytest.skip("no such values in its row")
    v = values(kind, LENGTHS[device.partition(":")[0]] // one.length)
    x, right = tc.asarray(v.x, device=device), one.right(v)
    errors = {}
    for variant in variants(one.operator, device):
        if variant == "naive" and device.startswith("cuda") and kind != one.kinds[0]:
            continue  # one thread of a GPU takes seconds
        try:
            errors[variant] = error(one.call(x, variant=variant), right) / one.most
        except NotImplementedError:  # it declines the call
            continue
    assert errors and max(errors.values()) <= 1, f"errors as shares of {one.most}: {errors}"
