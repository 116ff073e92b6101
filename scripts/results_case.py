# SPDX-License-Identifier: Apache-2.0
"""A case of benchmarks/results/: the rows of one problem, how it is named, and what its figures say."""

import html
import math

CASE = ("op", "case", "shape", "dtype", "options", "cache")  # rows that agree in these are of one problem


def plain(text):
    """A text that ends no cell and no marker."""
    return html.escape(" ".join(str(text).split()), quote=False).replace("|", "\\|")


def us(row):
    if not row or row.get("error"):
        return "n/a"
    return f"{row['median_us']:,.0f}" if row["median_us"] >= 1e4 else f"{row['median_us']:.4g}"


def product_shape(shapes, options):
    if [len(shape) for shape in shapes] != [2, 2]:
        return None
    a, b = shapes
    m, k = a[::-1] if "transpose_a=true" in options else a
    return f"{m}x{b[0] if 'transpose_b=true' in options else b[1]}x{k}"


def heads_shape(shapes, _):
    if len(set(shapes)) != 1 or len(shapes[0]) != 4:
        return None
    return " ".join(letter + size for letter, size in zip("bhsd", shapes[0], strict=True))


AS_WRITTEN = {"gemm": product_shape, "attention": heads_shape}  # m x n x k, and the sizes by their letters


def short_shape(row):
    shapes = [tuple(shape.split("x")) for shape in row["shape"].split()]
    return (row["op"] in AS_WRITTEN and AS_WRITTEN[row["op"]](shapes, row.get("options", ""))) or row["shape"]


def short_case(row):
    return " ".join(filter(None, [short_shape(row), row["dtype"], row["options"]]))


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
        if name == "shape":
            return short_shape(self.first)
        return self.timing if name == "timing" else self.first.get(name) or ""

    def ratio(self, peer, device):
        if peer == "copy" and self.computes(device):
            return ""  # what a copy takes says nothing of a product
        if peer not in self.ratios:
            return "n/a" if peer in self.peers else ""
        text = f"{self.ratios[peer]:.3f}"
        return f"**{text}**" if peer in self.slower_than else text

    def rate(self, amount, scale):
        return f"{self.ours[amount] / self.ours['median_us'] * scale:.4g}" if self.ours and self.ours.get(amount) else ""

    def of_peak(self, device):
        """The part of the device's peak: the floor of what operations limit is their time at the peak."""
        known = self.ours and self.ours.get("floor_us") and self.computes(device)
        return f"{self.ours['floor_us'] / self.ours['median_us']:.2f}" if known else ""

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
            columns["of peak"] = self.of_peak(device)
        columns |= {"of copy" if p == "copy" else plain(p): self.ratio(p, device) for p in peers}
        return columns | {"slower than": plain(", ".join(self.slower_than))}


def cases_of(document, op):
    found = {}
    for row in document["rows"]:
        if not op or row["op"] == op:
            found.setdefault(tuple(row.get(k) or "" for k in CASE), []).append(row)
    return [Case(rows) for rows in found.values()]
