// Judges: which there are and whether they were measured; of one, its rubric, its card, and where people disagree.
import { html } from "htm/preact";
import { address } from "../address.js";
import { Block, Heading } from "../parts/cell.js";
import { Command } from "../parts/command.js";
import { Head, Loaded } from "../parts/frame.js";
import { Markup } from "../parts/markup.js";
import { canLabel, pathOf, useRead } from "../source.js";
import { Name, interval, minute, number, plural, sentence, shown, word } from "../text.js";
import { ExampleLink } from "./dataset.js";

const SHORT = 12;
const STATUS = { measured: "good", weak: "unscored", stale: "unscored", unmeasured: "failed" };

export function JudgesPage({ parts: [id] }) {
  const found = useRead(id === undefined ? "judges" : pathOf("judge", id));
  return html`<${Loaded} found=${found}>${(facts) => (id === undefined ? html`<${List} ...${facts} />` : html`<${Judge} facts=${facts} />`)}</${Loaded}>`;
}

const Status = ({ of }) => of && html`<span class=${`pill ${STATUS[of]}`}>${of}</span>`;

function List({ judges, cards }) {
  return html`<${Head} title="Judges" kind="Judges"><p class="meta">${plural(judges.length, "judge")} in the evaluations and matches of this store</p></${Head}>
    ${!judges.length && html`<p class="muted">No model has judged anything here.</p>`}
    <ul class="entries">${judges.map((judge) => html`<li class="entry" key=${judge.id}><div class="title"><a href=${address(["j", judge.id])}><${Name} of=${judge.judge} /></a> <${Status} of=${judge.status} />
      ${judges.some((other) => other !== judge && other.judge === judge.judge && other.model === judge.model) && html`<code>${judge.id.slice(0, SHORT)}</code>`}
      ${judge.model && html`<span class="muted">model <${Name} of=${judge.model} /></span>`}<span class="muted">${plural(judge.n_uses, "use")}</span></div>
      <p>${sentence(judge.text)}</p><${ToLabel} run=${judge.label} /><${Uses} uses=${judge.uses.slice(0, 5)} n=${judge.n_uses} /></li>`)}</ul>
    ${cards.length > 0 && html`<h2>Cards of other judges</h2><ul class="entries">${cards.map((card) => html`<li class="entry" key=${card.id}><div class="title"><a href=${address(["j", card.id])}><${Name} of=${card.name} /></a></div><p>${shown(card.text)}</p></li>`)}</ul>`}`;
}

/** The way to label what a judge judged, if that is to be done first. */
const ToLabel = ({ run }) => canLabel && run && html`<p><a href=${address(["l", run])}>Label these answers</a></p>`;

const ROUTES = { evaluations: "v", matches: "v" };

const Uses = ({ uses, n }) => html`<ul class="tiles">${uses.map((use) => html`<li><a href=${address([ROUTES[use.kind], use.id])}><${Name} of=${use.names[0] ?? use.id.slice(0, SHORT)} /></a> <span class="muted">${minute(use.created)}</span></li>`)}
  ${n > uses.length && html`<li class="muted">and ${word.format(n - uses.length)} more</li>`}</ul>`;

function Judge({ facts }) {
  const { judge, status, asked, label, section, uses, n_uses: n, confusion, calibration, misses, command } = facts;
  return html`<${Head} title=${judge} kind="Judge"><p class="meta"><${Status} of=${status} /> <a href=${address(["j"])}>all judges</a></p></${Head}>
    ${asked.length > 0 && html`<${Asked} asked=${asked} />`}
    <section class="of-report" aria-labelledby="card-title"><h2 id="card-title">Agreement with people</h2><${Markup} of=${section} /><${ToLabel} run=${label} /></section>
    ${confusion.length > 0 && html`<section aria-labelledby="confusion-title"><h2 id="confusion-title">Labels of people and judge</h2><${Confusion} rows=${confusion} /></section>`}
    ${calibration.length > 0 && html`<section aria-labelledby="calibration-title"><h2 id="calibration-title">Calibration</h2><${Calibration} rows=${calibration} /></section>`}
    ${misses.length > 0 && html`<section aria-labelledby="misses-title"><h2 id="misses-title">Where people disagree most with the judge</h2><div class="cards">${misses.map((miss) => html`<${Miss} miss=${miss} command=${command} />`)}</div></section>`}
    <section aria-labelledby="uses-title"><h2 id="uses-title">What it judged</h2>${n ? html`<${Uses} uses=${uses} n=${n} />` : html`<p class="muted">Nothing in this store.</p>`}</section>
    ${command && html`<p class="links"><${Command} text=${command} /></p>`}`;
}

const Asked = ({ asked }) => html`<ul class="words">${asked.map((each) => html`<li>${each.title !== null && html`rubric <${Name} of=${each.title} />, `}model <${Name} of=${each.model ?? "unknown"} />${
  each.version ? html` (version <${Name} of=${each.version} />)` : ""}, ${shown(each.protocol ?? "")}${each.samples > 1 && `, ${word.format(each.samples)} samples`}</li>`)}</ul>`;

function Confusion({ rows }) {
  const words = (side) => [...new Set(rows.map((row) => row[side]))];
  const [people, judge] = ["people", "judge"].map(words);
  const at = (one, other) => rows.find((row) => row.people === one && row.judge === other)?.n ?? 0;
  return html`<div class="scroll" role="region" aria-label="Table of labels" tabindex="0"><table class="numbers"><caption><span>How often each label of people (rows) met each one of the judge (columns)</span></caption>
    <thead><tr><th scope="col" class="text">people</th>${judge.map((each) => html`<th scope="col"><${Name} of=${each} /></th>`)}</tr></thead>
    <tbody>${people.map((one) => html`<tr><th scope="row"><${Name} of=${one} /></th>${judge.map((other) => html`<td class=${one === other ? "value" : null}>${word.format(at(one, other))}</td>`)}</tr>`)}</tbody></table></div>`;
}

const Calibration = ({ rows }) => html`<div class="scroll" role="region" aria-label="Table of calibration" tabindex="0"><table class="numbers"><caption><span>What people gave the answers that the judge gave about the same number</span></caption>
  <thead><tr>${["judge", "people", "interval", "answers"].map((head) => html`<th scope="col">${head}</th>`)}</tr></thead>
  <tbody>${rows.map((row) => html`<tr><td>${number(row.judge)}</td><td class="value">${number(row.people)}</td><td>${interval(row.low, row.high)}</td><td>${word.format(row.n)}</td></tr>`)}</tbody></table></div>`;

const Miss = ({ miss, command }) => html`<article class="card" aria-label=${`Example ${miss.id}`}>
  <header><h3>${miss.dataset ? html`<${ExampleLink} dataset=${miss.dataset} index=${miss.index} name=${miss.id} />` : html`<${Name} of=${miss.id} />`}</h3></header>
  <p>People: <b><${Name} of=${miss.people} /></b>; judge: <b><${Name} of=${miss.judge} /></b></p>
  ${miss.explanation && html`<p class="note">${shown(miss.explanation)}</p>`}
  <div class="detail">${Object.entries(miss.texts).map(([name, cell]) => html`<${Heading}>${shown(name)}</${Heading}><${Block} cell=${cell} command=${command} />`)}</div></article>`;
