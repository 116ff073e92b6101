# SPDX-License-Identifier: Apache-2.0
"""A page of `tensorcraft report` as headless Chromium draws it, compared with the results it was made from."""

from __future__ import annotations

import math
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))
import results_case

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
OFFLINE = ("--host-resolver-rules=MAP * ~NOTFOUND", "--proxy-server=127.0.0.1:9")
VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}
FIGURE, TEXT, TIMES = 1e-5, 6e-4, 6e-3  # relative: figures have six digits, texts four, ratios three


def dumped(page: Path, *flags: str) -> str:
    """The document after its scripts ran. A message on the console fails."""
    command = [CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
               f"--user-data-dir={page.parent / 'profile'}", "--enable-logging=stderr", *flags, "--dump-dom", page.as_uri()]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "CONSOLE" not in done.stderr, done.stderr
    return done.stdout


@dataclass
class Element:
    """One element of the document."""

    name: str
    at: dict[str, str]
    inner: list[Element | str] = field(default_factory=list)

    def all(self, name: str = "", /, **at: str) -> list[Element]:
        """Elements inside, in order, by name and by data- attributes."""
        found = []
        for child in self.inner:
            if isinstance(child, Element):
                wanted = {f"data-{key}": value for key, value in at.items()}
                if name in ("", child.name) and wanted.items() <= child.at.items():
                    found.append(child)
                found += child.all(name, **at)
        return found

    def one(self, name: str = "", /, **at: str) -> Element:
        found = self.all(name, **at)
        assert len(found) == 1, f"{len(found)} of {name} {at}"
        return found[0]

    def text(self) -> str:
        return "".join(child if isinstance(child, str) else child.text() for child in self.inner)

    def numbers(self, name: str) -> list[float]:
        return [float(n) for n in re.findall(r"-?[\d.]+(?:e-?\d+)?", self.at[name])]


class Reader(HTMLParser):
    """Makes Elements of a document."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.root = Element("", {})
        self.open = [self.root]
        self.feed(text)
        self.close()
        assert self.open == [self.root], [e.name for e in self.open]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, {key: value or "" for key, value in attrs})
        self.open[-1].inner.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop().name == tag

    def handle_data(self, data: str) -> None:
        self.open[-1].inner.append(data)


def read(text: str) -> Element:
    return Reader(text).root


def close(got: float, expected: float, tolerance: float = FIGURE) -> None:
    assert math.isclose(got, expected, rel_tol=tolerance), f"{got} is drawn, {expected} was measured"


# ---- what was measured, from the file alone ----


def cases_of(document: dict[str, Any]) -> dict[tuple[str, str], list[dict[str, Any]]]:
    """Rows by operator and the name that the page gives to a case."""
    problems: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for row in document["rows"]:
        problems.setdefault((row["op"], row["case"], row["cache"]), []).append(row)
    timings = {name: chosen_of(rows)["timing"] for name, rows in problems.items()}
    found = {}
    for name, rows in problems.items():
        first = rows[0]
        parts = [name[1].replace(first["shape"], results_case.short_shape(first), 1)]
        parts += [timings[name]] if len(set(timings.values())) > 1 else []
        parts += [name[2]] if len({cache for _, _, cache in problems}) > 1 else []
        found[name[0], ", ".join(parts)] = rows
    return found


def is_ours(row: dict[str, Any]) -> bool:
    return row["candidate"] == "tensorcraft"


def name_of(row: dict[str, Any]) -> str:
    return row["variant"] or row["candidate"]


def chosen_of(rows: list[dict[str, Any]]) -> dict[str, Any]:
    (row,) = [r for r in rows if is_ours(r) and r["chosen"]]
    return row


def is_compared(row: dict[str, Any], rows: list[dict[str, Any]]) -> bool:
    return not row["error"] and (is_ours(row) or row["timing"] == chosen_of(rows)["timing"])


def ratios_of(rows: list[dict[str, Any]]) -> dict[str, float]:
    timed = [r for r in rows if not is_ours(r) and is_compared(r, rows)]
    return {r["candidate"]: r["median_us"] / chosen_of(rows)["median_us"] for r in timed}


def losing_of(rows: list[dict[str, Any]]) -> dict[str, float]:
    return {peer: ratio for peer, ratio in ratios_of(rows).items() if ratio < 1 and peer != "copy"}


# ---- what is drawn ----


def check_roofline(section: Element, document: dict[str, Any]) -> None:
    chart = section.one("svg", chart="roofline")
    x0, x1, y0, y1 = chart.numbers("data-pixels")
    left, right, low, high = chart.numbers("data-range")

    def x(pixel: float) -> float:
        return float(left * (right / left) ** ((pixel - x0) / (x1 - x0)))

    def y(pixel: float) -> float:
        return float(low * (high / low) ** ((pixel - y0) / (y1 - y0)))

    expected = 0
    for (op, case), rows in cases_of(document).items():
        for row in rows:
            if is_ours(row) and not row["error"] and row["flops"]:
                mark = chart.one("circle", mark="variant", op=op, case=case, name=name_of(row))
                close(x(float(mark.at["cx"])), row["flops"] / row["bytes"])
                close(y(float(mark.at["cy"])), row["flops"] / row["median_us"] * 1e-6)
                assert ("data-chosen" in mark.at) == row["chosen"] == ("chosen" in mark.at["class"].split())
                assert mark.one("title").text().startswith(f"{op} {case}, {name_of(row)}: ")
                expected += 1
    assert len(chart.all("circle")) == expected
    check_rivals(chart, document, x, y)
    names = [t.text() for t in chart.all("text") if t.at.get("class") == "point-name"]
    assert names and len(names) == len(set(names)) and set(names) <= {op for op, _ in cases_of(document)}
    device = document["device"]
    for dtype, peak in device["peak_tflops"].items():
        line = chart.one("path", mark="peak", name=dtype)
        from_x, from_y, _ = line.numbers("d")
        close(y(from_y), peak)
        close(x(from_x), peak / device["bandwidth_gbs"] * 1e3)
    line = chart.one("path", mark="bandwidth")
    xa, ya, xb, yb = line.numbers("d")
    close(y(ya) / x(xa), device["bandwidth_gbs"] * 1e-3)
    close(y(yb) / x(xb), device["bandwidth_gbs"] * 1e-3)


def check_rivals(chart: Element, document: dict[str, Any], x: Any, y: Any) -> None:
    expected = 0
    for (op, case), rows in cases_of(document).items():
        for row in rows:
            if not is_ours(row) and row["candidate"] != "copy" and is_compared(row, rows) and row["flops"]:
                mark = chart.one("path", mark="rival", op=op, case=case, name=row["candidate"])
                left, up, right, *_ = mark.numbers("d")
                close(x((left + right) / 2), row["flops"] / row["bytes"])
                close(y(up), row["flops"] / row["median_us"] * 1e-6)
                expected += 1
    assert len(chart.all("path", mark="rival")) == expected


def computes_of(rows: list[dict[str, Any]], device: dict[str, Any]) -> bool:
    first = rows[0]
    peak = device["peak_tflops"][first["dtype"]]
    return bool(first["flops"] / first["bytes"] > peak * 1e3 / device["bandwidth_gbs"])


def check_bars(section: Element, document: dict[str, Any], op: str, case: str) -> None:
    rows, device = cases_of(document)[op, case], document["device"]
    (chart,) = [c for c in section.all("svg", chart="bars", op=op) if c.all("g", case=case)]
    group = chart.one("g", case=case)
    x0, x1 = chart.numbers("data-pixels")
    low, high = chart.numbers("data-range")
    computes = computes_of(rows, device)
    peak = device["peak_tflops"][rows[0]["dtype"]]
    assert chart.at["data-unit"] == ("TFLOPS" if computes else "GB/s")

    def value(pixel: float) -> float:
        return low + (high - low) * (pixel - x0) / (x1 - x0)

    def speed(row: dict[str, Any]) -> float:
        return float(row["flops"] * 1e-6 if computes else row["bytes"] * 1e-3) / float(row["median_us"])

    drawn = [r for r in rows if is_ours(r) or (is_compared(r, rows) and not (computes and r["candidate"] == "copy"))]
    for row in drawn:
        name = name_of(row)
        if row["error"]:
            assert row["error"] in group.one("text", mark="none", name=name).text()
            continue
        bar = group.one("rect", mark="variant" if is_ours(row) else "peer", name=name)
        assert float(bar.at["x"]) == x0
        close(value(x0 + float(bar.at["width"])), speed(row))
        close(float(group.one("text", of=name).text()), speed(row), TEXT)
        assert ("data-chosen" in bar.at) == row["chosen"]
    limit = chart.one("path", mark="limit")
    close(value(limit.numbers("d")[0]), peak if computes else device["bandwidth_gbs"])
    assert len(group.all("rect")) == sum(not r["error"] for r in drawn)
    speeds = [float(t.text()) for t in chart.all("text") if "data-of" in t.at]
    close(high, max([*speeds, peak if computes else device["bandwidth_gbs"]]), TEXT)  # no copy stretches the axis


def table(section: Element, ending: str) -> tuple[list[str], list[list[Element]]]:
    """Heads and rows of the one table whose id ends so."""
    (found,) = [t for t in section.all("table") if t.at["data-table"].endswith(ending)]
    head, *rows = found.all("tr")
    return [h.text() for h in head.all("th")], [[e for e in row.inner if isinstance(e, Element)] for row in rows]


def check_number(cell: Element, expected: float | None, losing: bool = False) -> None:
    if expected is None:
        assert cell.text() == "n/a"
        return
    close(float(cell.at["data-value"]), expected)
    (text,) = [child for child in cell.inner if isinstance(child, str)]  # beside it stands a note
    close(float(text.removesuffix("x")), expected, TIMES if text.endswith("x") else TEXT)
    assert ("data-losing" in cell.at) == ("losing" in cell.at["class"].split()) == losing


def check_headline(section: Element, document: dict[str, Any]) -> None:
    (text,) = [p.text() for p in section.all("p") if p.at.get("class") == "headline"]
    cases = cases_of(document).values()
    compared = sum(any(peer != "copy" for peer in ratios_of(rows)) for rows in cases)
    won = compared - sum(bool(losing_of(rows)) for rows in cases)
    assert f"or faster, in {won} of {compared} cases." in text
    worst = min(ratio for rows in cases for ratio in losing_of(rows).values())
    close(float(text.partition("At worst it has ")[2].partition("x the speed of ")[0]), worst, TIMES)
    far = sum(is_far(rows) for rows in cases)
    assert f"Below half of what the device allows: {far} of {len(cases)} cases" in text


def is_far(rows: list[dict[str, Any]]) -> bool:
    ours = chosen_of(rows)
    return bool(ours["floor_us"] / ours["median_us"] < 0.5 and ours["timing"] != "graph")


def check_far(section: Element, document: dict[str, Any]) -> None:
    far = {(op, case) for (op, case), rows in cases_of(document).items() if is_far(rows)}
    _, lines = table(section, "-far")
    assert {(cells[0].text(), cells[3].text()) for cells in lines} == far
    assert all("data-far" in cells[1].at for cells in lines)


def check_losing(section: Element, document: dict[str, Any]) -> None:
    lost = [(r, op, case, p) for (op, case), rows in cases_of(document).items() for p, r in losing_of(rows).items()]
    _, lines = table(section, "-losing")
    for cells, (ratio, op, case, peer) in zip(lines, sorted(lost), strict=True):
        assert [cells[i].text() for i in (0, 2, 3)] == [op, peer, case]
        check_number(cells[1], ratio, losing=True)


def check_cases(section: Element, document: dict[str, Any]) -> None:
    cases = cases_of(document)
    for op in dict.fromkeys(op for op, _ in cases):
        (part,) = [s for s in section.all("section") if s.all("h3")[0].text() == op]
        heads, lines = table(part, "-cases")
        by_case = {cells[0].text(): dict(zip(heads, cells, strict=True)) for cells in lines}
        assert by_case.keys() == {case for o, case in cases if o == op}
        lost = [bool(losing_of(cases[op, cells[0].text()])) for cells in lines]
        assert lost == sorted(lost, reverse=True), "losing cases come first"
        for case, cells in by_case.items():
            measured = cases[op, case]
            ours, ratios = chosen_of(measured), ratios_of(measured)
            assert cells["variant"].text() == ours["variant"]
            check_number(cells["us"], ours["median_us"])
            check_number(cells["10 %"], ours["p10_us"])
            check_number(cells["90 %"], ours["p90_us"])
            check_number(cells["GB/s"], ours["bytes"] / ours["median_us"] * 1e-3)
            check_number(cells["TFLOPS"], ours["flops"] / ours["median_us"] * 1e-6 if ours["flops"] else None)
            check_number(cells["of floor"], ours["floor_us"] / ours["median_us"])
            assert ("data-far" in cells["of floor"].at) == is_far(measured)
            peers = heads[1 : heads.index("of floor")]
            assert set(peers) >= {r["candidate"] for r in measured if not is_ours(r)} - {"copy"}
            for peer in peers:
                if peer == "copy" and computes_of(measured, document["device"]):
                    assert cells[peer].text() == ""
                else:
                    check_number(cells[peer], ratios.get(peer), peer in losing_of(measured))


def check_geomeans(section: Element, document: dict[str, Any]) -> None:
    ratios: dict[tuple[str, str], list[float]] = {}
    measured = set()
    for (op, _), rows in cases_of(document).items():
        computes = computes_of(rows, document["device"])
        peers = {r["candidate"] for r in rows if not is_ours(r)} - ({"copy"} if computes else set())
        for name in (op, "all operators"):
            measured |= {(name, peer) for peer in peers}
            for peer in peers & ratios_of(rows).keys():
                ratios.setdefault((name, peer), []).append(ratios_of(rows)[peer])
    heads, lines = table(section, "-geomeans")
    drawn = {(cells[0].text(), peer): cell for cells in lines for peer, cell in zip(heads[1:], cells[1:], strict=True)}
    assert measured <= drawn.keys()
    for (op, peer), cell in drawn.items():
        if (op, peer) not in ratios:
            assert cell.text() == ("n/a" if (op, peer) in measured else "")
            continue
        of = ratios[op, peer]
        mean = math.prod(of) ** (1 / len(of))
        check_number(cell, mean, losing=mean < 1 and peer != "copy")
        slower = "a bound" if peer == "copy" else f"slower in {sum(r < 1 for r in of)} of {len(of)}"
        words, least = cell.one("small").text().split(", least ")
        assert words == slower
        close(float(least.removesuffix("x")), min(of), TIMES)


def check_missing(section: Element, document: dict[str, Any]) -> None:
    expected = [["-", "-", "-", "-", f"not run: {reason}"] for reason in document["skipped"]]
    for (op, case), rows in cases_of(document).items():
        for row in rows:
            other = f"not compared: timed by {row['timing']}, the others by {chosen_of(rows)['timing']}"
            if not is_compared(row, rows):
                expected.append([op, case, row["candidate"], row["variant"], row["error"] or other])
    _, lines = table(section, "-missing")
    assert sorted([cell.text() for cell in cells] for cells in lines) == sorted(expected)


def check_facts(section: Element, document: dict[str, Any]) -> None:
    facts = section.one("dl").text()
    for part in ("machine", "timing"):
        assert all(str(value) in facts for value in document[part].values())
    device = document["device"]
    assert device["arch"] in facts and f"bandwidth{device['bandwidth_gbs'] / 1000:.3g} TB/s" in facts
    assert all(f"{dtype} {peak:.3g} TFLOPS" in facts for dtype, peak in device["peak_tflops"].items())


def check_section(section: Element, document: dict[str, Any]) -> None:
    """Every mark, cell and fact of one file."""
    assert section.all("h2")[0].text() in (document["title"], "In short")  # where it is the only file
    check_facts(section, document)
    check_headline(section, document)
    check_far(section, document)
    check_losing(section, document)
    check_geomeans(section, document)
    check_missing(section, document)
    check_cases(section, document)
    check_roofline(section, document)
    for op, case in cases_of(document):
        check_bars(section, document, op, case)
