# SPDX-License-Identifier: Apache-2.0
"""The byte-level tokenizer of a GGUF file: text to ids, and ids to text as they come."""

import codecs
from collections.abc import Iterable, Sequence
from typing import Any

# How bytes are split into words before merging: `tokenizer.ggml.pre` names it. This one splits as GPT-2 does, each digit alone.
SPLITS = ("smollm",)
CONTROL = 3  # the type of tokens that no text gives


def is_unicode(text: str) -> bool:
    """False if bytes of an argument or of the input were no UTF-8: Python keeps them as lone surrogates."""
    return not any("\ud800" <= character <= "\udfff" for character in text)


class Tokenizer:
    """Built from what a GGUF file says under `tokenizer.ggml.`; needs the package tokenizers."""

    def __init__(self, metadata: dict[str, Any]) -> None:
        model, split = (metadata.get(f"tokenizer.ggml.{key}") for key in ("model", "pre"))
        if model != "gpt2" or split not in SPLITS:
            raise ValueError(
                f"tokenizer: it is of kind {model}, split {split}; this example takes gpt2, split {SPLITS[0]}"
            )
        missing = [
            key for key in ("tokens", "token_type", "merges", "eos_token_id") if f"tokenizer.ggml.{key}" not in metadata
        ]
        if missing:
            raise ValueError(f"tokenizer: the file does not say tokenizer.ggml.{missing[0]}")
        self.tokens: list[str] = metadata["tokenizer.ggml.tokens"]
        self.ids = {token: i for i, token in enumerate(self.tokens)}
        self.control = {i for i, kind in enumerate(metadata["tokenizer.ggml.token_type"]) if kind == CONTROL}
        self.end: int = metadata["tokenizer.ggml.eos_token_id"]
        self._encoder = byte_level_encoder(self.ids, metadata["tokenizer.ggml.merges"])
        self._byte_of = {character: byte for byte, character in enumerate(byte_characters())}

    def encode(self, text: str) -> list[int]:
        """The ids of a text; names of control tokens in it are plain text, so a user cannot write one."""
        if not is_unicode(text):
            raise ValueError("tokenizer: the text is not UTF-8")
        return list(self._encoder.encode(text, add_special_tokens=False).ids)

    def control_id(self, name: str) -> int:
        if self.ids.get(name) not in self.control:
            raise ValueError(f"tokenizer: it has no control token {name}")
        return self.ids[name]

    def bytes_of(self, token: int) -> bytes:
        """Empty for a control token."""
        if token in self.control:
            return b""
        return bytes(self._byte_of[character] for character in self.tokens[token])

    def decode(self, ids: Iterable[int]) -> str:
        stream = TextStream(self)
        return "".join(stream.add(token) for token in ids) + stream.finish()


class TextStream:
    """Text of ids one by one. A character whose bytes are in several tokens comes with its last one."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def add(self, token: int) -> str:
        return self._decoder.decode(self._tokenizer.bytes_of(token))

    def finish(self) -> str:
        """What is left: the replacement character if the last character is cut off."""
        return self._decoder.decode(b"", final=True)


def byte_characters() -> list[str]:
    """The character that stands for each byte in tokens: itself if it prints, else one from U+0100 on."""
    prints = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    others = iter(range(256, 512))
    return [chr(byte if byte in prints else next(others)) for byte in range(256)]


def byte_level_encoder(ids: dict[str, int], merges: Sequence[str]) -> Any:
    try:
        from tokenizers import Tokenizer as Encoder
        from tokenizers import models, pre_tokenizers
    except ImportError as error:
        raise ImportError("tokenizer: the package tokenizers is missing; run `pip install tokenizers`") from error
    pairs = [merge.partition(" ") for merge in merges]
    encoder = Encoder(models.BPE(ids, [(left, right) for left, _, right in pairs]))
    encoder.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    return encoder
