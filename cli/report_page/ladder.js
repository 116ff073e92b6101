// SPDX-License-Identifier: Apache-2.0
// One chart a case: a bar for each rung, a line for each peer.
"use strict";

// What a bar of a ladder is long by: what limits the problem.
const unitOf = (c) => ({ bytes: "GB/s", flops: "TFLOPS" })[c.bound] || "calls/ms";
const speedOf = (c, row) =>
  row.error ? 0 : { bytes: row.gbs, flops: row.tflops }[c.bound] || 1000 / row.median_us;
const limitOf = (c, device) => {
  if (c.bound === "bytes") return device.bandwidth_gbs || 0;
  return (c.bound === "flops" && (device.peak_tflops || {})[c.dtype]) || 0;
};

// Each part of a chart is [shapes, words]: words come last, over the lines.
const ladderBar = (c, row, i, x) => {
  const y = 6 + 20 * i;
  const label = text(108, y + 11, nameOf(row), { "text-anchor": "end" });
  if (row.error) {
    const words = `${nameOf(row)}: no figure, ${row.error}`;
    const place = { x: 116, y: y + 11, class: "quiet", "data-mark": "none", "data-name": nameOf(row) };
    return [[], [label, svg("text", place, svg("title", {}, words), "n/a")]];
  }
  const speed = speedOf(c, row);
  const chosen = row.chosen === true;
  const what = `${nameOf(row)}${chosen ? " (chosen)" : ""}`;
  const bar = mark("rect", `${what}: ${digits(speed)} ${unitOf(c)}, ${digits(row.median_us)} us`, {
    class: `mark bar${chosen ? " chosen" : ""}`,
    x: 112,
    y,
    width: x(speed) - 112,
    height: 15,
    "data-mark": "variant",
    "data-name": nameOf(row),
    "data-chosen": chosen,
  });
  return [[bar], [label, text(x(speed) + 4, y + 11, digits(speed), { "data-of": nameOf(row) })]];
};

// A line through all bars with a label in a row of its own, so that no two labels meet.
const ladderLine = (kind, name, value, unit, bottom, i, x) => {
  const y = bottom + 13 * (i + 1);
  const right = x(value) > 200;
  const words = `${name}: ${digits(value)} ${unit}`;
  const line = mark("path", words, {
    class: `mark ${kind}`,
    d: `M${x(value)} 2V${y + 2}`,
    "data-mark": kind,
    "data-name": name,
  });
  const at = right ? x(value) - 4 : x(value) + 4;
  return [[line], [text(at, y, words, { "text-anchor": right ? "end" : "start", class: "quiet" })]];
};

const ladder = (c, device, id) => {
  const ours = c.rows.filter(isOurs);
  const peers = c.rows.filter((row) => !isOurs(row) && isComparable(c, row));
  const limit = limitOf(c, device);
  const high = Math.max(limit, ...[...ours, ...peers].map((row) => speedOf(c, row))) || 1;
  const x = (value) => 112 + (value / high) * 200;
  const bottom = 8 + 20 * ours.length;
  const lines = peers.map((row) => ["peer", row.candidate, speedOf(c, row)]);
  if (limit > 0) lines.push(["limit", c.bound === "bytes" ? "bandwidth" : "peak", limit]);
  const height = bottom + 13 * lines.length + 8;
  const parts = [
    ...ours.map((row, i) => ladderBar(c, row, i, x)),
    ...lines.map(([kind, name, value], i) => ladderLine(kind, name, value, unitOf(c), bottom, i, x)),
  ];
  return chartOf(
    {
      id,
      class: "ladder",
      viewBox: `0 0 360 ${height}`,
      "data-chart": "ladder",
      "data-op": c.op,
      "data-case": c.label,
      "data-unit": unitOf(c),
      "data-pixels": "112 312",
      "data-range": `0 ${high}`,
    },
    `${c.op} ${c.label}: ${unitOf(c)} of each variant`,
    `${ours.length} variants as bars, from the first rung; ${peers.length} peers as lines. Longer is faster.`,
    [
      ...parts.flatMap(([shapes]) => shapes),
      svg("line", { class: "axis", x1: 112, x2: 112, y1: 2, y2: bottom }),
      ...parts.flatMap(([, words]) => words),
    ],
  );
};

const ladderTable = (c, id) =>
  tableOf(
    id,
    `${c.op} ${c.label}`,
    ["candidate", "us", "10 %", "90 %", "runs", "GB/s", "TFLOPS"],
    c.rows.map((row) => [
      nameOf(row) + (row.chosen ? " (chosen)" : "") + (row.timing ? ` (${row.timing})` : ""),
      ...(row.error
        ? [{ value: row.error, long: true }, "", "", "", "", ""]
        : [row.median_us, row.p10_us, row.p90_us, row.runs, row.gbs, row.tflops]),
    ]),
  );

const ladderFigure = (c, device, id) =>
  html(
    "figure",
    {},
    html("figcaption", {}, `${c.label} (${unitOf(c)})`),
    c.rows.some(isOurs) ? ladder(c, device, id) : html("p", {}, "No variant of ours was timed."),
    hidden("Table of this chart", ladderTable(c, `${id}-table`)),
  );
