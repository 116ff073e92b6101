# SPDX-License-Identifier: Apache-2.0
"""What holds on every page: its commands, its tables, the version of the compiler that it asks for."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
import check_links
import regions


def test_one_oldest_compiler_is_named_everywhere():
    """By CMake; the doctor, setup.sh and the pages have the same."""
    oldest = re.search(r"TENSORCRAFT_CUDA_MINIMUM ([\d.]+)\)", (ROOT / "cmake/cuda_toolkit.cmake").read_text())[1]
    for file, words in {
        "tensorcraft/diagnose/doctor.cpp": f"kOldestNvrtc{{{oldest.replace('.', ', ')}}};",
        "scripts/setup.sh": f"nvidia-cuda-nvrtc-cu12>={oldest},",
        "docs/header_only.md": f"nvcc {oldest} or newer",
        "docs/versions.md": f"[{oldest} or newer](install.md#what-needs-what)",
        "docs/troubleshooting.md": f"` is older than {oldest}, the first that compiles every kernel`",
    }.items():
        assert words in (ROOT / file).read_text(), file


def test_no_command_splits_a_path_with_a_space_or_names_where_python_looks():
    """build.sh links the package into .venv, so a page's command needs no PYTHONPATH."""
    said = [(page.name, line) for page in [ROOT / "README.md", *ROOT.glob("docs/**/*.md")]
            for block in re.findall(r"^```sh\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL) for line in block.splitlines()]  # fmt: skip
    assert len(said) > 50
    assert not [(page, line) for page, line in said if "PYTHONPATH" in line]
    assert not [(page, line) for page, line in said if "$" in re.sub(r'"[^"]*"|\'[^\']*\'', "", line)]


def test_every_row_of_a_table_has_the_cells_of_its_head():
    """A | in a cell, which is not written as \\|, begins another cell."""
    wrong = []
    for page in regions.documents(ROOT):
        head = 0
        for line in check_links.CODE.sub("", page.read_text()).splitlines():
            cells = len(re.findall(r"(?<!\\)\|", line)) if line.startswith("|") else 0
            head = head or cells
            if cells not in (0, head):
                wrong.append(f"{page.name}: {line}")
            head = head if cells else 0
    assert not wrong
