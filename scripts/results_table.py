#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fills the tables of measurements in the documents from benchmarks/results/*.json.

`<!-- results -->` holds every file; `<!-- results: gemm -->` the rows named gemm, and its ladder where a file of
`tensorcraft bench` has one. In other files rows without a name are evidence that is read in the file itself.
"""

import html
import json
import math
import sys

import regions

NOT_SHOWN = {"p10_ms", "p90_ms", "python", "system", "title", "schema"}  # in the file, for those who doubt
CASE = ("op", "case", "shape", "dtype", "options", "cache")  # rows that agree in these are of one problem
PEERS = ["copy", "cublaslt", "cudnn", "cusparse", "torch", "torch.compile", "numpy"]


def cell(value):
    if not isinstance(value, float):
        return str(value)
    if 0.99 <= value < 1:
        return f"{value:.7f}"  # a cosine: what is left to 1 counts
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"


def in_words(name):
    return name.replace("_", " ")


def tables_of(rows, head=in_words):
    """One table for each run of rows that have the same columns."""
    previous = None
    for row in rows:
        columns = [name for name in row if name not in NOT_SHOWN]
        if columns != previous:
            if previous:
                yield ""
            yield "| " + " | ".join(map(head, columns)) + " |"
            yield "| " + " | ".join("---" for _ in columns) + " |"
            previous = columns
        yield "| " + " | ".join(cell(row[c]) for c in columns) + " |"


def plain(text):
    """A text that ends no cell and no marker."""
    return html.escape(" ".join(str(text).split()), quote=False).replace("|", "\\|")


def us(row):
    return f"{row['median_us']:.4g}" if row and not row.get("error") else "n/a"


class Case:
    """What was measured on one problem."""

    def __init__(self, rows):
        self.rows, self.first = rows, rows[0]
        self.ladder = [r for r in rows if r["candidate"] == "tensorcraft"]
        chosen = [r for r in self.ladder if r.get("chosen")] or (self.ladder if len(self.ladder) == 1 else [])
        self.ours = chosen[0] if chosen and not chosen[0].get("error") else None
        self.timing = (self.ours or self.first).get("timing") or ""
        # Figures taken in two ways are not compared.
        self.peers = {
            r["candidate"]: r | {"error": r.get("error") or self.other_timing(r)} for r in rows if r["candidate"] != "tensorcraft"
        }
        self.ratios = {
            name: r["median_us"] / self.ours["median_us"] for name, r in self.peers.items() if self.ours and not r.get("error")
        }
        # A copy computes nothing: it is a bound, and nobody loses to it.
        self.slower_than = [name for name, ratio in self.ratios.items() if ratio < 1 and name != "copy"]

    def other_timing(self, row):
        same = not self.ours or (row.get("timing") or "") == self.timing
        return None if same else f"timed by {row['timing']}, the others by {self.timing}"

    def label(self, cases):
        """What tells this case from the others of its table."""
        names = ["op", *(["shape", "dtype"] if self.first.get("shape") and self.first.get("dtype") else ["case"])]
        names += ["options"] if len({c.fact("options") for c in cases}) > 1 else []
        names += [n for n in ("timing", "cache") if len({c.fact(n) for c in cases} - {""}) > 1]
        return {n: plain(self.fact(n)) for n in names}

    def fact(self, name):
        return self.timing if name == "timing" else self.first.get(name) or ""

    def ratio(self, peer):
        if peer not in self.ratios:
            return "n/a" if peer in self.peers else ""
        text = f"{self.ratios[peer]:.3f}"
        return f"**{text}**" if peer in self.slower_than else text

    def rate(self, amount, scale):
        return f"{self.ours[amount] / self.ours['median_us'] * scale:.4g}" if self.ours and self.ours.get(amount) else ""

    def computes(self, device):
        """Whether the device's peak limits it, and not its bandwidth."""
        peak = (device.get("peak_tflops") or {}).get(self.first.get("dtype")) or math.inf
        moved = max(r.get("bytes") or 0 for r in self.rows) * peak * 1e3
        return max(r.get("flops") or 0 for r in self.rows) * (device.get("bandwidth_gbs") or 0) > moved

    def row(self, cases, peers, device):
        columns = self.label(cases) | {"variant": plain(self.ours.get("variant", "")) if self.ours else "", "us": us(self.ours)}
        columns["GB/s"] = self.rate("bytes", 1e-3)
        if any(c.computes(device) for c in cases):
            columns["TFLOPS"] = self.rate("flops", 1e-6)
        columns |= {"of copy" if p == "copy" else plain(p): self.ratio(p) for p in peers}
        return columns | {"slower than": plain(", ".join(self.slower_than))}


def cases_of(document, op):
    found = {}
    for row in document["rows"]:
        if not op or row["op"] == op:
            found.setdefault(tuple(row.get(k) or "" for k in CASE), []).append(row)
    return [Case(rows) for rows in found.values()]


def ladder_rows(cases):
    """The time of each variant, a column each; the chosen one is bold."""
    names = list(dict.fromkeys(r.get("variant", "") for c in cases for r in c.ladder))
    for c in cases:
        by_name = {r.get("variant", ""): r for r in c.ladder}
        times = {n: us(by_name[n]) + " us" * (not by_name[n].get("error")) if n in by_name else "" for n in names}
        yield c.label(cases) | {n: f"**{t}**" if c.ours and n == c.ours.get("variant", "") else t for n, t in times.items()}


def mean_rows(cases, peers):
    for op in dict.fromkeys(c.first["op"] for c in cases):
        for peer in peers:
            ratios = [c.ratios[peer] for c in cases if c.first["op"] == op and peer in c.ratios]
            if ratios:
                geomean = math.exp(math.fsum(map(math.log, ratios)) / len(ratios))
                slower = sum(r < 1 for r in ratios) if peer != "copy" else "a bound"
                yield {"op": op, "peer": plain(peer), "geomean of ratios": f"{geomean:.3f}", "cases": len(ratios),
                       "slower in": slower, "smallest": f"{min(ratios):.3f}"}  # fmt: skip


# Under the title of the first such table of a page: what its columns are.
HOW_TO_READ = (
    "`us` and `GB/s` are ours. `of copy` and the columns named like a peer are ratios, the peer's time over ours: above 1 ours is "
    "faster, and the peer is where it is bold. A copy moves as many bytes and computes nothing, so it is a bound."
)


def bench_section(document, name, file):
    """Of a file that `tensorcraft bench` wrote: cases with ratios, ladders, means, and what has no figure."""
    cases = cases_of(document, name)
    if not cases:
        return []
    timing, device = document.get("timing") or {}, document.get("device") or {}
    facts = {**(document.get("machine") or {}), **{k: device[k] for k in ("arch",) if k in device}, **timing}
    machine = ", ".join(f"{k.replace('_', ' ')} {v}" for k, v in facts.items() if k not in NOT_SHOWN)
    named = {p for c in cases for p in c.peers}
    peers = [p for p in PEERS if p in named] + sorted(named - set(PEERS))
    about = f"`{file}`: {plain(machine)}" if machine else f"`{file}`"
    lines = [f"**{plain(document['title'])}** ({about})", "", HOW_TO_READ, ""]
    lines += [*tables_of([c.row(cases, peers, device) for c in cases]), ""]
    if name and any(len(c.ladder) > 1 for c in cases):
        lines += [*tables_of(ladder_rows(cases), plain), ""]
    means = list(tables_of(mean_rows(cases, peers)))
    lines += [*means, ""] if means else []
    missing = {}
    for c in cases:
        for r in (r for r in [*c.ladder, *c.peers.values()] if r.get("error")):
            what = " ".join(filter(None, (c.first["op"], r["candidate"], r.get("variant"))))
            missing.setdefault((what, r["error"]), []).append(c.first["case"])
    lines += [f"- n/a: {plain(what)} ({plain(why)}): {plain(', '.join(at))}" for (what, why), at in missing.items()]
    lines += [f"- not run: {plain(what)}" for what in document.get("skipped") or [] if not name]
    return [*lines, ""] if lines[-1] else lines


def section(document, name, file):
    if document.get("schema") == 1:
        return bench_section(document, name, file)
    named = [r for r in document.get("rows", []) if "name" in r]
    rows = [r for r in named if not name or r["name"].split(" ")[0] == name]
    if not rows:
        return []
    facts = {**document.get("machine", {}), **{k: v for k, v in document.items() if isinstance(v, (str, int, float))}}
    machine = ", ".join(f"{key} {value}" for key, value in facts.items() if key not in NOT_SHOWN)
    title = f"**{document['title']}** (`{file}`" + (f": {machine})" if machine else ")")
    return [title, "", *tables_of(rows), ""]


def table(name, folder=regions.ROOT / "benchmarks" / "results"):
    lines = []
    for path in sorted(folder.glob("*.json")):
        found = section(json.loads(path.read_text()), name, path.name)
        at = found.index(HOW_TO_READ) if HOW_TO_READ in found and HOW_TO_READ in lines else 0
        lines += found[:at] + found[at + 2 :] if at else found
    return "\n".join(lines or ["Nothing is measured yet.", ""]) + "\n"


if __name__ == "__main__":
    sys.exit(regions.main("results", table, __doc__))
