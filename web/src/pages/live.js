// A run while it is made: how far it is, how fast, what it has cost, the scores so far, and the rows as they end.
import { html } from "htm/preact";
import { useEffect, useState } from "preact/hooks";
import { address } from "../address.js";
import { Command } from "../parts/command.js";
import { Head, Problem, Waiting } from "../parts/frame.js";
import { canStop, isServed } from "../source.js";
import { Name, interval, number, seconds, shown, word } from "../text.js";

const MOST = 200;
const EVERY = 2000; // milliseconds

export function LivePage({ parts: [id = "newest"] }) {
  const [run, tell] = useState({ facts: null, rows: [], fault: null });
  const [round, begin] = useState(0);
  useEffect(() => {
    if (!isServed) return undefined;
    let again = 0;
    const events = new EventSource(`/api/live/${encodeURIComponent(id)}`);
    events.addEventListener("message", ({ data }) => {
      const { rows, ...facts } = JSON.parse(data);
      tell((before) => {
        const earlier = before.facts?.id === facts.id ? before.rows.filter((row) => !rows.some((each) => each.number === row.number)) : [];
        return { facts, fault: null, rows: [...rows.reverse(), ...earlier].slice(0, MOST) };
      });
      if (facts.status !== "finished") return;
      events.close();
      if (id === "newest") again = setTimeout(() => begin(round + 1), EVERY); // another task of the experiment may follow
    });
    events.addEventListener("error", () => {
      if (events.readyState === EventSource.CLOSED) tell((before) => ({ ...before, fault: before.facts ? "The server has ended." : "There is no such run, or the server has ended." }));
    });
    return () => { events.close(); clearTimeout(again); };
  }, [id, round]);
  if (!isServed) return html`<${Problem} text="A run is watched through a server; start it with: evaluand view" />`;
  if (!run.facts) return run.fault ? html`<${Problem} text=${run.fault} />` : html`<${Waiting} what="Looking for the run" />`;
  return html`<${Live} ...${run} />`;
}

function Live({ facts, rows, fault }) {
  const { status, done, total, counts, rate, left, used, scores, command } = facts;
  const [isStopped, stop] = useState(false);
  const name = facts.name ?? facts.id.slice(0, 12);
  return html`<${Head} title=${name} kind="Run"><p class="meta" role="status">
      <span class=${`pill ${{ running: "good", grading: "good", starting: "none", stopped: "failed", finished: "none" }[status]}`}>${status}</span>
      ${" "}${word.format(done)} of ${word.format(total)} rows${rate ? `, ${number(rate)} in a second` : ""}${left && status === "running" ? `, ${seconds(left)} left` : ""}${used ? ` · ${used}` : ""}</p></${Head}>
    ${fault && html`<${Problem} text=${fault} />`}
    ${canStop && ["starting", "running"].includes(status) && html`<p><button type="button" disabled=${isStopped} onClick=${() => { stop(true); fetch("/session/stop", { method: "POST" }); }}>Stop the run</button> <span class="muted">as Ctrl-C does: calls in flight end, and it can be continued</span></p>`}
    <progress class="done" max=${total || 1} value=${done} aria-label="Rows that are done"></progress>
    <p>${Object.entries(counts).map(([each, n]) => `${word.format(n)} ${each}`).join(", ")}</p>
    ${status === "stopped" && html`<p class="note">No process works on it; ${command ? html`continue with <${Command} text=${command} />` : "continue it from Python with the same call."}</p>`}
    ${status === "finished" && html`<p><a href=${address(["r", facts.id])}>Its results</a></p>`}
    ${scores.length > 0 && html`<h2>Scores so far</h2><ul class="tiles">${scores.map((each) => html`<li><${Name} of=${each.scorer} />${each.target ? html` · <${Name} of=${each.target} />` : ""} <b>${number(each.mean)}</b>${each.low !== null ? html` <span class="muted">${interval(each.low, each.high)}</span>` : ""} <span class="muted">${word.format(each.scored)} of ${word.format(each.n)} scored</span></li>`)}</ul>
      <p class="note">Each interval is that of one look. Who stops as soon as it looks good is wrong more often; see <code>evaluand run --until</code>.</p>`}
    <h2>Last rows</h2>
    <div class="scroll" role="region" aria-label="Last rows" tabindex="0"><table class="numbers"><thead><tr><th scope="col">example</th><th scope="col" class="text">status</th><th scope="col" class="text">answer</th><th scope="col">time</th></tr></thead>
      <tbody>${rows.map((row) => html`<tr key=${row.number}><th scope="row">${row.place}${row.replication ? ` · ${row.replication + 1}` : ""}</th>
        <td class="text"><span class=${row.status === "failed" ? "failed" : ""}>${row.status}</span></td><td class="text long" dir="auto">${row.error ? html`<span class="failed">${shown(row.error)}</span>` : shown(row.answer)}</td><td>${seconds(row.seconds)}</td></tr>`)}</tbody></table></div>`;
}
