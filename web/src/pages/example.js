// One example: what it asks and expects, and what every run answered.
import { html } from "htm/preact";
import { useState } from "preact/hooks";
import { address } from "../address.js";
import { isServed, pathOf, useRead } from "../source.js";
import { minute, plural, seconds, shown, snippet, textOf, word } from "../text.js";
import { Block, Heading, Level, Definitions } from "../parts/cell.js";
import { Head, Loaded, Problem } from "../parts/frame.js";
import { Answer, OUTCOMES, OUTCOME_CLASS, Outcome, RowDetail, traceAddress } from "../parts/row.js";
import { ScoreList, scoreValues } from "../parts/scores.js";

export function ExamplePage({ parts: [dataset = "", index = ""] }) {
  const found = useRead(isServed ? `example/${pathOf(dataset, index)}` : null);
  if (!isServed) return html`<${Problem} text="An example in all runs is shown by a server only: evaluand view" />`;
  return html`<${Loaded} found=${found}>${(example) => html`<${Example} example=${example} />`}</${Loaded}>`;
}

function Example({ example }) {
  const { dataset, runs } = example;
  const newest = runs.filter((one, i) => runs.findIndex((other) => other.task === one.task) === i);
  const older = runs.filter((one) => !newest.includes(one));
  const command = runs[0]?.command ?? `evaluand show ${dataset.id.slice(0, 12)}`;
  const hasId = example.id !== null && example.id !== example.index;
  const isLong = hasId && example.id.length > MOST;
  const within = { name: dataset.name ?? dataset.id.slice(0, 12), to: address(["d", dataset.id]) };
  return html`<${Head} title=${`Example ${example.index}${hasId && !isLong ? ` (${example.id})` : ""}`} kind="Example" within=${within}>
      <p class="meta">${isLong && html`id <bdi>${shown(example.id)}</bdi> · `}of the dataset <a href=${within.to}><bdi>${shown(within.name)}</bdi></a> · ${plural(newest.length, "task")}, ${plural(runs.length, "run")} with this example${
        example.n_runs > example.n_read && ` among the newest ${word.format(example.n_read)} of ${word.format(example.n_runs)}`}</p></${Head}>
    <${Level.Provider} value=${2}><section class="detail" aria-label="Example"><div class="sides">
      <div><${Heading}>Input</${Heading}><${Block} cell=${example.input} command=${command} />${
        example.image && html`<p class="picture"><img src=${example.image} alt="The image that the input names" /></p>`}</div>
      ${example.expected !== null && html`<div><${Heading}>Expected</${Heading}><${Block} cell=${example.expected} command=${command} /></div>`}</div>
      <${Facts} of=${example.attributes} title="Attributes" /><${Facts} of=${example.metadata} title="Metadata" /></section></${Level.Provider}>
    <section aria-labelledby="answers"><h2 id="answers">Answers</h2>
      ${newest.length ? html`<div class="cards">${newest.map((run) => html`<${RunCard} key=${run.run} run=${run} />`)}</div>`
        : html`<p class="muted">No finished run over this dataset has this example.</p>`}</section>
    ${older.length > 0 && html`<section aria-labelledby="history"><h2 id="history">History over runs</h2><${History} runs=${older} /></section>`}`;
}

const MOST = 24; // characters of an id in a heading

function Facts({ of, title }) {
  const pairs = Object.entries(of).map(([name, cell]) => [name, cell === null ? "none" : textOf(cell).slice(0, 2000)]);
  return pairs.length > 0 && html`<${Heading}>${title}</${Heading}><${Definitions} pairs=${pairs} />`;
}

/** What one run answered: one repeat at a time, and all of its row when asked. */
function RunCard({ run }) {
  const [chosen, choose] = useState(0);
  const [whole, tell] = useState(false);
  const row = run.rows[chosen];
  const head = { scorers: run.scorers, dataset: null };
  return html`<article class="card" aria-label=${`Answer of ${run.task}`}>
    <header><h3><bdi>${shown(run.task)}</bdi></h3><${Outcome} of=${row.outcome} /></header>
    <p class="cut"><bdi>${shown(run.names[0] ?? run.run.slice(0, 12))}</bdi> · ${minute(run.created)} · ${seconds(row.duration)}${row.usage && html` · ${shown(row.usage)}`}</p>
    ${run.rows.length > 1 && html`<div class="chips" role="group" aria-label="Replications">${run.rows.map((one, i) => html`
      <button type="button" class="chip" aria-pressed=${String(i === chosen)} onClick=${() => choose(i)}>${one.replication} <span class=${`mark ${OUTCOME_CLASS[one.outcome]}`}>${OUTCOMES[one.outcome]}</span></button>`)}</div>`}
    <div class="detail"><${Answer} row=${row} command=${run.command} /></div>
    ${row.scores.length > 0 && html`<${ScoreList} row=${row} head=${head} />`}
    ${run.evaluation === null && html`<p class="cut">not evaluated</p>`}
    <${Labels} of=${run.labels} place=${chosen} />
    <p class="links"><a href=${traceAddress(run.run, row)} aria-label=${`Trace of ${run.task}`}>Trace</a></p>
    <details onToggle=${(event) => tell(event.currentTarget.open)}><summary class="cut">all of this row</summary>
      ${whole && html`<div class="detail"><${RowDetail} row=${row} head=${head} command=${run.command} /></div>`}</details></article>`;
}

/** What people say of the answers. */
function Labels({ of, place }) {
  const scores = of?.scores[place] ?? [];
  return scores.length > 0 && html`<div role="group" aria-label="Labels by people"><p class="cut">Labels by people</p><${ScoreList} row=${{ scores, n_scores: scores.length }} head=${of} /></div>`;
}

const History = ({ runs }) => html`<div class="scroll" role="region" aria-label="Earlier runs" tabindex="0"><table class="numbers small">
  <thead><tr>${["run", "task", "when", "outcome", "answer", "scores", "trace"].map((name) => html`<th scope="col" class="text">${name}</th>`)}</tr></thead>
  <tbody>${runs.map((run) => html`<${Entry} key=${run.run} run=${run} />`)}</tbody></table></div>`;

function Entry({ run }) {
  const [row] = run.rows;
  const answer = row.error ? `${row.error.type}: ${row.error.message}` : (row.responses ?? []).map((cell) => snippet(cell, 80)).join(" · ");
  const counts = OUTCOMES.map((name, i) => [name, run.rows.filter((one) => one.outcome === i).length]).filter(([, n]) => n);
  return html`<tr><th scope="row"><bdi>${shown(run.names[0] ?? run.run.slice(0, 12))}</bdi></th><td class="text"><bdi>${shown(run.task)}</bdi></td>
    <td class="text when">${minute(run.created)}</td>
    <td class=${`text ${OUTCOME_CLASS[row.outcome]}`}>${run.rows.length > 1 ? counts.map(([name, n]) => `${name} ${n}`).join(", ") : OUTCOMES[row.outcome]}</td>
    <td class="text">${shown(answer.slice(0, 80))}</td>
    <td class="text">${scoreValues(row, run).slice(0, 6).map(([name, value], i) => html`${i > 0 && " · "}<span class="muted"><bdi>${shown(name)}</bdi></span> <b><bdi>${shown(value)}</bdi></b>`)}</td>
    <td class="text"><a href=${traceAddress(run.run, row)} aria-label=${`Trace of ${run.names[0] ?? run.task} on ${minute(run.created)}`}>trace</a></td></tr>`;
}
