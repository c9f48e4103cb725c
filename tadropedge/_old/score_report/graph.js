"use strict";
// Draws the graph of the page's data on a canvas: drag, zoom, hover, a slider for the threshold, a choice of component,
// a search for nodes, colours by class, and the list of top edges.
const data = JSON.parse(document.getElementById("data").textContent);
const part = name => document.getElementById(name);
const canvas = part("graph"), pen = canvas.getContext("2d"), slider = part("threshold"), find = part("find");
const detail = part("detail"), style = getComputedStyle(document.documentElement);
const { x, y, source, target, score, names, classes, component } = data;
const RAMP = ["--most", "--more", "--some"];  // of the coloured edges, the most critical third first
const RAMP_WORDS = ["most critical third", "next third", "least critical third"];
// Colours of classes that are told apart by the colour-blind, too; beyond eight they repeat with another shade.
const HUES = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6d1f", "#7f3c8d"];
const ranked = [...score.keys()].sort((a, b) => score[b] - score[a] || a - b);  // the most critical first

let shown = null, order = [], nodes = [], place = new Map();  // the component at hand: its edges, its nodes
let coloured = 0, under = -1, found = -1, view = { scale: 1, left: 0, top: 0 };

const called = node => names ? names[node] : String(node);
const column = node => x[node] * view.scale + view.left;
const row = node => y[node] * view.scale + view.top;
const classed = kind => data.kinds ? data.kinds[kind] : `class ${kind}`;
const count = number => number.toLocaleString("en-US");
const colour = name => style.getPropertyValue(name);
const made = (tag, words = "", settings = {}) => Object.assign(document.createElement(tag), { textContent: words }, settings);

// The graph.

function fit() {
  const ratio = devicePixelRatio || 1, wide = canvas.clientWidth, tall = canvas.clientHeight;
  canvas.width = wide * ratio;
  canvas.height = tall * ratio;
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  let [left, right, low, high] = [Infinity, -Infinity, Infinity, -Infinity];
  for (const node of nodes) {
    left = Math.min(left, x[node]); right = Math.max(right, x[node]);
    low = Math.min(low, y[node]); high = Math.max(high, y[node]);
  }
  const scale = Math.min((wide - 32) / Math.max(right - left, 1e-9), (tall - 32) / Math.max(high - low, 1e-9));
  view = { scale, left: (wide - scale * (left + right)) / 2, top: (tall - scale * (low + high)) / 2 };
  draw();
}

function lines(edges, ink, width) {
  pen.strokeStyle = ink;
  pen.lineWidth = width;
  pen.beginPath();
  for (const edge of edges) {
    pen.moveTo(column(source[edge]), row(source[edge]));
    pen.lineTo(column(target[edge]), row(target[edge]));
  }
  pen.stroke();
}

function dots(some, ink, size) {
  pen.fillStyle = ink;
  for (const node of some) {
    pen.beginPath();
    pen.arc(column(node), row(node), size, 0, 2 * Math.PI);
    pen.fill();
  }
}

// Where a third of the coloured edges ends; equal scores have one colour.
function cut(third) {
  let end = Math.ceil(coloured * third / RAMP.length);
  while (end > 0 && end < coloured && score[order[end]] === score[order[end - 1]]) end++;
  return end;
}

const hue = kind => kind < 0 ? colour("--quiet") : HUES[kind % HUES.length];

function draw() {
  const thin = Math.min(1.2, Math.max(0.3, 40 / Math.sqrt(order.length)));
  const dot = Math.min(4, Math.max(0.8, 30 / Math.sqrt(nodes.length)));
  pen.clearRect(0, 0, canvas.clientWidth, canvas.clientHeight);
  pen.lineCap = "round";
  lines(order.slice(coloured), colour("--edge"), thin);
  if (part("classes").checked) {
    for (const [kind, some] of kinds()) dots(some, hue(kind), dot + 1);
  } else dots(nodes, colour("--ink"), dot);
  for (let third = RAMP.length - 1; third >= 0; third--) {  // the most critical on top
    lines(order.slice(cut(third), cut(third + 1)), colour(RAMP[third]), thin + 1.2);
  }
  if (under >= 0) lines([under], colour("--good"), thin + 3);
  if (found >= 0) {
    dots([found], colour("--good"), dot + 4);
    dots([found], colour("--paper"), dot + 1.5);
  }
}

function kinds() {
  const groups = new Map();
  for (const node of nodes) {
    if (!groups.has(classes[node])) groups.set(classes[node], []);
    groups.get(classes[node]).push(node);
  }
  return [...groups].sort((a, b) => a[0] - b[0]);
}

// What is coloured, and what the colours mean.

function recolour(threshold) {
  coloured = 0;
  while (coloured < order.length && score[order[coloured]] >= threshold) coloured++;
  const share = (100 * coloured / order.length).toPrecision(3);
  part("count").textContent = `${count(coloured)} of ${count(order.length)} edges coloured (${share} %)` +
    (coloured ? `: score at least ${score[order[coloured - 1]].toPrecision(4)}` : "");
  explain();
  draw();
}

function explain() {
  const entries = [];
  const swatch = (ink, words, dot) => {
    const entry = made("span"), sample = made("i", "", { className: dot ? "dot" : "" });
    sample.style.background = ink;
    entry.append(sample, words);
    entries.push(entry);
  };
  for (let third = 0; third < RAMP.length; third++) {
    const [first, last] = [cut(third), cut(third + 1)];
    if (last > first) swatch(colour(RAMP[third]), `${RAMP_WORDS[third]}: score ` +
      `${score[order[last - 1]].toPrecision(3)} to ${score[order[first]].toPrecision(3)}`);
  }
  if (coloured < order.length) swatch(colour("--edge"), "other edges");
  if (part("classes").checked) {
    for (const [kind, some] of kinds()) swatch(hue(kind), (kind < 0 ? "no class" : classed(kind)) + ` (${count(some.length)})`, true);
  }
  part("legend").replaceChildren(...entries);
}

// The slider counts edges on a log scale: the few most critical ones have as much room as the many others.
const wanted = position => Math.round(Math.exp(position / 1000 * Math.log(order.length + 1))) - 1;
slider.addEventListener("input", () => {
  const first = wanted(Number(slider.value));
  recolour(first ? score[order[first - 1]] : Infinity);
});

function knee() {
  recolour(shown.gamma);
  slider.value = 1000 * Math.log(coloured + 1) / Math.log(order.length + 1);
}

// One component, or all of them (number 0).

function choose(number) {
  shown = data.components.find(one => one.number === number) || data.components[0];
  const inside = node => shown.number === 0 || component[node] === shown.number;
  order = ranked.filter(edge => inside(source[edge]));
  nodes = [...x.keys()].filter(inside);
  place = new Map(order.map((edge, rank) => [edge, rank]));
  under = found = -1;
  detail.textContent = describe(-1);
  part("component").value = shown.number;
  list();
  knee();
  fit();
}

function offer() {
  part("choice").hidden = data.components.length < 2;
  part("component").append(...data.components.map(one => made("option",
    (one.number ? `${one.number}: ` : "all: ") + `${count(one.nodes)} nodes, ${count(one.edges)} edges`, { value: one.number })));
  part("component").addEventListener("change", event => choose(Number(event.target.value)));
}

// The list of top edges: a click shows one in the picture.

function list() {
  const rows = order.slice(0, data.listed).map((edge, rank) => {
    const line = made("tr"), go = made("button", String(rank + 1), { type: "button" }), head = made("th", "", { scope: "row" });
    go.setAttribute("aria-label", `show edge ${rank + 1}`);
    go.addEventListener("click", () => { point(edge); centre([source[edge], target[edge]]); });
    head.append(go);
    line.append(head, made("td", called(source[edge]), { className: "left" }),
      made("td", called(target[edge]), { className: "left" }), made("td", score[edge].toPrecision(6)));
    return line;
  });
  part("top").querySelector("tbody").replaceChildren(...rows);
}

// Brings nodes to the middle of the picture.
function centre(some) {
  const [left, top] = [column, row].map(at => some.reduce((sum, node) => sum + at(node), 0) / some.length);
  view.left += canvas.clientWidth / 2 - left;
  view.top += canvas.clientHeight / 2 - top;
  draw();
}

function point(edge) {
  under = edge;
  detail.textContent = describe(edge);
  draw();
}

function describe(edge) {
  if (edge < 0) return "Point at an edge to see its ends and its score.";
  const kept = Object.entries(data.keep).map(([name, share]) => `${name} ${share[edge].toFixed(3)}`).join(", ");
  return `${called(source[edge])} – ${called(target[edge])}: score ${score[edge].toPrecision(6)}, ` +
    `rank ${count(place.get(edge) + 1)} of ${count(order.length)}; kept with probability ${kept}`;
}

// The search: exact names before beginnings before parts; Enter goes on to the next.

let matches = [], at = 0, asked = "";
function search() {
  const words = find.value.trim().toLowerCase();
  if (!words) return;
  if (words !== asked) {
    const grade = name => name === words ? 0 : name.startsWith(words) ? 1 : name.includes(words) ? 2 : 3;
    const graded = [...x.keys()].map(node => [grade(called(node).toLowerCase()), node]).filter(([how]) => how < 3);
    matches = graded.sort((a, b) => a[0] - b[0] || a[1] - b[1]).map(([, node]) => node);
    [asked, at] = [words, 0];
  } else at = (at + 1) % Math.max(matches.length, 1);
  if (!matches.length) {
    detail.textContent = `No node is called ${find.value.trim()}.`;
    return;
  }
  show(matches[at]);
}

function show(node) {
  if (shown.number !== 0 && component[node] !== shown.number) {
    if (!data.components.some(one => one.number === component[node])) {  // a node without edges
      detail.textContent = `${called(node)} has no edges.`;
      return;
    }
    choose(component[node]);
  }
  [found, under] = [node, -1];
  const own = order.filter(edge => source[edge] === node || target[edge] === node);
  const best = own[0], other = source[best] === node ? target[best] : source[best];
  detail.textContent = `${called(node)}: ${own.length} ${own.length === 1 ? "edge" : "edges"}` +
    (classes && classes[node] >= 0 ? `, ${classed(classes[node])}` : "") +
    (own.length ? `; the most critical goes to ${called(other)}, score ${score[best].toPrecision(6)}, ` +
      `rank ${count(place.get(best) + 1)} of ${count(order.length)}` : "") +
    (matches.length > 1 ? ` (match ${at + 1} of ${matches.length}; Enter shows the next)` : "");
  centre([node]);
}
find.addEventListener("keydown", event => { if (event.key === "Enter") search(); });

// Hands on the canvas.

function nearest(left, top) {
  let best = -1, least = 7 ** 2;  // pixels
  for (const edge of order) {
    const ax = column(source[edge]), ay = row(source[edge]);
    const dx = column(target[edge]) - ax, dy = row(target[edge]) - ay;
    const along = Math.max(0, Math.min(1, ((left - ax) * dx + (top - ay) * dy) / (dx * dx + dy * dy || 1)));
    const far = (left - ax - along * dx) ** 2 + (top - ay - along * dy) ** 2;
    if (far < least) [least, best] = [far, edge];
  }
  return best;
}

function zoom(factor, left = canvas.clientWidth / 2, top = canvas.clientHeight / 2) {
  view.scale *= factor;
  view.left = left + (view.left - left) * factor;
  view.top = top + (view.top - top) * factor;
  draw();
}

let held = null;
canvas.addEventListener("pointerdown", event => {
  held = { left: event.offsetX, top: event.offsetY };
  canvas.setPointerCapture(event.pointerId);
  const edge = nearest(event.offsetX, event.offsetY);  // a finger taps, it does not hover
  if (edge >= 0) point(edge);
});
canvas.addEventListener("pointerup", () => { held = null; });
canvas.addEventListener("pointercancel", () => { held = null; });
canvas.addEventListener("pointermove", event => {
  if (held) {
    view.left += event.offsetX - held.left;
    view.top += event.offsetY - held.top;
    held = { left: event.offsetX, top: event.offsetY };
    draw();
    return;
  }
  const edge = nearest(event.offsetX, event.offsetY);
  if (edge !== under && edge >= 0) point(edge);
});
canvas.addEventListener("wheel", event => {
  event.preventDefault();
  zoom(Math.exp(-event.deltaY / 400), event.offsetX, event.offsetY);
}, { passive: false });
const KEYS = { ArrowLeft: [40, 0], ArrowRight: [-40, 0], ArrowUp: [0, 40], ArrowDown: [0, -40] };
canvas.addEventListener("keydown", event => {
  if (event.key === "+" || event.key === "-") zoom(event.key === "+" ? 1.25 : 0.8);
  else if (event.key in KEYS) {
    view.left += KEYS[event.key][0];
    view.top += KEYS[event.key][1];
    draw();
  } else return;
  event.preventDefault();
});
part("closer").addEventListener("click", () => zoom(1.25));
part("farther").addEventListener("click", () => zoom(0.8));
part("whole").addEventListener("click", fit);
part("knee").addEventListener("click", knee);
part("by-class").hidden = !classes;
part("classes").addEventListener("change", () => { explain(); draw(); });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { explain(); draw(); });
addEventListener("resize", fit);

offer();
choose(data.shown);
