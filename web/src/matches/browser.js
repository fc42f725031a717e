// The pairs of responses: which are shown, in which order, and one of them open.
import { html } from "htm/preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { change, state } from "../address.js";
import { isCut, readPacked } from "../grid/columns.js";
import { Problem, Waiting } from "../parts/frame.js";
import { pathOf } from "../source.js";
import { Name, plainly, plural, shown, snippet, word } from "../text.js";
import { Pair, rounded, whichOf } from "./pair.js";
import { countOutcomes, isContradictory, ORDERS, PAIR_CLASS, readPairs, selectPairs, winnerOf } from "./select.js";

const PAGE = 20;

/** All pairs of some sets of matches: filtered, sorted, and one of them open. */
export function PairBrowser({ sets }) {
  const [found, tell] = useState({ pairs: null, error: null });
  useEffect(() => {
    let wanted = true;
    readPacked(pathOf("pair-columns", sets)).then((pairs) => wanted && tell({ pairs, error: null }), (error) => wanted && tell({ pairs: null, error: error.message }));
    return () => { wanted = false; };
  }, [sets]);
  if (found.error) return html`<${Problem} text=${found.error} />`;
  return found.pairs ? html`<${Browser} sets=${sets} pairs=${found.pairs} />` : html`<${Waiting} what="Reading the pairs" />`;
}

const FILTERS = { set: "set", one: "a", other: "b", outcome: "o", won: "w" };

/** The filters of the address: a number each, or null. */
function useFilter() {
  const read = (name) => (/^\d{1,6}$/.test(state.value.get(FILTERS[name]) ?? "") ? Number(state.value.get(FILTERS[name])) : null);
  return Object.fromEntries(Object.keys(FILTERS).map((name) => [name, read(name)]));
}

function Browser({ sets, pairs }) {
  const filter = useFilter();
  const order = state.value.get("order") ?? "";
  const rows = useMemo(() => selectPairs(pairs, filter, order), [pairs, order, ...Object.values(filter)]);
  const last = Math.max(Math.ceil(rows.length / PAGE) - 1, 0);
  const open = /^\d{1,9}$/.test(state.value.get("pair") ?? "") ? Number(state.value.get("pair")) : null;
  const at = open === null ? -1 : rows.indexOf(open);
  const asked = Number(state.value.get("page") ?? 1) - 1 || 0;
  const page = Math.min(Math.max(at >= 0 ? Math.floor(at / PAGE) : asked, 0), last);
  const box = useRef(null);
  const turn = (to) => change({ page: to ? String(to + 1) : null, pair: null });
  const show = (place) => { if (rows[place] !== undefined) change({ pair: String(rows[place]), page: null }); };
  const step = (by) => show(at < 0 ? page * PAGE : Math.min(Math.max(at + by, 0), rows.length - 1));
  const press = (event) => {
    if (event.target.matches("input, textarea, select") || event.ctrlKey || event.metaKey || event.altKey) return;
    const isInText = event.target.closest(".detail") !== null; // arrows scroll there
    const acts = { j: () => step(1), k: () => step(-1), Escape: () => change({ pair: null, page: page ? String(page + 1) : null }) };
    if (!isInText) Object.assign(acts, { ArrowDown: acts.j, ArrowUp: acts.k });
    if (acts[event.key]) { event.preventDefault(); acts[event.key](); }
  };
  return html`<${Filters} pairs=${pairs} filter=${filter} order=${order} />
    <p class="row-count" role="status">${word.format(rows.length)} of ${plural(pairs.head.rows, "pair")} of responses${isCut(pairs) && `; of each set the most contradictory and decisive of ${word.format(pairs.head.total)}`}${rows.length > 0 && html` · <span class="muted">j and k go from one to the next</span>`}</p>
    <div class=${open === null ? "pairs-split" : "pairs-split open"} ref=${box} onKeyDown=${press}>
      <div class="pair-list"><${Lines} sets=${sets} pairs=${pairs} rows=${rows.slice(page * PAGE, (page + 1) * PAGE)} open=${open} />
        ${last > 0 && html`<nav class="pages" aria-label="Pages of pairs"><button type="button" disabled=${page === 0} onClick=${() => turn(page - 1)}>Previous</button>
          <span>Page ${word.format(page + 1)} of ${word.format(last + 1)}</span><button type="button" disabled=${page === last} onClick=${() => turn(page + 1)}>Next</button></nav>`}</div>
      ${open !== null && html`<${Panel} sets=${sets} pairs=${pairs} place=${open} at=${at} of=${rows.length} step=${step} />`}</div>`;
}

function Filters({ pairs, filter, order }) {
  const { head } = pairs;
  const counts = useMemo(() => countOutcomes(pairs), [pairs]);
  const set = (name) => (event) => change({ [name]: event.target.value || null, page: null, pair: null });
  const systems = head.systems.map((name, i) => [i, name]);
  const field = (name, label, options) => html`<div class="field"><label for=${`pairs-${name}`}>${label}</label>
    <select id=${`pairs-${name}`} value=${filter[name] === null ? "" : String(filter[name])} onChange=${set(FILTERS[name])}><option value="">all</option>
      ${options.map(([value, title]) => html`<option value=${String(value)} selected=${value === filter[name]}>${plainly(title)}</option>`)}</select></div>`;
  const isPicked = isContradictory(filter.outcome);
  const any = Object.values(filter).some((value) => value !== null);
  return html`<form class="filters" role="search" aria-label="Pairs" onSubmit=${(event) => event.preventDefault()}>
      ${head.sets.length > 1 && field("set", "Matches", head.sets.map((one, i) => [i, one.title]))}
      ${field("one", "System", systems)}${field("other", "Against", systems)}
      ${field("outcome", "Outcome", head.outcomes.map((name, i) => [i, `${name} (${word.format(counts[i])})`]).filter(([i]) => counts[i]))}${field("won", "Winner", systems)}
      <div class="field"><label for="pairs-sort">Sort by</label><select id="pairs-sort" value=${order} onChange=${set("order")}>
        ${Object.entries(ORDERS).map(([value, title]) => html`<option value=${value} selected=${value === order}>${title}</option>`)}</select></div></form>
    <ul class="chips" aria-label="Presets">${counts[0] > 0 && html`<li><button type="button" class="chip" aria-pressed=${String(isPicked)} onClick=${() => change({ o: isPicked ? null : "0", page: null, pair: null })}>contradictory (${word.format(counts[0])})</button></li>`}
      ${any && html`<li><button type="button" class="chip" onClick=${() => change({ ...Object.fromEntries(Object.values(FILTERS).map((key) => [key, null])), page: null, pair: null })}>all pairs</button></li>`}</ul>`;
}

/** What some places hold, read together; null while they are read. */
function usePairs(sets, pairs, places) {
  const key = places.join();
  const [found, tell] = useState({ key: null, pairs: null, error: null });
  useEffect(() => {
    let wanted = true;
    readPairs(sets, pairs, places).then((pairs) => wanted && tell({ key, pairs, error: null }), (error) => wanted && tell({ key, pairs: null, error: error.message }));
    return () => { wanted = false; };
  }, [sets, key]);
  return found.key === key ? found : { pairs: null, error: null };
}

function Lines({ sets, pairs, rows, open }) {
  const { head, columns } = pairs;
  const found = usePairs(sets, pairs, rows);
  const list = useRef(null);
  useEffect(() => {
    const line = list.current?.querySelector("[aria-current]");
    if (!line) return;
    line.scrollIntoView({ block: "nearest" });
    if (list.current.contains(document.activeElement)) line.focus({ preventScroll: true });
  }, [open, found.pairs]);
  return html`${found.error && html`<${Problem} text=${found.error} />`}<ol class="pair-lines" ref=${list} aria-label="Pairs">${rows.map((row, i) => {
    const pair = found.pairs?.[i];
    const [a, b] = [columns.a[row], columns.b[row]];
    const won = winnerOf(columns, row);
    const named = (system) => (system === won ? html`<b><${Name} of=${head.systems[system]} /></b>` : html`<${Name} of=${head.systems[system]} />`);
    const outcome = columns.outcome[row];
    return html`<li key=${row}><button type="button" class="pair-line" aria-current=${row === open ? "true" : null} onClick=${() => change({ pair: String(row), page: null })}>
      <span class=${`pill ${PAIR_CLASS[outcome] || "none"}`}>${head.outcomes[outcome]}</span> <span class="which">${pair ? whichOf(pair) : String(columns.index[row])}</span>
      <span class="between">${named(a)} – ${named(b)}</span><span class="shares">${pair?.said.slice(0, 4).map((said) => rounded(said[2])).join(" · ")}</span>
      <span class="asked-of">${pair ? shown(snippet(pair.input, 160)) : "…"}</span></button></li>`;
  })}</ol>`;
}

function Panel({ sets, pairs, place, at, of, step }) {
  const exists = place < pairs.head.rows;
  const found = usePairs(sets, pairs, exists ? [place] : []);
  const pair = found.pairs?.[0];
  return html`<aside class="pair-panel" aria-label="Pair" tabindex="-1">
    <p class="steps"><button type="button" onClick=${() => step(-1)} disabled=${at <= 0}>Previous</button><button type="button" onClick=${() => step(1)} disabled=${at < 0 || at >= of - 1}>Next</button>
      <span class="muted" role="status">${at >= 0 ? `${word.format(at + 1)} of ${plural(of, "pair")}` : "not among the pairs shown"}</span>
      <button type="button" aria-label="Close the pair" onClick=${() => change({ pair: null })}>Close</button></p>
    ${!exists ? html`<${Problem} text="There is no such pair here." />` : found.error ? html`<${Problem} text=${found.error} />` : !pair ? html`<${Waiting} />`
      : html`<h3>Example ${whichOf(pair)} <span class=${`pill ${PAIR_CLASS[pair.outcome] || "none"}`}>${pairs.head.outcomes[pair.outcome]}</span></h3>
        <${Pair} key=${place} pair=${pair} head=${pairs.head} won=${winnerOf(pairs.columns, place)} />`}</aside>`;
}
