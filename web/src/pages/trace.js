// One call: what happened in it, when, and what it cost. Repeats of the call are tabs.
import { html } from "htm/preact";
import { address } from "../address.js";
import { isServed, pathOf, useRead } from "../source.js";
import { minute, plural, seconds, shown, word } from "../text.js";
import { Block, Heading, Level } from "../parts/cell.js";
import { Chats } from "../parts/chat.js";
import { Command } from "../parts/command.js";
import { Head, Loaded, Problem } from "../parts/frame.js";
import { About, Answer, OUTCOMES, OUTCOME_CLASS, Outcome } from "../parts/row.js";
import { ScoreList, Asked } from "../parts/scores.js";
import { Waterfall, allSpans } from "../parts/waterfall.js";

export function TracePage({ parts: [run = "", index = "", replication = "0"] }) {
  const found = useRead(isServed ? `trace/${pathOf(run, index)}` : null);
  if (!isServed) return html`<${Problem} text="Whole traces are shown by a server only: evaluand view" />`;
  return html`<${Loaded} found=${found}>${(trace) => html`<${Trace} trace=${trace} replication=${replication} />`}</${Loaded}>`;
}

function Trace({ trace, replication }) {
  const row = trace.rows.find((one) => String(one.replication) === replication);
  const name = trace.names[0] ?? trace.task;
  return html`<${Head} title=${`${trace.task}: trace of example ${trace.index}`} kind="Trace" within=${{ name, to: address(["r", trace.run]) }}>
      <p class="meta"><a href=${address(["r", trace.run])}><bdi>${shown(name)}</bdi></a> · run <code>${trace.run.slice(0, 12)}</code> · ${minute(trace.created)} · ${" "}
        <a href=${address(["x", trace.dataset.id, trace.index])}>this example in all runs</a></p></${Head}>
    <${Tabs} trace=${trace} chosen=${replication} />
    ${row ? html`<${Call} key=${replication} trace=${trace} row=${row} />` : html`<${Problem} text=${`This call has no replication ${replication} here.`} />`}`;
}

const Tabs = ({ trace, chosen }) => trace.replications > 1 && html`<nav aria-label="Replications"><ul class="chips tabs">${trace.rows.map((row) => html`
  <li><a class="chip" href=${address(["t", trace.run, trace.index, ...(row.replication ? [String(row.replication)] : [])])}
    aria-current=${String(row.replication) === chosen ? "page" : null}>replication ${row.replication} <span class=${`mark ${OUTCOME_CLASS[row.outcome]}`}>${OUTCOMES[row.outcome]}</span></a></li>`)}
  ${trace.replications > trace.rows.length && html`<li class="cut">${word.format(trace.replications - trace.rows.length)} more</li>`}</ul></nav>`;

function Call({ trace, row }) {
  const { command } = trace;
  return html`<${Level.Provider} value=${3}><${Tiles} row=${row} task=${trace.task} />
    <section aria-label="Spans"><h2>What happened</h2><${Waterfall} row=${row} task=${trace.task} command=${command} />
      ${countSpans(row) === 0 && html`<p class="note">The task opened no spans, so only the call itself is known.</p>`}</section>
    <section class="detail" aria-label="Call"><h2>The call</h2>
      <div class="sides"><div><${Heading}>Input</${Heading}><${Block} cell=${row.input} command=${command} /></div><div><${Answer} row=${row} command=${command} /></div></div>
      <${Chats} row=${row} command=${command} />
      ${row.scores.length > 0 && html`<${Heading}>Scores</${Heading}><${ScoreList} row=${row} head=${trace} /><${Asked} row=${row} head=${trace} command=${command} />`}
      <${Heading}>About this call</${Heading}><${About} row=${row} /></section>
    <p class="links"><${Command} text=${command} /></p></${Level.Provider}>`;
}

/** The spans that the task opened, without that of the call. */
const countSpans = (row) => row.n_spans - row.spans.filter((span) => span[0] === 0).length;

/** How the call ended, and what it used. */
function Tiles({ row, task }) {
  const spans = allSpans(row, task);
  const errors = spans.filter((span) => span[6] === "error").length;
  return html`<ul class="tiles"><li><${Outcome} of=${row.outcome} /></li><li><b>${seconds(row.duration)}</b></li>
    <li><b>${plural(countSpans(row), "span")}</b></li>${errors > 0 && html`<li class="failed"><b>${plural(errors, "error")}</b></li>`}
    ${row.attempts > 1 && html`<li><b>${row.attempts}</b> attempts</li>`}
    ${row.used && html`<li><b>${shown(row.used)}</b></li>`}</ul>`;
}
