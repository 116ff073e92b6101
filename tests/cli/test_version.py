# SPDX-License-Identifier: Apache-2.0
"""Library, Python package, command and documents name one version; the page says what the help says."""

import re

import pytest
from process import ROOT, Run, options_of

(VERSION,) = re.findall(r"^project\(tensorcraft VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text(), re.MULTILINE)
MADE_UP = ROOT / "tests" / "cli" / "made_up_results.json"
PAGE = (ROOT / "docs" / "command.md").read_text()


def test_one_version_everywhere(run: Run) -> None:
    assert run("--version").out == f"tensorcraft {VERSION}\n"
    checks = {c["name"]: c for c in run("doctor", "--json").json()["checks"]}
    assert checks["versions"]["finding"].startswith(f"library {VERSION}, command {VERSION}")
    tensorcraft = pytest.importorskip("tensorcraft")
    assert tensorcraft.__version__ == VERSION
    newest = re.findall(r"^## (\S+?),? ", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)[0]
    assert newest == VERSION
    assert f"tensorcraft {VERSION}" in PAGE


def after_heading(text: str) -> str:
    text = text.split("Examples:\n")[0]
    return re.split("(?i)^subcommands:", text, flags=re.MULTILINE)[1]  # upper case in newer releases of CLI11


def test_the_page_names_every_command_and_option(run: Run) -> None:
    commands = re.findall(r"^  ([a-z]+) +\S", after_heading(run("--help").out), re.MULTILINE)
    assert commands[:2] == ["doctor", "devices"]
    sections = dict(re.findall(r"^## `tensorcraft ([a-z]+)[^\n]*\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))
    assert list(sections) == commands
    inner = re.findall(r"^  ([a-z]+) +\S", after_heading(run("cache", "--help").out), re.MULTILINE)
    assert re.findall(r"^\| `([a-z]+)[ `]", sections["cache"], re.MULTILINE) == inner
    for name, text in sections.items():
        documented = set(re.findall(r"`(--[a-z-]+)", text))
        groups = [(name, i) for i in inner] if name == "cache" else [(name,)]
        offered = set[str]().union(*(options_of(run, *group) for group in groups))
        assert documented == offered - {"--json", "--help"}, name


def test_the_page_has_the_keys_of_the_json(run: Run) -> None:
    calls = {
        "doctor": ("doctor",), "devices": ("devices",), "ops": ("ops", "relu"), "explain": ("explain", "relu", "4"),
        "warmup": ("warmup", "--call", "relu 4", "--arch", "sm_90a"), "cache": ("cache", "stat"), "clangd": ("clangd",), "fragments": ("fragments",),
        "report": ("report", str(MADE_UP), "-o", "-"), "completion": ("completion", "bash"), "help": ("help", "ops"),
    }  # fmt: skip
    for name, call in calls.items():
        section = PAGE.split(f"## `tensorcraft {name}")[1].split("\n## ")[0]
        for key in run(*call, "--json").json():
            assert f"`{key}`" in section, f"{name}: {key}"
