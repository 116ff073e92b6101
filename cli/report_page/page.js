// SPDX-License-Identifier: Apache-2.0
// The page from the summary that `tensorcraft report --json` prints; no ratio is computed here.
"use strict";

const UNITS = { bandwidth_gbs: ["bandwidth", "GB/s"], peak_tflops: ["peak", "TFLOPS"], warmup_s: ["warm-up", "s"] };

const factsOf = (file) => {
  const list = html("dl", {});
  const add = (name, value) => list.append(html("dt", {}, name), html("dd", {}, String(value)));
  add("file", file.file);
  const cases = (key) => unique(file.cases.map((c) => c[key])).filter((word) => word).join(", ");
  add("timed by", cases("timing"));
  add("cache", cases("cache"));
  for (const part of [file.machine, file.device, file.timing]) {
    for (const [name, value] of Object.entries(part)) {
      if (value === null) continue;
      const [label, unit] = UNITS[name] || [part === file.device && name === "name" ? "device" : name.replaceAll("_", " ")];
      const text = (of) => (unit && typeof of === "number" ? withUnit(of, unit) : String(of));
      const all = typeof value === "object" ? Object.entries(value).map(([key, of]) => `${key} ${text(of)}`).join(", ") : text(value);
      add(label, all);
    }
  }
  return hidden("Machine and method", list);
};

// Tells one run from another, in one line.
const SHORT_FACTS = ["date", "commit", "tensorcraft", "driver", "clock_mhz", "power_w"];
const runOf = (file) => {
  const where = file.device.name || file.machine.gpu || file.machine.processor;
  const known = SHORT_FACTS.filter((key) => file.machine[key] !== undefined);
  const words = known.map((key) => `${key.replaceAll("_", " ")} ${file.machine[key]}`);
  return [where, ...words, file.file].filter((word) => word).join(", ");
};

const peersOf = (cases) => {
  const rivals = (c) => c.rows.filter((row) => !isOurs(row) && !isUnlike(c, row.candidate));
  const found = unique(cases.flatMap((c) => rivals(c).map((row) => row.candidate)));
  const last = (peer) => Math.max(...cases.map((c) => c.rows.findIndex((row) => row.candidate === peer)));
  return found.sort((a, b) => last(a) - last(b));
};

// A copy's time says nothing of a problem that operations limit.
const isUnlike = (c, peer) => c.bound === "flops" && peer === "copy";

const ratioCell = (c, peer) => {
  if (isUnlike(c, peer)) return "";
  return peer in c.ratios ? { value: c.ratios[peer], losing: c.loses_to.includes(peer), ratio: true } : undefined;
};

const worst = (c) => Math.min(Infinity, ...c.loses_to.map((peer) => c.ratios[peer]));

// A launch's time hides the floor in calls so small that a graph had to time them.
const FAR = 0.5;
const isFar = (c) => c.of_floor !== undefined && c.of_floor < FAR && c.timing !== "graph";

const losses = (file) => {
  const lost = file.cases.flatMap((c) => c.loses_to.map((peer) => ({ c, peer })));
  return lost.sort((a, b) => a.c.ratios[a.peer] - b.c.ratios[b.peer]);
};

// The result in a sentence or two.
const headline = (file) => {
  const compared = file.cases.filter((c) => Object.keys(c.ratios).some((peer) => peer !== "copy"));
  const lost = compared.filter((c) => c.loses_to.length);
  const far = file.cases.filter(isFar);
  const words = [];
  if (!compared.length) words.push("No peer was measured.");
  else if (!lost.length) words.push(`No peer is faster in any of ${compared.length} cases.`);
  else {
    const [{ c, peer }] = losses(file);
    words.push(`TensorCraft is as fast as every peer, or faster, in ${compared.length - lost.length} of ${compared.length} cases.`);
    words.push(`At worst it has ${times(c.ratios[peer])} the speed of ${peer}: ${c.op} ${c.label}.`);
  }
  const ops = unique(far.map((c) => c.op)).join(", ");
  if (far.length) words.push(`Below half of what the device allows: ${far.length} of ${file.cases.length} cases, of ${ops}.`);
  return html("p", { class: "headline" }, words.join(" "));
};

const losingTable = (file, place) => {
  const lost = losses(file);
  if (!lost.length) return null;
  return tableOf(
    `${place}-losing`,
    `Where a peer is faster: ${lost.length}`,
    ["operator", "ratio", "peer", "case", "variant", "us", "peer us"],
    lost.map(({ c, peer }) => [
      c.op,
      ratioCell(c, peer),
      peer,
      c.label,
      c.variant,
      c.median_us,
      c.rows.find((row) => row.candidate === peer).median_us,
    ]),
  );
};

const farTable = (file, place) => {
  const far = file.cases.filter(isFar).sort((a, b) => a.of_floor - b.of_floor);
  if (!far.length) return null;
  return tableOf(
    `${place}-far`,
    `Below half of what the device allows: ${far.length}`,
    ["operator", "of floor", "limited by", "case", "variant", "us"],
    far.map((c) => [c.op, farCell(c), c.bound === "flops" ? "operations" : "bandwidth", c.label, c.variant, c.median_us]),
  );
};

const farCell = (c) => (c.of_floor === undefined ? undefined : { value: c.of_floor, far: isFar(c) });

const meanCell = (g) => {
  if (!g) return "";
  if (!g.count) return undefined;
  const slower = g.losing === undefined ? "a bound" : `slower in ${g.losing} of ${g.count}`;
  return { value: g.geomean, losing: g.geomean < 1 && g.losing !== undefined, ratio: true, note: `${slower}, least ${times(g.smallest)}` };
};

// A line for each operator, or for each group of the suites; `key` names it in a mean.
const geomeanTable = (means, key, id, kind) => {
  if (!means.length) return null;
  const peers = unique(means.map((g) => g.peer)).sort((a, b) => (a === "copy") - (b === "copy")); // a bound comes last
  const names = unique(means.map((g) => g[key]));
  return tableOf(
    id,
    `Geometric mean of the ratios of each ${kind}`,
    [kind, ...peers],
    names.map((name) => [name, ...peers.map((peer) => meanCell(means.find((g) => g[key] === name && g.peer === peer)))]),
  );
};

// Why a case has no ratio though none of its rows says so.
const whyNoRatio = (c) => {
  const ours = c.rows.filter(isOurs);
  if (!ours.length) return "no variant was timed";
  const said = ours.some((row) => row.error && (row.chosen || ours.length === 1));
  return c.median_us === undefined && !said ? "no variant is marked as the chosen one" : "";
};

const whyMissing = (c, row) =>
  row.error || `not compared: timed by ${row.timing}, the others by ${c.timing}`;

// Lists what has no figure or no ratio, with the reason.
const missingTable = (file, place) => {
  const rows = file.cases.flatMap((c) => [
    ...c.rows
      .filter((row) => row.error || !isComparable(c, row))
      .map((row) => [c.op, c.label, row.candidate, row.variant || "", { value: whyMissing(c, row), long: true }]),
    ...(whyNoRatio(c) ? [[c.op, c.label, "tensorcraft", "", { value: whyNoRatio(c), long: true }]] : []),
  ]);
  rows.push(...file.skipped.map((reason) => ["-", "-", "-", "-", { value: `not run: ${reason}`, long: true }]));
  if (!rows.length) return html("p", {}, "Every candidate has a figure in every case.");
  const heads = ["operator", "case", "candidate", "variant", "reason"];
  const title = `Without a figure or a ratio: ${rows.length}`;
  return hidden(title, tableOf(`${place}-missing`, title, heads, rows));
};

const caseTable = (cases, place) => {
  const peers = peersOf(cases);
  const order = [...cases].sort((a, b) => (worst(a) === worst(b) ? 0 : worst(a) - worst(b)));
  return tableOf(
    `${place}-cases`,
    "Ours and the ratios to the peers; cases where one is faster come first",
    ["case", ...peers, "of floor", "us", "variant", "GB/s", "TFLOPS", "10 %", "90 %"],
    order.map((c) => {
      const isTimed = (row) => isOurs(row) && nameOf(row) === (c.variant || "tensorcraft");
      const timed = (c.median_us !== undefined && c.rows.find(isTimed)) || {};
      return [
        c.label,
        ...peers.map((peer) => ratioCell(c, peer)),
        farCell(c),
        c.median_us,
        c.variant || "",
        timed.gbs,
        timed.tflops,
        timed.p10_us,
        timed.p90_us,
      ];
    }),
  );
};

const operatorSection = (file, op, id) => {
  const cases = file.cases.filter((c) => c.op === op);
  const figures = chartsOf(cases).map((group, i) => barsFigure(group, file.device, `${id}-${i}`));
  const legend = html("ul", { class: "legend" }, ...[["bar chosen", "TensorCraft"], ["bar peer", "a peer"]].map(barSample));
  return html("section", { id }, html("h3", {}, op), caseTable(cases, id), legend, html("div", { class: "charts" }, ...figures));
};

const fileSection = (file, place, alone) => {
  nameCases(file.cases);
  const chart = rooflineFigure(file, place);
  const ops = unique(file.cases.map((c) => c.op));
  const section = html(
    "section",
    { id: place, "data-file": file.file },
    html("h2", {}, alone ? "In short" : file.title),
    headline(file),
    html("p", { class: "run" }, runOf(file)),
    factsOf(file),
    losingTable(file, place),
    farTable(file, place),
    geomeanTable(file.geomeans, "op", `${place}-geomeans`, "operator"),
    geomeanTable(file.groups, "group", `${place}-groups`, "group"),
    missingTable(file, place),
    chart.figure || chart,
    ...ops.map((op, i) => operatorSection(file, op, `${place}-op${i}`)),
  );
  document.getElementById("results").append(section);
  if (chart.draw) chart.draw(); // only now is its width known
  const links = ops.map((op, i) => html("li", {}, html("a", { href: `#${place}-op${i}` }, op)));
  const name = alone ? "In short" : `${file.title} (${file.file.split("/").pop()})`;
  return html("li", {}, html("a", { href: `#${place}` }, name), html("ul", {}, ...links));
};

const files = JSON.parse(document.getElementById("data").textContent);
const contents = files.map((file, i) => fileSection(file, `file${i}`, files.length === 1));
document.getElementById("contents").append(html("ul", {}, ...contents));
addEventListener("beforeprint", () => {
  for (const details of document.querySelectorAll("details")) details.open = true;
});
