// The page of a map: every method of a cell where one points, and the way from a tile to its rows.
"use strict";
(() => {
  const made = (tag, className, text) => {
    const element = document.createElement(tag);
    element.className = className;
    if (text) element.textContent = text;
    return element;
  };
  const tip = made("div", "tip");
  tip.hidden = true;
  tip.setAttribute("role", "tooltip");
  document.body.append(tip);

  const rows = new Map();
  for (const row of document.querySelectorAll("tr[data-cell]")) {
    if (!rows.has(row.dataset.cell)) rows.set(row.dataset.cell, []);
    rows.get(row.dataset.cell).push(row);
  }

  // Method, difference to not dropping and to DropEdge: the same words as in the table of the condition.
  const fill = (tile) => {
    const table = made("table", "");
    const head = table.insertRow();
    for (const words of ["", "against not dropping", "against DropEdge"]) head.append(made("th", "", words));
    for (const row of rows.get(tile.dataset.cell) ?? []) {
      const line = table.insertRow();
      line.append(made("th", "", row.cells[1].textContent));
      for (const place of [4, 5]) line.append(made("td", row.cells[place].className, row.cells[place].textContent));
    }
    tip.replaceChildren(made("p", "", tile.getAttribute("aria-label")), table);
  };
  const show = (tile) => {
    fill(tile);
    tip.hidden = false;
    tip.style.left = "0px"; // measured where there is room
    const box = tile.getBoundingClientRect();
    const wide = document.documentElement.clientWidth;
    const middle = box.left + box.width / 2 - tip.offsetWidth / 2;
    const below = box.bottom + 6 + tip.offsetHeight > innerHeight && box.top - tip.offsetHeight - 6 > 0;
    tip.style.left = `${Math.max(8, Math.min(middle, wide - tip.offsetWidth - 8)) + scrollX}px`;
    tip.style.top = `${(below ? box.top - tip.offsetHeight - 6 : box.bottom + 6) + scrollY}px`;
  };
  const hide = () => (tip.hidden = true);
  for (const tile of document.querySelectorAll("a[data-cell]")) {
    tile.addEventListener("pointerenter", () => show(tile));
    tile.addEventListener("pointerleave", hide);
    tile.addEventListener("focus", () => show(tile));
    tile.addEventListener("blur", hide);
  }
  addEventListener("keydown", (event) => event.key === "Escape" && hide());

  // The rows of a tile are folded away until one follows it.
  const open = () => {
    const row = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const folded = row?.closest("details");
    if (!folded || folded.open) return;
    folded.open = true;
    row.scrollIntoView({ block: "center" });
  };
  addEventListener("hashchange", () => (hide(), open()));
  open();
})();
