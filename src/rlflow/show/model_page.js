// The page of a model, alone or before and after it was rewritten.

const SIDES = ["before", "after"];
const FAR = 8; // rows that an edge may cross before only its ends are drawn
const CONTEXT = 1; // rows that are shown around a change
const FOLDED = 3; // fewer rows are not worth a fold
const ZOOM = { least: 0.3, most: 2, step: 1.2 };

class GraphView {
  constructor(pane, map, status) {
    this.pane = pane;
    this.map = map;
    this.status = status;
    this.scale = 1;
    this.folding = true;
    this.shown = -1;
    this.query = "";
    map.addEventListener("pointerdown", (event) => this.jump(event));
    map.addEventListener("pointermove", (event) => event.buttons && this.jump(event));
    pane.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    new ResizeObserver(() => this.arrange()).observe(pane);
  }

  show(which) {
    if (this.shown === which) return;
    this.shown = which;
    this.graph = page.graphs[which];
    this.open = new Set();
    this.unfolded = new Set();
    this.change = -1;
    this.rows = [];
    this.graph.sides.forEach((blocks, side) =>
      blocks.forEach((block, place) => {
        this.rows[block.row] ??= [[], []];
        this.rows[block.row][side].push(place);
      }),
    );
    // What both have comes first in a row, so that it stays at one height where the row breaks.
    for (const sides of this.rows)
      sides.forEach((places, side) => {
        const blocks = this.graph.sides[side];
        places.sort((a, b) => isChanged(blocks[a]) - isChanged(blocks[b]) || blocks[a].column - blocks[b].column);
      });
    this.dearest = Math.max(1e-12, ...this.graph.sides.flat().map((block) => block.ms ?? 0));
    this.stepsOf = [new Map(), new Map()];
    (page.steps ?? []).forEach((step, i) => {
      if (step.graph !== which) return;
      SIDES.forEach((name, side) => {
        for (const place of step[name]) this.stepsOf[side].set(place, [...(this.stepsOf[side].get(place) ?? []), i]);
      });
    });
    for (const tab of document.querySelectorAll(".tabs button")) tab.setAttribute("aria-selected", tab.dataset.graph === String(which));
    this.draw();
    this.pane.scrollTop = 0;
  }

  get isPair() {
    return this.graph.sides.length === 2;
  }

  quiet(row) {
    return this.rows[row].every((places, side) => places.every((place) => !isChanged(this.graph.sides[side][place])));
  }

  // Runs of rows: those to draw, and those of which a button tells.
  runs() {
    const near = new Set();
    this.rows.forEach((_, row) => {
      if (!this.quiet(row)) for (let r = row - CONTEXT; r <= row + CONTEXT; r++) near.add(r);
    });
    const folds = this.folding && this.isPair && near.size > 0;
    const runs = [];
    this.rows.forEach((_, row) => {
      const hidden = folds && !near.has(row) && !this.unfolded.has(row);
      if (runs.length && runs.at(-1).hidden === hidden) runs.at(-1).rows.push(row);
      else runs.push({ hidden, rows: [row] });
    });
    for (const run of runs) if (run.rows.length < FOLDED) run.hidden = false;
    return runs;
  }

  draw() {
    this.elements = [new Map(), new Map()];
    const edges = drawn("svg");
    const board = element("div", { class: `board${this.isPair ? " two" : ""}` }, edges);
    const heads = this.graph.sides.map((_, side) => element("div", {}, this.isPair ? SIDES[side] : this.graph.title));
    board.append(element("div", { class: "heads" }, ...heads));
    for (const run of this.runs()) {
      if (run.hidden) board.append(this.fold(run.rows));
      else for (const row of run.rows) board.append(this.row(row));
    }
    this.board = board;
    this.edges = edges;
    this.pane.replaceChildren(board);
    this.mark();
    this.arrange();
  }

  fold(rows) {
    const layers = rows.reduce((sum, row) => sum + this.rows[row][0].length, 0);
    const ms = rows.flatMap((row) => this.rows[row][0]).reduce((sum, place) => sum + (this.graph.sides[0][place].ms ?? 0), 0);
    const text = `⋯ ${plural(layers, "layer")} the same${ms ? `, ${number(ms)} ms` : ""}`;
    return element("button", { class: "fold", onclick: () => this.reveal(rows) }, text);
  }

  reveal(rows) {
    rows.forEach((row) => this.unfolded.add(row));
    const top = this.pane.scrollTop;
    this.draw();
    this.pane.scrollTop = top;
  }

  row(row) {
    const cells = this.graph.sides.map((_, side) =>
      element("div", { class: "cell" }, ...(this.rows[row][side] ?? []).map((place) => this.block(side, place))),
    );
    return element("div", { class: "row" }, ...cells);
  }

  block(side, place) {
    const block = this.graph.sides[side][place];
    const isValue = block.kind === "value";
    const ms = block.ms === undefined ? undefined : element("span", { class: "ms" }, `${number(block.ms)} ms`);
    const scope = element("span", { class: "scope" }, element("bdi", {}, isValue ? (block.type ?? "output") : common(block.nodes)));
    const title = element("div", { class: "title" }, isValue ? block.title : counted(block.nodes));
    const toggle = isValue ? {} : { "aria-expanded": "false", onclick: () => this.toggle(side, place) };
    const head = element("button", toggle, title, element("div", { class: "under" }, scope, ms));
    const made = element("div", { class: `block ${block.kind}`, "data-side": SIDES[side] }, head);
    if (block.ms) made.style.setProperty("--heat", (75 * Math.sqrt(block.ms / this.dearest)).toFixed(0));
    made.addEventListener("pointerenter", () => this.connect(side, place));
    made.addEventListener("pointerleave", () => this.connect());
    this.elements[side].set(place, made);
    if (this.open.has(`${side} ${place}`)) this.fill(side, place);
    return made;
  }

  toggle(side, place, wanted) {
    const key = `${side} ${place}`;
    if (this.graph.sides[side][place].kind === "value" || wanted === this.open.has(key)) return;
    if (this.open.delete(key)) {
      const made = this.elements[side].get(place);
      made.classList.remove("open");
      made.querySelector(".inside").remove();
      made.firstChild.setAttribute("aria-expanded", "false");
    } else {
      this.open.add(key);
      this.fill(side, place);
    }
    this.arrange();
  }

  fill(side, place) {
    const block = this.graph.sides[side][place];
    const made = this.elements[side].get(place);
    const operators = block.nodes.map((node, i) => element("li", { class: block.picture[i][1] }, ...described(node)));
    const steps = this.stepsOf[side].get(place) ?? [];
    const links = steps.map((i) => element("button", { onclick: () => openStep(i) }, `step ${i + 1}: ${ruleName(page.steps[i].rule)}`));
    const inside = element("div", { class: "inside" }, picture(block.picture), element("ul", {}, ...operators));
    if (links.length) inside.append(element("div", { class: "links" }, side ? "Made by" : "Replaced by", ...links));
    made.append(inside);
    made.classList.add("open");
    made.firstChild.setAttribute("aria-expanded", "true");
    this.markInside(side, place);
  }

  // Edges lie behind the blocks; where both ends are many rows apart, the ends alone.
  arrange() {
    if (!this.board) return;
    this.board.style.fontSize = `${this.scale}em`;
    this.board.classList.toggle("small", this.scale < 0.6);
    const paths = { plain: "", far: "" };
    this.graph.sides.forEach((blocks, side) =>
      blocks.forEach((block, place) => {
        const to = this.box(side, place);
        for (const source of block.reads ?? []) {
          const from = this.box(side, source);
          const between = block.row - blocks[source].row - 1;
          if (from && to && between < FAR) paths.plain += curve(from.x, from.bottom, to.x, to.top, between);
          else {
            if (to) paths.far += `M${to.x} ${to.top - 12}L${to.x} ${to.top}`;
            if (from) paths.far += `M${from.x} ${from.bottom}L${from.x} ${from.bottom + 12}`;
          }
        }
      }),
    );
    this.near = drawn("path", { class: "near" });
    this.edges.setAttribute("width", this.board.scrollWidth);
    this.edges.setAttribute("height", this.board.scrollHeight);
    this.edges.replaceChildren(drawn("path", { d: paths.plain }), drawn("path", { d: paths.far, class: "far" }), this.near);
    this.drawMap();
  }

  box(side, place) {
    const made = this.elements[side].get(place);
    if (!made) return undefined;
    let [x, top] = [0, 0];
    for (let up = made; up && up !== this.board; up = up.offsetParent) [x, top] = [x + up.offsetLeft, top + up.offsetTop];
    return { x: x + made.offsetWidth / 2, top, bottom: top + made.offsetHeight };
  }

  connect(side, place) {
    if (side === undefined) return this.near.setAttribute("d", "");
    const blocks = this.graph.sides[side];
    const pairs = (blocks[place].reads ?? []).map((source) => [source, place]);
    blocks.forEach((block, reader) => block.reads?.includes(place) && pairs.push([place, reader]));
    const ends = pairs.map((pair) => pair.map((end) => this.box(side, end))).filter(([from, to]) => from && to);
    this.near.setAttribute("d", ends.map(([from, to]) => curve(from.x, from.bottom, to.x, to.top)).join(""));
  }

  // The strip beside the graph: what is dear, what differs, and what is in sight.
  drawMap() {
    const scale = window.devicePixelRatio || 1;
    const height = this.map.clientHeight;
    Object.assign(this.map, { width: 16 * scale, height: height * scale });
    const colours = getComputedStyle(document.documentElement);
    const colour = (name) => colours.getPropertyValue(`--${name}`);
    const context = this.map.getContext("2d");
    context.scale(scale, scale);
    const whole = this.board.scrollHeight || 1;
    this.elements.forEach((made, side) =>
      made.forEach((_, place) => {
        const block = this.graph.sides[side][place];
        const { top, bottom } = this.box(side, place);
        const at = [(top / whole) * height, Math.max(1.5, ((bottom - top) / whole) * height)];
        const x = this.isPair ? 8 * side : 0;
        const width = this.isPair ? 8 : 16;
        context.globalAlpha = Math.sqrt((block.ms ?? 0) / this.dearest);
        context.fillStyle = colour("hot");
        context.fillRect(x, at[0], width, at[1]);
        context.globalAlpha = 1;
        if (isChanged(block)) {
          context.fillStyle = colour(block.kind);
          context.fillRect(x + (side ? width - 3 : 0), at[0], 3, at[1]);
        }
      }),
    );
  }

  jump(event) {
    const share = event.offsetY / this.map.clientHeight;
    this.pane.scrollTop = share * this.board.scrollHeight - this.pane.clientHeight / 2;
  }

  wheel(event) {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    this.zoom(event.deltaY < 0 ? ZOOM.step : 1 / ZOOM.step);
  }

  zoom(factor) {
    const middle = (this.pane.scrollTop + this.pane.clientHeight / 2) / this.board.scrollHeight;
    this.scale = Math.min(ZOOM.most, Math.max(ZOOM.least, factor ? this.scale * factor : 1));
    this.arrange();
    this.pane.scrollTop = middle * this.board.scrollHeight - this.pane.clientHeight / 2;
    this.arrange();
  }

  // Bring blocks into sight and mark them; `place` has a graph and blocks of either side.
  go(place) {
    this.show(place.graph);
    const wanted = SIDES.flatMap((name, side) => (place[name] ?? []).map((at) => [side, at])).filter(([side, at]) => this.graph.sides[side]?.[at]);
    const hidden = wanted.filter(([side, at]) => !this.elements[side].has(at)).map(([side, at]) => this.graph.sides[side][at].row);
    if (hidden.length) this.reveal(hidden);
    this.targets = new Set(wanted.map((pair) => pair.join(" ")));
    this.mark();
    const tops = wanted.map(([side, at]) => this.box(side, at).top);
    if (tops.length) this.pane.scrollTop = Math.min(...tops) - this.pane.clientHeight / 4;
  }

  mark() {
    this.board.classList.toggle("dimmed", this.query !== "");
    this.elements.forEach((made, side) =>
      made.forEach((block, place) => {
        block.classList.toggle("target", this.targets?.has(`${side} ${place}`) ?? false);
        block.classList.toggle("hit", this.query !== "" && this.matches(side, place));
        if (block.classList.contains("open")) this.markInside(side, place);
      }),
    );
  }

  markInside(side, place) {
    const items = this.elements[side].get(place).querySelectorAll(".inside li");
    this.graph.sides[side][place].nodes.forEach((node, i) => items[i].classList.toggle("hit", this.query !== "" && this.isHit(node)));
  }

  isHit(node) {
    return node.op.toLowerCase().includes(this.query) || (node.name ?? "").toLowerCase().includes(this.query);
  }

  matches(side, place) {
    const block = this.graph.sides[side][place];
    return block.nodes ? block.nodes.some((node) => this.isHit(node)) : block.title.toLowerCase().includes(this.query);
  }

  search(text) {
    this.query = text.trim().toLowerCase();
    this.targets = undefined;
    this.hits = [];
    this.hit = -1;
    if (this.query)
      this.rows.forEach((sides) => sides.forEach((places, side) => places.forEach((place) => this.matches(side, place) && this.hits.push([side, place]))));
    this.mark();
    this.status.textContent = this.query ? plural(this.hits.length, "layer") : "";
  }

  next(step) {
    if (!this.query || !this.hits.length) return;
    this.hit = (this.hit + step + this.hits.length) % this.hits.length;
    const [side, place] = this.hits[this.hit];
    this.go({ graph: this.shown, [SIDES[side]]: [place] });
    this.toggle(side, place, true);
    this.status.textContent = `${this.hit + 1} of ${plural(this.hits.length, "layer")}`;
  }

  nextChange(step) {
    const { length } = this.graph.stretches;
    if (!length) return;
    this.change = (this.change + step + length) % length;
    const [before, after] = this.graph.stretches[this.change];
    this.go({ graph: this.shown, before, after });
    this.status.textContent = `change ${this.change + 1} of ${length}`;
  }
}

const isChanged = (block) => block.kind === "removed" || block.kind === "added";

// The operators of a block in order, neighbours that are the same counted.
function counted(nodes) {
  const runs = [];
  for (const { op } of nodes) {
    if (runs.at(-1)?.op === op) runs.at(-1).times += 1;
    else runs.push({ op, times: 1 });
  }
  return runs.map(({ op, times }) => (times > 1 ? `${op} ×${times}` : op)).join(", ");
}

// The part of their names that operators have in common, up to a slash.
function common(nodes) {
  const parts = nodes.map((node) => (node.name ?? "").split("/"));
  if (parts.length === 1 && !parts[0].at(-1).startsWith(nodes[0].op)) return parts[0].join("/");
  let length = 0;
  while (parts.every((part) => length < part.length - 1 && part[length] === parts[0][length])) length += 1;
  return parts[0].slice(0, length).join("/");
}

function described(node) {
  const said = [node.type, node.attributes, ...(node.constants ?? [])].filter(Boolean);
  const ms = node.ms === undefined ? "" : ` · ${number(node.ms, 4)} ms`;
  return [element("b", {}, node.op), element("span", { class: "mono" }, node.name ?? ""), ms, element("div", { class: "faint mono" }, said.join(" · "))];
}

// ---------------------------------------------------------------- the other parts of the page

const ruleName = (id) => page.rules?.[id]?.name ?? id;

function showPlace(view, place) {
  document.getElementById("graph").scrollIntoView();
  view.go(place);
}

function openStep(i) {
  const details = document.querySelectorAll(".steps > details")[i];
  details.open = true;
  details.scrollIntoView({ block: "center" });
}

function amount(saved) {
  const part = page.whole ? (100 * Math.abs(saved)) / page.whole : 0;
  const share = part >= 0.05 ? ` (${percent(part)})` : "";
  return saved < 0 ? `costs ${number(-saved)} ms${share}` : `saves ${number(saved)} ms${share}`;
}

function bar(saved, most) {
  const inner = element("i", { class: saved < 0 ? "loss" : undefined });
  inner.style.width = `${most ? (100 * Math.abs(saved)) / most : 0}%`;
  return element("div", { class: "bar" }, inner);
}

function savedSection(view) {
  const most = Math.max(...page.saved.map((entry) => Math.abs(entry.saved)), 0);
  const items = page.saved.map((entry, rank) => {
    let next = 0;
    const times = entry.places.length;
    const button = element("button", { onclick: () => showPlace(view, entry.places[next++ % times]) }, times > 1 ? `show next of ${times}` : "show");
    const title = element("span", {}, element("b", {}, entry.title), times > 1 ? ` ×${times}` : "");
    const made = element("li", {}, element("div", { class: "entry" }, title, element("span", { class: "amount" }, amount(entry.saved)), button, bar(entry.saved, most)));
    if (entry.rule) made.append(lazy(element("summary", { class: "faint" }, "the rule"), () => rulePicture(entry.rule), rank === 0));
    return made;
  });
  const first = page.saved[0];
  const isSaving = first?.saved > 0;
  const by = page.steps?.length ? "The rule whose steps saved most" : "The change that saved most";
  const lead = isSaving ? `${by}, by predicted price: ${first.title}, ${amount(first.saved)}.` : "Nothing was saved by predicted price.";
  return section("saved", "What saved most", element("p", {}, lead), element("ol", { class: "saved" }, ...items));
}

function graphSection() {
  const pane = element("div", { class: "pane", tabindex: 0, role: "region", "aria-label": "graph" });
  const map = element("canvas", { class: "map", "aria-hidden": "true" });
  const status = element("span", { class: "faint", role: "status" });
  const view = new GraphView(pane, map, status);
  const button = (text, label, onclick) => element("button", { "aria-label": label, title: label, onclick }, text);
  const search = element("input", {
    type: "search",
    placeholder: "name or operator",
    "aria-label": "search",
    oninput: () => view.search(search.value),
    onkeydown: (event) => event.key === "Enter" && view.next(event.shiftKey ? -1 : 1),
  });
  const folding = element("input", {
    type: "checkbox",
    checked: "",
    onchange: () => {
      view.folding = folding.checked;
      view.unfolded.clear();
      view.draw();
    },
  });
  const isPair = page.graphs.some((graph) => graph.sides.length === 2);
  const tools = element(
    "div",
    { class: "tools" },
    element("span", { class: "group" }, search, button("↑", "previous find", () => view.next(-1)), button("↓", "next find", () => view.next(1))),
    isPair ? element("span", { class: "group" }, "changes", button("↑", "previous change", () => view.nextChange(-1)), button("↓", "next change", () => view.nextChange(1))) : "",
    element("span", { class: "group" }, button("−", "zoom out", () => view.zoom(1 / ZOOM.step)), button("1:1", "zoom to normal", () => view.zoom()), button("+", "zoom in", () => view.zoom(ZOOM.step))),
    isPair ? element("label", {}, folding, "fold what is the same") : "",
    status,
  );
  const tabs = page.graphs.map((graph, i) => element("button", { "data-graph": i, onclick: () => view.show(i) }, graph.title));
  const swatch = (style, text) => {
    const colour = element("i");
    Object.assign(colour.style, style);
    return element("span", {}, colour, text);
  };
  const legend = element(
    "p",
    { class: "legend" },
    swatch({ background: "linear-gradient(90deg, var(--card), var(--hot))" }, "free to dearest layer"),
    isPair ? swatch({ borderColor: "var(--removed)", borderWidth: "2px" }, "− only before") : "",
    isPair ? swatch({ borderColor: "var(--added)", borderWidth: "2px" }, "+ only after") : "",
    `Prices: ${page.prices}.`,
    "A layer is what ONNX Runtime may fuse. Click one to see its operators; point at it to see what it reads and who reads it.",
  );
  const made = section("graph", isPair ? "Before and after" : "Graph", tabs.length > 1 ? element("div", { class: "tabs" }, ...tabs) : "", tools, element("div", { class: "stage" }, pane, map), legend);
  return [made, view];
}

function stepsSection(view) {
  const most = Math.max(...page.steps.map((step) => Math.abs(step.saved)));
  const items = page.steps.map((step, i) => {
    const place = element("button", { onclick: (event) => (event.preventDefault(), showPlace(view, step)) }, "show");
    const title = element("span", {}, `${i + 1}. `, element("b", {}, ruleName(step.rule)), step.graph ? ` in ${page.graphs[step.graph].title}` : "");
    const summary = element("summary", {}, element("span", { class: "entry" }, title, element("span", { class: "amount" }, amount(step.saved)), place, bar(step.saved, most)));
    return lazy(summary, () => rulePicture(step.rule));
  });
  const note = "A step that costs something prepares those behind it. Savings are of predicted prices.";
  return section("steps", plural(page.steps.length, "step"), element("p", { class: "faint" }, note), element("div", { class: "steps" }, ...items));
}

function operatorsSection() {
  const isPair = page.graphs.some((graph) => graph.sides.length === 2);
  const whole = [0, 1].map((side) => page.operators.reduce((sum, row) => sum + row.ms[side], 0));
  const cells = (row, side) => {
    if (!row.count[side]) return ["–", "", ""];
    return [row.count[side], ...(whole[side] ? [number(row.ms[side]), percent((100 * row.ms[side]) / whole[side])] : ["", ""])];
  };
  const rows = page.operators.map((row) => {
    const change = row.count[1] - row.count[0];
    const numbers = isPair ? [...cells(row, 0), ...cells(row, 1)] : cells(row, 0);
    const made = element("tr", {}, element("td", { class: "mono" }, row.op), ...numbers.map((value) => element("td", { class: "number" }, String(value))));
    if (isPair) made.append(element("td", { class: `number ${change < 0 ? "less" : change > 0 ? "more" : ""}` }, change > 0 ? `+${change}` : change < 0 ? `−${-change}` : ""));
    return made;
  });
  const titles = isPair ? ["before", "ms", "share", "after", "ms", "share", "change"] : ["count", "ms", "share"];
  const head = element("tr", {}, element("th", {}, "operator"), ...titles.map((title) => element("th", { class: "number" }, title)));
  const note = "The price of a layer is divided among its operators by what each would cost alone.";
  return section("operators", "Operators", element("div", { class: "wide" }, element("table", {}, element("thead", {}, head), element("tbody", {}, ...rows))), element("p", { class: "faint" }, note));
}

function checksSection() {
  const timings = page.latency.map(([setting, before, after]) => {
    const times = [["before", before], ["after", after]];
    const most = Math.max(before, after);
    const bars = times.map(([title, ms]) => element("div", {}, element("span", {}, title), bar(ms, most), element("span", { class: "amount" }, `${number(ms)} ms`)));
    return element("div", { class: "timing" }, element("p", {}, `Latency ${setting}`), ...bars);
  });
  return section("checks", "Checks and timing", ...timings, listed(page.checks));
}

function listed(rows) {
  return element("dl", {}, ...rows.flatMap(([title, text]) => [element("dt", {}, title), element("dd", {}, text)]));
}

function replaySection() {
  const { commands, file } = page.replay;
  const parts = commands.flatMap(([title, command]) => [element("div", {}, title), element("pre", {}, command)]);
  if (file) {
    const save = () => {
      const link = element("a", { href: URL.createObjectURL(new Blob([file.text])), download: file.name });
      link.click();
      URL.revokeObjectURL(link.href);
    };
    parts.push(element("button", { onclick: save }, `save ${file.name}`));
  }
  return section("replay", "Do it again", ...parts);
}

function start() {
  const [graph, view] = graphSection();
  const isPair = page.graphs.some((one) => one.sides.length === 2);
  const sections = [
    isPair ? savedSection(view) : undefined,
    graph,
    page.steps?.length ? stepsSection(view) : undefined,
    operatorsSection(),
    page.checks ? checksSection() : undefined,
    page.tried?.length ? section("tried", "What was tried, and what was refused", listed(page.tried)) : undefined,
    page.replay?.commands.length ? replaySection() : undefined,
  ].filter(Boolean);
  const links = sections.map((made) => element("a", { href: `#${made.id}` }, made.firstChild.textContent));
  const figures = page.figures.map(([title, value, note]) => element("div", { class: "figure" }, element("span", {}, title), element("b", {}, value), element("span", {}, note)));
  show(
    element("p", { class: `verdict ${page.verdict.tone}` }, page.verdict.text),
    page.candidate ? element("p", { class: "verdict" }, page.candidate) : "",
    element("div", { class: "figures" }, ...figures),
    page.words?.length ? element("details", {}, element("summary", { class: "faint" }, "in words"), ...page.words.map((text) => element("p", {}, text))) : "",
    element("nav", {}, ...links),
    ...sections,
  );
  view.show(0);
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => view.drawMap());
}

start();
