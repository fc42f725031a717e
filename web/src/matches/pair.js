// One pair: what was asked, both responses side by side, what differs, and what each judge said in each order.
import { html } from "htm/preact";
import { useState } from "preact/hooks";
import { address } from "../address.js";
import { Block, Heading } from "../parts/cell.js";
import { Command } from "../parts/command.js";
import { Diff } from "../parts/diff.js";
import { traceAddress } from "../parts/row.js";
import { SpanTree } from "../parts/trace.js";
import { isServed } from "../source.js";
import { Name, number, shown, textOf, word } from "../text.js";

export const rounded = (share) => (share === null ? "–" : Number.isInteger(share) ? number(share) : share.toFixed(2));

export const whichOf = (pair) => `${pair.index}${pair.replication ? `, repeat ${pair.replication}` : ""}`;

const EQUAL = 3;

export function Pair({ pair, head, won }) {
  const [differs, show] = useState(false);
  const set = head.sets[pair.set];
  const systems = [pair.a, pair.b];
  const runs = systems.map((system) => set.runs[system] ?? null);
  const commands = runs.map((run) => (run ? `evaluand show ${run.slice(0, 12)}${head.store} --index ${pair.index} --json` : `evaluand export ${set.id.slice(0, 12)}${head.store}`));
  const texts = pair.responses.map(textOf);
  const isNews = pair.id !== null && pair.id !== pair.index && pair.id !== textOf(pair.input).slice(0, pair.id.length);
  return html`<div class="detail">
    <${Heading}>Input${isNews && html` of <${Name} of=${pair.id} />`}</${Heading}><${Block} cell=${pair.input} command=${commands[0]} />
    <div class="sides">${systems.map((system, i) => html`<div key=${i}><${Heading}><${Name} of=${head.systems[system]} />${system === won && html` <span class="pill good">won</span>`}</${Heading}>
      ${pair.responses[i] === null || pair.responses[i] === undefined ? html`<p class="unscored">no response is stored</p>` : html`<${Block} cell=${pair.responses[i]} command=${commands[i]} />`}
      <${Style} counts=${pair.styles[i]} names=${head.style} />
      ${isServed && runs[i] && html`<p class="links"><a href=${traceAddress(runs[i], pair)}>Trace of <${Name} of=${head.systems[system]} /></a></p>`}</div>`)}</div>
    ${texts.every(Boolean) && html`<details open=${differs} onToggle=${(event) => show(event.currentTarget.open)}><summary>What differs, word by word</summary>
      ${differs && html`<p class="cut"><del>only <${Name} of=${head.systems[pair.a]} /></del> · <ins>only <${Name} of=${head.systems[pair.b]} /></ins></p><${Diff} first=${texts[0]} second=${texts[1]} />`}</details>`}
    <${Heading}>Judgements</${Heading}><${Judgements} pair=${pair} head=${head} command=${commands[0]} />
    ${pair.said.filter((said) => said[10] !== null).map((said, i) => html`<${Steps} key=${i} said=${said} pair=${pair} head=${head} command=${commands[0]} />`)}
    ${set.tasks && html`<p class="links">${systems.map((system) => set.tasks[system] && html`<a href=${exampleLink(set.tasks[system], pair)}>The scores of <${Name} of=${head.systems[system]} /></a>`)}</p>`}
    ${isServed && set.dataset && html`<p class="links"><a href=${address(["x", set.dataset, pair.index])}>This example in all runs</a></p>`}
    <p><${Command} text=${commands[0]} /></p></div>`;
}

const exampleLink = (task, pair) => `#example=${encodeURIComponent(task)}/${pair.index}${pair.replication ? `/${pair.replication}` : ""}`;

function Style({ counts, names }) {
  if (!counts) return null;
  const noun = (i) => (counts[i] === 1 ? names[i].replace(/s$/, "") : names[i]);
  const parts = counts.map((n, i) => (names[i] === "bold" ? (n ? `${word.format(n)} in bold` : null) : i < 2 || n ? `${word.format(n)} ${noun(i)}` : null));
  return html`<p class="cut">${parts.filter(Boolean).join(" · ")}</p>`;
}

/** What was said with each system first, by each judge. */
function Judgements({ pair, head, command }) {
  const has = (place) => pair.said.some((said) => said[place] !== null);
  const isExplained = pair.outcome === EQUAL || pair.said.some((said) => said[1] !== "scored") || [6, 7, 8].some(has);
  const columns = [["share", "", true], ["strength", "", has(3)], ["label", "text", has(4)], ["judge", "text", has(5)], ["usage", "text", has(9)], ["why", "text", isExplained]].filter(([, , isThere]) => isThere);
  const more = pair.n_said > pair.said.length ? `; the first ${pair.said.length} of ${word.format(pair.n_said)} judgements` : "";
  return html`<div class="scroll" role="region" aria-label="Judgements" tabindex="0"><table class="numbers">
    <caption><span>Share: what the first system, <${Name} of=${head.systems[pair.a]} />, gets of the win${more}</span></caption>
    <thead><tr><th scope="col" class="text">shown first</th><th scope="col" class="text">winner</th>${columns.map(([name, kind]) => html`<th scope="col" class=${kind}>${name}</th>`)}</tr></thead>
    <tbody>${pair.said.map((said, i) => html`<tr key=${i}><th scope="row">${pair.outcome === EQUAL ? "–" : html`<${Name} of=${head.systems[said[0] === "ab" ? pair.a : pair.b]} />`}</th>
      <td class="text value">${winner(said[2], pair, head)}</td>${columns.map(([name, kind]) => html`<td class=${kind} dir=${name === "why" ? "auto" : null}>${cellOf(name, said, pair, command)}</td>`)}</tr>`)}</tbody></table></div>`;
}

function winner(share, pair, head) {
  if (share === null) return "–";
  return share === 0.5 ? "tie" : html`<${Name} of=${head.systems[share > 0.5 ? pair.a : pair.b]} />`;
}

function cellOf(name, [, status, share, strength, label, judge, reason, explanation, data, usage], pair, command) {
  if (name === "share") return rounded(share);
  if (name === "strength") return number(strength);
  if (name === "label") return html`<${Name} of=${label ?? ""} />`;
  if (name === "judge") return html`<${Name} of=${judge ?? ""} />`;
  if (name === "usage") return html`<${Name} of=${usageText(usage)} />`;
  return html`${status !== "scored" && html`<span class=${status === "failed" ? "failed" : "unscored"}>${status}</span>${reason ? ": " : ""}`}
    ${pair.outcome === EQUAL && "equal responses tie without a judge"}
    ${[reason, explanation].map((cell) => cell !== null && html`<${Said} cell=${cell} command=${command} />`)}
    ${data !== null && html`<${Block} cell=${data} command=${command} />`}`;
}

const SENTENCE = 400;

/** A sentence in the line, a long text as a block. */
const Said = ({ cell, command }) => (typeof cell === "string" && cell.length <= SENTENCE ? html`<bdi>${shown(cell)}</bdi>${" "}` : html`<${Block} cell=${cell} command=${command} />`);

function usageText(usage) {
  const entries = Object.entries(usage ?? {}).filter(([name, value]) => value !== 0 || name === "cost");
  return entries.map(([name, value]) => `${name.replaceAll("_", " ")} ${typeof value === "number" ? number(value) : value}`).join(", ");
}

/** What a judge did inside a call, if it was traced. */
function Steps({ said, pair, head, command }) {
  const [n, spans] = said[10];
  return html`<details class="judge-steps"><summary>Steps of the judge with <${Name} of=${head.systems[said[0] === "ab" ? pair.a : pair.b]} /> shown first</summary>
    <${SpanTree} row=${{ spans, n_spans: n }} search="" command=${command} /></details>`;
}
