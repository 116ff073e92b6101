# SPDX-License-Identifier: Apache-2.0
"""Every line that may wait for a GPU is behind a row of docs/waiting.md."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))
import waits_table as waits


def test_every_wait_of_the_library_is_on_the_page():
    assert len(list(waits.waiting_lines())) > 40 and list(waits.all_problems()) == []


def test_a_new_wait_and_one_that_is_gone_are_found(tmp_path):
    for folder in waits.LOOKED_AT:
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "tensorcraft" / "a.cpp").write_text(
        "void synchronize(Device device) {\n"
        "  cuda::require_driver().context_synchronize();\n"
        "  // calls synchronize()\n"
        '  log("stream_synchronize(s)");\n'
        "  changed.wait_for(lock, limit);\n"
        "}\n"
    )
    (tmp_path / "python" / "tensorcraft" / "b.py").write_text("def f(x):\n    return x.item()\n")
    found = list(waits.waiting_lines(tmp_path))
    known = "tensorcraft/a.cpp: cuda::require_driver().context_synchronize();"
    assert found == [known, "python/tensorcraft/b.py: return x.item()"]
    rows = [waits.Wait("asked", "f()", "all", "nothing", (known, "tensorcraft/c.cpp: gone();"))]
    new, gone = waits.problems(found, rows)
    assert new.startswith("python/tensorcraft/b.py: return x.item()\n") and "waits for a GPU" in new
    assert gone.startswith("tensorcraft/c.cpp: gone();\n") and "no such line" in gone


def test_each_kind_of_row_has_a_head_and_each_line_one_row():
    assert {row.kind for row in waits.ROWS} == waits.HEADS.keys()
    lines = [line for row in waits.ROWS for line in row.lines]
    assert len(lines) == len(set(lines)) and all(row.lines for row in waits.ROWS)
