"use strict";
// The examples of a report. Columns of numbers say which rows are shown and in which order; the rows themselves are
// in compressed pieces, and a piece is unpacked when one of its rows is shown or searched. Whatever comes from data is
// put into the page as text, never as markup.
(() => {
  const PAGE = 20;
  const BREATH = 40; // milliseconds of search before the page may answer
  const ARRAYS = { task: Uint16Array, index: BigInt64Array, replication: Int32Array, outcome: Uint8Array };
  const { byId, word, unpacked, rowPieces, element, shown, textOf, snippet, number, heading, cellBlock, seconds, spanTree } = evaluandRows;
  const head = JSON.parse(byId("head").textContent);
  const columns = {};
  const filters = []; // functions row → whether it passes
  const state = { order: new Uint32Array(0), page: 0, open: new Set(), found: null, query: "", search: 0, news: null };

  // ---------------------------------------------------------------- unpacking

  async function column(name, Kind) {
    return new Kind(await (await unpacked(`column-${name}`)).arrayBuffer());
  }

  const pieces = rowPieces("piece", head.starts);

  // ---------------------------------------------------------------- text

  // ---------------------------------------------------------------- filters and order

  function field(id, label, control) {
    const made = element("div", { class: "field" }, element("label", { for: id }), control);
    made.firstChild.append(shown(label));
    control.id = id;
    byId("more-filters").append(made);
    return control;
  }

  function choice(label, id, options) {
    const select = element("select", {}, element("option", { value: "" }, "all"));
    for (const [value, name] of options) {
      const option = element("option", { value: String(value) });
      option.append(shown(name));
      select.append(option);
    }
    return field(id, label, select);
  }

  function buildFilters() {
    head.outcomes.forEach((name, i) => {
      const count = columns.outcome.reduce((n, outcome) => n + (outcome === i), 0);
      if (count) byId("outcome").append(element("option", { value: String(i) }, `${name} (${word.format(count)})`));
    });
    filters.push(() => byNumber(byId("outcome").value, columns.outcome));
    head.tasks.forEach((name, i) => {
      const option = element("option", { value: String(i) });
      option.append(shown(name));
      byId("task").append(option);
    });
    byId("task").closest(".field").hidden = head.tasks.length < 2;
    filters.push(() => byNumber(byId("task").value, columns.task));
    head.scorers.forEach(buildScorerFilter);
    head.attributes.forEach((attribute, i) => {
      if (!attribute.values || !attribute.values.length) return;
      const codes = columns[`attribute-${i}`];
      const options = attribute.values.map((value, code) => [code + 1, value]);
      options.sort((a, b) => a[1].localeCompare(b[1], "en", { numeric: true }));
      if (codes.includes(0)) options.push([0, "none"]);
      const select = choice(attribute.name, `attribute-${i}`, options);
      filters.push(() => byNumber(select.value, codes));
    });
  }

  function buildScorerFilter(scorer, i) {
    const statuses = columns[`status-${i}`];
    const values = columns[`value-${i}`];
    const distinct = new Set();
    for (const value of values) {
      if (!Number.isNaN(value)) distinct.add(value);
      if (distinct.size > 8) break;
    }
    const options = [];
    if (distinct.size <= 8) for (const value of [...distinct].sort((a, b) => a - b)) options.push([`=${value}`, number(value)]);
    const present = new Set(statuses);
    head.statuses.forEach((name, code) => {
      if (name && name !== "scored" && present.has(code)) options.push([`s${code}`, name]);
    });
    (scorer.labels ?? []).forEach((label, code) => options.push([`l${code + 1}`, `label ${label}`]));
    if (options.length) {
      const select = choice(`Score of ${scorer.name}`, `scorer-${i}`, options);
      filters.push(() => byScore(select.value, statuses, values, columns[`label-${i}`]));
    }
    if (distinct.size > 8) {
      const [from, to] = ["lowest", "highest"].map((what) =>
        element("input", { type: "number", step: "any", "aria-label": `${what} score of ${scorer.name}`, placeholder: what }));
      const group = element("div", { class: "field", role: "group", "aria-label": `Range of ${scorer.name}` },
        element("span", { class: "label" }), element("div", { class: "range" }, from, "–", to));
      group.firstChild.append(shown(`${scorer.name} from – to`));
      byId("more-filters").append(group);
      filters.push(() => {
        if (from.value === "" && to.value === "") return null;
        const low = from.value === "" ? -Infinity : Number(from.value);
        const high = to.value === "" ? Infinity : Number(to.value);
        return (row) => values[row] >= low && values[row] <= high;
      });
    }
  }

  function byNumber(chosen, codes) {
    if (chosen === "") return null;
    const code = Number(chosen);
    return (row) => codes[row] === code;
  }

  function byScore(chosen, statuses, values, labels) {
    if (chosen === "") return null;
    const code = Number(chosen.slice(1));
    if (chosen[0] === "=") return (row) => values[row] === code;
    return chosen[0] === "s" ? (row) => statuses[row] === code : (row) => labels[row] === code;
  }

  function buildSort() {
    const add = (value, name) => {
      const option = element("option", { value });
      option.append(shown(name));
      byId("sort").append(option);
    };
    add("worst", "worst first");
    add("index", "index");
    head.scorers.forEach((scorer, i) => {
      if (columns[`value-${i}`].every(Number.isNaN)) return;
      add(`+${i}`, `${scorer.name}, lowest first`);
      add(`-${i}`, `${scorer.name}, highest first`);
    });
    add("slow", "slowest first");
    add("fast", "fastest first");
  }

  /** Rows are in the file by task, index and replication, so a stable sort by one column is enough. */
  function ordered(rows) {
    const by = byId("sort").value;
    const ascending = (keys) => (a, b) => keys[a] - keys[b] || a - b;
    const descending = (keys) => (a, b) => keys[b] - keys[a] || a - b;
    if (by === "worst") {
      const scores = head.scorers.map((scorer, i) => (scorer.unit ? columns[`value-${i}`] : null)).filter(Boolean);
      const { outcome } = columns;
      const none = (value) => (Number.isNaN(value) ? 2 : value); // after all that lies between 0 and 1
      return rows.sort((a, b) => {
        if (outcome[a] !== outcome[b]) return outcome[a] - outcome[b];
        for (const values of scores) if (none(values[a]) !== none(values[b])) return none(values[a]) - none(values[b]);
        return a - b;
      });
    }
    if (by === "index") {
      const { index } = columns;
      return rows.sort((a, b) => (index[a] < index[b] ? -1 : index[a] > index[b] ? 1 : a - b));
    }
    const values = by === "slow" || by === "fast" ? columns.duration : columns[`value-${by.slice(1)}`];
    const known = by[0] === "+" || by === "fast" ? ascending(values) : descending(values);
    return rows.sort((a, b) => Number.isNaN(values[a]) - Number.isNaN(values[b]) || (Number.isNaN(values[a]) ? a - b : known(a, b)));
  }

  function select() {
    const tests = filters.map((make) => make()).filter(Boolean);
    if (state.found) tests.unshift((row) => state.found[row] === 1);
    const rows = new Uint32Array(head.rows);
    let n = 0;
    for (let row = 0; row < head.rows; row++) if (tests.every((test) => test(row))) rows[n++] = row;
    state.order = ordered(rows.subarray(0, n));
    state.page = 0;
  }

  function announce(extra = "") {
    const total = head.rows < head.total ? `${word.format(head.rows)} (the worst of ${word.format(head.total)})` : word.format(head.rows);
    byId("count").textContent = `${word.format(state.order.length)} of ${total} rows${extra}`;
  }

  // ---------------------------------------------------------------- search

  async function search(query) {
    const mine = ++state.search;
    const wanted = query.trim().toLowerCase();
    state.query = wanted;
    byId("search-progress").hidden = true;
    if (!wanted) {
      state.found = null;
      return refresh();
    }
    state.found = new Uint8Array(head.rows);
    byId("search-progress").hidden = false;
    let rested = performance.now();
    let announced = rested;
    for (let i = 0; i < head.starts.length; i++) {
      const rows = await pieces.peek(i);
      if (mine !== state.search) return;
      rows.forEach((row, k) => { if (holds(row, wanted)) state.found[head.starts[i] + k] = 1; });
      const now = performance.now();
      if (now - rested > BREATH) {
        byId("progress").value = (i + 1) / head.starts.length;
        await new Promise((resolve) => setTimeout(resolve));
        if (mine !== state.search) return;
        rested = performance.now();
        if (rested - announced > 700) {
          announced = rested;
          await refresh("", true);
          if (mine !== state.search) return;
        }
      }
    }
    byId("search-progress").hidden = true;
    await refresh(` hold “${query.trim()}”`);
  }

  function stopSearch() {
    state.search++;
    byId("search-progress").hidden = true;
    announce(", found before the search was stopped");
    byId("query").focus();
  }

  const SEARCHED = ["id", "input", "expected", "attributes", "metadata", "error", "responses", "scores", "chats", "spans"];

  function holds(row, wanted) {
    return SEARCHED.some((name) => holdsText(row[name], wanted));
  }

  function holdsText(value, wanted) {
    if (typeof value === "string") return value.toLowerCase().includes(wanted);
    if (value === null || typeof value !== "object") return false;
    for (const key in value) if (holdsText(value[key], wanted)) return true;
    return false;
  }

  // ---------------------------------------------------------------- the page of rows

  let drawing = 0;

  /** The count changes with the rows it counts, not before them. */
  async function draw() {
    const mine = ++drawing;
    const rows = [...state.order.subarray(state.page * PAGE, (state.page + 1) * PAGE)];
    const items = await Promise.all(rows.map(async (row) => item(row, await pieces.at(row))));
    if (mine !== drawing) return;
    byId("rows").replaceChildren(...items);
    const last = Math.max(Math.ceil(state.order.length / PAGE) - 1, 0);
    byId("page").value = state.page + 1;
    byId("page").max = last + 1;
    byId("of").textContent = `of ${word.format(last + 1)}`;
    byId("pages").hidden = last === 0;
    for (const id of ["first", "previous"]) byId(id).disabled = state.page === 0;
    for (const id of ["next", "last"]) byId(id).disabled = state.page === last;
    if (state.news !== null) announce(state.news);
    state.news = null;
  }

  async function refresh(extra = "", quiet = false) {
    select();
    if (!quiet) state.news = extra;
    await draw();
  }

  function turn(page) {
    const last = Math.max(Math.ceil(state.order.length / PAGE) - 1, 0);
    state.page = Math.min(Math.max(page, 0), last);
    draw().then(() => byId("count").scrollIntoView({ block: "nearest" }));
  }

  const OUTCOME_CLASS = ["failed", "unscored", "wrong", "good", "good", "good"];

  const whichOf = (row) => `${row.index}${head.repeated ? `, repeat ${row.replication}` : ""}`;

  function item(place, row) {
    const panel = `detail-${place}`;
    const answer = row.error ? `${row.error.type}: ${row.error.message}` : row.responses === null ? "no answer" : row.responses.map(snippet).join(" · ");
    const which = element("span", { class: "which" }, whichOf(row));
    if (head.tasks.length > 1) which.append(" · ", element("bdi", {}, shown(head.tasks[row.task])));
    const part = (kind, text) => element("span", { class: kind }, element("bdi", {}, shown(text, state.query)));
    const button = element("button", { type: "button", class: "row", "aria-expanded": "false", "aria-controls": panel },
      element("span", { class: `outcome ${OUTCOME_CLASS[row.outcome]}` }, head.outcomes[row.outcome]), which,
      part("asked", snippet(row.input)), part("said", answer.slice(0, 300)), scoreLine(row));
    const made = element("li", { "data-row": String(place) }, button, element("div", { id: panel, class: "detail", hidden: "" }));
    button.addEventListener("click", () => expand(made, place, row, button.getAttribute("aria-expanded") !== "true"));
    if (state.open.has(place)) expand(made, place, row, true);
    return made;
  }

  const NAMED = 8;

  /** The scores of a row on one line; each with its name where there are several scorers. */
  function scoreLine(row) {
    const values = row.scores.flatMap((score) => (scoreNumbers(score) ?? [["", score.value === null ? (score.label ?? "–") : number(score.value)]])
      .map(([key, value]) => [[head.scorers[score.scorer].name, score.target, key].filter(Boolean).join(" "), value]));
    if (head.scorers.length === 1 && values.length === row.scores.length) {
      return element("span", { class: "scores" }, element("bdi", {}, shown(values.slice(0, 4).map(([, value]) => value).join(" · "), state.query)));
    }
    const made = element("span", { class: "scores named" });
    for (const [name, value] of values.slice(0, NAMED)) {
      made.append(element("span", {}, element("bdi", { class: "name" }, shown(name)), " ", element("bdi", {}, shown(value, state.query))), " ");
    }
    const more = values.length - NAMED + row.n_scores - row.scores.length;
    if (more > 0) made.append(element("span", { class: "name" }, `and ${word.format(more)} more`));
    return made;
  }

  /** The numbers of a score that has several, each with its name; null for any other score. */
  const scoreNumbers = (score) => (score.value === null ? namedNumbers(score.data) : null);

  /** The names and numbers of a cell that holds an object of numbers; null for any other cell. */
  function namedNumbers(cell) {
    if (!cell?.j || cell.c) return null;
    const held = JSON.parse(cell.j);
    const pairs = held !== null && typeof held === "object" && !Array.isArray(held) ? Object.entries(held) : [];
    return pairs.length && pairs.every(([, value]) => typeof value === "number") ? pairs.map(([name, value]) => [name, number(value)]) : null;
  }

  const numberList = (pairs) => element("dl", { class: "pairs" }, ...pairs.flatMap(([name, value]) => [
    element("dt", {}, element("bdi", {}, shown(name))), element("dd", {}, element("b", {}, value))]));

  function expand(made, place, row, open) {
    const [button, panel] = made.children;
    button.setAttribute("aria-expanded", String(open));
    panel.hidden = !open;
    if (open) state.open.add(place);
    else state.open.delete(place);
    if (open && !panel.firstChild) panel.append(...detail(row));
  }

  // ---------------------------------------------------------------- one example

  function detail(row) {
    const given = row.error ? failure(row.error) : answers(row);
    const sides = [element("div", {}, ...given)];
    if (row.expected !== null) sides.unshift(element("div", {}, heading("Expected"), ...block(row, row.expected)));
    const parts = [heading("Input"), ...block(row, row.input), ...tagged(row), ...drawn(row), element("div", { class: "sides" }, ...sides)];
    if (row.scores.length) parts.push(heading("Scores"), scores(row), ...asked(row));
    parts.push(...chats(row));
    if (row.spans.length) parts.push(heading("Trace"), ...trace(row));
    parts.push(heading("About this row"), about(row), links(row));
    return parts;
  }

  const block = (row, cell, kind = "") => cellBlock(cell, state.query, command(row), kind);

  const command = (row) => `evaluand show ${head.show[row.task]} --index ${row.index} --json`;

  function answers(row) {
    if (row.responses === null) return [heading("Response"), element("p", { class: "unscored" }, "no answer")];
    const made = row.responses.flatMap((cell, i) => [
      heading(row.responses.length > 1 ? `Response ${i + 1} of ${word.format(row.n_responses)}` : "Response"), ...block(row, cell)]);
    if (!made.length) made.push(heading("Response"), element("p", { class: "cut" }, "an empty list"));
    if (row.n_responses > row.responses.length) made.push(element("p", { class: "cut" },
      `${word.format(row.n_responses - row.responses.length)} responses more: `, element("code", {}, command(row))));
    return made;
  }

  const MARKS = [["✓", "in both", "good"], ["−", "only expected", "unscored"], ["+", "only answered", "failed"]];

  /** The input with the spans of each response and those expected, each marked by a sign, a word and an underline. */
  function tagged(row) {
    return row.marks.flatMap((marks, i) => {
      if (marks === null) return [];
      const counts = MARKS.map(([sign, name], kind) => `${sign} ${word.format(marks.spans.filter((span) => span[3] === kind).length)} ${name}`);
      const more = marks.more ? `, and ${word.format(marks.more)} more` : "";
      return [heading(row.responses.length > 1 ? `Spans of response ${i + 1}` : "Spans"), element("p", { class: "cut" }, counts.join(" · ") + more), markedText(marks, marks.text ?? row.input)];
    });
  }

  function markedText(marks, cell) {
    const characters = Array.from(textOf(cell)); // as spans count them
    const made = element("div", { class: "text-block tagged", dir: "auto", tabindex: "0" });
    const borders = [...new Set([0, ...marks.spans.flatMap((span) => [span[0], span[1]]), characters.length])].sort((a, b) => a - b);
    borders.forEach((start, i) => {
      for (const span of marks.spans) if (span[1] === start) made.append(unseen(" end of ", shown(span[2]), " "));
      const begun = marks.spans.filter((span) => span[0] === start).sort((a, b) => b[1] - a[1]);
      for (const [, , tag, kind] of begun) {
        const [sign, name, style] = MARKS[kind];
        made.append(element("b", { class: style }, element("span", { "aria-hidden": "true" }, sign), unseen(name, " "), element("bdi", {}, shown(tag))));
      }
      let piece = shown(characters.slice(start, borders[i + 1] ?? start).join(""), state.query);
      const kinds = new Set(marks.spans.filter((span) => span[0] <= start && start < span[1]).map((span) => span[3]));
      for (const kind of kinds) piece = element("span", { class: `marked ${MARKS[kind][1].split(" ").pop()}` }, piece);
      made.append(piece);
    });
    return made;
  }

  const FOUND = [["✓", "right", "good"], ["−", "missed", "unscored"], ["+", "spurious", "failed"]];

  /** The boxes of each response over their image, or over the extent of their coordinates. */
  function drawn(row) {
    return (row.frames ?? []).flatMap((frame, i) => {
      if (frame === null) return [];
      const counts = FOUND.map(([sign, name], kind) => `${sign} ${word.format(frame.counts[kind])} ${name}`);
      const more = frame.more ? `; ${word.format(frame.more)} more are not drawn` : "";
      const summary = `${counts.join(" · ")}, at an overlap of 0.5${more}`;
      const lines = frame.boxes.map((box) => {
        const [sign, name, style] = FOUND[box[5]];
        return element("li", {}, element("span", { class: style }, `${sign} ${name}`), " ", ...label(box), ` at ${box.slice(0, 4).map((n) => +n.toFixed(1)).join(", ")}`);
      });
      const list = element("details", {}, element("summary", {}, "Boxes as a list"), element("ul", { class: "boxes" }, ...lines));
      return [heading(row.frames.length > 1 ? `Boxes of response ${i + 1}` : "Boxes"), element("p", { class: "cut" }, summary), framed(frame, row.image, summary), list];
    });
  }

  const label = (box) => [
    ...(box[4] === null ? [] : [element("bdi", {}, shown(box[4]))]),
    ...(box[6] === null ? [] : [` ${+box[6].toFixed(3)}`])];

  function framed(frame, image, caption) {
    const made = element("div", { class: "frame" });
    const draw = (x, y, width, height, picture) => {
      const place = svg("svg", { viewBox: `${x} ${y} ${width} ${height}`, role: "img", "aria-label": caption });
      const line = Math.max(width, height) / 32;
      if (picture) place.append(svg("image", { href: image, x, y, width, height }));
      for (const box of [...frame.boxes].reverse()) {
        const [x0, y0, x1, y1, , kind] = box;
        const [sign, name, style] = FOUND[kind];
        const words = label(box).map((part) => (typeof part === "string" ? part : part.textContent)).join("");
        const above = y0 - line * 0.3 > y + line ? y0 - line * 0.3 : Math.min(y1 + line, y + height - line * 0.2);
        place.append(svg("g", { class: `box ${name} ${style}` },
          svg("title", {}, `${name}: ${words || "a box"}`),
          svg("rect", { x: x0, y: y0, width: x1 - x0, height: y1 - y0 }),
          svg("text", { x: Math.max(x0, x), y: above, "font-size": line, "stroke-width": line / 5 }, `${sign} ${words}`)));
      }
      made.replaceChildren(place);
    };
    const corners = [0, 1, 2, 3].map((n) => frame.boxes.map((box) => box[n]));
    const [left, top] = [0, 1].map((n) => Math.min(0, ...corners[n]));
    const [right, bottom] = [2, 3].map((n) => Math.max(...corners[n]));
    const margin = Math.max(right - left, bottom - top, 1) * 0.06;
    draw(left, top, right - left + margin, bottom - top + margin, false);
    if (image) {
      const loaded = new Image();
      loaded.onload = () => draw(0, 0, loaded.naturalWidth, loaded.naturalHeight, true);
      loaded.src = image;
    }
    return made;
  }

  function svg(tag, attributes, ...children) {
    const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.append(...children);
    return made;
  }

  /** For those who listen. */
  const unseen = (...text) => element("span", { class: "unseen" }, ...text);

  function failure(error) {
    const code = error.code === null ? "" : ` [${error.code}]`;
    const made = element("pre", { class: "text-block bad", dir: "auto", tabindex: "0" });
    made.append(shown(`${error.type}: ${error.message}${code}`, state.query));
    if (error.place) made.append("\n", element("span", { class: "muted" }, "at ", shown(error.place)));
    return [heading("Error"), made];
  }

  function scores(row) {
    const targets = row.scores.some((score) => score.target !== null);
    const many = row.scores.some((score) => score.response > 0);
    const names = ["scorer", ...(targets ? ["target"] : []), ...(many ? ["response"] : []), "value", "label", "why"];
    const body = row.scores.map((score) => {
      const why = element("td", { class: "text long" });
      if (score.status !== "scored") why.append(element("span", { class: score.status === "failed" ? "failed" : "unscored" }, score.status), score.reason ? ": " : "");
      for (const name of ["reason", "explanation"]) if (score[name]) why.append(element("bdi", {}, shown(score[name], state.query)), " ");
      for (const [name, value] of Object.entries(score.columns ?? {})) why.append(element("span", { class: "muted" }, shown(`${name} `)), element("bdi", {}, shown(value, state.query)), "  ");
      const several = scoreNumbers(score);
      if (several) why.append(numberList(several));
      else if (score.data) why.append(...block(row, score.data));
      const cells = [element("th", { scope: "row" }, element("bdi", {}, shown(head.scorers[score.scorer].name)))];
      if (targets) cells.push(element("td", { class: "text", "data-head": "target" }, shown(score.target ?? "")));
      if (many) cells.push(element("td", { "data-head": "response" }, score.response === null ? "" : String(score.response + 1)));
      cells.push(element("td", { class: "value" }, number(score.value)), element("td", { class: "text" }, element("bdi", {}, shown(score.label ?? ""))), why);
      return element("tr", {}, ...cells);
    });
    const heads = names.map((name) => element("th", { scope: "col", class: ["value", "response"].includes(name) ? null : "text" }, name));
    const caption = element("caption", {}, element("span", {}, row.n_scores > row.scores.length ? `The first ${row.scores.length} of ${word.format(row.n_scores)} scores` : "What each scorer gave, and why"));
    return element("div", { class: "scroll" }, element("table", { class: "numbers stacked" }, caption,
      element("thead", {}, element("tr", {}, ...heads)), element("tbody", {}, ...body)));
  }

  /** What each feedback was asked about the row and what it said, call by call. */
  function asked(row) {
    const judged = row.scores.filter((score) => score.calls);
    if (!judged.length) return [];
    const few = judged.reduce((n, score) => n + score.calls.length, 0) <= 8;
    return [heading("What feedbacks were asked"), ...judged.map((score) => {
      const { name, aggregate } = head.scorers[score.scorer];
      const value = score.value !== null ? `${number(score.value)}, ` : scoreNumbers(score) ? "" : `${score.status}, `;
      const aggregated = score.n_calls === 1 ? "one call" : `${value}the ${aggregate ?? "aggregate"} of ${word.format(score.n_calls)} calls`;
      const made = element("details", { class: "asked", ...(few ? { open: "" } : {}) },
        element("summary", {}, element("bdi", {}, shown(name)), element("span", { class: "time" }, aggregated)),
        element("ol", {}, ...score.calls.map((call) => askedOnce(row, call))));
      if (score.n_calls > score.calls.length) made.append(element("p", { class: "cut" },
        `${word.format(score.n_calls - score.calls.length)} calls more: `, element("code", {}, command(row))));
      return made;
    })];
  }

  function askedOnce(row, call) {
    const several = namedNumbers(call.ret);
    const said = call.error !== null ? element("span", { class: "failed" }, shown(call.error, state.query))
      : call.ret === null ? element("span", { class: "unscored" }, "no value")
      : typeof call.ret === "number" ? element("b", {}, number(call.ret)) : several ? null : element("code", {}, shown(textOf(call.ret)));
    const pairs = (held) => Object.entries(held).flatMap(([name, cell]) => [
      element("dt", {}, shown(name)),
      element("dd", { dir: "auto" }, shown(textOf(cell), state.query), cell?.c ? element("span", { class: "muted" }, ` … (${word.format(cell.c)} characters more)`) : "")]);
    return element("li", {}, several ? numberList(several) : element("p", {}, said), element("dl", { class: "pairs" }, ...pairs(call.args), ...pairs(call.meta)));
  }

  /** What was said to language models and what they replied, as bubbles; calls of tools are folded. */
  function chats(row) {
    return row.chats.flatMap((chat, i) => [
      heading(row.chats.length > 1 ? `Conversation ${i + 1} of ${row.chats.length}` : "Conversation"),
      element("ol", { class: "chat" }, ...chat.turns.map((turn) => bubble(row, turn))),
      ...(chat.left_out ? [element("p", { class: "cut" }, `${word.format(chat.left_out)} messages more: `, element("code", {}, command(row)))] : [])]);
  }

  const SIDES = { user: "user", assistant: "assistant" };

  function bubble(row, turn) {
    const made = element("li", { class: `bubble ${SIDES[turn.role] ?? "other"}` }, element("p", { class: "role" }, shown(turn.role)));
    if (textOf(turn.text) !== "" || !turn.tools) made.append(...said(row, turn.text));
    for (const tool of turn.tools ?? []) made.append(element("details", {},
      element("summary", {}, "calls ", element("code", {}, shown(tool.name)), element("span", { class: "gist", dir: "auto" },
        shown(snippet(tool.arguments) + (tool.result === null ? "" : ` → ${snippet(tool.result)}`), state.query))),
      element("p", { class: "cut" }, "arguments"), ...block(row, tool.arguments),
      ...(tool.result === null ? [] : [element("p", { class: "cut" }, "result"), ...block(row, tool.result)])));
    return made;
  }

  function said(row, cell) {
    const made = [element("div", { class: "said", dir: "auto", tabindex: "0" }, shown(textOf(cell), state.query))];
    if (cell.c) made.push(element("p", { class: "cut" }, `${word.format(cell.c)} characters more; the whole: `, element("code", {}, command(row))));
    return made;
  }

  const trace = (row) => spanTree(row.spans, row.n_spans - row.spans.length, command(row), state.query);

  function about(row) {
    const pairs = [];
    if (row.id !== null && row.id !== row.index) pairs.push(["id", row.id]);
    for (const [name, value] of Object.entries(row.attributes)) pairs.push([name, value ?? "none"]);
    for (const [name, value] of Object.entries(row.metadata)) pairs.push([name, value]);
    pairs.push(["call", `${row.status}${row.attempts > 1 ? ` in ${row.attempts} attempts` : ""}, ${seconds(row.duration)}${row.started === null ? "" : `, begun ${new Date(row.started * 1000).toISOString().slice(0, 19).replace("T", " ")} UTC`}`]);
    if (row.usage) pairs.push(["used", row.usage]);
    return element("dl", { class: "pairs" }, ...pairs.flatMap(([name, value]) => [
      element("dt", {}, shown(name)), element("dd", { dir: "auto" }, shown(value, state.query))]));
  }

  const hash = (task, row) => `#example=${encodeURIComponent(head.tasks[task])}/${row.index}${row.replication ? `/${row.replication}` : ""}`;

  function links(row) {
    const made = element("p", { class: "links" }, element("a", { href: hash(row.task, row) }, "Link to this row"));
    for (let task = 0; task < head.tasks.length; task++) {
      if (task === row.task || find(task, BigInt(row.index), row.replication) < 0) continue;
      const link = element("a", { href: hash(task, row) }, "the same example in ");
      link.append(element("bdi", {}, shown(head.tasks[task])));
      made.append(link);
    }
    return made;
  }

  // ---------------------------------------------------------------- links to examples

  let borders = null; // where the rows of each task begin

  function find(task, index, replication) {
    if (!borders) {
      borders = new Uint32Array(head.tasks.length + 1);
      for (const t of columns.task) borders[t + 1]++;
      for (let t = 0; t < head.tasks.length; t++) borders[t + 1] += borders[t];
    }
    let low = borders[task];
    let high = borders[task + 1];
    while (low < high) {
      const middle = (low + high) >> 1;
      const i = columns.index[middle];
      if (i < index || (i === index && columns.replication[middle] < replication)) low = middle + 1;
      else high = middle;
    }
    return low < borders[task + 1] && columns.index[low] === index && columns.replication[low] === replication ? low : -1;
  }

  async function follow() {
    if (!location.hash.startsWith("#example=")) return;
    const [task, index, replication] = location.hash.slice(9).split("/").map(decoded);
    const number = head.tasks.indexOf(task);
    const row = number < 0 || !/^-?\d+$/.test(index ?? "") ? -1 : find(number, BigInt(index), Number(replication ?? 0));
    if (row < 0) {
      byId("count").textContent = `There is no example ${index} of ${task} in this report.`;
      byId("examples").scrollIntoView();
      return;
    }
    if (!state.order.includes(row)) {
      byId("filters").reset();
      state.search++;
      state.found = null;
      state.query = "";
      byId("search-progress").hidden = true;
      select();
      state.news = "";
    }
    state.page = Math.floor(state.order.indexOf(row) / PAGE);
    state.open.add(row);
    await draw();
    const button = document.querySelector(`[data-row="${row}"] > button`);
    button.scrollIntoView();
    button.focus({ preventScroll: true });
  }

  function decoded(text) {
    try {
      return decodeURIComponent(text);
    } catch {
      return text;
    }
  }

  // ---------------------------------------------------------------- the page

  async function start() {
    const wanted = [...Object.entries(ARRAYS), ["duration", Float64Array]];
    head.scorers.forEach((_, i) => wanted.push([`status-${i}`, Uint8Array], [`value-${i}`, Float64Array], [`label-${i}`, Uint16Array]));
    head.attributes.forEach((_, i) => wanted.push([`attribute-${i}`, Uint16Array]));
    await Promise.all(wanted.map(async ([name, Kind]) => { columns[name] = await column(name, Kind); }));
    buildFilters();
    buildSort();
    byId("browser").hidden = false;
    let waiting = 0;
    byId("query").addEventListener("input", (event) => {
      clearTimeout(waiting);
      waiting = setTimeout(() => search(event.target.value), 250);
    });
    byId("query").addEventListener("keydown", (event) => {
      if (event.key === "Escape" && !byId("search-progress").hidden) {
        event.preventDefault();
        stopSearch();
      }
    });
    byId("filters").addEventListener("submit", (event) => {
      event.preventDefault();
      clearTimeout(waiting);
      search(byId("query").value);
    });
    byId("filters").addEventListener("change", (event) => { if (event.target.id !== "query") refresh(); });
    byId("filters").addEventListener("reset", () => setTimeout(() => search("")));
    byId("cancel").addEventListener("click", stopSearch);
    byId("first").addEventListener("click", () => turn(0));
    byId("previous").addEventListener("click", () => turn(state.page - 1));
    byId("next").addEventListener("click", () => turn(state.page + 1));
    byId("last").addEventListener("click", () => turn(Infinity));
    byId("page").addEventListener("change", (event) => turn(Number(event.target.value) - 1 || 0));
    addEventListener("hashchange", follow);
    await refresh();
    document.documentElement.dataset.ready = String(Math.round(performance.now()));
    await follow();
  }

  start().catch((error) => {
    byId("browser").hidden = false;
    byId("browser").replaceChildren(element("p", { class: "failed", role: "alert" }, `The examples cannot be shown: ${error.message}`));
  });
})();
