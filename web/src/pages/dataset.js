// A dataset: what its columns hold, its examples page by page, the runs over it, and how it differs from another one.
import { html } from "htm/preact";
import { address, change, state } from "../address.js";
import { Definitions } from "../parts/cell.js";
import { Command } from "../parts/command.js";
import { Head, Loaded } from "../parts/frame.js";
import { isServed, pathOf, useRead } from "../source.js";
import { Name, interval, minute, number, plain, plainly, plural, shown, textOf, word } from "../text.js";

const SHORT = 12;

export function DatasetPage({ parts: [id = ""] }) {
  const found = useRead(pathOf("dataset", id));
  return html`<${Loaded} found=${found}>${(dataset) => html`<${Dataset} dataset=${dataset} />`}</${Loaded}>`;
}

function Dataset({ dataset }) {
  const { id, name, digest, examples, origin, runs, created } = dataset;
  const pairs = [["digest", digest], ...Object.entries(origin).map(([key, cell]) => [key, textOf(cell)])];
  return html`<${Head} title=${name ?? id.slice(0, SHORT)} kind="Dataset"><p class="meta">${plural(examples, "example")} · ${plural(dataset.n_runs, "run")} · ${minute(created)}</p></${Head}>
    <${Definitions} pairs=${pairs} />
    <section aria-labelledby="columns-title"><h2 id="columns-title">Columns</h2><${Columns} id=${id} /></section>
    <section aria-labelledby="examples-title"><h2 id="examples-title">Examples</h2>${examples ? html`<${Examples} dataset=${dataset} />` : html`<p class="muted">There are no examples.</p>`}</section>
    <section aria-labelledby="runs-title"><h2 id="runs-title">Runs over it</h2>${runs.length ? html`<ul>${runs.map((run) => html`<li>
      <a href=${address(["r", run.id])}><${Name} of=${run.names[0] ?? run.id.slice(0, SHORT)} /></a> <span class="muted">${minute(run.created)}</span></li>`)}</ul>`
      : html`<p class="muted">No finished run.</p>`}</section>
    ${isServed && dataset.others.length > 0 && html`<section aria-labelledby="versions-title"><h2 id="versions-title">Difference of two versions</h2><${Difference} dataset=${dataset} /></section>`}
    <p class="links"><${Command} text=${dataset.command} /></p>`;
}

function Columns({ id }) {
  const found = useRead(pathOf("dataset-columns", id));
  return html`<${Loaded} found=${found}>${(columns) => html`<div class="scroll columns" role="region" aria-label="Table of columns" tabindex="0"><table class="numbers"><thead><tr>
      ${["column", "role", "type", "missing", "distinct", "lowest", "highest", "most frequent", "distribution"].map((head, i) => html`<th scope="col" class=${[0, 1, 2, 7, 8].includes(i) ? "text" : null}>${head}</th>`)}</tr></thead>
    <tbody>${columns.map((column) => html`<tr><th scope="row"><${Name} of=${column.name} /></th><td class="text"><bdi>${shown(column.role ?? "")}</bdi></td><td class="text">${shown(column.type)}</td>
      <td>${word.format(column.missing)}</td><td>${column.distinct === null ? "–" : column.more ? `more than ${word.format(column.distinct)}` : word.format(column.distinct)}</td>
      <td>${end(column.low)}</td><td>${end(column.high)}</td>
      <td class="text long"><ul>${column.top.map(([value, n]) => html`<li><bdi>${shown(value)}</bdi> <span class="muted">${word.format(n)}</span></li>`)}</ul></td>
      <td class="text">${column.histogram && html`<div dangerouslySetInnerHTML=${{ __html: column.histogram }} />`}</td></tr>`)}</tbody></table></div>`}</${Loaded}>`;
}

const end = (value) => (value === null ? "–" : typeof value === "number" ? number(value) : shown(value));

function Examples({ dataset: { id, examples, piece } }) {
  const last = Math.max(Math.ceil(examples / piece) - 1, 0);
  const at = Math.min(Math.max(Number.parseInt(state.value.get("p") ?? "1", 10) - 1 || 0, 0), last);
  const found = useRead(pathOf("dataset-examples", id, String(at)));
  const to = (page) => change({ p: page ? String(page + 1) : null });
  return html`<nav class="pager" aria-label="Pages"><button type="button" disabled=${at === 0} onClick=${() => to(at - 1)}>Previous</button>
      <span role="status">Examples ${word.format(at * piece + 1)} to ${word.format(Math.min((at + 1) * piece, examples))} of ${word.format(examples)}</span>
      <button type="button" disabled=${at === last} onClick=${() => to(at + 1)}>Next</button>
      ${last > 1 && html`<label>Page <input type="number" min="1" max=${last + 1} value=${at + 1} onChange=${(event) => to(Math.min(Math.max(Number.parseInt(event.target.value, 10) - 1 || 0, 0), last))} /></label>`}</nav>
    <${Loaded} found=${found}>${(rows) => html`<${Rows} id=${id} rows=${rows} />`}</${Loaded}>`;
}

function Rows({ id, rows }) {
  const attributes = Object.keys(rows[0]?.attributes ?? {});
  const heads = ["example", "input", "expected"];
  return html`<div class="scroll" role="region" aria-label="Table of examples" tabindex="0"><table class="numbers small"><thead><tr>${[...heads, ...attributes].map((head) => html`<th scope="col" class="text">${shown(head)}</th>`)}</tr></thead>
    <tbody>${rows.map((row) => html`<tr key=${row.index}><th scope="row"><${ExampleLink} dataset=${id} index=${row.index} name=${row.id} /></th>
      <td class="text long" dir="auto">${brief(row.input)}</td><td class="text long" dir="auto">${brief(row.expected)}</td>
      ${attributes.map((name) => html`<td class="text"><bdi>${brief(row.attributes[name])}</bdi></td>`)}</tr>`)}</tbody></table></div>`;
}

/** Examples in all runs are shown by a server only. */
export const ExampleLink = ({ dataset, index, name }) => (isServed && index !== null && index !== undefined
  ? html`<a href=${address(["x", dataset, index])}><${Name} of=${name} /></a>` : html`<${Name} of=${name} />`);

const brief = (cell) => (cell === null || cell === undefined ? html`<span class="muted">none</span>` : html`${shown(plain(cell))}${cell.c > 0 ? "…" : ""}`);

function Difference({ dataset }) {
  const other = state.value.get("with");
  return html`<div class="field"><label for="other">Compare with</label><select id="other" value=${other ?? ""} onChange=${(event) => change({ with: event.target.value })}>
      <option value="">choose a dataset</option>
      ${dataset.others.map((each) => html`<option value=${each.id}>${plainly(optionText(each), 80)}</option>`)}</select></div>
    ${other && html`<${Compared} key=${other} a=${dataset.id} b=${other} />`}`;
}

/** Options hold no marked characters, so what cannot be seen is its code there. */
const optionText = ({ id, name, created }) => `${name ?? "without a name"} · ${id.slice(0, SHORT)} · ${minute(created)}`;

function Compared({ a, b }) {
  const found = useRead(pathOf("dataset-difference", a, b));
  return html`<${Loaded} found=${found}>${(facts) => html`<ul class="tiles" role="status">
      ${[["only here", facts.only_a], ["only there", facts.only_b], ["changed", facts.changed], ["the same", facts.same]].map(([name, n]) => html`<li><b>${word.format(n)}</b> ${name}</li>`)}</ul>
    <p class="note">Examples are matched by their ${facts.by}.${facts.repeated > 0 && ` ${plural(facts.repeated, "example")} with an id that is there already count only there.`}</p>
    ${[["here", facts.columns_only_a], ["there", facts.columns_only_b]].map(([where, names]) => names.length > 0 && html`<p>Columns only ${where}: ${names.map((name, i) => html`${i ? ", " : ""}<${Name} of=${name} />`)}</p>`)}
    ${facts.first_changed.length > 0 && html`<div class="scroll" role="region" aria-label="Changed examples" tabindex="0"><table class="numbers small"><caption><span>${facts.changed > facts.first_changed.length ? `The first ${facts.first_changed.length} changed examples` : "Changed examples"}</span></caption>
      <thead><tr><th scope="col" class="text">${facts.by}</th><th scope="col" class="text">there</th><th scope="col" class="text">changed columns</th></tr></thead>
      <tbody>${facts.first_changed.map((each) => html`<tr><th scope="row"><${ExampleLink} dataset=${a} index=${each.a} name=${each.id} /></th>
        <td class="text"><${ExampleLink} dataset=${b} index=${each.b} name="there" /></td><td class="text"><bdi>${shown(each.columns.join(", ") || "roles")}</bdi></td></tr>`)}</tbody></table></div>`}
    <h3>Drift</h3>${facts.drift ? html`<p>${shown(facts.drift.verdict)}</p><ul class="words">${facts.drift.columns.map((each) => html`<li><${Name} of=${each.column} />: ${shown(each.effect)} ${number(each.value)}${
      each.low !== null && html` <span class="muted">${interval(each.low, each.high)}</span>`}, p ${number(each.p_adjusted)}</li>`)}</ul>` : html`<p class="note">So many examples take a while; in a terminal:</p>`}
    <p><${Command} text=${facts.command} /></p>`}</${Loaded}>`;
}
