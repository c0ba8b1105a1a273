"use strict";
// Headings of tables become buttons that sort: by data-value where a cell has one, else by its text.
const key = (cell) => cell.dataset.value ?? cell.textContent.trim().replaceAll(",", "");
for (const table of document.querySelectorAll("table.sortable")) {
  const headings = [...table.tHead.rows[0].cells];
  headings.forEach((heading, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...heading.childNodes);
    heading.append(button);
    button.addEventListener("click", () => {
      const sign = heading.ariaSort === "ascending" ? -1 : 1;
      const rows = [...table.tBodies[0].rows].map((row) => [key(row.cells[column]), row]);
      const numeric = rows.every(([value]) => value !== "" && !Number.isNaN(Number(value)));
      rows.sort(([a], [b]) => sign * (numeric ? Number(a) - Number(b) || 0 : a.localeCompare(b, "en", { numeric: true })));
      table.tBodies[0].append(...rows.map(([, row]) => row));
      headings.forEach((each) => each.removeAttribute("aria-sort"));
      heading.setAttribute("aria-sort", sign > 0 ? "ascending" : "descending");
    });
  });
}

// What is wider than the screen says that it goes on.
function tellWide() {
  document.querySelectorAll(".wide").forEach((each) => each.classList.toggle("over", each.scrollWidth > each.clientWidth));
}
["load", "resize"].forEach((event) => addEventListener(event, tellWide));
document.querySelectorAll("details").forEach((each) => each.addEventListener("toggle", tellWide));
