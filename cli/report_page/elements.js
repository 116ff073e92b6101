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
const unique = (values) => [...new Set(values)];
const isOurs = (row) => row.candidate === "tensorcraft";
const nameOf = (row) => row.variant || row.candidate;

// Names the cases of a file by what tells them apart; bench puts the options into most names itself.
const nameCases = (cases) => {
  const varies = (key) => unique(cases.map((c) => c[key]).filter((word) => word)).length > 1;
  const parts = ["timing", "cache"].filter(varies);
  for (const c of cases) {
    const options = c.case.includes(c.options) ? "" : c.options;
    c.label = [c.case, options, ...parts.map((key) => c[key])].filter((part) => part).join(", ");
  }
};

// A peer that was timed in another way than ours is shown, and compared with nothing.
const isComparable = (c, row) => !row.error && (row.timing === undefined || isOurs(row));

// A cell is a text, a number, nothing (no figure), or { value, losing }.
const cellOf = (cell) => {
  if (cell === undefined || cell === null) return html("td", { class: "number none" }, "n/a");
  const value = typeof cell === "object" ? cell.value : cell;
  if (typeof value !== "number") return html("td", { class: cell.long ? "reason" : undefined }, String(value));
  const losing = cell.losing === true;
  return html(
    "td",
    { class: losing ? "number losing" : "number", "data-value": value, "data-losing": losing },
    digits(value) + (losing ? " slower" : ""),
  );
};

// The first cell of a row is its head. The id tells tests which table it is.
const tableOf = (id, caption, heads, rows) => {
  const head = html("tr", {}, ...heads.map((text) => html("th", { scope: "col" }, text)));
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
