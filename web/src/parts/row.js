// All of a row: what was asked, expected and answered, its scores with their reasons, and how it came about.
import { html } from "htm/preact";
import { address } from "../address.js";
import { isServed } from "../source.js";
import { seconds, shown, word } from "../text.js";
import { Block, Cut, Heading, Definitions } from "./cell.js";
import { Boxes } from "./boxes.js";
import { Chats } from "./chat.js";
import { Marks } from "./marks.js";
import { Asked, Scores } from "./scores.js";
import { SpanTree } from "./trace.js";

export const OUTCOMES = ["failed", "not scored", "wrong", "right", "scored", "answered"];
export const OUTCOME_CLASS = ["failed", "unscored", "wrong", "good", "good", "good"];

export const Outcome = ({ of }) => html`<span class=${`pill ${OUTCOME_CLASS[of]}`}>${OUTCOMES[of]}</span>`;

/**
 * The detail of a row.
 *
 * `row` is one of a piece, `head` says what the numbers of its scorers mean, `search` is in lower case, and `command`
 * shows what was cut. Without `hasExample`, input and expected are shown elsewhere. With `run`, there are links to the trace and, by `head.dataset`, to the example, where a server
 * shows them.
 */
export function RowDetail({ row, head, search = "", command, run = null, hasExample = true }) {
  return html`${hasExample && html`<${Heading}>Input</${Heading}><${Block} cell=${row.input} search=${search} command=${command} />`}
    <${Marks} row=${row} search=${search} /><${Boxes} row=${row} />
    <div class="sides">
      ${hasExample && row.expected !== null && html`<div><${Heading}>Expected</${Heading}><${Block} cell=${row.expected} search=${search} command=${command} /></div>`}
      <div><${Answer} row=${row} search=${search} command=${command} /></div></div>
    ${row.scores.length > 0 && html`<${Heading}>Scores</${Heading}><${Scores} row=${row} head=${head} search=${search} command=${command} />
      <${Asked} row=${row} head=${head} search=${search} command=${command} />`}
    <${Chats} row=${row} search=${search} command=${command} />
    ${row.spans.length > 0 && html`<${Heading}>Trace</${Heading}><${SpanTree} row=${row} search=${search} command=${command} />`}
    <${Heading}>About this row</${Heading}><${About} row=${row} search=${search} />
    ${run !== null && isServed && html`<p class="links"><a href=${traceAddress(run, row)}>The whole trace</a>${
      head.dataset && html`<a href=${address(["x", head.dataset, row.index])}>This example in all runs</a>`}</p>`}`;
}

export const traceAddress = (run, row) => address(["t", run, row.index, ...(row.replication ? [String(row.replication)] : [])]);

/** The responses or the error, each with its heading. */
export function Answer({ row, search = "", command }) {
  if (row.error) return html`<${Heading}>Error</${Heading}><${Failure} error=${row.error} search=${search} />`;
  if (row.responses === null) return html`<${Heading}>Response</${Heading}><p class="unscored">no answer</p>`;
  const more = row.n_responses - row.responses.length;
  return html`${row.responses.map((cell, i) => html`
      <${Heading}>${row.responses.length > 1 ? `Response ${i + 1} of ${word.format(row.n_responses)}` : "Response"}</${Heading}>
      <${Block} cell=${cell} search=${search} command=${command} />`)}
    ${!row.responses.length && html`<${Heading}>Response</${Heading}><p class="cut">an empty list</p>`}
    ${more > 0 && html`<${Cut} text=${`${word.format(more)} responses more`} command=${command} />`}`;
}

const Failure = ({ error, search }) => html`<pre class="text-block bad" dir="auto" tabindex="0">${
  shown(`${error.type}: ${error.message}${error.code === null ? "" : ` [${error.code}]`}`, search)}${
  error.place && html`${"\n"}<span class="muted">at ${shown(error.place)}</span>`}</pre>`;

export function About({ row, search = "" }) {
  const pairs = [];
  if (row.id !== null && row.id !== row.index) pairs.push(["id", row.id]);
  for (const [name, value] of Object.entries(row.attributes)) pairs.push([name, value ?? "none"]);
  for (const [name, value] of Object.entries(row.metadata)) pairs.push([name, value]);
  pairs.push(["call", callText(row)]);
  if (row.usage) pairs.push(["used", row.usage]);
  return html`<${Definitions} pairs=${pairs} search=${search} />`;
}

const callText = (row) => `${row.status}${row.attempts > 1 ? ` in ${row.attempts} attempts` : ""}, ${seconds(row.duration)}${
  row.started === null ? "" : `, begun ${new Date(row.started * 1000).toISOString().slice(0, 19).replace("T", " ")} UTC`}`;
