// SPDX-License-Identifier: Apache-2.0
// Charts of bars: ours, peers, and the line of what the device can do. One a case where several variants were timed, else one
// for all cases of an operator that share a unit and a limit.
"use strict";

// A bar is as long as the figure of what limits the problem.
const unitOf = (c) => ({ bytes: "GB/s", flops: "TFLOPS" })[c.bound] || "calls/ms";
const speedOf = (c, row) =>
  row.error ? 0 : { bytes: row.gbs, flops: row.tflops }[c.bound] || 1000 / row.median_us;
const limitOf = (c, device) => {
  if (c.bound === "bytes") return device.bandwidth_gbs || 0;
  return (c.bound === "flops" && (device.peak_tflops || {})[c.dtype]) || 0;
};

// A copy computes nothing, so it has no place on a scale of operations.
const barsOf = (c) =>
  c.rows.filter((row) => isOurs(row) || (isComparable(c, row) && !(c.bound === "flops" && row.candidate === "copy")));

const place = { left: 112, right: 308, values: 356, bar: 18, label: 22, gap: 8 };

const wordsOfBar = (c, row) => {
  const name = `${nameOf(row)}${row.chosen === true ? " (chosen)" : ""}`;
  return row.error
    ? `${name}: no figure, ${row.error}`
    : `${name}: ${digits(speedOf(c, row))} ${unitOf(c)}, ${digits(row.median_us)} us`;
};

const barShapes = (c, row, y, x) => {
  const name = text(place.left - 6, y + 11, nameOf(row), { "text-anchor": "end" });
  const words = wordsOfBar(c, row);
  const known = { "data-name": nameOf(row), "data-mark": isOurs(row) ? "variant" : "peer" };
  if (row.error) {
    const at = { x: place.values, y: y + 11, class: "quiet", "text-anchor": "end", ...known, "data-mark": "none" };
    return [name, svg("text", at, svg("title", {}, words), "n/a")];
  }
  const speed = speedOf(c, row);
  const chosen = row.chosen === true;
  const kind = isOurs(row) ? `bar${chosen ? " chosen" : ""}` : "bar peer";
  const bar = { class: `mark ${kind}`, x: place.left, y, width: x(speed) - place.left, height: place.bar - 4 };
  return [
    name,
    mark("rect", words, { ...bar, ...known, "data-chosen": chosen }),
    text(place.values, y + 11, digits(speed), { "text-anchor": "end", "data-of": nameOf(row) }),
  ];
};

// A line stands beside bars only, and values right of all bars, so lines cross no words.
const linePath = (at, spans) => spans.map(([top, bottom]) => `M${at} ${top - 2}V${bottom - 2}`).join("");

const limitShapes = (name, limit, unit, spans, x) => {
  if (!(limit > 0)) return [];
  const words = `${name}: ${withUnit(limit, unit)}`;
  const line = { class: "mark limit", d: linePath(x(limit), spans), "data-mark": "limit", "data-name": name };
  return [mark("path", words, line), text(x(limit), 13, words, { "text-anchor": "end", class: "quiet" })];
};

const bars = (cases, device, id) => {
  const [first] = cases;
  const unit = unitOf(first);
  const limit = limitOf(first, device);
  const rows = cases.flatMap((c) => barsOf(c).map((row) => speedOf(c, row)));
  const high = Math.max(limit, ...rows) || 1;
  const x = (value) => place.left + (value / high) * (place.right - place.left);
  const [shapes, spans] = [[], []];
  let y = limit > 0 ? 24 : 4;
  for (const c of cases) {
    const group = svg("g", { "data-case": c.label });
    if (cases.length > 1) {
      group.append(text(2, y + 13, c.label, { class: "group" }));
      y += place.label;
    }
    const top = y;
    for (const row of barsOf(c)) {
      group.append(...barShapes(c, row, y, x));
      y += place.bar;
    }
    spans.push([top, y]);
    shapes.push(group);
    y += place.gap;
  }
  const name = first.bound === "bytes" ? "bandwidth" : `peak of ${first.dtype}`;
  return chartOf(
    {
      id,
      class: "bars",
      viewBox: `0 0 360 ${y}`,
      "data-chart": "bars",
      "data-op": first.op,
      "data-unit": unit,
      "data-pixels": `${place.left} ${place.right}`,
      "data-range": `0 ${high}`,
    },
    `${first.op}: ${unit} of ${cases.map((c) => c.label).join("; ")}`,
    `${rows.length} bars, ours and peers. Longer is faster.`,
    [
      svg("path", { class: "axis", d: linePath(place.left, spans) }),
      ...limitShapes(name, limit, unit, spans, x),
      ...shapes,
    ],
  );
};

const barsTable = (cases, id) =>
  tableOf(
    id,
    cases.length > 1 ? `${cases[0].op}, ${cases.length} cases` : `${cases[0].op} ${cases[0].label}`,
    ["case", "candidate", "us", "10 %", "90 %", "runs", "GB/s", "TFLOPS"],
    cases.flatMap((c) =>
      c.rows.map((row) => [
        c.label,
        nameOf(row) + (row.chosen ? " (chosen)" : "") + (row.timing ? ` (${row.timing})` : ""),
        ...(row.error
          ? [{ value: row.error, long: true }, "", "", "", "", ""]
          : [row.median_us, row.p10_us, row.p90_us, row.runs, row.gbs, row.tflops]),
      ]),
    ),
  );

// Cases that share a chart: each its own where several variants were timed.
const chartsOf = (cases) => {
  if (cases.some((c) => c.rows.filter(isOurs).length > 1)) return cases.map((c) => [c]);
  const charts = new Map();
  for (const c of cases) {
    const key = `${unitOf(c)} ${c.bound === "flops" ? c.dtype : ""} ${c.rows.some(isOurs)}`;
    charts.set(key, [...(charts.get(key) || []), c]);
  }
  return [...charts.values()];
};

const barSample = ([classes, words]) =>
  html(
    "li",
    {},
    svg("svg", { viewBox: "0 0 16 16", "aria-hidden": "true" }, svg("rect", { class: classes, y: 3, width: 16, height: 10 })),
    ` ${words}`,
  );

const barsFigure = (cases, device, id) => {
  const [c] = cases;
  const head = cases.length > 1 ? [c.op, c.bound === "flops" && c.dtype].filter((word) => word).join(" ") : c.label;
  return html(
    "figure",
    {},
    html("figcaption", {}, `${head} (${unitOf(c)})`),
    c.rows.some(isOurs) ? bars(cases, device, id) : html("p", {}, "No variant of ours was timed."),
    hidden("Table of this chart", barsTable(cases, `${id}-table`)),
  );
};
