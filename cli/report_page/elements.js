// SPDX-License-Identifier: Apache-2.0
// Elements, tables and words. Every name becomes a text node or an attribute, so none can become markup.
"use strict";

const svgSpace = document.getElementById("blank").namespaceURI;

const fill = (made, attributes, children) => {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== undefined && value !== false) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== null));
  return made;
};
const html = (name, attributes, ...children) => fill(document.createElement(name), attributes, children);
const svg = (name, attributes, ...children) =>
  fill(document.createElementNS(svgSpace, name), attributes, children);

const digits = (value) => String(Number(value.toPrecision(4)));
// A ratio in three digits: 0.571x is slower, 1.75x faster.
const times = (ratio) => `${Number(ratio.toPrecision(3))}x`;
const withUnit = (value, unit) =>
  unit === "GB/s" && value >= 1000 ? `${Number((value / 1000).toPrecision(3))} TB/s` : `${Number(value.toPrecision(3))} ${unit}`;
const unique = (values) => [...new Set(values)];
const isOurs = (row) => row.candidate === "tensorcraft";
const nameOf = (row) => row.variant || row.candidate;

const productShape = (shapes, options) => {
  if (shapes.map((shape) => shape.length).join() !== "2,2") return "";
  const [[m, k], b] = shapes;
  return `${m}x${options.includes("transpose_b=true") ? b[0] : b[1]}x${k}`;
};
const headsShape = (shapes) =>
  shapes[0].length === 4 && unique(shapes.map((shape) => shape.join())).length === 1
    ? shapes[0].map((size, i) => "bhsd"[i] + size).join(" ")
    : "";

// A shape as one writes it: a product is m x n x k, attention of equal shapes b h s d.
const AS_WRITTEN = new Map([["gemm", productShape], ["attention", headsShape]]);
const shortShape = (c) => {
  const shapes = c.shape.split(" ").map((shape) => shape.split("x"));
  return (AS_WRITTEN.has(c.op) && AS_WRITTEN.get(c.op)(shapes, c.options)) || c.shape;
};

// Names the cases of a file by what tells them apart; bench puts the options into most names itself.
const nameCases = (cases) => {
  const varies = (key) => unique(cases.map((c) => c[key]).filter((word) => word)).length > 1;
  const parts = ["timing", "cache"].filter(varies);
  for (const c of cases) {
    const name = c.shape && c.case.startsWith(c.shape) ? shortShape(c) + c.case.slice(c.shape.length) : c.case;
    const options = c.case.includes(c.options) ? "" : c.options;
    c.label = [name, options, ...parts.map((key) => c[key])].filter((part) => part).join(", ");
  }
};

// A peer that was timed in another way than ours is shown, and compared with nothing.
const isComparable = (c, row) => !row.error && (row.timing === undefined || isOurs(row));

// A cell is a text, a number, nothing (no figure), or { value, losing, ratio, far, note }.
const cellOf = (cell) => {
  if (cell === undefined || cell === null) return html("td", { class: "number none" }, "n/a");
  const { value, losing, ratio, far, note } = typeof cell === "object" ? cell : { value: cell };
  if (typeof value !== "number") return html("td", { class: cell.long ? "reason" : undefined }, String(value));
  const kind = ["number", losing && "losing", far && "far"].filter((word) => word).join(" ");
  return html(
    "td",
    { class: kind, "data-value": value, "data-losing": losing === true, "data-far": far === true },
    ratio ? times(value) : digits(value),
    note ? html("small", {}, note) : null,
  );
};

// The first cell of a row is its head. The id tells tests which table it is.
const tableOf = (id, caption, heads, rows) => {
  const isNumber = (i) => rows.some((row) => typeof row[i] === "number" || typeof (row[i] || {}).value === "number");
  const headOf = (text, i) => html("th", { scope: "col", class: isNumber(i) ? "number" : undefined }, text);
  const head = html("tr", {}, ...heads.map(headOf));
  const body = rows.map(([first, ...rest]) =>
    html("tr", {}, html("th", { scope: "row" }, first), ...rest.map(cellOf)),
  );
  const table = html(
    "table",
    { "data-table": id },
    html("caption", {}, caption),
    html("thead", {}, head),
    html("tbody", {}, ...body),
  );
  return html("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption }, table);
};

const hidden = (summary, content) => html("details", {}, html("summary", {}, summary), content);
