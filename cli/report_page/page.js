// SPDX-License-Identifier: Apache-2.0
// The page from the summary that `tensorcraft report --json` prints; no ratio is computed here.
"use strict";

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
      const text = Object.entries(value).map(([key, number]) => `${key} ${number}`).join(", ");
      const label = part === file.device && name === "name" ? "device" : name.replaceAll("_", " ");
      add(label, typeof value === "object" ? text : value);
    }
  }
  return list;
};

const peersOf = (cases) => {
  const found = unique(cases.flatMap((c) => c.rows.filter((row) => !isOurs(row)).map((row) => row.candidate)));
  const last = (peer) => Math.max(...cases.map((c) => c.rows.findIndex((row) => row.candidate === peer)));
  return found.sort((a, b) => last(a) - last(b));
};

const ratioCell = (c, peer) =>
  peer in c.ratios ? { value: c.ratios[peer], losing: c.loses_to.includes(peer) } : undefined;

const worst = (c) => Math.min(Infinity, ...c.loses_to.map((peer) => c.ratios[peer]));

const losingTable = (file, place) => {
  const lost = file.cases.flatMap((c) => c.loses_to.map((peer) => ({ c, peer })));
  const compared = file.geomeans
    .filter((g) => g.op === "all operators" && g.peer !== "copy")
    .reduce((sum, g) => sum + g.count, 0);
  if (!lost.length) return html("p", {}, `No peer is faster in any of ${compared} comparisons.`);
  lost.sort((a, b) => a.c.ratios[a.peer] - b.c.ratios[b.peer]);
  return tableOf(
    `${place}-losing`,
    `Where a peer is faster: ${lost.length} of ${compared} comparisons`,
    ["operator", "case", "peer", "ratio", "variant", "us", "peer us"],
    lost.map(({ c, peer }) => [
      c.op,
      c.label,
      peer,
      ratioCell(c, peer),
      c.variant,
      c.median_us,
      c.rows.find((row) => row.candidate === peer).median_us,
    ]),
  );
};

const geomeanTable = (file, place) =>
  tableOf(
    `${place}-geomeans`,
    "Geometric mean of the ratios of each operator and peer",
    ["operator", "peer", "geometric mean", "cases", "slower in", "smallest", "without a ratio"],
    file.geomeans.map((g) => [
      g.op,
      g.peer,
      g.count ? { value: g.geomean, losing: g.geomean < 1 && g.peer !== "copy" } : undefined,
      g.count,
      g.peer === "copy" ? "a bound" : g.losing,
      g.smallest,
      g.missing,
    ]),
  );

// Why a case has no ratio though none of its rows says so.
const whyNoRatio = (c) => {
  const ours = c.rows.filter(isOurs);
  if (!ours.length) return "no variant was timed";
  const said = ours.some((row) => row.error && (row.chosen || ours.length === 1));
  return c.median_us === undefined && !said ? "no variant is marked as the chosen one" : "";
};

const whyMissing = (c, row) =>
  row.error || `not compared: timed by ${row.timing}, the others by ${c.timing}`;

// What has no figure or no ratio, with the reason.
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
  return tableOf(`${place}-missing`, `Without a figure or a ratio: ${rows.length}`, heads, rows);
};

const caseTable = (cases, place) => {
  const peers = peersOf(cases);
  const order = [...cases].sort((a, b) => (worst(a) === worst(b) ? 0 : worst(a) - worst(b)));
  return tableOf(
    `${place}-cases`,
    "Ours and the ratios to the peers; cases where one is faster come first",
    ["case", "variant", "us", ...peers, "of floor", "GB/s", "TFLOPS", "10 %", "90 %"],
    order.map((c) => {
      const isTimed = (row) => isOurs(row) && nameOf(row) === (c.variant || "tensorcraft");
      const timed = (c.median_us !== undefined && c.rows.find(isTimed)) || {};
      return [
        c.label,
        c.variant || "",
        c.median_us,
        ...peers.map((peer) => ratioCell(c, peer)),
        c.of_floor,
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
  const figures = cases.map((c, i) => ladderFigure(c, file.device, `${id}-${i}`));
  const ladders = html("div", { class: "ladders" }, ...figures);
  return html("section", { id }, html("h3", {}, op), caseTable(cases, id), ladders);
};

const fileSection = (file, place) => {
  nameCases(file.cases);
  const chart = rooflineFigure(file, place);
  const ops = unique(file.cases.map((c) => c.op));
  const section = html(
    "section",
    { id: place },
    html("h2", {}, file.title),
    factsOf(file),
    losingTable(file, place),
    geomeanTable(file, place),
    missingTable(file, place),
    chart.figure || chart,
    ...ops.map((op, i) => operatorSection(file, op, `${place}-op${i}`)),
  );
  document.getElementById("results").append(section);
  if (chart.draw) chart.draw(); // only now is its width known
  const links = ops.map((op, i) => html("li", {}, html("a", { href: `#${place}-op${i}` }, op)));
  return html("li", {}, html("a", { href: `#${place}` }, file.title), html("ul", {}, ...links));
};

const files = JSON.parse(document.getElementById("data").textContent);
const contents = files.map((file, i) => fileSection(file, `file${i}`));
document.getElementById("contents").append(html("ul", {}, ...contents));
addEventListener("beforeprint", () => {
  for (const details of document.querySelectorAll("details")) details.open = true;
});
