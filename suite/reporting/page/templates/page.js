"use strict";
// Tables are sorted by the buttons in their heads; what has no value stays last either way.
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  const first = [...body.rows];
  const told = document.getElementById("told");
  table.querySelectorAll("thead th").forEach((head, column) => {
    const button = head.querySelector("button");
    if (!button) return;
    button.addEventListener("click", () => {
      const up = head.getAttribute("aria-sort") !== "ascending";
      const key = (row) => row.cells[column].dataset.sort;
      const compare = (a, b) => {
        const [x, y] = [key(a), key(b)];
        if (x === undefined || y === undefined) return (x === undefined) - (y === undefined);
        const order = isNaN(x) || isNaN(y) ? x.localeCompare(y) : x - y;
        return up ? order : -order;
      };
      table.querySelectorAll("th[aria-sort]").forEach((other) => other.setAttribute("aria-sort", "none"));
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      body.append(...first.slice().sort(compare));
      told.textContent = "Sorted by " + button.textContent.trim() + (up ? ", ascending" : ", descending");
    });
  });
}
// On paper nothing can be opened: what is folded and worth the paper is opened before.
let closed = [];
addEventListener("beforeprint", () => {
  closed = [...document.querySelectorAll("details.printed:not([open])")];
  closed.forEach((details) => (details.open = true));
});
addEventListener("afterprint", () => closed.forEach((details) => (details.open = false)));
