// Two evaluations compared: differences with intervals, groups that got worse, a gate, and the rows that differ.
import { html } from "htm/preact";
import { useEffect, useState } from "preact/hooks";
import { address, change, go, state } from "../address.js";
import { Grid } from "../grid/grid.js";
import { Command } from "../parts/command.js";
import { Head, Loaded, Problem, Waiting } from "../parts/frame.js";
import { Markup } from "../parts/markup.js";
import { isServed, pathOf, useRead } from "../source.js";
import { Name, ended, interval, minute, number, plainly, plural, shown, word } from "../text.js";

export function ComparePage({ parts: [id] }) {
  return id === undefined ? html`<${Chosen} />` : html`<${Stored} id=${id} />`;
}

/** A stored comparison: of two evaluations their differences, of more a choice of two. */
function Stored({ id }) {
  const found = useRead(isServed ? pathOf("comparison", id) : null);
  const tasks = found.value?.tasks ?? [];
  const isPair = tasks.length === 2;
  useEffect(() => { if (isPair) go(address(["c"], { a: tasks[0].evaluation, b: tasks[1].evaluation }), true); }, [isPair]);
  if (!isServed) return html`<${Problem} text=${NEEDS_SERVER} />`;
  return html`<${Loaded} found=${found}>${({ name, created, command }) => (isPair ? html`<${Waiting} />` : html`
    <${Head} title=${name ?? `comparison ${id.slice(0, 12)}`} kind="Comparison"><p class="meta">${minute(created)} · ${plural(tasks.length, "evaluation")}</p></${Head}>
    ${tasks.length > 2 ? html`<${Pairing} tasks=${tasks} />` : html`<p class="note">The store no longer has the evaluations that were compared.</p>`}
    <p><${Command} text=${command} /></p>`)}</${Loaded}>`;
}

const NEEDS_SERVER = "Two evaluations are compared by a server; start it with: evaluand view";

/** Chooses two evaluated tasks to compare; the second one of them is compared with the first. */
export function Pairing({ tasks }) {
  const [pair, choose] = useState([0, 1]);
  const select = (side, label) => html`<select aria-label=${label} value=${pair[side]} onChange=${(event) => choose(pair.with(side, Number(event.target.value)))}>
    ${tasks.map((task, i) => html`<option value=${i} selected=${i === pair[side]}>${plainly(task.task)}</option>`)}</select>`;
  const [a, b] = pair.map((place) => tasks[place]);
  return html`<p class="pairs-of">Compare ${select(1, "System")} with ${select(0, "Baseline")} ${a !== b && html`<a href=${address(["c"], { a: a.evaluation, b: b.evaluation })}>Compare them</a>`}</p>`;
}

function Chosen() {
  const [a, b] = ["a", "b"].map((name) => state.value.get(name));
  const found = useRead(a && b ? pathOf("compare", a, b) : null);
  if (!a || !b) return html`<${Problem} text="Choose two evaluations in the list to compare them." />`;
  if (!isServed) return html`<${Problem} text=${NEEDS_SERVER} />`;
  return html`<${Loaded} found=${found}>${(facts) => html`<${Compared} a=${a} b=${b} ...${facts} />`}</${Loaded}>`;
}

function Compared({ a, b, experiment, tasks, pairs, left_out: leftOut, caveats, grouped, meanings, confidence, families, attributes, command }) {
  const [first, second] = tasks.map((task) => task.task);
  return html`<${Head} title=${`${second} compared with ${first}`} kind="Comparison" within=${experiment && { name: experiment, to: address(["e", experiment]) }}>
      <p class="meta">Differences are <${Name} of=${second} /> minus <${Name} of=${first} /> over the rows that both have. <a href=${address(["c"], { a: b, b: a })}>Swap them</a></p></${Head}>
    <ul class="words verdicts">${pairs.map((pair) => html`<li>${shown(ended(`${pair.label}${pair.target === null ? "" : ` · ${pair.target}`}: ${pair.verdict ?? pair.reason ?? "not compared"}`))}</li>`)}</ul>
    ${attributes.length > 0 && html`<${WorseGroups} a=${a} b=${b} />`}
    ${caveats.length > 0 && html`<ul class="words warn" aria-label="Caveats">${caveats.map((each) => html`<li>${shown(ended(each))}</li>`)}</ul>`}
    <p><${Command} text=${command} /></p>
    <${Differences} pairs=${pairs} names=${[first, second]} confidence=${confidence} families=${families} />
    <${Markup} of=${meanings} />
    ${leftOut.length > 0 && html`<p class="note">Not compared: ${shown(leftOut.map((each) => `${each.metric} · ${each.scorer}: ${each.reason}`).join("; "))}.</p>`}
    <section aria-labelledby="gate-title"><h2 id="gate-title">Gate</h2><${Gate} a=${a} b=${b} names=${[first, second]} /></section>
    <section aria-labelledby="groups-title"><h2 id="groups-title">Groups</h2>${attributes.length
      ? html`<${Groups} a=${a} b=${b} names=${[first, second]} grouped=${grouped} />`
      : html`<p class="note">The dataset has no attributes to group by.</p>`}</section>
    <section aria-labelledby="rows-title"><h2 id="rows-title">Rows</h2><${Grid} tasks=${tasks.map((task) => ({ ...task, task: task.task }))} usual="differ" /></section>`;
}

const percent = (level) => `${Number((level * 100).toPrecision(6))} %`;
const p = (value) => (value === null ? "–" : value < 0.0001 ? "< 0.0001" : String(Number(value.toPrecision(2))));
const signed = (value) => (value === null ? "–" : value > 0 ? `+${number(value)}` : number(value));

function Differences({ pairs, names, confidence, families }) {
  const heads = ["metric", ...names, "difference", `${percent(confidence)} interval`, "p", "won", "tied", "lost", "detectable", "rows"];
  return html`<div class="scroll" role="region" aria-label="Differences" tabindex="0"><table class="numbers"><caption><span>Differences${families && `; p values: ${families}`}</span></caption>
    <thead><tr>${heads.map((head, i) => html`<th scope="col" class=${i ? "" : "text"}>${shown(head)}</th>`)}</tr></thead>
    <tbody>${pairs.map((pair) => html`<tr><th scope="row"><${Name} of=${pair.label} />${pair.target !== null && html` · <${Name} of=${pair.target} />`}${pair.family === "secondary" && " (secondary)"}</th>
      <td>${number(pair.value_a)}</td><td>${number(pair.value_b)}</td><td class="value">${signed(pair.difference)}</td>
      <td>${interval(pair.low, pair.high, signed)}</td><td>${p(pair.p_adjusted)}</td>
      ${["won", "tied", "lost"].map((name) => html`<td>${pair[name] === null ? "" : `${word.format(pair[name])}${pair.direction === null ? UNJUDGED[name] : ""}`}</td>`)}
      <td>${number(pair.detectable)}</td><td>${word.format(pair.n_used)} of ${word.format(pair.n)}</td></tr>`)}</tbody></table></div>`;
}

const UNJUDGED = { won: " higher", tied: "", lost: " lower" }; // of metrics of which neither is better

/** The groups that are shown to be worse by any metric; each opens the table of its metric. */
function WorseGroups({ a, b }) {
  const { value } = useRead(pathOf("compare-worse", a, b));
  if (!value?.n) return null;
  if (!value.groups.length) return html`<p class="note">No group is shown to be worse by any metric; ${plural(value.n, "difference")} of groups were tested, those by each metric together.</p>`;
  const open = (group) => (event) => { event.preventDefault(); change({ metric: String(group.number) }); document.getElementById("groups-title").scrollIntoView(); };
  return html`<ul class="words warn" aria-label="Groups that got worse">${value.groups.slice(0, MOST_WORSE).map((group) => html`<li>
      Worse in <a href="#groups-title" onClick=${open(group)}>${shown(nameOf(group))}</a> by <${Name} of=${group.metric} />: ${signed(group.difference)} ${group.low !== null && html`(${interval(group.low, group.high, signed)}), `}${group.p_adjusted === null ? "at all looks" : `p ${p(group.p_adjusted)}`} after adjustment for all ${plural(group.n_groups, "group")} by this metric</li>`)}
    ${value.groups.length > MOST_WORSE && html`<li>${plural(value.groups.length - MOST_WORSE, "group")} more</li>`}</ul>`;
}

const MOST_WORSE = 5;

const nameOf = ({ by, target }) => `${Object.entries(by).map(([name, value]) => `${name}=${value || "none"}`).join(", ")}${target === null ? "" : ` · ${target}`}`;

function Groups({ a, b, names, grouped }) {
  const chosen = Number(state.value.get("metric") ?? 0) || 0;
  const found = useRead(`${pathOf("compare-groups", a, b)}?metric=${chosen}`);
  return html`${grouped.length > 1 && html`<p class="pairs-of"><label>By <select value=${chosen} onChange=${(event) => change({ metric: event.target.value })}>
      ${grouped.map((metric, i) => html`<option value=${i} selected=${i === chosen}>${plainly(metric)}</option>`)}</select></label></p>`}
    <${Loaded} found=${found}>${(groups) => (groups.length === 0
    ? html`<p class="note">No metric of both has a direction, or no attribute makes groups.</p>`
    : html`<div class="scroll" role="region" aria-label="Changes by group" tabindex="0"><table class="numbers">
      <caption><span>${shown(groups[0].metric)} in each group, the largest loss first; p values are adjusted for all groups by this metric alone, each interval is that of its group alone</span></caption>
      <thead><tr>${["group", ...names, "difference", "interval", "p", "rows", "shown to be"].map((head, i) => html`<th scope="col" class=${i ? "" : "text"}>${shown(head)}</th>`)}</tr></thead>
      <tbody>${groups.map((group) => html`<tr><th scope="row">${shown(nameOf(group))}</th>
        <td>${number(group.value_a)}</td><td>${number(group.value_b)}</td><td class="value">${signed(group.difference)}</td>
        <td>${interval(group.low, group.high, signed)}</td><td>${p(group.p_adjusted)}</td>
        <td>${word.format(group.n_used)}</td><td>${group.shown === "worse" ? html`<span class="warn">worse</span>` : group.shown ?? ""}</td></tr>`)}</tbody></table></div>`)}</${Loaded}>`;
}

const RESULT = { passed: "good", failed: "failed", undecided: "unscored" };

function Gate({ a, b, names }) {
  const text = state.value.get("gate") ?? "";
  const [draft, type] = useState(text);
  const found = useRead(text ? `${pathOf("gate", a, b)}?gate=${encodeURIComponent(text)}` : null);
  return html`<form class="filters" onSubmit=${(event) => { event.preventDefault(); change({ gate: draft.trim() }); }}>
      <div class="field wide"><label for="gate-text">A rule that <${Name} of=${names[1]} /> must keep, with <${Name} of=${names[0]} /> as baseline; then press Enter</label>
        <input id="gate-text" value=${draft} placeholder="accuracy not worse than baseline by 0.02" autocomplete="off" spellcheck=${false} onInput=${(event) => type(event.target.value)} /></div>
      <div class="field"><button type="submit">Check</button></div></form>
    ${text && (found.error ? html`<${Problem} text=${found.error} />` : found.value === null ? html`<${Waiting} what="Checking" />` : html`
      <div role="status"><ul class="words">${found.value.results.map((each) => html`<li><span class=${`pill ${RESULT[each.result]}`}>${each.result}</span> ${each.scorer !== undefined && html`scores of <b><${Name} of=${each.scorer} /></b>: `}${shown(ended(each.message))}</li>`)}</ul></div>
      <p><${Command} text=${found.value.command} /></p>`)}
    <p class="note">A gate counts a row without a score as wrong on its side; the table above leaves it out.</p>`;
}
