// A row of the grid, on two lines at most.
import { html } from "htm/preact";
import { isCut } from "./columns.js";
import { scoreNumbers } from "../parts/scores.js";
import { Name, number, plain, shown, snippet } from "../text.js";

export function Heads({ grid }) {
  return html`<div role="rowgroup" class="titles"><div role="row" class="line" aria-rowindex="1" style=${template(grid)}>
    <span role="columnheader">#</span><span role="columnheader">Input</span><span role="columnheader">Expected</span>
    ${grid.tasks.map((task) => html`<span role="columnheader"><${Name} of=${task.task} /></span>`)}</div></div>`;
}

export const OUTCOME_CLASS = { failed: "failed", "not scored": "unscored", wrong: "wrong", right: "good", scored: "good", answered: "none" };

const template = (grid) => ({ gridTemplateColumns: `4.5rem minmax(9rem, 1.4fr) minmax(5rem, 0.6fr) repeat(${grid.tasks.length}, minmax(10rem, 1fr))`, minWidth: `${20 + 11 * grid.tasks.length}rem` });

export function Line({ id, place, top, grid, row, cells, search, isCurrent, isOpen, onOpen }) {
  const any = Array.isArray(cells) ? cells.find(Boolean) : null;
  const part = (cell) => (any ? shown(plain(cell, 220), search) : "…");
  return html`<div role="row" id=${id} class=${`line${isCurrent ? " current" : ""}${isOpen ? " opened" : ""}`} aria-rowindex=${place + 2} aria-selected=${isOpen} style=${{ ...template(grid), top: `${top}px` }} onClick=${onOpen}>
    <span role="rowheader" class="which">${String(grid.index[row])}${grid.replication[row] ? html`<span class="muted"> · ${grid.replication[row] + 1}</span>` : null}</span>
    <span role="gridcell" class="clip" dir="auto">${cells?.error ? html`<span class="failed">${cells.error}</span>` : part(any?.input ?? null)}</span>
    <span role="gridcell" class="clip" dir="auto">${any?.expected === null ? "" : part(any?.expected ?? null)}</span>
    ${grid.tasks.map((task, t) => html`<span role="gridcell" class="answer"><${Answer} grid=${grid} number=${t} row=${row} held=${Array.isArray(cells) ? cells[t] : undefined} search=${search} /></span>`)}
  </div>`;
}

function Answer({ grid, number: t, row, held, search }) {
  const place = grid.places[t][row];
  const { head, columns } = grid.tasks[t];
  if (place < 0) return html`<span class="muted">${isCut(grid.tasks[t]) ? "not in this report" : "no such row"}</span>`;
  const outcome = head.outcomes[columns.outcome[place]];
  return html`<span class="clip" dir="auto">${held === undefined ? "…" : said(held, search)}</span>
    <span class="pills">${pills(head, columns, place, outcome, held)}</span>`;
}

export function said(row, search) {
  if (row === null) return "";
  if (row.error) return html`<span class="failed">${shown(`${row.error.type}: ${row.error.message}`.slice(0, 220), search)}</span>`;
  if (row.responses === null) return html`<span class="unscored">no answer</span>`;
  return shown(row.responses.map((cell) => plain(cell, 220)).join(" | ") || "(an empty list)", search);
}

/** A pill for each scorer: its value, numbers or label, else its status; a call that failed or is not graded has one for itself. */
function pills(head, columns, place, outcome, held) {
  const found = head.scorers.flatMap((scorer, s) => {
    const status = head.statuses[columns[`status-${s}`][place]];
    if (!status) return [];
    const value = columns[`value-${s}`][place];
    const label = scorer.labels?.[columns[`label-${s}`][place] - 1];
    const several = Number.isNaN(value) && held ? held.scores.flatMap((score) => (score.scorer === s ? scoreNumbers(score) ?? [] : [])) : [];
    if (several.length) return several.map(([name, number]) => html`<span class="pill none"><${Name} of=${head.scorers.length > 1 ? `${scorer.name} ${name}` : name} /> ${number}</span>`);
    const text = status !== "scored" ? status : Number.isNaN(value) ? (label ?? "scored") : scorer.binary ? (value ? "✓" : "✗") : number(value);
    const kind = status === "failed" ? "failed" : status !== "scored" ? "unscored" : scorer.binary ? (value ? "good" : "wrong") : "none";
    return [html`<span class=${`pill ${kind}`} title=${`${scorer.name}: ${snippet(String(text))}`}><span class=${head.scorers.length > 1 ? "" : "unseen"}><${Name} of=${scorer.name} /> </span>${scorer.binary && status === "scored" ? html`<span aria-hidden="true">${text}</span><span class="unseen">${value ? "right" : "wrong"}</span>` : shown(String(text))}</span>`];
  });
  return found.length ? found : [html`<span class=${`pill ${OUTCOME_CLASS[outcome]}`}>${outcome}</span>`];
}
