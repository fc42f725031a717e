// The metrics of each task of an experiment from one evaluation to the next.
import { html } from "htm/preact";
import { address } from "../address.js";
import { Name, interval, minute, number, word } from "../text.js";
import { Loaded } from "./frame.js";

export function History({ found }) {
  return html`<${Loaded} found=${found}>${(tasks) => html`
    <p class="note">Evaluations of the same task of this experiment, oldest first. Lines join only values that were measured on the same examples, by the same scorer; others have another mark and are not comparable.</p>
    ${tasks.map((task) => html`<h3><${Name} of=${task.task} /></h3>${task.metrics.map((metric) => html`<${Trend} task=${task} metric=${metric} />`)}`)}`}</${Loaded}>`;
}

function Trend({ task, metric }) {
  const title = `${metric.label}${metric.target === null ? "" : ` · ${metric.target}`}`;
  return html`<figure class="trend"><figcaption><b><${Name} of=${title} /></b>${!metric.current && html` <span class="muted">The current evaluation has no value of it; values are compared with the last one.</span>`}</figcaption><div dangerouslySetInnerHTML=${{ __html: metric.chart }} />
    <div class="scroll" role="group" aria-label=${`${title} of ${task.task} by evaluation`} tabindex="0"><table class="numbers small">
      <thead><tr>${["", "evaluated", "value", "interval", "rows", "task", "measured"].map((head, i) => html`<th scope="col" class=${[0, 1, 5, 6].includes(i) ? "text" : null}>${head || html`<span class="unseen">number</span>`}</th>`)}</tr></thead>
      <tbody>${metric.values.map((row) => html`<${Line} row=${row} same=${metric.current ? "as now" : "as the last one"} of=${task.evaluations[row.number - 1]} />`)}</tbody></table></div></figure>`;
}

const Line = ({ row, same, of }) => html`<tr class=${row.differs.length ? "muted" : ""}><th scope="row">${row.number}</th>
  <td class="text when"><a href=${address(["v", of.id])}>${minute(of.created)}</a>${of.current && " (current)"}</td>
  <td class="value">${number(row.value)}</td><td>${interval(row.low, row.high)}</td><td>${word.format(row.n_scored)} of ${word.format(row.n)}</td>
  <td class="text">${of.changed ? "changed" : ""}</td>
  <td class="text long"><span dangerouslySetInnerHTML=${{ __html: row.key }} /> ${row.differs.length ? `not comparable: ${row.differs.join(", ")}` : same}</td></tr>`;
