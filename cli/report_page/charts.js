// SPDX-License-Identifier: Apache-2.0
// Every chart has these: a stop of the Tab key, marks that say their values, scales.
"use strict";

// A chart is one stop of the Tab key; from there arrows go from mark to mark.
const chartOf = (attributes, title, description, children) => {
  const id = attributes.id;
  const chart = svg(
    "svg",
    { ...attributes, tabindex: "0", role: "group", "aria-labelledby": `${id}-title ${id}-text` },
    svg("title", { id: `${id}-title` }, title),
    svg("desc", { id: `${id}-text` }, description),
    ...children,
  );
  chart.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    const marks = [...chart.querySelectorAll(".mark:not(.dimmed)")];
    if (!step || !marks.length) return;
    const from = marks.indexOf(document.activeElement);
    const to = from < 0 ? 0 : (from + step + marks.length) % marks.length;
    marks[to].focus();
    event.preventDefault();
  });
  return chart;
};

// A mark says what it shows to a mouse, to a screen reader and to the tests.
const mark = (name, words, attributes) =>
  svg(name, { ...attributes, tabindex: "-1", role: "img", "aria-label": words }, svg("title", {}, words));

const text = (x, y, words, attributes = {}) => svg("text", { x, y, ...attributes }, words);

const logTicks = (low, high) => {
  const decades = Math.log10(high / low);
  const steps = decades > 3 ? [1] : [1, 2, 5];
  const ticks = [];
  for (let power = Math.floor(Math.log10(low)); 10 ** power <= high; ++power) {
    for (const step of steps) {
      const tick = Number((step * 10 ** power).toPrecision(1));
      if (tick >= low && tick <= high) ticks.push(tick);
    }
  }
  return ticks;
};

// From a value to a pixel; low and high stand on the chart, so that a reader can go back.
const logScale = (low, high, from, to) => (value) =>
  from + ((to - from) * Math.log(value / low)) / Math.log(high / low);
