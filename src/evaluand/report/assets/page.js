"use strict";
// What all pages do: tables that are sorted by a click on a head, and the choice between light and dark.
(() => {
  function sortable(table) {
    const heads = [...table.querySelectorAll("thead th")];
    const body = table.tBodies[0];
    const original = [...body.rows];
    heads.forEach((th, i) => th.querySelector("button").addEventListener("click", () => {
      const next = { none: "ascending", ascending: "descending", descending: "none" }[th.getAttribute("aria-sort") ?? "none"];
      for (const other of heads) other.removeAttribute("aria-sort");
      if (next !== "none") th.setAttribute("aria-sort", next);
      const sign = next === "descending" ? -1 : 1;
      const value = (tr) => tr.cells[i].dataset.v ?? tr.cells[i].textContent;
      const compare = (a, b) => {
        const [x, y] = [value(a), value(b)];
        const difference = Number(x) - Number(y);
        return sign * (Number.isNaN(difference) ? x.localeCompare(y, "en", { numeric: true }) : difference);
      };
      body.append(...(next === "none" ? original : [...original].sort(compare)));
    }));
  }

  function theme() {
    const button = document.getElementById("theme");
    const dark = () => (document.documentElement.style.colorScheme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
    const tellTheme = () => button.setAttribute("aria-pressed", String(dark()));
    button.hidden = false;
    tellTheme();
    button.addEventListener("click", () => {
      document.documentElement.style.colorScheme = dark() ? "light" : "dark";
      tellTheme();
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", tellTheme);
  }

  theme();
  for (const table of document.querySelectorAll("table.sortable")) sortable(table);
})();
