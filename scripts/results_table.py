# SPDX-License-Identifier: Apache-2.0
"""Fills the tables of measurements in the documents from benchmarks/results/*.json.

| region | holds |
| --- | --- |
| `results: operators` | what was measured of each operator whose README has `results: short`, and its ladders |
| `results: short gemm` | how gemm stands with each dtype, and where its cases are |
| `results: gemm` | that of gemm alone |
| `results: file NAME...` | files of benchmarks/results/, without those operators |
| `results: files` | each file, and whether `tensorcraft report` reads it |
| `results: summary` | one row an operator: of its roof, of the fastest peer, cases lost, why |
| `results: ladder gemm` | every rung of a ladder, in turn |
| `results: fusion` | calls apart beside the one call that does the work of them |
| `results: counters softmax` | what Nsight Compute counted in each kernel of operators |
| `results: lost gemm bfloat16` | a sentence: how many cases a peer is faster in, and how far |

In files that `tensorcraft bench` did not write rows without a name are evidence that is read in the file itself.
"""

import json
import math
import os
import re

import learning_tables
import regions
from results_case import cases_of, plain, short_case, short_shape, us

RESULTS = regions.ROOT / "benchmarks" / "results"
REASONS = regions.ROOT / "benchmarks" / "reasons.json"
NOT_SHOWN = {"p10_ms", "p90_ms", "python", "system", "title", "schema"}  # in the file, for those who doubt
PEERS = ["copy", "cublas", "cublaslt", "cublaslt+kernel", "cudnn", "cusparse", "torch", "torch.compile", "numpy"]


APPENDIX_ONLY = {"compile.json"}  # of no operator
CASES = "docs/performance/operators.md"  # every case of every operator
# Under a profiler a call takes a time of its own: its counters count, `bench` has its time.
COUNTED, PROFILED = "of DRAM peak %", {"us", "GB/s"}


def shown(row):
    return [name for name in row if name not in NOT_SHOWN and not (COUNTED in row and name in PROFILED)]


def cell(column, value):
    if isinstance(value, (list, dict)):  # names, and what is said of each
        said = value if isinstance(value, dict) else dict.fromkeys(value, "")
        return "; ".join(f"`{name}`".replace("|", "\\|") + (f": {plain(text)}" if text else "") for name, text in said.items())
    if not isinstance(value, float):
        return str(value)
    if "cosine" in column:
        return f"{value:.7f}"  # what is left to 1 counts
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"


def in_words(name):
    return name.replace("_", " ")


def tables_of(rows, head=in_words):
    """One table for each run of rows that have the same columns."""
    previous = None
    for row in rows:
        columns = shown(row)
        if columns != previous:
            if previous:
                yield ""
            yield "| " + " | ".join(map(head, columns)) + " |"
            yield "| " + " | ".join("---" for _ in columns) + " |"
            previous = columns
        yield "| " + " | ".join(cell(c, row[c]) for c in columns) + " |"


def ladder_rows(cases):
    """The time of each variant, a column each; the chosen one is bold."""
    names = list(dict.fromkeys(r.get("variant", "") for c in cases for r in c.ladder))
    for c in cases:
        by_name = {r.get("variant", ""): r for r in c.ladder}
        times = {n: us(by_name[n]) + " us" * (not by_name[n].get("error")) if n in by_name else "" for n in names}
        yield c.label(cases) | {n: f"**{t}**" if c.ours and n == c.ours.get("variant", "") else t for n, t in times.items()}


def mean(ratios):
    return math.exp(math.fsum(map(math.log, ratios)) / len(ratios))


def mean_rows(cases, peers, device, of="op"):
    """A line for each operator, or for each group of the suites, and peer."""
    for name in filter(None, dict.fromkeys(c.first.get(of) for c in cases)):
        for peer in peers:
            named = [c for c in cases if c.first.get(of) == name and not (peer == "copy" and c.computes(device))]
            ratios = [c.ratios[peer] for c in named if peer in c.ratios]
            if ratios:
                geomean = mean(ratios)
                slower = sum(r < 1 for r in ratios) if peer != "copy" else "a bound"
                yield {of: plain(name), "peer": plain(peer), "geomean of ratios": f"{geomean:.3f}", "cases": len(ratios),
                       "slower in": slower, "smallest": f"{min(ratios):.3f}"}  # fmt: skip


# Under the title of the first such table of a page: what its columns are.
HOW_TO_READ = (
    "`us` and `GB/s` are ours, `of peak` is the part of the device's peak that ours reaches if operations limit a case. `of copy` and the columns named like a peer are ratios, the peer's time over ours: above 1 ours is "
    "faster, and the peer is where it is bold. A copy moves as many bytes and computes nothing, so it is a bound."
)


def bench_section(document, name, file, elsewhere=()):
    """Of a file that `tensorcraft bench` wrote: cases with ratios, ladders, means, and what has no figure."""
    cases = [c for c in cases_of(document, name) if c.first["op"] not in elsewhere]
    if not cases:
        return []
    timing, device = document.get("timing") or {}, document.get("device") or {}
    facts = {**(document.get("machine") or {}), **{k: device[k] for k in ("arch",) if k in device}, **timing}
    machine = ", ".join(f"{k.replace('_', ' ')} {v}" for k, v in facts.items() if k not in NOT_SHOWN)
    named = {p for c in cases for p in c.peers}
    if all(c.computes(device) for c in cases):
        named.discard("copy")
    peers = [p for p in PEERS if p in named] + sorted(named - set(PEERS))
    about = f"`{file}`: {plain(machine)}" if machine else f"`{file}`"
    lines = [f"**{plain(document['title'])}** ({about})", "", HOW_TO_READ, ""]
    lines += [*tables_of([c.row(cases, peers, device) for c in cases]), ""]
    if any(len(c.ladder) > 1 for c in cases):
        lines += [*tables_of(ladder_rows(cases), plain), ""]
    for of in ("group", "op"):
        means = list(tables_of(mean_rows(cases, peers, device, of)))
        lines += [*means, ""] if means else []
    missing = {}
    for c in cases:
        for r in (r for r in [*c.ladder, *c.peers.values()] if r.get("error")):
            what = " ".join(filter(None, (c.first["op"], r["candidate"], r.get("variant"))))
            missing.setdefault((what, r["error"]), []).append(c.first["case"])
    lines += [f"- n/a: {plain(what)} ({plain(why)}): {plain(', '.join(at))}" for (what, why), at in missing.items()]
    lines += [f"- not run: {plain(what)}" for what in document.get("skipped") or [] if not name]
    return [*lines, ""] if lines[-1] else lines


def section(document, name, file, elsewhere=()):
    if document.get("schema") == 1:
        return bench_section(document, name, file, elsewhere)
    named = [r for r in document.get("rows", []) if "name" in r]
    rows = [r for r in named if (r["name"].split(" ")[0] == name if name else r["name"].split(" ")[0] not in elsewhere)]
    if not rows:
        return []
    facts = {**document.get("machine", {}), **{k: v for k, v in document.items() if isinstance(v, (str, int, float))}}
    machine = ", ".join(f"{key} {value}" for key, value in facts.items() if key not in NOT_SHOWN)
    title = f"**{document['title']}** (`{file}`" + (f": {machine})" if machine else ")")
    return [title, "", *tables_of(rows), ""]


def documents(folder):
    return {path.name: json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))}


def sections(found, name="", elsewhere=()):
    lines = []
    for file, document in found.items():
        if name and file in APPENDIX_ONLY:
            continue
        new = section(document, name, file, elsewhere)
        at = new.index(HOW_TO_READ) if HOW_TO_READ in new and HOW_TO_READ in lines else 0
        lines += new[:at] + new[at + 2 :] if at else new
    return lines or ["Nothing is measured yet.", ""]


def shown_operators(root):
    """The operators whose README has `results: short`, in the order of their folders."""
    pages = sorted(root.glob("tensorcraft/ops/*/README.md"))
    return [op for page in pages for op in re.findall(r"<!-- results: short (\w+) -->", page.read_text())]


def operators_lines(found, root):
    lines = []
    for op in shown_operators(root):
        lines += [f"## {op}", "", *sections(found, op)]
    return lines


def file_lines(found, names, root):
    """Files without what the page of every case has of them."""
    elsewhere = [] if APPENDIX_ONLY >= set(names) else shown_operators(root)
    files = {name: found[name] for name in names if name in found}
    if not files:
        return ["Nothing is measured yet.", ""]
    named = [r.get("op") or r.get("name", "").split(" ")[0] for d in files.values() for r in d.get("rows", [])]
    there = [op for op in dict.fromkeys(named) if op in elsewhere]
    lines = sections(files, elsewhere=there) if set(named) - set(there) else []
    links = ", ".join(f"[{op}]({CASES.rsplit('/', 1)[1]}#{op})" for op in sorted(there))
    return lines + ([f"With their operators: {links}.", ""] if there else [])


# ---- the summary ----

def two_digits(ratio):
    return f"{ratio:.2f}" if ratio >= 0.1 else f"{ratio:.1g}"


TOO_FAR = 0.5  # of its roof: what is below needs a reason
ON_CPU = "cpu "  # before the name of an operator in reasons.json


class Standing:
    """How an operator stands: parts of its roofs, and ratios to the fastest peer of each case."""

    def __init__(self, name, roofs, rivals, cases=()):
        self.name, self.roofs, self.rivals, self.cases = name, roofs, rivals, cases
        self.lost = sum(r < 1 for r in rivals)

    def needs_reason(self):
        return self.lost > 0 or any(r < TOO_FAR for r in self.roofs)

    def row(self, reasons):
        def spread(ratios):
            return f"{two_digits(mean(ratios))} ({two_digits(min(ratios))})" if ratios else "not measured"

        slower = f"{self.lost} of {len(self.rivals)}" if self.rivals else ""
        on_cpu = self.name.startswith(ON_CPU)
        roof = {} if on_cpu else {"of its roof": spread(self.roofs)}
        rest = {"of the fastest peer": spread(self.rivals), "slower in": slower, "why": reasons.get(self.name, "")}
        return {"operator": self.name.removeprefix(ON_CPU)} | roof | rest


def standing(name, cases):
    # What a launch takes hides the roof in calls so small that a graph had to time them.
    roofs = [c.ours["floor_us"] / c.ours["median_us"] for c in cases if c.ours and c.timing == "events"]
    rivals = [[r for peer, r in c.ratios.items() if peer != "copy"] for c in cases]
    return Standing(name, [r for r in roofs if r > 0], [min(r) for r in rivals if r], cases)


def precision(row):
    """The dtype that a product is computed in."""
    options = row["options"].split()
    return "tfloat32" if {"allow_tf32=true", "precision=tf32"} & set(options) else row["dtype"]


def standings(found):
    """Of every file of `tensorcraft bench`."""
    by_op = {}
    for document in found.values():
        if document.get("schema") == 1:
            for c in cases_of(document, ""):
                by_op.setdefault(c.first["op"], []).append((c, document.get("device") or {}))
    for op, cases in by_op.items():
        if any(c.computes(device) for c, device in cases):
            for dtype in dict.fromkeys(precision(c.first) for c, _ in cases):
                yield standing(f"{op} {dtype}", [c for c, _ in cases if precision(c.first) == dtype])
        else:
            yield standing(op, [c for c, _ in cases])


def short_lines(found, op):
    """A row for each dtype, with the case that is furthest behind its fastest peer."""
    link = f"[Every case](../../../{CASES}#{op})."
    measured = [(c, d["machine"]["gpu"]) for d in found.values() if d.get("schema") == 1 for c in cases_of(d, op)]
    rows = []
    for dtype in dict.fromkeys(precision(c.first) for c, _ in measured):
        of = standing(dtype, [c for c, _ in measured if precision(c.first) == dtype])
        row = {"dtype": dtype} | {name: text for name, text in of.row({}).items() if name not in ("operator", "why")}
        behind = min((c for c in of.cases if c.slower_than), key=lambda c: min(c.ratios[p] for p in c.slower_than), default=None)
        at = " ".join([short_case(behind.first), f"({', '.join(behind.slower_than)})"]) if behind else ""
        rows += [row | {"furthest behind": at}] if of.roofs or of.rivals else []
    if not rows:
        return [link, ""]
    gpus = ", ".join(dict.fromkeys(plain(gpu) for _, gpu in measured))
    head = f"On {gpus}: geometric means, the least in brackets; above 1 ours is faster. {link}"
    return [head, "", *tables_of(rows, plain), ""]


def host_standings(found):
    """Of files whose rows have one peer each, and no GPU."""
    by_op = {}
    for document in found.values():
        for row in document.get("rows", []):
            if {"name", "peer", "ratio"} <= row.keys() and "gpu" not in document["machine"]:
                by_op.setdefault(row["name"].split(" ")[0], []).append(row["ratio"])
    return [Standing(ON_CPU + op, [], ratios) for op, ratios in by_op.items()]


def summary_lines(found, reasons):
    gpus = dict.fromkeys(
        d["machine"]["gpu"] for d in found.values() if d.get("schema") == 1 and "gpu" in d.get("machine", {})
    )
    rows = [s.row(reasons) for s in sorted(standings(found), key=lambda s: not s.needs_reason())]
    lines = [f"On {', '.join(map(plain, gpus))}:", "", *tables_of(rows, plain), ""] if rows else []
    hosts = host_standings(found)
    won = ", ".join(s.name.removeprefix(ON_CPU) for s in hosts if not s.needs_reason())
    lost = [s.row(reasons) for s in hosts if s.needs_reason()]
    lines += [f"On a CPU no peer is faster for {won}." if won else "On a CPU:", ""] if hosts else []
    return lines + ([*tables_of(lost, plain), ""] if lost else [])


def ladder_of(found, op):
    """The rungs of one case from the slowest, each timed alone by Nsight Compute; and the case beside peers, of `bench`."""
    counted = [r for r in found["nsight.json"]["rows"] if r["name"] == op]
    case = max(dict.fromkeys(r["case"] for r in counted), key=lambda name: sum(r["case"] == name for r in counted))
    beside = next(c for d in found.values() if d.get("schema") == 1 for c in cases_of(d, op) if c.first["case"] == case)
    common = os.path.commonprefix([r["kernel"] for r in counted if r["case"] == case])
    rungs = {r["kernel"][common.rfind("_") + 1 :]: r for r in counted if r["case"] == case}
    return sorted(rungs.items(), key=lambda rung: -rung[1]["us"]), beside


def rate(value):
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def ladder_lines(found, op):
    rungs, beside = ladder_of(found, op)
    document = next(d for d in found.values() if beside.first in d["rows"])
    computes = beside.computes(document["device"])
    amount, unit = (beside.first["flops"] * 1e-6, "TFLOPS") if computes else (beside.first["bytes"] * 1e-3, "GB/s")
    slowest = rungs[0][1]["us"]
    rows, below = [], None
    for name, row in rungs:
        gain = {"of the one above": f"{below / row['us']:.2f}" if below else "", "of the first": f"{slowest / row['us']:.3g}"}
        rows.append({"rung": f"`{name}`", "us": us({"median_us": row["us"]}), unit: rate(amount / row["us"])} | gain)
        below = row["us"]
    nsight = found["nsight.json"]
    note = f"{nsight['machine']['gpu']}, {short_case(beside.first)}: {nsight['method']}. The last columns are times as fast."
    return [*tables_of(rows, plain), "", plain(note), ""]


def lost_lines(found, name):
    of = next(s for s in standings(found) if s.name == name)
    at = min((c for c in of.cases if c.slower_than), key=lambda c: min(c.ratios[p] for p in c.slower_than))
    peers = ", ".join(dict.fromkeys(p for c in of.cases for p in c.slower_than))
    return [f"In {of.lost} of {len(of.rivals)} cases of {name} {peers} is faster. Ours reaches {two_digits(mean(of.rivals))} of its speed, "
            f"{two_digits(min(of.rivals))} in the worst case ({short_case(at.first)})"
            + (f", and {two_digits(mean(of.roofs))} of what the GPU can do in large ones." if of.roofs else "."), ""]  # fmt: skip


def fusion_lines(found):
    rows, gpus = [], {}
    for document in found.values():
        for c in cases_of(document, "") if document.get("schema") == 1 else []:
            if row := learning_tables.fusion_row(c, short_shape, us):
                rows.append(row)
                gpus[document["machine"]["gpu"]] = None
    rows.sort(key=lambda row: row["calls"])
    return [f"On {', '.join(map(plain, gpus))}:", "", *tables_of(rows, plain), ""] if rows else ["Nothing is measured yet.", ""]


def counters_lines(found, names):
    nsight = found.get("nsight.json") or {"rows": []}
    rows = list(learning_tables.counter_rows(nsight, names))
    head = f"{nsight['machine']['gpu']}, {nsight['method']}:" if rows else "Nothing is measured yet."
    return [plain(head), "", *tables_of(rows, plain), *([""] if rows else [])]


def files_lines(found):
    def row(name, document):
        title = plain(document.get("title") or "every wrapper of a PTX instruction on a GPU, beside the emulator")
        gpu = (document.get("machine") or {}).get("gpu", document.get("device", ""))
        reads = "yes" if document.get("schema") == 1 else ""
        return {"file": f"`{name}`", "what": title, "GPU": plain(gpu), "read by `report`": reads}

    return [*tables_of([row(name, d) for name, d in found.items()], plain), ""]


def table(argument, folder=RESULTS, root=regions.ROOT):
    found = documents(folder)
    kind, _, rest = argument.partition(" ")
    kinds = {
        "operators": lambda: operators_lines(found, root),
        "short": lambda: short_lines(found, rest),
        "file": lambda: file_lines(found, rest.split(), root),
        "files": lambda: files_lines(found),
        "summary": lambda: summary_lines(found, json.loads(REASONS.read_text())),
        "ladder": lambda: ladder_lines(found, rest),
        "fusion": lambda: fusion_lines(found),
        "counters": lambda: counters_lines(found, rest.split()),
        "lost": lambda: lost_lines(found, rest),
    }
    lines = kinds.get(kind, lambda: sections(found, argument))()
    return "\n".join(lines) + "\n"
