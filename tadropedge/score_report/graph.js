"use strict";
// Draws the graph of the page's data on a canvas: drag, zoom, hover, and a slider for the threshold.
const data = JSON.parse(document.getElementById("data").textContent);
const canvas = document.getElementById("graph"), pen = canvas.getContext("2d");
const slider = document.getElementById("threshold"), count = document.getElementById("count");
const detail = document.getElementById("detail"), style = getComputedStyle(document.documentElement);
const { x, y, source, target, score, names } = data, edges = score.length;
const order = [...score.keys()].sort((a, b) => score[b] - score[a] || a - b);  // the most critical first
const RAMP = ["--most", "--more", "--some"];  // of the coloured edges, the most critical third first
let threshold = data.gamma, coloured = 0, under = -1, view = { scale: 1, left: 0, top: 0 };

const column = place => x[place] * view.scale + view.left;
const row = place => y[place] * view.scale + view.top;

function fit() {
  const ratio = devicePixelRatio || 1, wide = canvas.clientWidth, tall = canvas.clientHeight;
  canvas.width = wide * ratio;
  canvas.height = tall * ratio;
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  let [left, right, low, high] = [Infinity, -Infinity, Infinity, -Infinity];
  for (let node = 0; node < x.length; node++) {
    left = Math.min(left, x[node]); right = Math.max(right, x[node]);
    low = Math.min(low, y[node]); high = Math.max(high, y[node]);
  }
  const scale = Math.min((wide - 32) / Math.max(right - left, 1e-9), (tall - 32) / Math.max(high - low, 1e-9));
  view = { scale, left: (wide - scale * (left + right)) / 2, top: (tall - scale * (low + high)) / 2 };
  draw();
}

function lines(from, to, colour, width) {
  pen.strokeStyle = colour;
  pen.lineWidth = width;
  pen.beginPath();
  for (let place = from; place < to; place++) {
    const edge = order[place];
    pen.moveTo(column(source[edge]), row(source[edge]));
    pen.lineTo(column(target[edge]), row(target[edge]));
  }
  pen.stroke();
}

// Where a third of the coloured edges ends; equal scores have one colour.
function cut(third) {
  let place = Math.round(coloured * third / RAMP.length);
  while (place > 0 && place < coloured && score[order[place]] === score[order[place - 1]]) place++;
  return place;
}

function draw() {
  const thin = Math.min(1.2, Math.max(0.3, 40 / Math.sqrt(edges)));
  pen.clearRect(0, 0, canvas.clientWidth, canvas.clientHeight);
  pen.lineCap = "round";
  lines(coloured, edges, style.getPropertyValue("--edge"), thin);
  pen.fillStyle = style.getPropertyValue("--ink");
  const dot = Math.min(4, Math.max(0.8, 30 / Math.sqrt(x.length)));
  for (let node = 0; node < x.length; node++) {
    pen.beginPath();
    pen.arc(column(node), row(node), dot, 0, 2 * Math.PI);
    pen.fill();
  }
  for (let third = RAMP.length - 1; third >= 0; third--) {  // the most critical on top
    lines(cut(third), cut(third + 1), style.getPropertyValue(RAMP[third]), thin + 1.2);
  }
  if (under >= 0) lines(order.indexOf(under), order.indexOf(under) + 1, style.getPropertyValue("--good"), thin + 3);
}

function recolour(value) {
  threshold = value;
  coloured = 0;
  while (coloured < edges && score[order[coloured]] >= threshold) coloured++;
  const share = (100 * coloured / edges).toPrecision(3);
  count.textContent = `${coloured} of ${edges} edges coloured (${share} %)` +
    (coloured ? `: score at least ${score[order[coloured - 1]].toPrecision(4)}` : "");
  draw();
}

// The slider counts edges on a log scale: the few most critical ones have as much room as the many others.
const wanted = position => Math.round(Math.exp(position / 1000 * Math.log(edges + 1))) - 1;
slider.addEventListener("input", () => {
  const first = wanted(Number(slider.value));
  recolour(first ? score[order[first - 1]] : Infinity);
});

function nearest(left, top) {
  let best = -1, least = 7 ** 2;  // pixels
  for (let edge = 0; edge < edges; edge++) {
    const ax = column(source[edge]), ay = row(source[edge]);
    const dx = column(target[edge]) - ax, dy = row(target[edge]) - ay;
    const along = Math.max(0, Math.min(1, ((left - ax) * dx + (top - ay) * dy) / (dx * dx + dy * dy || 1)));
    const far = (left - ax - along * dx) ** 2 + (top - ay - along * dy) ** 2;
    if (far < least) [least, best] = [far, edge];
  }
  return best;
}

const called = node => names ? names[node] : String(node);

function describe(edge) {
  if (edge < 0) return "Point at an edge to see its ends and its score.";
  const kept = Object.entries(data.keep).map(([name, share]) => `${name} ${share[edge].toFixed(3)}`).join(", ");
  return `${called(source[edge])} – ${called(target[edge])}: score ${score[edge].toPrecision(6)}, ` +
    `rank ${order.indexOf(edge) + 1} of ${edges}; kept with probability ${kept}`;
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
  if (edge !== under) {
    under = edge;
    detail.textContent = describe(edge);
    draw();
  }
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
document.getElementById("closer").addEventListener("click", () => zoom(1.25));
document.getElementById("farther").addEventListener("click", () => zoom(0.8));
document.getElementById("whole").addEventListener("click", fit);
document.getElementById("knee").addEventListener("click", knee);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
addEventListener("resize", fit);

function knee() {
  recolour(data.gamma);
  slider.value = 1000 * Math.log(coloured + 1) / Math.log(edges + 1);
}

detail.textContent = describe(-1);
knee();
fit();
