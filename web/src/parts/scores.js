// What each scorer gave, and why: as a table, as a short list, and call by call for feedbacks.
import { html } from "htm/preact";
import { number, shown, textOf, word } from "../text.js";
import { Block, Cut, Heading } from "./cell.js";

/** The names and numbers of a cell that holds an object of numbers; null for any other cell. */
function namedNumbers(cell) {
  if (!cell?.j || cell.c) return null;
  const held = JSON.parse(cell.j);
  const pairs = held !== null && typeof held === "object" && !Array.isArray(held) ? Object.entries(held) : [];
  return pairs.length && pairs.every(([, value]) => typeof value === "number") ? pairs.map(([name, value]) => [name, number(value)]) : null;
}

/** The numbers of a score that has several, each with its name; null for any other score. */
export const scoreNumbers = (score) => (score.value === null ? namedNumbers(score.data) : null);

/** The scores of a row as names and values. */
export const scoreValues = (row, head) => row.scores.flatMap((score) =>
  (scoreNumbers(score) ?? [["", score.value === null ? (score.label ?? (score.status === "scored" ? "–" : score.status)) : number(score.value)]])
    .map(([key, value]) => [[head.scorers[score.scorer].name, score.target, key].filter(Boolean).join(" "), value]));

const NumberList = ({ pairs }) => html`<dl class="pairs">${pairs.map(([name, value]) => html`<dt><bdi>${shown(name)}</bdi></dt><dd><b>${value}</b></dd>`)}</dl>`;

const STATUS_CLASS = (status) => (status === "failed" ? "failed" : "unscored");

export function Scores({ row, head, search, command }) {
  const targets = row.scores.some((score) => score.target !== null);
  const many = row.scores.some((score) => score.response > 0);
  const names = ["scorer", ...(targets ? ["target"] : []), ...(many ? ["response"] : []), "value", "label", "why"];
  const caption = row.n_scores > row.scores.length ? `The first ${row.scores.length} of ${word.format(row.n_scores)} scores` : "What each scorer gave, and why";
  return html`<div class="scroll stacks" role="group" aria-label="Scores" tabindex="0"><table class="numbers stacked"><caption><span>${caption}</span></caption>
    <thead><tr>${names.map((name) => html`<th scope="col" class=${["value", "response"].includes(name) ? null : "text"}>${name}</th>`)}</tr></thead>
    <tbody>${row.scores.map((score) => html`<tr>
      <th scope="row"><bdi>${shown(head.scorers[score.scorer].name)}</bdi></th>
      ${targets && html`<td class="text" data-head="target">${shown(score.target ?? "")}</td>`}
      ${many && html`<td data-head="response">${score.response === null ? "" : String(score.response + 1)}</td>`}
      <td class="value">${number(score.value)}</td><td class="text"><bdi>${shown(score.label ?? "")}</bdi></td>
      <td class="text long"><${Why} score=${score} search=${search} command=${command} /></td></tr>`)}</tbody></table></div>`;
}

function Why({ score, search, command }) {
  const several = scoreNumbers(score);
  return html`${score.status !== "scored" && html`<span class=${STATUS_CLASS(score.status)}>${score.status}</span>${score.reason ? ": " : ""}`}
    ${["reason", "explanation"].map((name) => score[name] && html`<bdi>${shown(score[name], search)}</bdi>${" "}`)}
    ${Object.entries(score.columns ?? {}).map(([name, value]) => html`<span class="muted">${shown(`${name} `)}</span><bdi>${shown(value, search)}</bdi>${"  "}`)}
    ${several ? html`<${NumberList} pairs=${several} />` : score.data && html`<${Block} cell=${score.data} search=${search} command=${command} />`}`;
}

/** The scores in little room: a name, a value and why. */
export const ScoreList = ({ row, head }) => html`<ul class="score-list">${row.scores.map((score) => html`<li>
  <bdi class="name">${shown([head.scorers[score.scorer].name, score.target, score.response > 0 ? `response ${score.response + 1}` : null].filter(Boolean).join(" "))}</bdi>${" "}
  ${score.status === "scored" ? scoreNumbers(score) ? html`<${NumberList} pairs=${scoreNumbers(score)} />`
    : score.value === null && score.label ? html`<b><bdi>${shown(score.label)}</bdi></b>`
      : html`<b>${number(score.value)}</b>${score.label && html`<span class="muted"> · <bdi>${shown(score.label)}</bdi></span>`}`
    : html`<span class=${STATUS_CLASS(score.status)}>${score.status}</span>`}
  ${["reason", "explanation"].map((name) => score[name] && html`<span class="because" dir="auto">${shown(score[name])}</span>`)}</li>`)}
  ${row.n_scores > row.scores.length && html`<li class="cut">${word.format(row.n_scores - row.scores.length)} scores more</li>`}</ul>`;

/** What each feedback was asked about the row and what it said, call by call. */
export function Asked({ row, head, search, command }) {
  const judged = row.scores.filter((score) => score.calls);
  if (!judged.length) return null;
  const few = judged.reduce((n, score) => n + score.calls.length, 0) <= 8;
  return html`<${Heading}>What feedbacks were asked</${Heading}>${judged.map((score) => {
    const { name, aggregate } = head.scorers[score.scorer];
    const value = score.value !== null ? `${number(score.value)}, ` : scoreNumbers(score) ? "" : `${score.status}, `;
    const aggregated = score.n_calls === 1 ? "one call" : `${value}the ${aggregate ?? "aggregate"} of ${word.format(score.n_calls)} calls`;
    const more = score.n_calls - score.calls.length;
    return html`<details class="asked" open=${few}><summary><bdi>${shown(name)}</bdi><span class="time">${shown(aggregated)}</span></summary>
      <ol>${score.calls.map((call) => html`<${Call} call=${call} search=${search} />`)}</ol>
      ${more > 0 && html`<${Cut} text=${`${word.format(more)} calls more`} command=${command} />`}</details>`;
  })}`;
}

const LINE = 80;

function Call({ call, search }) {
  const several = namedNumbers(call.ret);
  const said = call.error !== null ? html`<span class="failed">${shown(call.error, search)}</span>`
    : call.ret === null ? html`<span class="unscored">no value</span>`
    : typeof call.ret === "number" ? html`<b>${number(call.ret)}</b>` : html`<code>${shown(textOf(call.ret))}</code>`;
  const pairs = [...Object.entries(call.args), ...Object.entries(call.meta)];
  return html`<li>${several ? html`<${NumberList} pairs=${several} />` : html`<p>${said}</p>`}<dl class="pairs">${pairs.map(([name, cell]) => html`
    <dt>${shown(name)}</dt><dd dir="auto">${cell?.j?.length > LINE && !cell.c ? html`<${Block} cell=${cell} search=${search} />` : shown(textOf(cell), search)}${cell?.c > 0 && html`<span class="muted"> … (${word.format(cell.c)} characters more)</span>`}</dd>`)}</dl></li>`;
}
