// A row of the grid, on two lines at most.
import { html } from "htm/preact";
import { isCut } from "./columns.js";
import { scoreNumbers } from "../parts/scores.js";
import { Name, number, plain, seconds, shown, snippet } from "../text.js";

export function Heads({ columns }) {
  return html`<div role="rowgroup" class="titles"><div role="row" class="line" aria-rowindex="1" style=${template(columns)}>
    <span role="columnheader">#</span>${columns.map((column) => html`<span role="columnheader"><${Name} of=${column.title} /></span>`)}</div></div>`;
}

const CLASS_OF_OUTCOME = { failed: "failed", "not scored": "unscored", wrong: "wrong", right: "good", scored: "good", answered: "none" };

const template = (columns) => ({ gridTemplateColumns: ["4.5rem", ...columns.map((column) => column.width)].join(" "), minWidth: `${columns.reduce((sum, column) => sum + column.least, 5)}rem` });

/** A row; `columns` are those that have a place of their own, `scorers` the names of those whose scores are shown. */
export function Line({ id, place, top, grid, row, cells, search, columns, scorers, isCurrent, isOpen, onOpen }) {
  const any = Array.isArray(cells) ? cells.find(Boolean) : null;
  const text = (value) => (any ? shown(plain(value ?? null, 220), search) : "…");
  const held = (column) => {
    if (column.number !== undefined) return html`<${Answer} grid=${grid} number=${column.number} row=${row} held=${Array.isArray(cells) ? cells[column.number] : undefined} scorers=${scorers} search=${search} />`;
    if (column.key === "duration") return durations(grid, row);
    if (column.attribute !== undefined) return text(any?.attributes[column.attribute] ?? "");
    if (column.key === "input" && cells?.error) return html`<span class="failed">${cells.error}</span>`;
    return any?.[column.key] === null ? "" : text(any?.[column.key]);
  };
  return html`<div role="row" id=${id} class=${`line${isCurrent ? " current" : ""}${isOpen ? " opened" : ""}`} aria-rowindex=${place + 2} aria-selected=${isOpen} style=${{ ...template(columns), top: `${top}px` }} onClick=${onOpen}>
    <span role="rowheader" class="which">${String(grid.index[row])}${grid.replication[row] ? html`<span class="muted"> · ${grid.replication[row] + 1}</span>` : null}</span>
    ${columns.map((column) => html`<span role="gridcell" class=${column.number === undefined ? "clip" : "answer"} dir=${column.number === undefined ? "auto" : null}>${held(column)}</span>`)}
  </div>`;
}

/** How long the call of each task took. */
const durations = (grid, row) => grid.tasks.map((task, t) => (grid.places[t][row] < 0 ? "–" : seconds(task.columns.duration[grid.places[t][row]]))).join(" · ");

function Answer({ grid, number: t, row, held, scorers, search }) {
  const place = grid.places[t][row];
  const { head, columns } = grid.tasks[t];
  if (place < 0) return html`<span class="muted">${isCut(grid.tasks[t]) ? "not in this report" : "no such row"}</span>`;
  const outcome = head.outcomes[columns.outcome[place]];
  return html`<span class="clip" dir="auto">${held === undefined ? "…" : said(held, search)}</span>
    <span class="pills">${pills(head, columns, place, outcome, scorers, held)}</span>`;
}

export function said(row, search) {
  if (row === null) return "";
  if (row.error) return html`<span class="failed">${shown(`${row.error.type}: ${row.error.message}`.slice(0, 220), search)}</span>`;
  if (row.responses === null) return html`<span class="unscored">no answer</span>`;
  return shown(row.responses.map((cell) => plain(cell, 220)).join(" | ") || "(an empty list)", search);
}

/** Pills of the scorers, of many the first; a call that failed, is not graded or is alike for all scorers has one for itself. */
function pills(head, columns, place, outcome, scorers, held) {
  const graded = head.scorers.map((scorer, s) => [scorer, s, head.statuses[columns[`status-${s}`][place]]]).filter(([, , status]) => status);
  const statuses = new Set(graded.map(([, , status]) => status));
  if (!graded.length || (graded.length > 1 && statuses.size === 1 && !statuses.has("scored"))) return html`<span class=${`pill ${CLASS_OF_OUTCOME[outcome]}`}>${outcome}</span>`;
  const found = graded.filter(([scorer]) => scorers.has(scorer.name)).flatMap(([scorer, s, status]) => {
    const value = columns[`value-${s}`][place];
    const several = Number.isNaN(value) && held ? held.scores.flatMap((score) => (score.scorer === s ? scoreNumbers(score) ?? [] : [])) : [];
    if (several.length) return several.map(([name, number]) => ({ scorer: head.scorers.length > 1 ? `${scorer.name} ${name}` : name, text: number, kind: "none" }));
    const label = scorer.labels?.[columns[`label-${s}`][place] - 1];
    const text = status !== "scored" ? status : Number.isNaN(value) ? (label ?? "scored") : scorer.binary && !scorer.wrong ? (value ? "✓" : "✗") : number(value);
    return [{ scorer: scorer.name, text: String(text), kind: kindOf(scorer, status, value), isUnnamed: head.scorers.length === 1, said: scorer.binary && status === "scored" ? (value === scorer.wrong ? "wrong" : "right") : null }];
  });
  const seen = found.length > MOST_PILLS ? found.slice(0, MOST_PILLS - 1) : found;
  const rest = found.slice(seen.length).map(({ scorer, text }) => `${scorer}: ${snippet(text)}`).join("\n");
  return html`${seen.map((pill) => html`<${Pill} ...${pill} />`)}${rest && html`<span class="pill none" title=${rest}>+${found.length - seen.length}<span class="unseen"> ${shown(rest)}</span></span>`}`;
}

const MOST_PILLS = 4; // that a row has room for

const kindOf = (scorer, status, value) => (status === "failed" ? "failed" : status !== "scored" ? "unscored" : scorer.binary ? (value === scorer.wrong ? "wrong" : "good") : "none");

const Pill = ({ scorer, text, kind, isUnnamed, said }) => html`<span class=${`pill ${kind}`} title=${`${scorer}: ${snippet(text)}`}><span class=${isUnnamed ? "unseen" : "of"}><${Name} of=${scorer} /> </span>${
  said ? html`<span aria-hidden="true">${text}</span><span class="unseen">${said}</span>` : shown(text)}</span>`;
