"use strict";
// Which point of the fronts is best by one objective among those that keep the limits that are set in the form.
(() => {
  const form = document.getElementById("chooser");
  const body = document.querySelector("table.points tbody");
  if (!form || !body) return;
  const directions = JSON.parse(body.dataset.directions);
  const lines = [...body.rows].map((row) => ({
    row,
    values: directions.map((_, i) => Number(row.cells[3 + i].dataset.v ?? NaN)),
  }));

  function choose() {
    const best = Number(document.getElementById("best").value);
    const sign = directions[best] === "lower" ? 1 : -1;
    const limits = [...form.querySelectorAll("[data-limit]")].filter((input) => input.value !== "");
    const kept = lines.filter(({ values }) => limits.every((input) => {
      const value = values[Number(input.dataset.limit)];
      return input.dataset.lower === "1" ? value <= Number(input.value) : value >= Number(input.value);
    }));
    const chosen = kept.reduce((a, b) => (!a || sign * b.values[best] < sign * a.values[best] ? b : a), null);
    for (const { row } of lines) row.classList.toggle("chosen", chosen?.row === row);
    document.getElementById("chosen").textContent = chosen
      ? [...chosen.row.cells].slice(0, 3).map((cell) => cell.textContent).join(" · ") + ` (${kept.length} of ${lines.length} points keep the limits)`
      : "no point of the fronts keeps the limits";
  }

  form.hidden = false;
  form.addEventListener("input", choose);
  form.addEventListener("submit", (event) => event.preventDefault());
  choose();
})();
