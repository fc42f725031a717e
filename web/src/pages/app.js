// An app: how its versions compare, and what was recorded of it, call by call.
import { html } from "htm/preact";
import { useState } from "preact/hooks";
import { address, change, state } from "../address.js";
import { Block, Heading, Level } from "../parts/cell.js";
import { Command } from "../parts/command.js";
import { Head, Loaded, Problem } from "../parts/frame.js";
import { Markup } from "../parts/markup.js";
import { Outcome, RowDetail, traceAddress } from "../parts/row.js";
import { scoreValues } from "../parts/scores.js";
import { forget, isServed, pathOf, useRead } from "../source.js";
import { Name, minute, plain, plural, seconds, shown, word } from "../text.js";

const PAGE = 25; // every piece is a multiple of it

export function AppPage({ parts }) {
  const name = parts.join("/");
  const found = useRead(pathOf("app", name));
  return html`<${Loaded} found=${found}>${(app) => html`<${App} ...${app} />`}</${Loaded}>`;
}

function App({ title, chosen, leaderboard, command, recordings, n_recordings: n }) {
  const wanted = state.value.get("rec") ?? chosen;
  const recording = recordings.find((one) => one.id === wanted) ?? recordings[0];
  return html`<${Head} title=${title} kind="App"><p class="meta">${plural(n, "recording")}</p></${Head}>
    <section id="leaderboard" class="of-report" aria-labelledby="leaderboard-title"><h2 id="leaderboard-title">Leaderboard</h2>${leaderboard ? html`<${Markup} of=${leaderboard} />` : html`<p class="muted">No call has been recorded.</p>`}
      <p><${Command} text=${command} /></p></section>
    <section aria-labelledby="recordings-title"><h2 id="recordings-title">Recordings</h2><${Recordings} recordings=${recordings} chosen=${recording.id} />
      ${n > recordings.length && html`<p class="cut">The newest ${word.format(recordings.length)} of ${word.format(n)}; the others open by their ids.</p>`}</section>
    <section aria-labelledby="records-title"><h2 id="records-title">Records of <${Name} of=${recording.name} /></h2><${Records} key=${recording.id} recording=${recording} /></section>`;
}

const Recordings = ({ recordings, chosen }) => html`<div class="scroll" role="region" aria-label="Table of recordings" tabindex="0"><table class="numbers">
  <thead><tr>${["recording", "version", "begun", "state", "results"].map((head) => html`<th scope="col" class="text">${head}</th>`)}<th scope="col">records</th></tr></thead>
  <tbody>${recordings.map((one) => html`<tr key=${one.id} class=${one.id === chosen ? "chosen" : ""}>
    <th scope="row"><button type="button" class="plain" aria-pressed=${String(one.id === chosen)} onClick=${() => change({ rec: one.id, n: null, x: null })}><${Name} of=${one.name} /></button></th>
    <td class="text"><${Name} of=${one.version ?? "–"} /></td><td class="text when">${minute(one.created)}</td>
    <td class="text">${stateOf(one)}</td>
    <td class="text">${one.run && html`<a href=${one.evaluation ? address(["v", one.evaluation]) : address(["r", one.run])}>${one.evaluation ? "scores" : "calls"}</a>`}</td>
    <td>${one.records === null ? "–" : word.format(one.records)}</td></tr>`)}</tbody></table></div>`;

function stateOf(one) {
  if (!one.is_open) return "closed";
  const waiting = one.waiting ? `, ${word.format(one.waiting)} to judge` : "";
  return html`<span class="pill unscored">${one.is_live ? "recording" : "not closed"}</span>${waiting}`;
}

function Records({ recording }) {
  const [again, readAgain] = useState(0);
  const page = Math.max((Number(state.value.get("n")) || 1) - 1, 0);
  const size = useRead(pathOf("records", recording.id, "0"));
  const piece = size.value ? Math.floor((page * PAGE) / size.value.piece) : null;
  const path = piece === null ? null : pathOf("records", recording.id, String(piece));
  const found = useRead(path && (again ? `${path}?again=${again}` : path));
  if (size.error) return html`<${Problem} text=${size.error} />`;
  return html`${recording.is_open && html`<p class="note">This recording is not closed: these are its records so far. ${isServed && html`<button type="button" class="plain" onClick=${() => { forget(path); readAgain(again + 1); }}>Read again</button>`}
      ${!recording.is_live && html` If its app has ended, close it: <${Command} text=${recording.close} />`}</p>`}
    <${Loaded} found=${found}>${(read) => html`<${Lines} recording=${recording} read=${read} page=${page} from=${page * PAGE - piece * read.piece} />`}</${Loaded}>`;
}

function Lines({ recording, read, page, from }) {
  const rows = read.rows.slice(from, from + PAGE);
  const last = Math.max(Math.ceil(read.total / PAGE) - 1, 0);
  const open = state.value.get("x");
  const turn = (to) => change({ n: to ? String(to + 1) : null, x: null });
  const step = (by) => {
    const at = rows.findIndex((row) => row.index === open);
    const next = rows[at < 0 ? 0 : Math.min(Math.max(at + by, 0), rows.length - 1)];
    if (next) change({ x: next.index });
  };
  const press = (event) => {
    if (event.target.matches("input, textarea, select") || event.ctrlKey || event.metaKey || event.altKey) return;
    const act = { j: () => step(1), k: () => step(-1), Escape: () => change({ x: null }) }[event.key];
    if (act) { event.preventDefault(); act(); }
  };
  if (read.total === 0) return html`<p class="muted">Nothing has been recorded${recording.is_open ? " so far" : ""}.</p>`;
  return html`<p class="row-count" role="status">${plural(read.total, "record")}</p>
    <ol class="record-lines" aria-label="Records" onKeyDown=${press}>${rows.map((row) => html`<${Line} key=${row.index} recording=${recording} row=${row} head=${read} isOpen=${row.index === open} />`)}</ol>
    ${last > 0 && html`<nav class="pages" aria-label="Pages of records"><button type="button" disabled=${page === 0} onClick=${() => turn(page - 1)}>Previous</button>
      <span>Page ${word.format(page + 1)} of ${word.format(last + 1)}</span><button type="button" disabled=${page >= last} onClick=${() => turn(page + 1)}>Next</button></nav>`}`;
}

function Line({ recording, row, head, isOpen }) {
  const answer = row.error ? `${row.error.type}: ${row.error.message}` : (row.responses ?? []).map((cell) => plain(cell, 200)).join(" · ");
  const id = `record-${row.index}`;
  return html`<li><button type="button" class="record-line" aria-expanded=${String(isOpen)} aria-controls=${id} onClick=${() => change({ x: isOpen ? null : row.index })}>
      <span class="record-head"><span class="which"><${Name} of=${row.id ?? row.index} /></span>${(row.status !== "completed" || row.outcome < 2) && html`<${Outcome} of=${row.outcome} />`}
        <span class="shares">${seconds(row.duration)}${row.usage && html` · ${shown(row.usage)}`}</span></span>
      <span class="asked-of"><bdi>${shown(plain(row.input, 200))}</bdi></span><span class=${row.error ? "told failed" : "told"}><bdi>${shown(answer)}</bdi></span>
      <span class="judged">${scoreValues(row, head).slice(0, 8).map(([name, value]) => html`<span><span class="muted"><${Name} of=${name} /></span> <b><${Name} of=${value} /></b></span>`)}</span></button>
    <div id=${id} hidden=${!isOpen}>${isOpen && html`<${Detail} recording=${recording} row=${row} head=${head} />`}</div></li>`;
}

function Detail({ recording, row, head }) {
  const [whole, tell] = useState(false);
  const command = recording.run ? `evaluand show ${recording.run.slice(0, 12)} --index ${row.index} --json` : `evaluand show ${recording.id.slice(0, 12)}`;
  return html`<${Level.Provider} value=${3}><div class="detail"><${RowDetail} row=${row} head=${head} command=${command} />
    ${recording.run && isServed && html`<p class="links"><a href=${traceAddress(recording.run, row)}>The whole trace</a>${head.dataset && html`<a href=${address(["x", head.dataset, row.index])}>This input in all runs</a>`}</p>`}
    ${isServed && html`<details onToggle=${(event) => tell(event.currentTarget.open)}><summary>The app and the whole record as JSON</summary>${whole && html`<${Json} recording=${recording.id} index=${row.index} />`}</details>`}</div></${Level.Provider}>`;
}

/** All that selectors of feedbacks can read. */
function Json({ recording, index }) {
  const found = useRead(pathOf("record", recording, index));
  const cut = "a part that is not shown";
  return html`<${Loaded} found=${found}>${({ app, record }) => html`<${Heading}>App</${Heading}><${Block} cell=${app} command=${cut} /><${Heading}>Record</${Heading}><${Block} cell=${record} command=${cut} />`}</${Loaded}>`;
}
