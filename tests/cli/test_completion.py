# SPDX-License-Identifier: Apache-2.0
"""The completion scripts load in their shells and offer what the command has."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from process import Run, options_of


def complete(command: Path, shell: str, words: list[str]) -> list[str]:
    """What the shell's function offers for the last word."""
    line = " ".join(f"'{w}'" for w in words)
    script = (
        f"source <(tensorcraft completion {shell})\n"
        f"COMP_WORDS=({line}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); _tensorcraft\n"
        'printf "%s\\n" "${COMPREPLY[@]}"\n'
    )
    if shell == "zsh":  # bashcompinit calls its functions like this
        script = script.replace("COMP_WORDS=(", "emulate sh; COMP_WORDS=(")
    environment = {**os.environ, "PATH": f"{command.parent}:{os.environ['PATH']}"}
    arguments = ["-f", "-c"] if shell == "zsh" else ["--norc", "-c"]
    done = subprocess.run([shell, *arguments, script], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0 and not done.stderr, done.stderr
    return [word for word in done.stdout.split() if word.startswith(words[-1])]  # zsh drops the others itself


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_completion(command: Path, shell: str, run: Run) -> None:
    if not shutil.which(shell):
        pytest.skip(f"there is no {shell}")
    first = complete(command, shell, ["tensorcraft", ""])
    assert {"doctor", "ops", "explain", "cache", "devices", "warmup", "clangd", "completion", "--version"} <= set(first)
    assert complete(command, shell, ["tensorcraft", "exp"]) == ["explain"]
    assert {"ls", "stat", "verify", "clear"} <= set(complete(command, shell, ["tensorcraft", "cache", ""]))
    assert complete(command, shell, ["tensorcraft", "cache", "ls", "--j"]) == ["--json"]
    assert complete(command, shell, ["tensorcraft", "explain", "--dtype", "bf"]) == ["bfloat16"]
    assert complete(command, shell, ["tensorcraft", "explain", "--dtype", "--"]) == []
    assert complete(command, shell, ["tensorcraft", "completion", ""])[:2] == ["bash", "zsh"]


def test_the_script_of_fish_offers_what_the_help_lists(run: Run) -> None:
    script = run("completion", "fish").out
    for name in ("doctor", "explain", "bench", "warmup", "clangd", "report"):
        lines = [line for line in script.splitlines() if f"-n 'true; and __fish_seen_subcommand_from {name}'" in line]
        offered = {f"--{word}" for line in lines for word in re.findall(r" -l ([a-z-]+)", line)}
        assert offered == options_of(run, name), name
    first = re.findall(r"-n 'true; and not [^']*' -f -a (\w+) ", script)
    assert {"doctor", "explain", "cache", "help", "completion"} <= set(first)
    if shutil.which("fish"):
        assert subprocess.run(["fish", "--no-execute"], input=script, text=True, check=False).returncode == 0


def test_every_option_of_the_help_is_offered(command: Path, run: Run) -> None:
    for name in ("doctor", "explain", "warmup", "clangd", "report"):
        assert set(complete(command, "bash", ["tensorcraft", name, "--"])) == options_of(run, name), name
