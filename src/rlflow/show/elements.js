"use strict";
// What all pages are drawn with: elements, numbers, pictures of rules. Texts of a model become text nodes and never markup.

const page = JSON.parse(document.getElementById("content").textContent);

function element(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

function drawn(tag, attributes = {}, ...children) {
  return filled(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function filled(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value !== undefined && value !== false) made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child !== undefined && child !== ""));
  return made;
}

const number = (value, digits = Math.abs(value) < 0.1 ? 4 : 3) => value.toFixed(digits);
const percent = (value) => `${number(value, 1)}\u00a0%`;
const plural = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;

// ---------------------------------------------------------------- pictures of boxes, laid out beforehand

const BOX = { height: 24, row: 46, letter: 7, longest: 24, gap: 14 };

function picture(boxes) {
  const short = (label) => (label.length > BOX.longest ? `${label.slice(0, BOX.longest - 1)}…` : label);
  const lines = boxes.map(([label]) => label.split("\n").map(short));
  const letters = Math.max(3, ...lines.flat().map((line) => line.length));
  const width = BOX.letter * letters + 14;
  const across = Math.max(...boxes.map((box) => Math.abs(box[2])));
  const tall = Math.max(...lines.map((text) => text.length));
  const height = BOX.height + 14 * (tall - 1);
  const row = BOX.row + 14 * (tall - 1);
  const middle = (width + BOX.gap) * (across + 0.5);
  const at = boxes.map((box) => [middle + (width + BOX.gap) * box[2], 2 + box[3] * row]);
  const size = [2 * middle, Math.max(...at.map((place) => place[1])) + height + 2];
  const made = drawn("svg", { class: "picture", viewBox: `0 0 ${size[0]} ${size[1]}`, width: size[0], height: size[1], role: "img" });
  boxes.forEach(([, , , , operands], i) => {
    for (const operand of operands) {
      const [[x1, y1], [x2, y2]] = [at[operand], at[i]];
      made.append(drawn("path", { d: curve(x1, y1 + height, x2, y2, boxes[i][3] - boxes[operand][3] - 1) }));
    }
  });
  boxes.forEach(([label, kind], i) => {
    const [x, y] = at[i];
    const text = lines[i].map((line, n) => drawn("text", { x, y: y + 16 + 14 * n }, line));
    const frame = drawn("rect", { x: x - width / 2, y, width, height, rx: 5 });
    made.append(drawn("g", { class: kind }, drawn("title", {}, label), frame, ...text));
  });
  return made;
}

// A line from one box down to another; past rows in between it swings out, so as not to run behind their boxes.
function curve(x1, y1, x2, y2, between = 0) {
  const bend = Math.max(8, (y2 - y1) / 2);
  const swing = between ? 40 + 16 * between : 0;
  return `M${x1} ${y1}C${x1 + swing} ${y1 + bend} ${x2 + swing} ${y2 - bend} ${x2} ${y2}`;
}

function rulePicture(id) {
  const rule = page.rules[id];
  if (rule === undefined) return element("p", { class: "faint" }, "This rule is not in the library at hand.");
  const sides = Object.entries(rule.panels).map(([title, boxes]) =>
    element("figure", {}, picture(boxes), element("figcaption", {}, title)),
  );
  return element(
    "div",
    { class: "rule" },
    element("div", { class: "sides" }, sides[0], element("span", { class: "arrow" }, "→"), sides[1]),
    element("p", {}, rule.condition),
    element("p", { class: "mono" }, rule.equation),
    element("p", { class: "faint" }, [id, ...rule.notes].join(" · ")),
  );
}

// ---------------------------------------------------------------- parts of pages

function lazy(summary, make, isOpen = false) {
  const details = element("details", {}, summary);
  const fill = () => details.childElementCount === 1 && details.append(make());
  details.addEventListener("toggle", () => details.open && fill());
  if (isOpen) {
    fill();
    details.open = true;
  }
  return details;
}

function section(id, title, ...children) {
  return element("section", { id }, element("h2", {}, title), ...children);
}

function show(...children) {
  const footer = `Made by RLFlow ${page.version}. This file asks for nothing from the network.`;
  document.body.append(element("main", {}, element("h1", {}, page.title), ...children, element("p", { class: "faint" }, footer)));
}
