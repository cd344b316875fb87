// Tables of the report that sort by a click on a heading and filter by a word. The page's only script; it fetches nothing.
"use strict";
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  const rows = [...body.rows];
  const text = (row, column) => row.cells[column].textContent.trim();
  const number = (words) => (words === "–" || words === "" ? -Infinity : Number(words.replace(/[,+]/g, "").replace("−", "-")));
  const sort = (head, column) => {
    const down = head.getAttribute("aria-sort") !== "descending";
    const numeric = rows.every((row) => !Number.isNaN(number(text(row, column))));
    const order = (a, b) => (numeric ? number(text(a, column)) - number(text(b, column)) : text(a, column).localeCompare(text(b, column)));
    rows.sort((a, b) => (down ? -order(a, b) : order(a, b)));
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    body.append(...rows);
  };
  [...table.tHead.rows[0].cells].forEach((head, column) => {
    head.tabIndex = 0;
    head.addEventListener("click", () => sort(head, column));
    head.addEventListener("keydown", (event) => { if (event.key === "Enter") sort(head, column); });
  });
  if (rows.length < 8) continue;
  const filter = document.createElement("input");
  filter.type = "search";
  filter.placeholder = `filter ${rows.length} rows`;
  filter.setAttribute("aria-label", "show only rows with these letters");
  filter.addEventListener("input", () => {
    const wanted = filter.value.toLowerCase();
    for (const row of rows) row.hidden = !row.textContent.toLowerCase().includes(wanted);
  });
  table.parentNode.before(filter);
}
