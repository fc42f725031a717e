// The points of the fronts, the rates of groups at the picked point, and the same point on other data.
import { html } from "htm/preact";
import { useState } from "preact/hooks";
import { address } from "../address.js";
import { Name, interval, number, shown } from "../text.js";
import { MODEL, RATES, ROW, SYSTEM, THRESHOLD, TRIVIAL, VALUES } from "./pick.js";

const range = (low, high) => (low === null || high === null ? null : html` <span class="muted">${interval(low, high)}</span>`);

/** The points that are listed; those of a head are sorted by it. */
export function Points({ choice, place, onPick }) {
  const [[by, sign], sort] = useState([-1, 1]);
  const { points, names, systems, models } = choice;
  const several = systems.length > 1;
  const heads = [...(several ? ["system"] : []), "model", "threshold", ...names];
  const first = heads.length - names.length;
  const valueOf = (point) => [...(several ? [systems[point[SYSTEM]]] : []), models[point[SYSTEM]][point[MODEL]], thresholdOf(point), ...point[VALUES]][by];
  const rows = [...points.keys()].filter((i) => points[i][ROW] !== null || i === place);
  if (by >= 0) rows.sort((a, b) => sign * compare(valueOf(points[a]), valueOf(points[b])) || a - b);
  const turn = (i) => sort(by !== i ? [i, 1] : sign > 0 ? [i, -1] : [-1, 1]);
  return html`<div class="scroll" role="group" aria-label="The points of the fronts" tabindex="0"><table class="numbers points">
    <caption><span>The points of the fronts; choose one to set the limits to its values</span></caption>
    <thead><tr>${heads.map((head, i) => html`<th scope="col" class=${i < first - 1 ? "text" : ""} aria-sort=${by !== i ? null : sign > 0 ? "ascending" : "descending"}>
      <button type="button" onClick=${() => turn(i)}>${shown(head)}</button></th>`)}<th scope="col" class="text">note</th></tr></thead>
    <tbody>${rows.map((i) => html`<${Point} key=${i} choice=${choice} place=${i} isPicked=${i === place} several=${several} onPick=${onPick} />`)}</tbody></table></div>
    ${choice.cut && html`<p class="note">${shown(choice.cut)}</p>`}`;
}

function Point({ choice, place, isPicked, several, onPick }) {
  const point = choice.points[place];
  const ends = choice.ends[place];
  const model = choice.models[point[SYSTEM]][point[MODEL]];
  const button = html`<button type="button" class="plain" aria-pressed=${String(isPicked)} onClick=${() => onPick(place)}><${Name} of=${model} /></button>`;
  return html`<tr class=${isPicked ? "chosen" : ""}>
    ${several && html`<th scope="row"><${Name} of=${choice.systems[point[SYSTEM]]} /></th>`}
    ${several ? html`<td class="text">${button}</td>` : html`<th scope="row">${button}</th>`}
    <td>${point[THRESHOLD] || "–"}</td>
    ${point[VALUES].map((value, i) => html`<td>${number(value)}${ends && range(ends[0][i], ends[1][i])}</td>`)}
    <td class="text">${point[TRIVIAL] ? "accepts nobody or everybody" : ""}</td></tr>`;
}

function thresholdOf(point) {
  const text = point[THRESHOLD].replace("−", "-").replace("∞", "Infinity");
  return text === "" ? null : Number(text);
}

const compare = (a, b) => (typeof a === "string" ? a.localeCompare(b, "en", { numeric: true }) : (a ?? -Infinity) - (b ?? -Infinity));

/** The rates of groups behind the disparities of a point. */
export function Rates({ choice, point }) {
  if (choice.captions.length === 0) return null;
  const rates = point?.[RATES];
  return html`<h3>Rates of groups</h3>
    ${point && !rates && html`<p class="note">The page has no rates of this point, as its rows are unknown or it is not listed.</p>`}
    ${rates && html`<div class="planes few of-groups">${choice.captions.map((caption, i) => html`
      <div class="scroll" role="group" aria-label=${caption} tabindex="0"><table class="numbers small rates"><caption><span>${shown(caption)}</span></caption>
        <thead><tr><th scope="col" class="text">Group</th><th scope="col" class="text" aria-hidden="true"></th><th scope="col">rate</th><th scope="col">interval</th><th scope="col">rows</th></tr></thead>
        <tbody>${rates[i].map(([group, rows, value, interval, spots]) => html`<tr><th scope="row"><${Name} of=${group} /></th>
          <td class="chart">${spots.length > 0 && html`<${Bar} spots=${spots} />`}</td><td class="value">${value}</td><td>${interval}</td><td>${rows}</td></tr>`)}</tbody></table></div>`)}</div>
      <p class="note">Intervals hold with 95 %, each by itself. ${choice.of_many_groups}</p>`}`;
}

/** A bar from 0 to the rate, with its interval. */
const Bar = ({ spots: [zero, value, low, high] }) => html`<svg aria-hidden="true" width="100%" height="14">
  <rect class="bar s0" x=${`${Math.min(zero, value)}%`} width=${`${Math.abs(value - zero).toFixed(1)}%`} y="2" height="10" />
  <line class="whisker" x1=${`${low}%`} x2=${`${high}%`} y1="7" y2="7" /></svg>`;

/** The values of the picked point in other aggregations. */
export const Elsewhere = ({ choice, found }) => html`<h3>The same point on other data</h3>${found.length === 0
  ? html`<p class="note">No other results in this store have these objectives and this model on other data.</p>`
  : html`<div class="scroll" role="group" aria-label="The same point on other data" tabindex="0"><table class="numbers">
    <thead><tr><th scope="col" class="text">results</th><th scope="col" class="text">data</th>${choice.names.map((name) => html`<th scope="col">${shown(name)}</th>`)}<th scope="col" class="text">note</th></tr></thead>
    <tbody>${found.map((one) => html`<tr key=${one.id}><th scope="row"><a href=${address(["o", one.id])}><${Name} of=${one.name} /></a></th><td class="text"><${Name} of=${one.dataset} /></td>
      ${one.values.map((value, i) => html`<td>${number(value)}${one.ends && range(one.ends[0][i], one.ends[1][i])}</td>`)}<td class="text">${one.front ? "on the front" : "dominated there"}</td></tr>`)}</tbody></table></div>`}`;
