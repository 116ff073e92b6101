// SPDX-License-Identifier: Apache-2.0
// Each variant and peer by its operations for each byte and its speed, under what the device can do.
"use strict";

const onRoofline = (file, isWanted) =>
  file.cases
    .filter((c) => c.bytes > 0 && c.flops > 0)
    .flatMap((c) =>
      c.rows
        .filter((row) => row.tflops && isComparable(c, row) && isWanted(row))
        .map((row) => ({ c, row, intensity: c.flops / c.bytes, chosen: row.chosen === true })),
    );
const isRival = (row) => !isOurs(row) && row.candidate !== "copy";

// Peaks of equal height share a line: [["bfloat16, float16", 989], ...].
const peaksOf = (device) => {
  const names = new Map();
  for (const [dtype, peak] of Object.entries(device.peak_tflops || {})) {
    if (peak > 0) names.set(peak, [...(names.get(peak) || []), dtype]);
  }
  return [...names].map(([peak, dtypes]) => [dtypes.join(", "), peak]);
};

const rooflineRange = (points, device) => {
  const bandwidth = (device.bandwidth_gbs || 0) / 1000;
  const peaks = peaksOf(device).map(([, peak]) => peak);
  const ridges = bandwidth > 0 ? peaks.map((peak) => peak / bandwidth) : [];
  const x = [...points.map((p) => p.intensity), ...ridges];
  const y = [...points.map((p) => p.row.tflops), ...peaks];
  if (bandwidth > 0) y.push(bandwidth * Math.min(...x));
  return {
    left: Math.min(...x) / 2,
    right: Math.max(...x) * 4,
    low: Math.min(...y) / 2,
    high: Math.max(...y) * 2,
    bandwidth,
  };
};

const rooflineAxes = (range, place, x, y) => {
  const marks = [];
  for (const tick of logTicks(range.left, range.right)) {
    marks.push(
      svg("line", { class: "grid", x1: x(tick), x2: x(tick), y1: place.top, y2: place.bottom }),
      text(x(tick), place.bottom + 14, digits(tick), { "text-anchor": "middle", class: "quiet" }),
    );
  }
  for (const tick of logTicks(range.low, range.high)) {
    marks.push(
      svg("line", { class: "grid", x1: place.left, x2: place.right, y1: y(tick), y2: y(tick) }),
      text(place.left - 4, y(tick) + 4, digits(tick), { "text-anchor": "end", class: "quiet" }),
    );
  }
  marks.push(
    text((place.left + place.right) / 2, place.bottom + 32, "operations for each byte", { "text-anchor": "middle" }),
    text(4, 12, "TFLOPS"),
  );
  return marks;
};

const roofs = (range, device, place, x, y) => {
  const marks = [];
  const peaks = peaksOf(device);
  const highest = Math.max(0, ...peaks.map(([, peak]) => peak)) || range.high;
  for (const [dtypes, peak] of peaks) {
    const from = range.bandwidth > 0 ? Math.max(range.left, peak / range.bandwidth) : range.left;
    const words = `${dtypes}: ${withUnit(peak, "TFLOPS")}`;
    marks.push(
      mark("path", words, {
        class: "mark roof",
        d: `M${x(from)} ${y(peak)}H${place.right}`,
        "data-mark": "peak",
        "data-name": dtypes,
        "data-value": peak,
        "data-y": y(peak),
      }),
      text(place.right - 4, y(peak) - 4, words, { "text-anchor": "end", class: "quiet" }),
    );
  }
  if (range.bandwidth > 0) {
    // Where the line enters the chart: at its left edge or at its lower one.
    const from = Math.max(range.left, range.low / range.bandwidth);
    const to = Math.min(range.right, highest / range.bandwidth);
    const words = `bandwidth: ${withUnit(device.bandwidth_gbs, "GB/s")}`;
    marks.push(
      mark("path", words, {
        class: "mark roof",
        d: `M${x(from)} ${y(from * range.bandwidth)}L${x(to)} ${y(to * range.bandwidth)}`,
        "data-mark": "bandwidth",
        "data-value": device.bandwidth_gbs,
        "data-x": x(to),
        "data-y": y(to * range.bandwidth),
      }),
      text((x(from) + x(to)) / 2 + 6, y(Math.sqrt(from * to) * range.bandwidth) + 12, words, { class: "quiet" }),
    );
  }
  return marks;
};

const hueOf = (dtypes, dtype) => `hue-${Math.min(3, dtypes.indexOf(dtype))}`;

const wordsOfPoint = ({ c, row, intensity }) =>
  `${c.op} ${c.label}, ${nameOf(row)}: ${digits(row.tflops)} TFLOPS, ${digits(intensity)} operations for each byte`;

const rooflinePoint = ({ c, row, intensity, chosen }, dtypes, wanted, x, y) =>
  mark("circle", wordsOfPoint({ c, row, intensity }), {
    class: ["mark point", hueOf(dtypes, c.dtype), chosen && "chosen", wanted && wanted !== c.op && "dimmed"]
      .filter((word) => word)
      .join(" "),
    cx: x(intensity),
    cy: y(row.tflops),
    r: 4,
    "data-mark": "variant",
    "data-op": c.op,
    "data-case": c.label,
    "data-name": nameOf(row),
    "data-chosen": chosen,
  });

const rivalMark = ({ c, row, intensity }, wanted, x, y) => {
  const [at, up] = [x(intensity), y(row.tflops)];
  return mark("path", wordsOfPoint({ c, row, intensity }), {
    class: `mark rival${wanted && wanted !== c.op ? " dimmed" : ""}`,
    d: `M${at - 4} ${up}H${at + 4}M${at} ${up - 4}V${up + 4}`,
    "data-mark": "rival",
    "data-op": c.op,
    "data-case": c.label,
    "data-name": nameOf(row),
  });
};

// A name beside its point where there is room: of each operator, and of each case of the one that is chosen.
const pointNames = (points, wanted, range, place, x, y) => {
  const taken = points.map((p) => [x(p.intensity) - 4, y(p.row.tflops) - 4, 8, 8]);
  const steps = range.bandwidth > 0 ? Array.from({ length: 200 }, (_, i) => range.left * (range.right / range.left) ** (i / 200)) : [];
  for (const at of steps) taken.push([x(at) - 2, y(at * range.bandwidth) - 2, 4, 4]); // the line of the bandwidth
  const named = new Set();
  const names = [];
  const shown = points.filter((p) => (wanted ? p.c.op === wanted : true)).sort((a, b) => b.row.tflops - a.row.tflops);
  for (const p of shown) {
    const words = wanted ? (p.chosen ? p.c.label : `${nameOf(p.row)}, ${p.c.label}`) : p.c.op;
    if (named.has(words)) continue;
    const [width, height] = [6.2 * words.length, 13];
    const [at, up] = [x(p.intensity), y(p.row.tflops)];
    const spots = [[at + 7, up - 6], [at - 7 - width, up - 6], [at - width / 2, up - 20], [at - width / 2, up + 7]];
    const isFree = ([left, top]) =>
      left > place.left && left + width < place.right && top > place.top && top + height < place.bottom &&
      !taken.some(([l, t, w, h]) => left < l + w && l < left + width && top < t + h && t < top + height);
    const spot = spots.find(isFree);
    if (!spot) continue;
    taken.push([...spot, width, height]);
    named.add(words);
    names.push(text(spot[0], spot[1] + 10, words, { class: "point-name", "data-of": words }));
  }
  return names;
};

const roofline = (file, points, id, width, wanted) => {
  const height = width < 520 ? 360 : 480;
  const place = { left: 48, right: width - 12, top: 20, bottom: height - 40 };
  const rivals = onRoofline(file, isRival);
  const range = rooflineRange([...points, ...rivals], file.device);
  const x = logScale(range.left, range.right, place.left, place.right);
  const y = logScale(range.low, range.high, place.bottom, place.top);
  const dtypes = unique(points.map((p) => p.c.dtype));
  return chartOf(
    {
      id,
      viewBox: `0 0 ${width} ${height}`,
      "data-chart": "roofline",
      "data-pixels": [place.left, place.right, place.bottom, place.top].join(" "),
      "data-range": [range.left, range.right, range.low, range.high].join(" "),
    },
    `Roofline of ${file.device.name || file.title}`,
    `${points.length} variants and ${rivals.length} peers by operations for each byte and TFLOPS, under the lines of the bandwidth and of each peak.`,
    [
      ...rooflineAxes(range, place, x, y),
      ...roofs(range, file.device, place, x, y),
      ...rivals.map((rival) => rivalMark(rival, wanted, x, y)),
      ...points.map((point) => rooflinePoint(point, dtypes, wanted, x, y)),
      ...pointNames(points, wanted, range, place, x, y),
    ],
  );
};

const rooflineLegend = (points, rivals) => {
  const dtypes = unique(points.map((p) => p.c.dtype));
  const sample = (classes) =>
    svg("svg", { viewBox: "0 0 16 16", "aria-hidden": "true" }, svg("circle", { class: `point ${classes}`, cx: 8, cy: 8, r: 5 }));
  return html(
    "ul",
    { class: "legend" },
    ...dtypes.map((dtype) => html("li", {}, sample(`${hueOf(dtypes, dtype)} chosen`), ` ${dtype || "no dtype"}`)),
    points.some((p) => !p.chosen) ? html("li", {}, sample("hue-0"), " a variant that is not chosen") : null,
    rivals.length
      ? html("li", {}, svg("svg", { viewBox: "0 0 16 16", "aria-hidden": "true" }, svg("path", { class: "rival", d: "M3 8H13M8 3V13" })), " a peer")
      : null,
  );
};

const rooflineTable = (points, place) =>
  tableOf(
    `${place}-roofline`,
    "The roofline's marks",
    ["operator", "case", "variant", "operations for each byte", "TFLOPS"],
    points.map(({ c, row, intensity }) => [c.op, c.label, nameOf(row), intensity, row.tflops]),
  );

// The chart follows the width of the page, and a choice of one operator.
const rooflineFigure = (file, place) => {
  const points = onRoofline(file, isOurs);
  const without = unique(file.cases.filter((c) => !(c.flops > 0 && c.bytes > 0)).map((c) => c.op));
  const note = without.length ? `Not on it, for they count no operations: ${without.join(", ")}.` : "";
  if (!points.length) return html("p", {}, `There is no roofline: no case has both bytes and operations. ${note}`);
  const ops = unique(points.map((p) => p.c.op));
  const choices = ops.map((op) => html("option", { value: op }, op));
  const select = html("select", { id: `${place}-only` }, html("option", { value: "" }, "all operators"), ...choices);
  const holder = html("div", {});
  const draw = () => {
    const width = Math.max(320, Math.min(1120, Math.floor(holder.clientWidth) || 800));
    holder.replaceChildren(roofline(file, points, `${place}-roofline`, width, select.value));
  };
  select.addEventListener("change", draw);
  addEventListener("resize", draw);
  const figure = html(
    "figure",
    {},
    html("figcaption", {}, "Roofline"),
    rooflineLegend(points, onRoofline(file, isRival)),
    html("label", { for: select.id }, "Show "),
    select,
    holder,
    html("p", {}, note),
    hidden("Table of this chart", rooflineTable(points, place)),
  );
  return { figure, draw };
};
