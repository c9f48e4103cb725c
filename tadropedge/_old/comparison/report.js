// The report of a comparison: values where one points, methods that can be hidden, a command that can be copied.
"use strict";
(() => {
  const made = (tag, className, text) => {
    const element = document.createElement(tag);
    element.className = className;
    if (text) element.textContent = text;
    return element;
  };

  // Values where one points, or where the keyboard is.
  const tip = made("div", "tip");
  tip.hidden = true;
  document.body.append(tip);
  const show = (drawing, x) => {
    tip.textContent = drawing.getAttribute("aria-label");
    tip.hidden = false;
    const box = drawing.getBoundingClientRect();
    const left = Math.min(Math.max(x - tip.offsetWidth / 2, 8), document.documentElement.clientWidth - tip.offsetWidth - 8);
    const above = box.top - tip.offsetHeight - 4;
    tip.style.left = `${left + scrollX}px`;
    tip.style.top = `${(above < 4 ? box.bottom + 4 : above) + scrollY}px`;
  };
  const hide = () => (tip.hidden = true);
  for (const drawing of document.querySelectorAll("svg.mark")) {
    drawing.querySelector("title").remove(); // else the browser shows it, too
    drawing.tabIndex = 0;
    drawing.addEventListener("pointerenter", (event) => show(drawing, event.clientX));
    drawing.addEventListener("pointermove", (event) => show(drawing, event.clientX));
    drawing.addEventListener("pointerleave", hide);
    drawing.addEventListener("focus", () => {
      const box = drawing.getBoundingClientRect();
      show(drawing, box.left + box.width / 2);
    });
    drawing.addEventListener("blur", hide);
  }
  addEventListener("keydown", (event) => event.key === "Escape" && hide());

  // Methods that are hidden in all tables and plots of their section.
  for (const section of document.querySelectorAll("section[data-group]")) {
    const bar = section.querySelector(".bar");
    const names = new Map([...section.querySelectorAll("tr[data-method]")].map((row) => [row.dataset.method, row.cells[0].textContent]));
    if (!bar || names.size < 2) continue;
    bar.append(made("span", "", "shown:"));
    for (const [place, name] of [...names].sort((one, two) => one[0] - two[0])) {
      const label = made("label", "");
      const box = made("input", "");
      Object.assign(box, { type: "checkbox", checked: true });
      box.addEventListener("change", () => {
        for (const row of section.querySelectorAll(`tr[data-method="${place}"]`)) row.hidden = !box.checked;
      });
      label.append(box, ` ${name}`);
      bar.append(label);
    }
    bar.hidden = false;
  }

  for (const command of document.querySelectorAll("pre.command")) {
    const button = made("button", "copy", "copy");
    button.type = "button";
    button.addEventListener("click", async () => {
      getSelection().selectAllChildren(command); // where the clipboard is not allowed, the selection is
      try {
        await navigator.clipboard.writeText(command.textContent);
        button.textContent = "copied";
      } catch {
        button.textContent = "selected";
      }
    });
    command.after(button);
  }
})();
