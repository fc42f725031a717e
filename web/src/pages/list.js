// The list: experiments and everything else that is stored, newest first.
import { html } from "htm/preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { address, change, go, state } from "../address.js";
import { Command } from "../parts/command.js";
import { Head, Loaded } from "../parts/frame.js";
import { forget, isServed, pathOf, read, useRead } from "../source.js";
import { Name, interval, minute, number, plural, shown, word } from "../text.js";

const PAGE = 30;
const MOST_FIRST = 3; // unfinished runs that come before all else
const EXPERIMENTS = { title: "experiment", routes: { sealed: "e" }, served: [] };

export function ListPage() {
  const found = useRead("index");
  return html`<${Loaded} found=${found}>${(index) => html`<${List} index=${index} />`}</${Loaded}>`;
}

function List({ index }) {
  const entries = all(index);
  const pages = { ...index.kinds, experiments: EXPERIMENTS };
  const kinds = [...new Set(entries.map((entry) => entry.kind))];
  const named = state.value.get("k") ?? (index.experiments.length ? "experiments" : "all");
  const kind = named === "all" ? "" : named;
  const text = (state.value.get("q") ?? "").toLowerCase();
  const isUnfinished = (entry) => entry.kind === "runs" && entry.status === "open";
  const found = entries.filter((entry) => (!kind || entry.kind === kind || (!state.value.has("k") && isUnfinished(entry))) && (!text || `${entry.title} ${entry.id}`.toLowerCase().includes(text)));
  const first = found.filter(isUnfinished).slice(0, MOST_FIRST);
  const chosen = [...first, ...found.filter((entry) => !first.includes(entry))];
  const [n, more] = useState(PAGE);
  const [picked, pick] = useState([]);
  const toggle = (id) => pick(picked.includes(id) ? picked.filter((each) => each !== id) : [...picked, id].slice(-2));
  return html`<${Head} title="What is stored" kind="evaluand"><p class="meta">${shown(index.store)} · ${plural(index.experiments.length, "experiment")} · ${plural(index.artifacts.length, "artifact")} · <a href=${address(["j"])}>judges</a></p></${Head}>
    <div class="filters" role="search" aria-label="What is stored"><div class="field wide"><label for="list-text">Search names and ids</label>
      <input id="list-text" type="search" value=${state.value.get("q") ?? ""} onInput=${(event) => change({ q: event.target.value })} /></div></div>
    <ul class="chips" aria-label="Kinds"><li><button type="button" class="chip" aria-pressed=${!kind} onClick=${() => change({ k: index.experiments.length ? "all" : null })}>All</button></li>
      ${kinds.map((each) => html`<li><button type="button" class="chip" aria-pressed=${each === kind} onClick=${() => change({ k: each })}>${pages[each].title}s</button></li>`)}</ul>
    ${picked.length === 2 && html`<p><button type="button" onClick=${() => go(address(["c"], { a: picked[0], b: picked[1] }))}>Compare the two</button></p>`}
    <p class="row-count" role="status">${word.format(chosen.length)} of ${word.format(entries.length)}</p>
    ${entries.length === 0 && html`<p>Nothing is stored here yet: <code>evaluand run FILE</code> evaluates an experiment, <code>evaluand init</code> writes a first one.</p>`}
    <ul class="entries">${chosen.slice(0, n).map((entry) => html`<${Entry} key=${entry.kind + entry.id} entry=${entry} page=${pages[entry.kind]} picked=${picked.includes(entry.id)} toggle=${toggle} />`)}</ul>
    ${chosen.length > n && html`<p><button type="button" onClick=${() => more(n + 4 * PAGE)}>Show more</button></p>`}`;
}

function all({ experiments, artifacts }) {
  const named = experiments.map((entry) => ({ ...entry, kind: "experiments", id: entry.name, title: entry.name }));
  return [...named, ...artifacts.map((entry) => ({ ...entry, title: entry.names[0] ?? entry.id.slice(0, 12) }))];
}

/** The address of the page that shows an entry; null if there is none. */
function pageOf({ id, status = "sealed", tasks }, { routes, served }) {
  if (!routes[status] || (served.includes(status) && !isServed)) return null;
  return address([tasks && Object.keys(tasks).length === 0 ? "m" : routes[status], id]);
}

function Entry({ entry, page, picked, toggle }) {
  const { kind, id, status } = entry;
  const to = pageOf(entry, page);
  const title = html`<${Name} of=${entry.title} />`;
  const canPick = isServed && kind === "evaluations" && status === "sealed";
  return html`<li class="entry"><div class="title">
      ${canPick && html`<input type="checkbox" checked=${picked} aria-label=${`Compare ${entry.title}`} onChange=${() => toggle(id)} />`}
      ${to ? html`<a href=${to}>${title}</a>` : html`<b>${title}</b>`}
      <span class="muted">${page.title} · ${minute(entry.created)}</span>
      ${status && status !== "sealed" && html`<span class=${`pill ${status === "damaged" ? "failed" : "unscored"}`}>${status === "open" ? "not finished" : status}</span>`}
      ${isServed && kind === "runs" && status === "open" && html`<${Progress} id=${id} />`}
      <span class="muted">${shown([entry.counts, entry.used].filter(Boolean).join(" · "))}</span></div>
    ${!to && entry.command && html`<${Command} text=${entry.command} />`}
    ${kind === "experiments" ? Object.entries(entry.tasks).slice(0, 12).map(([task, evaluation]) => html`<${Card} key=${evaluation} name=${task} kind="evaluations" id=${evaluation} />`)
      : status === "sealed" && ["runs", "evaluations"].includes(kind) && html`<${Card} kind=${kind} id=${id} />`}</li>`;
}

const EVERY = 3000; // milliseconds

/** How far a run is, read again while somebody works on it. */
function Progress({ id }) {
  const [looks, tell] = useState([]); // the first and the last one
  useEffect(() => {
    let timer = 0;
    let isShown = true;
    const path = pathOf("progress", id);
    const look = async () => {
      forget(path);
      const facts = await read(path).catch(() => null);
      if (!facts || !isShown) return;
      tell(([first]) => { const now = { ...facts, at: Date.now() }; return [first ?? now, now]; });
      if (["running", "starting"].includes(facts.status)) timer = setTimeout(look, EVERY);
    };
    look();
    return () => { isShown = false; clearTimeout(timer); };
  }, [id]);
  if (!looks.length) return null;
  const [first, last] = looks;
  const rate = last.done > first.done ? `, ${number((1000 * (last.done - first.done)) / (last.at - first.at))} in a second` : "";
  return html`<span role="status">${last.status}: ${word.format(last.done)} of ${plural(last.total, "row")}${rate}</span>`;
}

/** Task, model, dataset and metrics, read when the entry is seen. */
function Card({ name, kind, id }) {
  const place = useRef(null);
  const [card, tell] = useState(null);
  useEffect(() => {
    const watcher = new IntersectionObserver(([seen]) => {
      if (!seen.isIntersecting) return;
      watcher.disconnect();
      read(pathOf("card", kind, id)).then(tell, (error) => tell({ error: error.message, metrics: [] }));
    }, { rootMargin: "200px" });
    watcher.observe(place.current);
    return () => watcher.disconnect();
  }, [kind, id]);
  return html`<ul class="tiles" ref=${place}>
    ${name !== undefined && html`<li><a href=${address(["v", id])}><${Name} of=${name} /></a></li>`}
    ${card?.error && html`<li class="failed">${shown(card.error)}</li>`}
    ${card?.task && name === undefined && html`<li class="muted">task <${Name} of=${card.task} /></li>`}
    ${card?.model && html`<li class="muted">model <${Name} of=${card.model} /></li>`}
    ${card?.dataset && html`<li class="muted">data <${Name} of=${card.dataset.name ?? card.dataset.id.slice(0, 12)} /></li>`}
    ${card?.metrics.map((metric) => html`<li><${Name} of=${metric.label} /> <b>${number(metric.value)}</b>${metric.low !== null ? html` <span class="muted">${interval(metric.low, metric.high)}</span>` : ""}</li>`)}
    ${card?.used && html`<li class="muted">run ${shown(card.used)}</li>`}
    ${card?.took && html`<li class="muted">${kind === "evaluations" ? "graded" : "made"} in ${card.took}</li>`}
  </ul>`;
}
