// The open row of a grid: the example, and all tasks side by side.
import { html } from "htm/preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { change } from "../address.js";
import { Block } from "../parts/cell.js";
import { Diff } from "../parts/diff.js";
import { Problem, Waiting } from "../parts/frame.js";
import { Outcome, RowDetail } from "../parts/row.js";
import { Name, plural, shown, snippet, textOf, word } from "../text.js";
import { rowAt } from "./columns.js";

export function Detail({ grid, open, search, place, of, step }) {
  const [dataset, key] = open.includes("~") ? open.split("~") : [null, open];
  const [index, replication = "0"] = key.split("/");
  const row = findRow(grid, index, replication, dataset);
  const [found, tell] = useState({ row: -1, cells: null, error: null });
  const panel = useRef(null);
  useEffect(() => {
    if (row < 0) return undefined;
    let wanted = true;
    Promise.all(grid.tasks.map((task, t) => (grid.places[t][row] < 0 ? null : rowAt(task, grid.places[t][row])))).then(
      (cells) => wanted && tell({ row, cells, error: null }), (error) => wanted && tell({ row, cells: null, error: error.message }));
    return () => { wanted = false; };
  }, [grid, row]);
  useEffect(() => { panel.current.scrollIntoView({ block: "nearest" }); }, []);
  const press = (event) => {
    if (event.target.matches("input, textarea, select") || event.ctrlKey || event.metaKey || event.altKey) return;
    const act = { j: () => step(1), k: () => step(-1), Escape: () => change({ x: null }) }[event.key];
    if (act) { event.preventDefault(); act(); }
  };
  return html`<aside class="panel" ref=${panel} tabindex="-1" aria-label="Example" onKeyDown=${press}>
    <p class="steps"><button type="button" onClick=${() => step(-1)} disabled=${place <= 0}>Previous</button>
      <button type="button" onClick=${() => step(1)} disabled=${place < 0 || place >= of - 1}>Next</button>
      <span class="muted">${place >= 0 ? `${word.format(place + 1)} of ${plural(of, "row")}` : "not among the rows shown"}</span>
      <button type="button" aria-label="Close the example" onClick=${() => change({ x: null })}>Close</button></p>
    <h3>Example ${index}${grid.tasks[0].head.replications > 1 ? `, repetition ${Number(replication) + 1}` : ""}</h3>
    ${row < 0 ? html`<${Problem} text="There is no such example here." />` : found.error ? html`<${Problem} text=${found.error} />` : found.row !== row ? html`<${Waiting} />` : html`<${Sides} grid=${grid} cells=${found.cells} search=${search} />`}
  </aside>`;
}

function findRow(grid, index, replication, dataset) {
  if (!/^-?\d{1,19}$/.test(index) || !/^\d{1,9}$/.test(replication)) return -1;
  const [wanted, repeat] = [BigInt(index), Number(replication)];
  if (grid.dataset) return grid.index.findIndex((each, row) => each === wanted && grid.replication[row] === repeat && String(grid.dataset[row]) === (dataset ?? "0"));
  let low = 0;
  let high = grid.n;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (grid.index[middle] < wanted || (grid.index[middle] === wanted && grid.replication[middle] < repeat)) low = middle + 1;
    else high = middle;
  }
  return low < grid.n && grid.index[low] === wanted && grid.replication[low] === repeat ? low : -1;
}

function Sides({ grid, cells, search }) {
  const rows = cells.map((row, t) => row && { row, task: grid.tasks[t] }).filter(Boolean);
  const [first, second] = rows.map(({ row }) => (row.responses ?? []).map(textOf).join("\n"));
  const any = rows[0].row;
  const isOne = rows.length === 1;
  return html`${!isOne && html`<${Verdicts} rows=${rows} /><h4>Input</h4><${Block} cell=${any.input} search=${search} command=${commandOf(rows[0])} />
      ${any.expected !== null && html`<h4>Expected</h4><${Block} cell=${any.expected} search=${search} command=${commandOf(rows[0])} />`}`}
    ${rows.length === 2 && first && second && html`<h4>What differs</h4><${Diff} first=${first} second=${second} />`}
    ${rows.map((each) => html`<details class="side" open key=${`${each.task.run}/${each.task.evaluation}`}><summary><h3><${Name} of=${each.task.task} /></h3></summary>
      <${RowDetail} row=${each.row} head=${each.task.head} search=${search} run=${each.task.run} command=${commandOf(each)} hasExample=${isOne} /></details>`)}`;
}

/** How each task did, before all texts, and why: what the scorers say that did not find it right. */
const Verdicts = ({ rows }) => html`<ul class="words verdicts" aria-label="Outcomes">${rows.map(({ row, task }) => html`<li>
    <${Name} of=${task.task} /> <${Outcome} of=${row.outcome} />${reasonsOf(row, task.head.scorers).slice(0, 2).map((why) => html` <span class="muted">${shown(why)}</span>`)}</li>`)}</ul>`;

function reasonsOf({ scores }, scorers) {
  const isRight = ({ scorer, status, value }) => status === "scored" && scorers[scorer].binary && value !== scorers[scorer].wrong;
  const found = scores.filter((score) => !isRight(score)).map((score) => {
    const why = score.reason ?? score.explanation;
    return why && `${scorers.length > 1 ? `${scorers[score.scorer].name}: ` : ""}${snippet(why, 200)}`;
  });
  return [...new Set(found.filter(Boolean))];
}

const commandOf = ({ row, task }) => `${task.head.command} --index ${row.index} --json`;
