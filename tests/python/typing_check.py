# SPDX-License-Identifier: Apache-2.0
"""What a user's type checker must accept; run through mypy --strict by test_typing.py, never executed."""

import inspect
from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorcraft.jax as tcj
import tensorcraft.torch as tct
from numpy.typing import NDArray

import tensorcraft as tc


def tensors(path: str) -> tc.Tensor:
    x = tc.asarray([[1.0, 2.0]], dtype=tc.float32, device="cpu")
    weights: Mapping[str, tc.Tensor] = tc.load_safetensors(path)
    loads: int = tc.load_safetensors(path, lazy=True, quota=1 << 20).stats().loads
    assert loads == 0
    shape: tuple[int, ...] = x.shape
    y: tc.Tensor = (x @ weights["w"].T + 1.0) * x[0] / 2 - x
    y += tc.zeros(shape, tc.float16)
    kind: tc.DType = y.dtype
    return y.reshape(-1, 2).to("cpu").astype(kind)


def arithmetic(x: tc.Tensor, y: tc.Tensor) -> list[tc.Tensor]:
    results = [x < 1, x <= 1, x > y, x >= 2.0, x == y, x != 0, abs(x), -x, x**2, 2**x, 1 - x, 2 / x, x @ x]
    x **= 2
    x *= 2.0
    return [*results, x, x[0], x[..., None], x.T]


def tensor_in_tensor_out(x: tc.Tensor) -> tc.Tensor:
    y: tc.Tensor = tc.softmax(x, axis=-1, out=x, variant="cpu")
    y = tc.add(x, 1.0)
    y = tc.subtract(1.0, x)
    y = tc.where(y, x, 0.0)
    y = tc.elementwise("a * b + c", a=x, b=y, c=0.5)
    y = tc.matmul(x, y)
    left, right = tc.split(y, 2, axis=-1)
    y = tc.concat([left, right], axis=-1)
    return tc.gemm(x, y, bias=None, activation="relu", device="cpu")


def results_written_into(x: tc.Tensor, n: NDArray[np.float32]) -> tuple[tc.Tensor, NDArray[Any]]:
    rotated: tc.RopeResult[tc.Tensor] = tc.rope(x, k=x, out=(x, None))
    best: tc.TopkResult[NDArray[Any]] = tc.topk(n, 2, out=(None, n))
    return rotated.k_out, best.indices


def numpy_in_numpy_out(x: NDArray[np.float32]) -> NDArray[Any]:
    y: NDArray[Any] = tc.gelu(x, approximate="tanh")
    y = tc.multiply(2, y)
    y = tc.elementwise("a * b", a=x, b=2)
    y = tc.stack([tc.sum(x, axis=0, keepdims=True), y[0]])
    return tc.gemm(x, x, variant="reference")


async def copies(x: tc.Tensor, n: NDArray[np.float32]) -> tc.Tensor:
    with tc.TransferEngine("cpu", max_in_flight=2, bandwidth={"h2d": 1e9}) as engine:
        copy: tc.Copy = engine.to(n, "cpu", priority=1)
        y: tc.Tensor = await copy
        engine.copy(x, out=y).result(1.0)
        speed: float = engine.statistics()["d2d"].gb_per_s + copy.gb_per_s
    with tc.dispatch.record():
        launches: tuple[tc.dispatch.Launch, ...] = tc.dispatch.recent(int(speed))
    names: list[str] = [launch.name for launch in launches]
    return copy.tensor if names else x.to("cpu", non_blocking=True)


def array_api(x: tc.Tensor, n: NDArray[np.float32]) -> tc.Tensor:
    y: tc.Tensor = tc.flip(tc.reshape(x, (-1, 2)), axis=0)
    y = tc.linalg.outer(y[0], tc.broadcast_to(y[1], (4,)))
    mask = (x > 0) & ~(x < 1) | (x == 2)
    x[mask] = 0
    a: NDArray[Any] = tc.roll(n, 1, axis=0)
    a = tc.matmul(a, tc.squeeze(n, axis=0))
    kind: tc.DType = tc.result_type(tc.int8, x, 1.0)
    limit: float = tc.finfo(kind).max
    rows: tc.Tensor = tc.nonzero(x)[0]
    return x[mask] + x[[1, 0], ::-1].sum(axis=0) % 2 // limit + tc.astype(rows, kind, copy=False) - tc.eye(3).clip(0, 1)


def anything_in_anything_out(x: Any) -> Any:
    given: list[list[float]] = [[1.0, 2.0]]
    tc.softmax(given)
    tc.astype(given, "bfloat16")
    tc.astype(given, np.float16)
    tc.astype(given, np.dtype("int32"))
    return tc.relu(x)


def several_results(x: tc.Tensor, w: tc.Tensor, n: NDArray[np.float32]) -> tuple[tc.Tensor, NDArray[Any]]:
    best = tc.topk(x, 2)
    indices: tc.Tensor = best.indices
    values, indices = best
    y, residual = tc.rms_norm(x, w, residual=values)
    stats = tc.layer_norm(n, return_stats=True)
    rstd: NDArray[Any] = stats.rstd
    plain: tc.Tensor = tc.layer_norm(y, w)
    out, lse = tc.attention(x, plain, residual, causal=True, return_lse=True)
    q, k = tc.rope(out, k=lse)
    result: tc.TopkResult[tc.Tensor] = tc.topk(q, k=1)
    codes, scales = tc.quantize(k, tc.int8)
    assert codes.dtype == tc.int8
    return result.out + scales + indices, rstd


def runtime() -> str:
    with tc.Stream("cuda:0") as stream, tc.trace() as calls:
        tc.l2_normalize([1.0], stream=stream)
    stream.synchronize()
    axpy = tc.kernel("...", "axpy(T* y, int64 n)", name="axpy.cu", T=tc.float32, kUnroll=4)
    axpy[(4, 1), 256, 0, stream](tc.ones(3), 3)
    registers: int = axpy.explain(256, arch="sm_90a").registers
    print(registers)
    graph = tc.Graph(lambda: tc.relu(tc.ones(3)), stream=stream)
    graph.launch(stream)
    graph.launch()
    explanation: tc.Explanation = tc.explain(tc.softmax, [1.0])
    assert explanation == tc.explain("softmax", [1.0])
    slowest: float = max(row.estimate_us for row in explanation.variants)
    operator: tc.Operator = tc.ops()["softmax"]
    names: tuple[str, ...] = tuple(inspect.signature(operator.function).parameters)
    try:
        tc.synchronize()
    except tc.DeviceLost as error:
        return str(error)
    return explanation.variant + graph.device + str(graph.result) + str(calls) + ", ".join(names) + str(slowest)


def cache(path: str) -> int:
    before: int = tc.cache.stat().entries
    tc.cache.export(path)
    return before


def devices() -> dict[str, Any]:
    names: list[str] = tc.devices()
    tc.set_default_device(names[0])
    return tc.device_info(tc.default_device())


def operators_of_frameworks(x: tc.Tensor) -> tc.Tensor:
    values: tc.Tensor = tct.topk(tct.softmax(tct.clip(x, 0.0, 1.0)), 3).out
    values = tcj.topk(tcj.softmax(values), 3).out
    return values
