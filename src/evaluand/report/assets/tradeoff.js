"use strict";
// Which point of the fronts is best by one objective among those that keep the limits that are set in the form.
for (const root of document.querySelectorAll("#tradeoff, .tradeoff")) (() => {
  const at = (id) => root.querySelector(`[id="${id}"], [id$="-${id}"]`); // of several on a page, ids begin with a number
  const form = at("chooser");
  const data = at("front");
  const body = root.querySelector("table.points tbody");
  if (!form || !data || !body) return;
  const { lower, points } = JSON.parse(data.textContent);
  const rows = [...body.rows];

  function choose() {
    const best = Number(at("best").value);
    const order = [best, ...lower.keys()];
    const limits = [...form.querySelectorAll("[data-limit]")].filter((input) => input.value !== "");
    const kept = points.filter(([, , values]) => limits.every((input) => {
      const value = values[Number(input.dataset.limit)];
      return input.dataset.lower === "1" ? value <= Number(input.value) : value >= Number(input.value);
    }));
    const chosen = kept.reduce((a, b) => (!a || better(b[2], a[2], order) ? b : a), null);
    rows.forEach((row) => row.classList.remove("chosen"));
    if (chosen && chosen[1] !== null) rows[chosen[1]].classList.add("chosen");
    at("chosen").textContent = chosen
      ? `${chosen[0]}${chosen[1] === null ? " (not listed)" : ""}: ${chosen[2].join(", ")} (${kept.length} of ${points.length} points keep the limits)`
      : "no point of the fronts keeps the limits";
  }

  // By the objective that is asked for, then by the others in their order; of equal points the first stays.
  function better(a, b, order) {
    const place = order.find((i) => a[i] !== b[i]);
    return place !== undefined && (lower[place] ? a[place] < b[place] : a[place] > b[place]);
  }

  form.hidden = false;
  form.addEventListener("input", choose);
  form.addEventListener("submit", (event) => event.preventDefault());
  choose();
})();
