"use strict";
// The matches of a report. A row is a pair of systems on one example; columns of numbers say which rows are shown and in
// which order, and the texts are in compressed cases, which are unpacked when one of their rows is shown.
(() => {
  const PAGE = 20;
  const ARRAYS = {
    set: Uint16Array, case: Uint32Array, place: Uint32Array, a: Uint16Array, b: Uint16Array,
    outcome: Uint8Array, share: Float32Array, gap: Float32Array, index: BigInt64Array,
  };
  const { byId, word, unpacked, rowPieces, element, shown, textOf, snippet, number, heading, cellBlock, spanTree } = evaluandRows;
  const head = JSON.parse(byId("match-head").textContent);
  const cases = rowPieces("match-piece", head.starts);
  const columns = {};
  const state = { order: new Uint32Array(0), page: 0, open: new Set() };
  const [CONTRADICTORY, DECIDED] = [0, 1];
  const BOLD = head.style.indexOf("bold");
  const OUTCOME_CLASS = ["wrong", "good", "", "unscored", "failed"];

  // ---------------------------------------------------------------- filters and order

  function option(select, value, name) {
    const made = element("option", { value: String(value) });
    made.append(shown(name.length > 60 ? `${name.slice(0, 59)}…` : name));
    byId(select).append(made);
  }

  function buildFilters() {
    head.sets.forEach((set, i) => option("match-set", i, set.title));
    byId("match-set").closest(".field").hidden = head.sets.length < 2;
    const counts = new Array(head.outcomes.length).fill(0);
    for (const outcome of columns.outcome) counts[outcome]++;
    head.outcomes.forEach((name, i) => { if (counts[i]) option("match-outcome", i, `${name} (${word.format(counts[i])})`); });
    head.systems.forEach((name, i) => ["match-one", "match-other", "match-winner"].forEach((id) => option(id, i, name)));
  }

  const chosen = (id) => (byId(id).value === "" ? null : Number(byId(id).value));

  /** The system that won a decided match; -1 for any other. */
  const winner = (row) => (columns.outcome[row] !== DECIDED ? -1 : columns.share[row] > 0.5 ? columns.a[row] : columns.b[row]);

  function passes() {
    const [set, one, other, outcome, won] = ["match-set", "match-one", "match-other", "match-outcome", "match-winner"].map(chosen);
    const meets = (row, system) => columns.a[row] === system || columns.b[row] === system;
    return (row) =>
      (set === null || columns.set[row] === set) && (one === null || meets(row, one)) && (other === null || meets(row, other)) &&
      (outcome === null || columns.outcome[row] === outcome) && (won === null || winner(row) === won);
  }

  /** Rows are in the file by set and example, so a stable sort is enough. */
  function ordered(rows) {
    const by = byId("match-sort").value;
    const { outcome, share, gap, index } = columns;
    const distance = (row) => (Number.isNaN(share[row]) ? 0 : Math.abs(share[row] - 0.5));
    if (by === "index") return rows.sort((x, y) => (index[x] < index[y] ? -1 : index[x] > index[y] ? 1 : x - y));
    if (by === "decisive") return rows.sort((x, y) => distance(y) - distance(x) || x - y);
    return rows.sort((x, y) => outcome[x] - outcome[y] ||
      (outcome[x] === CONTRADICTORY ? gap[y] - gap[x] : distance(y) - distance(x)) || x - y);
  }

  async function refresh() {
    const test = passes();
    const rows = new Uint32Array(head.rows);
    let n = 0;
    for (let row = 0; row < head.rows; row++) if (test(row)) rows[n++] = row;
    state.order = ordered(rows.subarray(0, n));
    state.page = 0;
    await draw();
  }

  // ---------------------------------------------------------------- the page of rows

  let drawing = 0;

  async function draw() {
    const mine = ++drawing;
    const rows = [...state.order.subarray(state.page * PAGE, (state.page + 1) * PAGE)];
    const items = await Promise.all(rows.map(async (row) => item(row, await cases.at(columns.case[row]))));
    if (mine !== drawing) return;
    byId("match-rows").replaceChildren(...items);
    const last = lastPage();
    byId("match-page").value = state.page + 1;
    byId("match-page").max = last + 1;
    byId("match-of").textContent = `of ${word.format(last + 1)}`;
    byId("match-pages").hidden = last === 0;
    byId("match-previous").disabled = state.page === 0;
    byId("match-next").disabled = state.page === last;
    const all = head.rows < head.total ? `${word.format(head.rows)} (the most contradictory and decisive of ${word.format(head.total)})` : word.format(head.rows);
    byId("match-count").textContent = `${word.format(state.order.length)} of ${all} pairs of responses`;
  }

  const lastPage = () => Math.max(Math.ceil(state.order.length / PAGE) - 1, 0);

  function turn(page) {
    state.page = Math.min(Math.max(page, 0), lastPage());
    draw().then(() => byId("match-count").scrollIntoView({ block: "nearest" }));
  }

  const named = (system, kind = null) => element(kind === null ? "bdi" : "b", { class: kind, dir: kind && "auto" }, shown(head.systems[system]));
  const whichOf = (its) => `${its.index}${its.replication ? `, repeat ${its.replication}` : ""}`;
  const rounded = (share) => (share === null ? "–" : Number.isInteger(share) ? number(share) : share.toFixed(2));

  function item(place, its) {
    const panel = `match-detail-${place}`;
    const row = its.rows[columns.place[place]];
    const won = winner(place);
    const pair = element("span", { class: "said" },
      won === row.b ? named(row.a) : won === row.a ? named(row.a, "won") : named(row.a), " – ",
      won === row.b ? named(row.b, "won") : named(row.b));
    const button = element("button", { type: "button", class: "row", "aria-expanded": "false", "aria-controls": panel },
      element("span", { class: `outcome ${OUTCOME_CLASS[row.outcome]}` }, head.outcomes[row.outcome]),
      element("span", { class: "which" }, whichOf(its)), pair,
      element("span", { class: "asked" }, element("bdi", {}, shown(snippet(its.input)))),
      element("span", { class: "scores" }, row.said.slice(0, 4).map((said) => rounded(said[2])).join(" · ")));
    const made = element("li", { "data-row": String(place) }, button, element("div", { id: panel, class: "detail", hidden: "" }));
    button.addEventListener("click", () => expand(made, place, its, row, button.getAttribute("aria-expanded") !== "true"));
    if (state.open.has(place)) expand(made, place, its, row, true);
    return made;
  }

  function expand(made, place, its, row, open) {
    const [button, panel] = made.children;
    button.setAttribute("aria-expanded", String(open));
    panel.hidden = !open;
    if (open) state.open.add(place);
    else state.open.delete(place);
    if (open && !panel.firstChild) panel.append(...detail(place, its, row));
  }

  // ---------------------------------------------------------------- one match

  function detail(place, its, row) {
    const won = winner(place);
    const sides = [row.a, row.b].map((system) => element("div", {},
      heading(named(system), system === won ? " · won" : ""), ...response(its, system), style(its.styles[system])));
    const isNews = its.id !== null && its.id !== its.index && its.id !== textOf(its.input ?? "").slice(0, its.id.length);
    const id = isNews ? [" of ", element("bdi", {}, shown(its.id))] : [];
    return [heading("Input", ...id), ...cellBlock(its.input, "", command(its, row.a)), element("div", { class: "sides" }, ...sides),
      heading("Judgements"), judgements(its, row), ...steps(its, row), links(its, row)];
  }

  function command(its, system) {
    const { id, runs } = head.sets[its.set];
    return runs[system] ? `evaluand show ${runs[system]} --index ${its.index} --json` : `evaluand export ${id}`;
  }

  function response(its, system) {
    const cell = its.responses[system] ?? null;
    return cell === null ? [element("p", { class: "unscored" }, "no response is stored")] : cellBlock(cell, "", command(its, system));
  }

  function style(counts) {
    if (!counts) return null;
    const noun = (i) => (counts[i] === 1 ? head.style[i].replace(/s$/, "") : head.style[i]);
    const parts = counts.map((n, i) => (i < 2 || (n && i !== BOLD) ? `${word.format(n)} ${noun(i)}` : n ? `${word.format(n)} in bold` : null)).filter(Boolean);
    return element("p", { class: "cut" }, parts.join(" · "));
  }

  function judgements(its, row) {
    const several = row.said.some((said) => said[5] !== null);
    const strong = row.said.some((said) => said[3] !== null);
    const labelled = row.said.some((said) => said[4] !== null);
    const explained = row.outcome === 3 || row.said.some((said) => said[1] !== "scored" || [6, 7, 8].some((i) => said[i] !== null));
    const costly = row.said.some((said) => said[9] !== null);
    const lines = row.said.map(([order, status, share, strength, label, judge, reason, explanation, data, usage]) => {
      const first = order === "ab" ? row.a : row.b;
      const winning = share === null ? null : share === 0.5 ? "tie" : named(share > 0.5 ? row.a : row.b);
      const why = element("td", { class: "text long", dir: "auto" });
      if (status !== "scored") why.append(element("span", { class: status === "failed" ? "failed" : "unscored" }, status), reason ? ": " : "");
      if (row.outcome === 3) why.append("equal responses tie without a judge");
      for (const cell of [reason, explanation]) if (cell !== null) why.append(...said(cell, its, row));
      if (data !== null) why.append(...cellBlock(data, "", command(its, row.a)));
      const cells = [element("th", { scope: "row" }, row.outcome === 3 ? "–" : named(first)),
        element("td", { class: "text value" }, winning ?? "–"), element("td", {}, rounded(share))];
      if (strong) cells.push(element("td", {}, number(strength)));
      if (labelled) cells.push(element("td", { class: "text" }, element("bdi", {}, shown(label ?? ""))));
      if (several) cells.push(element("td", { class: "text" }, element("bdi", {}, shown(judge ?? ""))));
      if (costly) cells.push(element("td", { class: "text" }, element("bdi", {}, shown(usageText(usage)))));
      if (explained) cells.push(why);
      return element("tr", {}, ...cells);
    });
    const names = [["shown first", "text"], ["winner", "text"], ["share", null], ...(strong ? [["strength", null]] : []),
      ...(labelled ? [["label", "text"]] : []), ...(several ? [["judge", "text"]] : []), ...(costly ? [["usage", "text"]] : []), ...(explained ? [["why", "text"]] : [])];
    const heads = names.map(([name, kind]) => element("th", { scope: "col", class: kind }, name));
    const caption = element("caption", {}, element("span", {}, "Share: what the first system, ", named(row.a), ", gets of the win",
      row.n_said > row.said.length ? `; the first ${row.said.length} of ${word.format(row.n_said)} judgements` : ""));
    return element("div", { class: "scroll" }, element("table", { class: "numbers" }, caption,
      element("thead", {}, element("tr", {}, ...heads)), element("tbody", {}, ...lines)));
  }

  function usageText(usage) {
    const entries = Object.entries(usage ?? {}).filter(([name, value]) => value !== 0 || name === "cost");
    return entries.map(([name, value]) => `${name.replaceAll("_", " ")} ${typeof value === "number" ? number(value) : value}`).join(", ");
  }

  /** What the judge did inside each call, if it was traced. */
  function steps(its, row) {
    return row.said.filter((said) => said[10] !== null).map((said) => {
      const [n, spans] = said[10];
      return element("details", { class: "steps" }, element("summary", {}, "Steps of the judge with ", named(said[0] === "ab" ? row.a : row.b), " shown first"),
        ...spanTree(spans, n - spans.length, command(its, row.a)));
    });
  }

  /** A sentence in the line, a long text as a block. */
  function said(cell, its, row) {
    if (typeof cell === "string" && cell.length <= 400) return [element("bdi", {}, shown(cell)), " "];
    return cellBlock(cell, "", command(its, row.a));
  }

  /** To the same example among the examples of the report. */
  function links(its, row) {
    const { tasks } = head.sets[its.set];
    const made = element("p", { class: "links" });
    for (const system of [row.a, row.b]) {
      if (!tasks[system]) continue;
      const address = `#example=${encodeURIComponent(tasks[system])}/${its.index}${its.replication ? `/${its.replication}` : ""}`;
      made.append(element("a", { href: address }, "the scores of ", named(system)));
    }
    return made;
  }

  // ---------------------------------------------------------------- the page

  async function start() {
    await Promise.all(Object.entries(ARRAYS).map(async ([name, Kind]) => {
      columns[name] = new Kind(await (await unpacked(`match-column-${name}`)).arrayBuffer());
    }));
    buildFilters();
    byId("matches-browser").hidden = false;
    byId("match-filters").addEventListener("submit", (event) => event.preventDefault());
    byId("match-filters").addEventListener("change", refresh);
    byId("match-filters").addEventListener("reset", () => setTimeout(refresh));
    byId("match-previous").addEventListener("click", () => turn(state.page - 1));
    byId("match-next").addEventListener("click", () => turn(state.page + 1));
    byId("match-page").addEventListener("change", (event) => turn(Number(event.target.value) - 1 || 0));
    await refresh();
    document.documentElement.dataset.matchesReady = String(Math.round(performance.now()));
  }

  start().catch((error) => {
    byId("matches-browser").hidden = false;
    byId("matches-browser").replaceChildren(element("p", { class: "failed", role: "alert" }, `The matches cannot be shown: ${error.message}`));
  });
})();
