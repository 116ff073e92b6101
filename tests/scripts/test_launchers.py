# SPDX-License-Identifier: Apache-2.0
"""Every operator has a launcher, which is compiled, compared with the library's plans, and documented."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))
import launchers

ROOT = Path(__file__).parents[2]
OPERATORS = sorted(p.name for p in (ROOT / "tensorcraft/ops").iterdir() if p.is_dir())
# Operators without a launcher, each with the reason.
WITHOUT: dict[str, str] = {
    "append_kv": "what nvcc users need of it is not settled: the table of slots, and rotation or not",
    "causal_conv1d": "what nvcc users need of it is not settled: ragged batches, and where states lie",
    "csr": "its steps need a workspace that a launcher does not have yet",
    "depthwise_separable_conv2d": "comes when a user of nvcc has asked for it: its two halves have launchers",
    "merge_attention": "comes with the launchers of attention's serving form",
    "moe_combine": "comes with the launchers of grouped products, whose rows it reads",
    "moe_permute": "its steps need a workspace that a launcher does not have yet",
    "moe_router": "comes with the launchers of grouped products, which read what it writes",
    "mqa_logits": "comes with the launchers of attention's serving form, whose pages it reads",
    "packed_gemm": "what nvcc users need of it is not settled: the order of codes comes from the library",
    "paged_attention": "its second step needs a workspace that a launcher does not have yet",
    "transfer_hicache": "what nvcc users need of it is not settled: tables or strides, and who maps memory of the host",
    "pool2d": "comes when a user of nvcc has asked for it: it reads the images of conv2d",
    "sample": "the second step of split needs a workspace that a launcher does not have yet",
    "spmm": "merge_path and a packed x need a workspace that a launcher does not have yet",
    "spmv": "merge_path needs a workspace that a launcher does not have yet",
}


def text(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def write(root: Path, path: str, content: str) -> None:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content, encoding="utf-8")


@pytest.mark.parametrize("name", [name for name in OPERATORS if name not in WITHOUT])
def test_an_operator_has_a_launcher(name: str) -> None:
    path = f"tensorcraft/kernels/{name}.cuh"
    assert (ROOT / path).exists(), f"write {path}, or say in WITHOUT why there is none"
    plan = f'#include "tensorcraft/ops/{name}/plan.h"'
    assert any(plan in p.read_text(encoding="utf-8") for p in (ROOT / "tensorcraft/kernels").glob(f"{name}*")), (
        f"{path} does not choose by the operator's plan.h"
    )


def test_a_new_launcher_gets_a_line_and_a_row(tmp_path: Path) -> None:
    write(tmp_path, "docs/page.md", "<!-- launchers -->\n<!-- /launchers -->\n")
    write(tmp_path, "tensorcraft/kernels/all.cuh", "")
    write(tmp_path, "tensorcraft/kernels/launch.cuh", "// What launches.\nvoid launch_it(int);\n")
    write(
        tmp_path,
        "tensorcraft/kernels/double.cuh",
        '// SPDX\n#include "tensorcraft/kernels/launch.cuh"\n// Twice as much. Compiled for each T: one.\n'
        "namespace detail::double {\nvoid launch_hidden(int);\n}  // namespace detail::double\n"
        "// out = 2 x. T: float\n// or f16. Enqueues.\ntemplate <class T>\nstd::string_view launch_double(T x);\n",
    )
    assert launchers.update(tmp_path) == ["docs/page.md", "tensorcraft/kernels/all.cuh"]
    assert launchers.update(tmp_path, check=True) == []
    assert (
        "| `double.cuh` | Twice as much | `launch_double` | float or f16 |\n<!-- /"
        in (tmp_path / "docs/page.md").read_text()
    )
    included = re.findall(r"kernels/(\w+)\.cuh", (tmp_path / "tensorcraft/kernels/all.cuh").read_text())
    assert included == ["double", "launch"]


def public_launchers(header: str) -> set[str]:
    """Names that users call: functions outside namespace detail, and those that a macro of the header declares."""
    code = re.sub(r"^namespace detail\b.*?^\}  // namespace detail", "", text(header), flags=re.DOTALL | re.MULTILINE)
    names = set(
        re.findall(r"^(?:template <.*> )?(?:inline )?(?:std::string_view|void) (launch_\w+)\(", code, re.MULTILINE)
    )
    return names | {f"launch_{name}" for name in re.findall(r"^TC_\w+_LAUNCHER\((\w+)", code, re.MULTILINE)}


def test_every_launcher_is_compared_with_the_library_on_a_gpu() -> None:
    compared = "".join(p.read_text(encoding="utf-8") for p in (ROOT / "benchmarks/aot_routes").glob("*.cu"))
    headers = [
        f"tensorcraft/kernels/{p.name}"
        for p in sorted((ROOT / "tensorcraft/kernels").glob("*.cuh"))
        if p.name != "launch.cuh"
    ]
    launchers = {name: header for header in headers for name in public_launchers(header)}
    assert len(launchers) > 40
    missing = {name: header for name, header in launchers.items() if not re.search(rf"\btk::{name}\b", compared)}
    assert not missing, "compare them in benchmarks/aot_routes"
    assert "tk::GEMMInterface<T>::execute(" in compared
    # An operator whose launchers this test does not find would be left out in silence.
    assert not [
        name for name in OPERATORS if name not in WITHOUT and not public_launchers(f"tensorcraft/kernels/{name}.cuh")
    ]


def test_what_is_exempt_exists_and_has_none() -> None:
    for name in WITHOUT:
        assert name in OPERATORS and not (ROOT / f"tensorcraft/kernels/{name}.cuh").exists(), name


def test_every_kernel_waits_for_those_in_front_of_it() -> None:
    """launch_listed() starts kernels early; one that does not wait would break the order of the stream."""
    found = []
    for path in sorted((ROOT / "tensorcraft/kernels").glob("*.*h*")):
        for body in path.read_text(encoding="utf-8").split("const __grid_constant__ ")[1:]:
            begins = body.split("{\n", 1)[1].lstrip().removeprefix("if constexpr (!kBeginsItself<Rung>) ")
            assert begins.startswith("begin_kernel();"), f"{path.name}: {body.splitlines()[0]}"
            found.append(path.name)
    assert found == ["launch.cuh"], "one kernel, entry(), is that of every rung"
    # Those that begin themselves do it where they make their barriers.
    pipeline = (ROOT / "tensorcraft/device/tile/pipeline.cuh").read_text(encoding="utf-8")
    assert "begin_kernel();" in pipeline.split("void begin_with_barriers(", 1)[1].split("\n}\n", 1)[0]
    for file in ("ops/gemm/parts/ring.cuh", "device/attention/ring.cuh", "ops/conv2d/07_implicit_wgmma.cuh"):
        ring = (ROOT / "tensorcraft" / file).read_text(encoding="utf-8")
        assert "begin_with_barriers(" in ring.split("void start(", 1)[1].split("\n  }\n", 1)[0]
    schedule = (ROOT / "tensorcraft/ops/gemm/parts/schedule.cuh").read_text(encoding="utf-8")
    assert "  ring.start(p, " in schedule.split("void run_tiles(", 1)[1].split("\n}\n", 1)[0]
    persist = (ROOT / "tensorcraft/device/attention/persist.cuh").read_text(encoding="utf-8")
    assert "  ring.start(p, " in persist.split("void persist(", 1)[1].split("\n}\n", 1)[0]
    # The second step of attention over few queries looks its row up first, and reads no part before.
    split = (ROOT / "tensorcraft/device/split_keys.cuh").read_text(encoding="utf-8")
    combine = split.split("void combine_row(", 1)[1].split("\n}\n", 1)[0]
    assert combine.index("find(row)") < combine.index("begin_kernel();") < combine.index("combine_parts<")
    fold = (ROOT / "tensorcraft/ops/paged_attention/fold.cuh").read_text(encoding="utf-8")
    assert fold.index("result_row<T>(") < fold.index("begin_kernel();") < fold.index("= sums[part]")
    calls = ("  ring.start(p", " run_tiles<", " combine_row<C>(", "persist<", " attend_by_pages<", " RowFold fold;")
    for path in (ROOT / "tensorcraft/ops").rglob("*.cuh"):
        text = path.read_text(encoding="utf-8")
        starts = any(call in text for call in calls) and path.name not in ("schedule.cuh", "page_producer.cuh")
        assert ("begins_itself = true" in text) == starts, path.name
