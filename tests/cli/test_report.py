# SPDX-License-Identifier: Apache-2.0
"""`tensorcraft report`: its summary, its mistakes, its file, and its page as a browser draws it."""

import copy
import csv
import json
import re
import resource
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import report_page
from process import ROOT, Run

sys.path.insert(0, str(ROOT / "scripts"))
import results_case

MADE_UP = Path(__file__).with_name("made_up_results.json")
DOCUMENT: dict[str, Any] = json.loads(MADE_UP.read_text())
NASTY = "</script><script>document.body.remove()</script><img src=x onerror=alert(1)> {{data}} & \" ' \u2028 \\"


def written(folder: Path, document: object, name: str = "results.json") -> str:
    path = folder / name
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    return str(path)


def changed(**keys: object) -> dict[str, Any]:
    return {**copy.deepcopy(DOCUMENT), **keys}


def with_row(**keys: object) -> dict[str, Any]:
    document = changed()
    document["rows"][2].update(keys)
    return document


def nasty_document() -> dict[str, Any]:
    """The made-up figures with names that try to become markup."""
    document = changed(title=NASTY)
    document["machine"]["processor"] = NASTY
    for row in document["rows"]:
        row["op"] += NASTY
        row["case"] += NASTY
        row["variant"] = row["variant"] and row["variant"] + NASTY
        row["error"] = row["error"] and row["error"] + NASTY
    return document


# The least that a results file holds: no device, no bytes, and a case that only a peer ran.
BARE = {
    "schema": 1,
    "title": "Bare",
    "rows": [
        {"op": "nothing", "case": "at all", "candidate": "tensorcraft", "median_us": 4},
        {"op": "nothing", "case": "at all", "candidate": "someone", "median_us": 2},
        {"op": "nothing", "case": "of ours", "candidate": "someone", "median_us": 2},
    ],
}


# ---- the summary ----


def test_the_summary_has_ratios_and_means(run: Run, tmp_path: Path) -> None:
    done = run("report", str(MADE_UP), "--json")
    assert done.code == 0 and (tmp_path / "report.html").exists()
    summary = done.json()
    assert summary["page"] == "report.html"
    (file,) = summary["files"]
    first, second = file["cases"][:2]
    assert (first["variant"], first["median_us"], first["bound"]) == ("in_registers", 72.5, "bytes")
    assert first["ratios"]["torch"] == pytest.approx(260 / 72.5, rel=1e-5) and first["loses_to"] == []
    assert second["loses_to"] == ["torch.compile"]
    assert [r["variant"] for r in first["rows"][:5]] == ["naive", "block", "online", "in_registers", "cluster"]
    assert [r["candidate"] for r in first["rows"][5:]] == ["copy", "torch", "torch.compile"]
    assert next(c for c in file["cases"] if c["op"] == "gemm")["bound"] == "flops"
    means = {(g["op"], g["peer"]): g for g in file["geomeans"]}
    mean = (110.5 / 72.5 * 600 / 640) ** 0.5
    assert means["softmax", "torch.compile"]["geomean"] == pytest.approx(mean, rel=1e-5)
    assert {k: means["softmax", "torch.compile"][k] for k in ("count", "losing", "missing")} == {
        "count": 2, "losing": 1, "missing": 0,
    }  # fmt: skip
    assert means["transpose", "torch.compile"] == {"op": "transpose", "peer": "torch.compile", "count": 0, "missing": 1}
    add = file["cases"][-1]
    assert add["timing"] == "graph" and "torch.compile" not in add["ratios"]  # timed by events
    assert add["rows"][-1]["timing"] == "events" and means["add", "torch.compile"]["missing"] == 1
    assert file["skipped"] == DOCUMENT["skipped"]
    assert ("gemm", "copy") not in means and means["all operators", "copy"]["count"] == 4  # operations limit gemm
    assert means["all operators", "torch"]["count"] == 5 and "losing" not in means["softmax", "copy"]


def grouped() -> dict[str, Any]:
    """The made-up figures as those of a suite with two groups, and of one call beside it."""
    document = changed()
    for row in document["rows"]:
        row["group"] = {"softmax": "rows", "add": "", "gemm": "products"}.get(row["op"], "rows")
    return document


def test_groups_of_a_suite_have_means_of_their_own(run: Run, tmp_path: Path) -> None:
    (file,) = run("report", written(tmp_path, grouped()), "--json").json()["files"]
    groups = {(g["group"], g["peer"]): g for g in file["groups"]}
    assert groups["rows", "torch"]["count"] == 3 and groups["rows", "torch.compile"]["missing"] == 1
    assert groups["products", "cublaslt"]["geomean"] == pytest.approx(192 / 287, rel=1e-5)
    assert ("products", "copy") not in groups and not any(group == "" for group, _ in groups)
    assert run("report", str(MADE_UP), "--json").json()["files"][0]["groups"] == []


def table(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_the_points_of_the_roofline_are_a_table(run: Run, tmp_path: Path) -> None:
    done = run("report", str(MADE_UP), "--csv", "points.csv")
    assert done.code == 0 and "wrote report.html and points.csv" in done.out
    points = table(tmp_path / "points.csv")
    measured = [row for row in DOCUMENT["rows"] if row["error"] is None]
    assert len(points) == len(measured)
    softmax = next(p for p in points if p["variant"] == "in_registers" and p["op"] == "softmax")
    assert (softmax["candidate"], softmax["chosen"], softmax["bound"]) == ("tensorcraft", "1", "bytes")
    bytes_, flops, floor_us, median_us = 268435456, 335544320, 55.9241, 72.5
    assert float(softmax["flops_per_byte"]) == pytest.approx(flops / bytes_)
    assert float(softmax["gbs"]) == pytest.approx(bytes_ / median_us / 1e3, rel=1e-5)
    assert float(softmax["of_floor"]) == pytest.approx(floor_us / median_us)
    assert float(softmax["roof_gbs"]) == pytest.approx(bytes_ / floor_us / 1e3)
    assert float(softmax["roof_tflops"]) == pytest.approx(flops / floor_us / 1e6)
    copied = next(p for p in points if p["op"] == "transpose" and p["candidate"] == "copy")
    assert copied["flops_per_byte"] == copied["roof_tflops"] == copied["variant"] == ""  # no operations


def test_the_table_survives_any_name(run: Run, tmp_path: Path) -> None:
    assert run("report", written(tmp_path, nasty_document()), "--csv", "points.csv").code == 0
    assert {p["op"].removesuffix(NASTY) for p in table(tmp_path / "points.csv")} == {
        row["op"] for row in DOCUMENT["rows"]
    }
    assert run("report", written(tmp_path, BARE), "--csv", "bare.csv").code == 0
    bare = table(tmp_path / "bare.csv")
    assert [p["median_us"] for p in bare] == ["4.0", "2.0", "2.0"]
    assert all(p["floor_us"] == p["roof_gbs"] == p["flops_per_byte"] == "" for p in bare)


def test_a_table_that_cannot_be_written_is_an_error(run: Run, tmp_path: Path) -> None:
    done = run("report", str(MADE_UP), "--csv", "no/such/folder/points.csv")
    assert done.code == 3 and "no/such/folder/points.csv" in done.err


def test_the_documents_and_the_page_have_the_same_ratios(run: Run) -> None:
    (file,) = run("report", str(MADE_UP), "--output", "-", "--json").json()["files"]
    cases = results_case.cases_of(DOCUMENT, "")
    assert len(cases) == len(file["cases"])
    for ours, theirs in zip(cases, file["cases"], strict=True):
        assert ours.ratios == pytest.approx(theirs["ratios"], rel=1e-5)
        assert ours.slower_than == theirs["loses_to"]


def test_bench_and_report_compare_by_one_rule(run: Run) -> None:
    add = run("bench", "--results", str(MADE_UP)).out.partition("\nadd ")[2]
    assert "copy 0.8966  torch 1.138  torch.compile not compared: timed by events\n" in add
    (file,) = run("report", str(MADE_UP), "-o", "-", "--json").json()["files"]
    assert file["cases"][-1]["ratios"] == pytest.approx({"copy": 0.8966, "torch": 1.138}, rel=1e-3)


def test_cold_and_warm_are_two_cases(run: Run, tmp_path: Path) -> None:
    cold = DOCUMENT["rows"][:8]
    warm = [{**r, "cache": "warm", "median_us": r["median_us"] / (2 if r["variant"] else 1)} for r in cold]
    document = changed(rows=cold + warm)
    (file,) = run("report", written(tmp_path, document), "-o", "-", "--json").json()["files"]
    assert [(c["cache"], c["median_us"]) for c in file["cases"]] == [("cold", 72.5), ("warm", 36.25)]
    assert file["cases"][1]["ratios"]["copy"] == pytest.approx(69 / 36.25, rel=1e-5)
    assert [c.ratios for c in results_case.cases_of(document, "")] == [
        pytest.approx(c["ratios"], rel=1e-5) for c in file["cases"]
    ]


def test_the_text_says_what_is_lost_and_what_is_missing(run: Run) -> None:
    text = run("report", str(MADE_UP)).out
    assert "slower than torch.compile: softmax 2048x131072 float32 axis=-1, ratio 0.9375\n" in text
    assert "no figure of cluster: softmax 8192x8192 bfloat16 axis=-1, rows of 8192 columns fit one block\n" in text
    assert "not compared with torch.compile: add 512x512 float32, timed by events, the others by graph\n" in text
    assert "not run: cumsum 8192x8192 float32: there is no operator cumsum\n" in text
    assert text.endswith("wrote report.html\n")


def test_without_a_chosen_variant_the_only_one_is_compared(run: Run, tmp_path: Path) -> None:
    document = changed()
    for row in document["rows"]:
        row["chosen"] = False
    (file,) = run("report", written(tmp_path, document), "--output", "-", "--json").json()["files"]
    assert all(c["ratios"] == {} and "median_us" not in c for c in file["cases"])
    document["rows"] = [r for r in document["rows"] if r["variant"] in ("", "in_registers")]
    (file,) = run("report", written(tmp_path, document), "--output", "-", "--json").json()["files"]
    assert file["cases"][0]["ratios"]["torch"] == pytest.approx(260 / 72.5, rel=1e-5)
    assert file["cases"][1]["ratios"] == {}  # the variant that is there has no figure


# ---- mistakes ----


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", ":1:1: is not JSON: "),
        ('{\n "schema": 1,\n "rows": [1, }\n', ":3:14: is not JSON: "),
        ("[]", "must be an object"),
        ("[" * 100_000 + "]" * 100_000, ":1:65: arrays and objects are nested more than 64 levels deep"),
        ({"title": "old", "rows": [{"name": "gemm"}]}, "names no schema, so tensorcraft bench did not write it"),
        (changed(schema=2), ": schema must be 1, which is all this command reads, got 2"),
        (changed(schema="1"), ': schema must be 1, which is all this command reads, got "1"'),
        (changed(rows=[]), ": rows is empty"),
        (changed(rows={}), ": rows must be an array, got {}"),
        (changed(skipped=[3]), ": skipped[0] must be a string, got 3"),
        (changed(rows=[3]), ": rows[0] must be an object, got 3"),
        (changed(title=None), ": title must be a string, got null"),
        (changed(machine=["x"]), ': machine must be an object, got ["x"]'),
        (changed(machine={"gpu": {}}), ": machine.gpu must be a string or a number, got {}"),
        (changed(device={"bandwidth_gbs": "4.8"}), ': device.bandwidth_gbs must be a positive number, got "4.8"'),
        (changed(device={"peak_tflops": {"float32": -1}}), ": device.peak_tflops.float32 must be a positive number"),
        (with_row(median_us=0), ": rows[2].median_us must be a positive number, got 0"),
        (with_row(median_us="fast" * 100), ": rows[2].median_us must be a positive number, got "),
        (with_row(median_us=None), ": rows[2].median_us must be a positive number, got null"),
        (with_row(op=""), ": rows[2].op must be a name"),
        (with_row(candidate=7), ": rows[2].candidate must be a string, got 7"),
        (with_row(chosen="yes"), ": rows[2].chosen must be true or false"),
        (with_row(chosen=True), ": rows[2] is a second chosen variant of softmax 8192x8192 bfloat16 axis=-1"),
        (
            with_row(variant="online"),
            ": rows[2] measures softmax 8192x8192 bfloat16 axis=-1 by tensorcraft online a second time",
        ),
        ('{"schema": 1e999}', ": number overflow"),
        ('{"schema": 1, "title": "\xff"}', "is not JSON: "),
    ],
)
def test_a_bad_file_is_named_with_the_place(run: Run, tmp_path: Path, content: object, message: str) -> None:
    name = written(tmp_path, content)
    if "\xff" in str(content):
        Path(name).write_bytes(str(content).encode("latin-1"))
    done = run("report", str(MADE_UP), name)
    assert (done.code, done.out) == (2, "") and not (tmp_path / "report.html").exists()
    assert done.err.startswith(f"tensorcraft: {name}") and message in done.err and len(done.err) < 400
    assert run("report", name, "--json").json()["error"]["kind"] == "value"


def test_a_file_that_cannot_be_read(run: Run, tmp_path: Path) -> None:
    for name in ("/nonexistent.json", str(tmp_path)):
        done = run("report", name)
        assert (done.code, done.out) == (3, "") and f"tensorcraft: {name} cannot be read: " in done.err
    assert run("report", "/nonexistent.json", "--json").json()["error"]["kind"] == "io"
    assert run("report").code == 2


# ---- the file ----


def test_the_page_replaces_a_file_as_a_whole(run: Run, tmp_path: Path) -> None:
    (tmp_path / "real.html").write_text("old")
    (tmp_path / "link.html").symlink_to("real.html")
    assert run("report", str(MADE_UP), "-o", "link.html").code == 0
    assert (tmp_path / "link.html").is_symlink()
    assert (tmp_path / "real.html").read_text() == run("report", str(MADE_UP), "-o", "-").out[:-1]
    assert run("report", str(MADE_UP), "-o", "/dev/null").code == 0 and not Path("/dev/null").is_file()
    assert [p.name for p in tmp_path.iterdir() if ".tmp-" in p.name] == []


def test_a_page_that_cannot_be_written_leaves_the_old_one(
    command: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    page = tmp_path / "report.html"
    page.write_text("old")

    def no_room() -> None:  # a disk that is full after 4 KiB
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))

    for name, limit in ((str(page), no_room), ("/nonexistent/page.html", None), (str(tmp_path), None)):
        done = subprocess.run(
            [command, "report", MADE_UP, "-o", name], capture_output=True, text=True, env=environment, check=False,
            preexec_fn=limit,
        )  # fmt: skip
        assert done.returncode == 3 and f"tensorcraft: {name} cannot be written: " in done.stderr
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"] and page.read_text() == "old"


def test_the_page_asks_for_nothing_from_elsewhere(run: Run, tmp_path: Path) -> None:
    run("report", str(MADE_UP))
    page = (tmp_path / "report.html").read_text()
    assert page.isascii() and "default-src 'none'" in page
    assert not re.search(r"(?i)\b(https?|wss?|ftp|blob):|src=|<link|@import|url\(|fetch\(|XMLHttp|import ", page)


def test_a_title_is_no_markup_before_any_script_runs(run: Run, tmp_path: Path) -> None:
    root = report_page.read(run("report", written(tmp_path, nasty_document()), "-o", "-").out)
    assert root.one("head").one("title").text() == root.one("h1").text() == NASTY + " on imaginary GPU"
    assert json.loads(root.all("script")[0].text())[0]["title"] == NASTY


def test_the_page_of_many_results_is_small(run: Run, tmp_path: Path) -> None:
    document = changed(rows=[])
    for i in range(250):  # more operators than there are, on six cases each
        for row in DOCUMENT["rows"]:
            figures = {} if row["error"] else {"median_us": row["median_us"] * (1 + i / 997)}
            document["rows"].append({**row, **figures, "op": f"{row['op']}_{i}"})
    assert len(document["rows"]) > 5000
    assert run("report", written(tmp_path, document)).code == 0
    assert (tmp_path / "report.html").stat().st_size < 2_000_000


# ---- the page in a browser ----

in_a_browser = pytest.mark.skipif(
    not report_page.CHROMIUM, reason="there is no chromium; scripts/setup.sh --dev installs it where there is a package"
)


@pytest.fixture(scope="module")
def page(command: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One page of the made-up results, of their nasty twin and of a bare file."""
    folder = tmp_path_factory.mktemp("page")
    files = [str(MADE_UP), written(folder, nasty_document()), written(folder, BARE, "bare.json")]
    subprocess.run([command, "report", *files, "-o", folder / "page.html"], check=True, capture_output=True)
    return folder / "page.html"


@pytest.fixture(scope="module")
def drawn(page: Path) -> str:
    return report_page.dumped(page, *report_page.OFFLINE)


def files_of(drawn: str) -> list[report_page.Element]:
    return [s for s in report_page.read(drawn).all("section") if "data-file" in s.at]


@in_a_browser
def test_every_mark_is_where_its_figure_says(drawn: str) -> None:
    first, second, _ = files_of(drawn)
    report_page.check_section(first, DOCUMENT)
    report_page.check_section(second, nasty_document())
    bars = first.all("svg", chart="bars", op="softmax")[0].all("rect", mark="variant")
    assert [bar.at["data-name"] for bar in bars] == ["naive", "block", "online", "in_registers"]


@in_a_browser
def test_the_page_has_a_mean_of_each_group(command: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    subprocess.run([command, "report", written(tmp_path, grouped()), "-o", page], check=True, capture_output=True)
    (section,) = files_of(report_page.dumped(page))
    heads, (rows, products) = report_page.table(section, "-groups")
    assert heads[0] == "group" and [rows[0].text(), products[0].text()] == ["rows", "products"]
    report_page.check_number(products[heads.index("cublaslt")], 192 / 287, losing=True)


@in_a_browser
def test_what_is_not_known_is_left_out(drawn: str) -> None:
    section = files_of(drawn)[2]
    assert "There is no roofline" in section.text() and "No variant of ours was timed." in section.text()
    chart = section.one("svg", chart="bars")
    assert chart.at["data-unit"] == "calls/ms"
    assert [t.text() for t in chart.all("text")] == ["tensorcraft", "250", "someone", "500"]
    _, (lost,) = report_page.table(section, "-losing")
    assert [cell.text() for cell in lost] == ["nothing", "0.5x", "someone", "at all", "", "4", "2"]
    _, (missing,) = report_page.table(section, "-missing")
    assert [missing[1].text(), missing[4].text()] == ["of ours", "no variant was timed"]


@in_a_browser
def test_a_file_without_peers_says_so(command: Path, tmp_path: Path) -> None:
    alone = changed(rows=[r for r in DOCUMENT["rows"] if r["candidate"] == "tensorcraft"])
    page = tmp_path / "page.html"
    subprocess.run([command, "report", written(tmp_path, alone), "-o", page], check=True, capture_output=True)
    (section,) = files_of(report_page.dumped(page))
    assert "No peer was measured." in section.text() and "-geomeans" not in section.text()
    assert not any(t.at["data-table"].endswith(("-losing", "-geomeans")) for t in section.all("table"))


@in_a_browser
def test_cases_with_one_variant_share_a_chart_of_one_unit(command: Path, tmp_path: Path) -> None:
    rows = [{**r, "op": "gemm", "case": r["case"].replace("4096x", f"{n}x"), "shape": r["shape"].replace("4096x", f"{n}x")}
            for n in (4096, 8192) for r in DOCUMENT["rows"] if r["op"] == "gemm" and (r["chosen"] or not r["variant"])]  # fmt: skip
    document, page = changed(rows=rows), tmp_path / "page.html"
    subprocess.run([command, "report", written(tmp_path, document), "-o", page], check=True, capture_output=True)
    (section,) = files_of(report_page.dumped(page))
    (chart,) = section.all("svg", chart="bars")
    assert len(chart.all("g")) == 2 and chart.at["data-unit"] == "TFLOPS"
    assert not chart.all("rect", name="copy")
    for op, case in report_page.cases_of(document):
        report_page.check_bars(section, document, op, case)


@in_a_browser
def test_no_name_becomes_markup(drawn: str, page: Path) -> None:
    root = report_page.read(drawn)
    assert len(root.all("script")) == 1 + page.read_text().count("\n<script>\n")
    assert not root.all("img") and any(NASTY in s.text() for s in root.all("section"))


@in_a_browser
def test_charts_are_named_and_take_the_keyboard(drawn: str) -> None:
    root = report_page.read(drawn)
    charts = [s for s in root.all("svg") if "data-chart" in s.at]
    assert len(charts) == 2 * (1 + len(report_page.cases_of(DOCUMENT))) + 1
    ids = [e.at["id"] for e in root.all() if "id" in e.at]
    assert len(ids) == len(set(ids))
    for chart in charts:
        assert chart.at["tabindex"] == "0"
        names = {e.at.get("id"): e.text() for e in chart.inner if isinstance(e, report_page.Element)}
        assert all(names[i] for i in chart.at["aria-labelledby"].split())
        marks = [m for m in chart.all() if "mark" in m.at.get("class", "").split()]
        assert marks and all(m.at["tabindex"] == "-1" and m.at["aria-label"] for m in marks)
    for link in root.one("nav").all("a"):
        assert link.at["href"].removeprefix("#") in ids
    for figure in root.all("figure"):
        assert figure.all("details")[0].all("table"), "a chart has its table"


# What a user does: to the first chart, two marks on and back over the first; then one operator of the roofline.
KEYS = """<script>
const chart = document.querySelector("svg[data-chart=bars]"), said = [];
const press = (key) => {
  document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
  said.push(document.activeElement.getAttribute("aria-label"));
};
chart.focus();
for (const key of ["ArrowRight", "ArrowDown", "ArrowLeft", "ArrowUp", "x"]) press(key);
document.body.dataset.said = JSON.stringify(said);
const select = document.querySelector("select");
select.value = "gemm";
select.dispatchEvent(new Event("change"));
</script></body>"""


@in_a_browser
def test_keys_walk_the_marks_and_a_choice_dims_the_others(page: Path) -> None:
    used = page.with_name("used.html")
    used.write_text(page.read_text().replace("</body>", KEYS))
    root = report_page.read(report_page.dumped(used))
    said = [words.split(":")[0] for words in json.loads(root.one("body").at["data-said"])]
    assert said == ["bandwidth", "naive", "bandwidth", "torch.compile", "torch.compile"]
    points = root.all("svg", chart="roofline")[0].all("circle")
    assert {p.at["data-op"] for p in points if "dimmed" not in p.at["class"]} == {"gemm"} and len(points) > 3


@in_a_browser
def test_the_network_changes_nothing(drawn: str, page: Path) -> None:
    assert report_page.dumped(page) == drawn


@in_a_browser
def test_a_changed_figure_is_seen(command: Path, tmp_path: Path) -> None:
    altered = changed(rows=[r for r in DOCUMENT["rows"] if r["op"] != "add"])  # all by events, all cold
    row = next(r for r in altered["rows"] if r["candidate"] == "torch.compile")
    row["median_us"] *= 0.99
    same = changed(rows=[{**r, "median_us": 110.5} if r is row else r for r in altered["rows"]])
    page = tmp_path / "page.html"
    subprocess.run([command, "report", written(tmp_path, altered), "-o", page], check=True, capture_output=True)
    (section,) = files_of(report_page.dumped(page))
    report_page.check_section(section, altered)
    for check in (report_page.check_geomeans, report_page.check_cases):
        with pytest.raises(AssertionError, match="was measured"):
            check(section, same)
    with pytest.raises(AssertionError, match="was measured"):
        report_page.check_bars(section, same, "softmax", "8192x8192 bfloat16 axis=-1")
