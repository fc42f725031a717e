// The grid: one row for each example, with what each task answered and how it was scored.
import { html } from "htm/preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { change, decode, state } from "../address.js";
import { Problem, Waiting } from "../parts/frame.js";
import { isReport } from "../source.js";
import { plainly, plural, shown, word } from "../text.js";
import { findText, isCut, joinTasks, readColumns, readWords, rowAt } from "./columns.js";
import { Detail } from "./detail.js";
import { known, quotedName } from "./filter.js";
import { Line, Heads } from "./line.js";
import { presetsOf, select, sorts } from "./select.js";
import { ColumnChoice, shownColumns } from "./shown.js";

const HEIGHT = 58; // of a row, as in the style sheet
const MORE = 8; // rows drawn beyond those seen
const TALLEST = 16e6; // pixels that browsers draw reliably

/**
 * @param tasks `{task, run, evaluation}` of each column.
 * @param usual the preset where the address names none.
 * @param onShown called when rows are shown, or the reason why there are none.
 */
export function Grid({ tasks, usual = "all", onShown = () => {} }) {
  const [found, tell] = useState({ grid: null, error: null });
  const key = tasks.map((task) => `${task.run}/${task.evaluation}`).join();
  useEffect(() => {
    let wanted = true;
    Promise.all(tasks.map(async (task) => ({ ...task, ...await readColumns(task) }))).then(joinTasks).then(
      (grid) => wanted && tell({ grid, error: null }),
      (error) => { if (wanted) { tell({ grid: null, error: error.message }); onShown(); } });
    return () => { wanted = false; };
  }, [key]);
  if (found.error) return html`<${Problem} text=${found.error} />`;
  return found.grid ? html`<${JoinedGrid} grid=${found.grid} usual=${usual} onShown=${onShown} />` : html`<${Waiting} what="Reading the rows" />`;
}

function JoinedGrid({ grid, usual, onShown }) {
  const missing = useExample(grid);
  const text = (state.value.get("q") ?? "").trim();
  const [marks, tell] = useState({ text: "", found: null, error: null });
  useEffect(() => {
    if (!text) return undefined;
    let wanted = true;
    findText(grid, text).then((found) => wanted && tell({ text, found, error: null }), (error) => wanted && tell({ text, found: null, error: error.message }));
    return () => { wanted = false; };
  }, [grid, text]);
  const [filter, sort] = ["f", "s"].map((name) => state.value.get(name) ?? undefined);
  const [words, tellWords] = useState({ filter: "", error: null });
  useEffect(() => {
    if (!filter) return undefined;
    let wanted = true;
    readWords(grid, filter).then((hasRead) => wanted && hasRead && tellWords({ filter, error: null }), (error) => wanted && tellWords({ filter, error: error.message }));
    return () => { wanted = false; };
  }, [grid, filter]);
  const preset = state.value.get("p") ?? usual;
  const searched = text && marks.text === text ? marks.found : null;
  const chosen = useMemo(() => {
    try {
      return { rows: select(grid, { preset, filter, sort, found: text ? (searched ?? new Uint8Array(grid.n)) : null }), fault: null };
    } catch (error) {
      return { rows: new Uint32Array(0), fault: error.message, isWaiting: Boolean(error.needs) && words.filter !== filter };
    }
  }, [grid, preset, filter, sort, searched, text, words]);
  const isSearching = (text !== "" && marks.text !== text) || chosen.isWaiting;
  return html`<div class="examples">
    <${Filters} grid=${grid} preset=${preset} usual=${usual} /><${ColumnChoice} grid=${grid} />
    ${chosen.fault && !chosen.isWaiting && html`<${Problem} text=${words.filter === filter && words.error ? words.error : `The filter is not understood: ${chosen.fault}.`} />`}
    ${missing && html`<${Problem} text=${missing} />`}
    ${marks.error && marks.text === text && html`<${Problem} text=${marks.error} />`}
    <p class="row-count" role="status">${isSearching ? "Searching …" : `${word.format(chosen.rows.length)} of ${plural(grid.n, "row")}${ofMore(grid)}${text && isReport ? "; only texts that are in the report were searched" : ""}`}</p>
    <${Table} grid=${grid} rows=${chosen.rows} search=${text.toLowerCase()} onShown=${onShown} />
  </div>`;
}

/** Opens the example that a link names by task, index and replication; or says that there is none. */
function useExample(grid) {
  const example = state.value.get("example");
  const row = useMemo(() => (example === null ? -1 : rowOf(grid, ...example.split("/").map(decode))), [grid, example]);
  useEffect(() => { if (row >= 0) change({ example: null, x: keyOf(grid, row) }); }, [row]);
  if (example === null || row >= 0) return null;
  const [task, index] = example.split("/").map(decode);
  const missing = index === undefined ? `The link names no example of ${task}.` : `There is no example ${index} of ${task} here.`;
  return grid.tasks.some(isCut) ? `${missing} This report has only some of the rows.` : missing;
}

function rowOf(grid, name, index, replication = "0") {
  const t = grid.tasks.findIndex(({ task }) => task === name);
  if (t < 0 || !/^-?\d{1,19}$/.test(index ?? "")) return -1;
  const { columns } = grid.tasks[t];
  const place = columns.index.findIndex((each, i) => each === BigInt(index) && columns.replication[i] === Number(replication));
  return place < 0 ? -1 : grid.places[t].indexOf(place);
}

/** What a report says of the rows that it has no room for. */
function ofMore({ tasks }) {
  const [task] = tasks.filter(isCut).sort((a, b) => b.head.total - a.head.total);
  if (!task) return "";
  return `; the ${word.format(task.head.rows)} worst${tasks.length > 1 ? " for any task" : ""} of ${word.format(task.head.total)}`;
}

function Filters({ grid, preset, usual }) {
  const values = state.value;
  const presets = useMemo(() => presetsOf(grid), [grid]);
  const set = (name) => (event) => change({ [name]: event.target.value, x: null });
  const [draft, type] = useState(values.get("f") ?? "");
  useEffect(() => type(values.get("f") ?? ""), [values.get("f")]);
  return html`<form class="filters" role="search" aria-label="Examples" onSubmit=${(event) => { event.preventDefault(); change({ f: draft, x: null }); }}>
      <div class="field"><label for="grid-text">Search the text</label>
        <input id="grid-text" type="search" placeholder="then press Enter" autocomplete="off" spellcheck=${false} value=${values.get("q") ?? ""} onChange=${set("q")} /></div>
      <div class="field wide"><label for="grid-filter">Filter</label>
        <input id="grid-filter" autocomplete="off" spellcheck=${false} value=${draft} placeholder=${plainly(example(grid), 120)} list="grid-names"
          onInput=${(event) => type(event.target.value)} onChange=${set("f")} />
        <datalist id="grid-names">${known(grid).map((name) => html`<option value=${`${name} `} />`)}</datalist></div>
      <div class="field"><label for="grid-sort">Sort by</label>
        <select id="grid-sort" value=${values.get("s") ?? ""} onChange=${set("s")}>
          ${Object.entries(sorts(grid)).map(([value, title]) => html`<option value=${value} selected=${value === (values.get("s") ?? "")}>${plainly(title, 80)}</option>`)}</select></div>
    </form>
    <ul class="chips" aria-label="Presets">
      ${presets.map(([name, one]) => html`<li><button type="button" class="chip" aria-pressed=${name === preset} title=${one.by ?? null} onClick=${() => change({ p: name === usual ? null : name, x: null })}><bdi>${shown(one.title)}</bdi></button></li>`)}
      ${values.get("f") && html`<li><button type="button" class="chip" aria-pressed="true" aria-label="Remove the filter" onClick=${() => change({ f: null })}>${shown(values.get("f"))} ✕</button></li>`}
    </ul>`;
}

function example(grid) {
  const scorer = grid.tasks.flatMap((task) => task.head.scorers)[0];
  const attribute = grid.tasks.flatMap((task) => task.head.attributes).find((each) => each.values?.length);
  const parts = [scorer && `score.${quotedName(scorer.name)} < 1`, attribute && `${quotedName(attribute.name)} == ${JSON.stringify(attribute.values[0])}`].filter(Boolean);
  return parts.join(" and ") || 'outcome == "failed"';
}

/** The rows that fit, over a height that stands for all of them. */
function Table({ grid, rows, search, onShown }) {
  const box = useRef(null);
  const [seen, tell] = useState({ top: 0, height: 600 });
  const [loaded, load] = useState(new Map());
  const whole = Math.min(rows.length * HEIGHT, TALLEST);
  const scale = rows.length ? whole / (rows.length * HEIGHT) : 1;
  const first = Math.max(0, Math.floor(seen.top / scale / HEIGHT) - MORE);
  const last = Math.min(rows.length, Math.ceil(seen.top / scale / HEIGHT + seen.height / HEIGHT) + MORE);
  const visible = useMemo(() => [...rows.subarray(first, last)], [rows, first, last]);

  useLayoutEffect(() => {
    const measure = () => tell({ top: box.current.scrollTop, height: box.current.clientHeight });
    measure();
    const watcher = new ResizeObserver(measure);
    watcher.observe(box.current);
    box.current.addEventListener("scroll", measure, { passive: true });
    return () => watcher.disconnect();
  }, []);
  useEffect(() => {
    let wanted = true;
    Promise.all(visible.map((row) => readRow(grid, row).then((cells) => [row, cells], (error) => [row, { error: error.message }])))
      .then((pairs) => { if (wanted) { load(new Map(pairs)); document.documentElement.dataset.ready ??= String(Math.round(performance.now())); onShown(); } });
    return () => { wanted = false; };
  }, [grid, visible]);

  const open = state.value.get("x");
  const at = open === null ? -1 : rows.findIndex((row) => keyOf(grid, row) === open);
  const show = (place) => {
    const row = rows[Math.min(Math.max(place, 0), rows.length - 1)];
    if (row === undefined) return;
    change({ x: keyOf(grid, row) }, open !== null); // Back closes the row
    const top = rows.indexOf(row) * HEIGHT * scale;
    if (top < box.current.scrollTop || top > box.current.scrollTop + box.current.clientHeight - 2 * HEIGHT) box.current.scrollTop = top - HEIGHT;
  };
  const [cursor, move] = useState(0);
  useEffect(() => { // other rows begin at the open one, else at the first
    move(Math.max(at, 0));
    box.current.scrollTop = Math.max(at - 1, 0) * HEIGHT * scale;
  }, [rows]);
  const step = (by) => {
    const place = Math.min(Math.max((at >= 0 ? at : cursor) + by, 0), rows.length - 1);
    move(place);
    if (at >= 0) show(place);
    else {
      const top = place * HEIGHT * scale;
      if (top < box.current.scrollTop) box.current.scrollTop = top;
      if (top > box.current.scrollTop + box.current.clientHeight - 2 * HEIGHT) box.current.scrollTop = top - box.current.clientHeight + 2 * HEIGHT;
    }
  };
  const press = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const act = { j: () => step(1), ArrowDown: () => step(1), k: () => step(-1), ArrowUp: () => step(-1), PageDown: () => step(10), PageUp: () => step(-10), Enter: () => show(cursor), Escape: () => change({ x: null }) }[event.key];
    if (act) { event.preventDefault(); act(); }
  };
  useEffect(() => {
    if (open === null) return undefined;
    const close = (event) => { if (event.key === "Escape" && !event.defaultPrevented && !event.target.matches("input, select, textarea")) change({ x: null }); };
    addEventListener("keydown", close);
    return () => removeEventListener("keydown", close);
  }, [open]);
  useEffect(() => { // j and k begin wherever nothing else is in use
    const begin = (event) => { if (event.target === document.body && ["j", "k"].includes(event.key)) { box.current.focus(); press(event); } };
    addEventListener("keydown", begin);
    return () => removeEventListener("keydown", begin);
  });
  const id = (place) => `row-${place}`;
  const all = shownColumns(grid);
  const isBeside = open !== null && grid.tasks.length > 1; // the open row shows the rest, and the answers of all need the room
  const columns = all.filter((column) => !column.isWithin && !(isBeside && column.number === undefined));
  const scorers = new Set(all.filter((column) => column.isWithin).map((column) => column.title));
  return html`<div class=${open === null ? "split" : "split open"}>
    <div class="table" ref=${box} role="grid" tabindex="0" aria-label="Rows" aria-rowcount=${rows.length + 1} aria-activedescendant=${cursor >= first && cursor < last ? id(cursor) : null} onKeyDown=${press}>
      <${Heads} columns=${columns} />
      <div role="rowgroup" class="lines" style=${{ height: `${whole}px` }}>
        ${visible.map((row, i) => html`<${Line} key=${row} id=${id(first + i)} place=${first + i} top=${rowTop(first + i, scale, seen.top)} grid=${grid} row=${row} cells=${loaded.get(row)} search=${search} columns=${columns} scorers=${scorers}
          isCurrent=${first + i === cursor} isOpen=${keyOf(grid, row) === open} onOpen=${() => { move(first + i); show(first + i); }} />`)}
      </div>
    </div>
    ${open !== null && html`<${Detail} grid=${grid} open=${open} search=${search} place=${at} of=${rows.length} step=${step} />`}
  </div>`;
}

/** Where a row is drawn: where rows are too many for their heights, near those that are seen. */
const rowTop = (place, scale, top) => (scale === 1 ? place * HEIGHT : place * HEIGHT - top / scale + top);

export const keyOf = (grid, row) => `${grid.dataset ? `${grid.dataset[row]}~` : ""}${grid.index[row]}${grid.replication[row] ? `/${grid.replication[row]}` : ""}`;

/** The row of each task; null where it has none. */
const readRow = (grid, row) => Promise.all(grid.tasks.map((task, t) => (grid.places[t][row] < 0 ? null : rowAt(task, grid.places[t][row]))));
