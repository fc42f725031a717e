"use strict";
// Which point of the fronts is best by one objective among those that keep the limits that are set in the form, and what
// it comes to in each group.
for (const root of document.querySelectorAll("#tradeoff, .tradeoff")) (() => {
  const at = (id) => root.querySelector(`[id="${id}"], [id$="-${id}"]`); // of several on a page, ids begin with a number
  const form = at("chooser");
  const data = at("front");
  const body = root.querySelector("table.points tbody");
  if (!form || !data || !body) return;
  const { lower, rounding, names, systems, models, points } = JSON.parse(data.textContent);
  const rows = [...body.rows];
  const [SYSTEM, MODEL, THRESHOLD, ROW, VALUES, RATES, TRIVIAL] = [0, 1, 2, 3, 4, 5, 6];

  function choose() {
    const inputs = [...form.querySelectorAll("[data-limit]")];
    const read = inputs.map((input) => number(input.value));
    inputs.forEach((input, i) => input.setAttribute("aria-invalid", String(Boolean(read[i].fault))));
    const faults = read.filter(({ fault }) => fault).map(({ fault }) => fault);
    say("fault", faults.join(" "));
    if (faults.length) return show(null, "nothing is chosen until each limit is a number");
    const best = Number(at("best").value);
    const order = [best, ...lower.keys()];
    const kept = points.filter((point) => read.every(({ value }, i) =>
      value === null || (lower[i] ? point[VALUES][i] <= value + rounding[i] : point[VALUES][i] >= value - rounding[i])));
    const useful = kept.filter((point) => !point[TRIVIAL]); // one that accepts nobody or everybody is no use of a model
    const chosen = useful.reduce((a, b) => (!a || better(b[VALUES], a[VALUES], order) ? b : a), null);
    show(chosen, chosen
      ? `${called(chosen)}${chosen[ROW] === null ? " (not listed)" : ""}: ${values(chosen)} (${kept.length} of ${points.length} points keep the limits)`
      : kept.length ? "only points that decide equally for all rows (accept nobody or everybody) keep the limits"
        : "no point of the fronts keeps the limits");
  }

  // A number as people write it: 0.05, 0,05, .05 or 5 %; nothing is a limit that is not set.
  function number(text) {
    const written = text.trim().replace("−", "-");
    if (written === "") return { value: null };
    if (/^[-+]?[1-9]\d{0,2},\d{3}$/.test(written)) return { fault: `“${text}” may be ${written.replace(",", ".")} or ${written.replace(",", "")}: write one of these.` };
    const [, digits, percent] = /^(.*?)\s*(%?)$/.exec(written);
    const plain = digits.includes(".") ? digits : digits.replace(",", ".");
    if (!/^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i.test(plain)) return { fault: `“${text}” is no number: write it as in 0.05.` };
    return { value: Number(plain) / (percent ? 100 : 1) };
  }

  // By the objective that is asked for, then by the others in their order; of equal points the first stays. Values that
  // differ by rounding alone are equal.
  function better(a, b, order) {
    const place = order.find((i) => Math.abs(a[i] - b[i]) > rounding[i]);
    return place !== undefined && (lower[place] ? a[place] < b[place] : a[place] > b[place]);
  }

  const called = (point) => [systems[point[SYSTEM]], models[point[SYSTEM]][point[MODEL]], point[THRESHOLD]].filter(Boolean).join(" · ");
  const values = (point) => point[VALUES].map((value, i) => `${names[i]} ${Number(value.toPrecision(4))}`).join(", ");

  function show(chosen, text) {
    rows.forEach((row) => row.classList.remove("chosen"));
    if (chosen && chosen[ROW] !== null) rows[chosen[ROW]].classList.add("chosen");
    at("chosen").textContent = text;
    const heading = at("rates-of");
    if (!heading) return;
    heading.textContent = chosen ? called(chosen) : "–";
    say("no-rates", chosen && !chosen[RATES] ? at("no-rates").dataset.message : "");
    root.querySelectorAll("table.rates tbody").forEach((tbody, i) =>
      tbody.replaceChildren(...(chosen?.[RATES]?.[i] ?? []).map(rateLine)));
  }

  function say(id, text) {
    const place = at(id);
    place.textContent = text;
    place.hidden = text === "";
  }

  function rateLine([group, count, value, interval, spots]) {
    const line = document.createElement("tr");
    const head = document.createElement("th");
    head.scope = "row";
    head.append(Object.assign(document.createElement("bdi"), { textContent: group }));
    const cells = [["chart", ""], ["value", value], ["", interval], ["", count]].map(([kind, text]) =>
      Object.assign(document.createElement("td"), { className: kind, textContent: text }));
    if (spots.length) cells[0].append(bar(spots));
    line.append(head, ...cells);
    return line;
  }

  function bar([zero, value, low, high]) {
    const drawn = at("bar").content.firstElementChild.cloneNode(true);
    const [rate, ends] = drawn.children;
    rate.setAttribute("x", `${Math.min(zero, value)}%`);
    rate.setAttribute("width", `${Math.abs(value - zero).toFixed(1)}%`);
    ends.setAttribute("x1", `${low}%`);
    ends.setAttribute("x2", `${high}%`);
    return drawn;
  }

  form.hidden = false;
  form.addEventListener("input", choose);
  form.addEventListener("submit", (event) => event.preventDefault());
  choose();
})();
