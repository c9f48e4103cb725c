// Tables of the class "sortable": a click on the head of a column sorts the rows by it, another turns them round.
"use strict";
(() => {
  const number = (text) => {
    const found = text.replaceAll(",", "").replaceAll("−", "-").match(/[+-]?\d+(\.\d+)?([eE][+-]?\d+)?/);
    return found ? Number(found[0]) : null;
  };
  const value = (row, place) => {
    const cell = row.cells[place];
    return cell.dataset.value ?? cell.textContent.trim();
  };
  const sort = (table, head, place) => {
    const words = head.classList.contains("left");
    const up = head.getAttribute("aria-sort") !== (words ? "ascending" : "descending") ? words : !words;
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    const rows = [...table.tBodies[0].rows].map((row, index) => ({ row, index, key: value(row, place) }));
    // What is not known stays below.
    const known = rows.filter(({ key }) => words || number(key) !== null);
    const order = words ? (a, b) => a.key.localeCompare(b.key) : (a, b) => number(a.key) - number(b.key);
    known.sort((a, b) => (up ? order(a, b) : order(b, a)) || a.index - b.index);
    const rest = rows.filter((one) => !known.includes(one));
    for (const { row } of [...known, ...rest]) table.tBodies[0].append(row);
  };
  for (const table of document.querySelectorAll("table.sortable")) {
    [...table.tHead.rows[0].cells].forEach((head, place) => {
      if (head.classList.contains("plot")) return;
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => sort(table, head, place));
    });
  }
})();
