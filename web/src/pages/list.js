// The list: experiments and everything else that is stored, newest first.
import { html } from "htm/preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { address, change, go, state } from "../address.js";
import { Head, Loaded } from "../parts/frame.js";
import { isServed, pathOf, read, useRead } from "../source.js";
import { Name, minute, number, plural, shown, word } from "../text.js";

const PAGE = 60;
const TITLES = { experiments: "experiment", runs: "run", evaluations: "evaluation", datasets: "dataset", comparisons: "comparison", matches: "match set", ratings: "rating", cards: "judge card", recordings: "recording", aggregations: "aggregation" };
const ROUTES = {
  experiments: "e", runs: "r", evaluations: "v", aggregations: "v", matches: "m", ratings: "m", recordings: "a", datasets: "d", cards: "j",
};

export function ListPage() {
  const found = useRead("index");
  return html`<${Loaded} found=${found}>${(index) => html`<${List} index=${index} />`}</${Loaded}>`;
}

function List({ index }) {
  const entries = all(index);
  const kinds = [...new Set(entries.map((entry) => entry.kind))];
  const named = state.value.get("k") ?? (index.experiments.length ? "experiments" : "all");
  const kind = named === "all" ? "" : named;
  const text = (state.value.get("q") ?? "").toLowerCase();
  const chosen = entries.filter((entry) => (!kind || entry.kind === kind) && (!text || `${entry.title} ${entry.id}`.toLowerCase().includes(text)));
  const [n, more] = useState(PAGE);
  const [picked, pick] = useState([]);
  const toggle = (id) => pick(picked.includes(id) ? picked.filter((each) => each !== id) : [...picked, id].slice(-2));
  return html`<${Head} title="What is stored" kind="evaluand"><p class="meta">${shown(index.store)} · ${plural(index.experiments.length, "experiment")} · ${plural(index.artifacts.length, "artifact")} · <a href=${address(["j"])}>judges</a></p></${Head}>
    <div class="filters" role="search" aria-label="What is stored"><div class="field wide"><label for="list-text">Search names and ids</label>
      <input id="list-text" type="search" value=${state.value.get("q") ?? ""} onInput=${(event) => change({ q: event.target.value })} /></div></div>
    <ul class="chips" aria-label="Kinds"><li><button type="button" class="chip" aria-pressed=${!kind} onClick=${() => change({ k: index.experiments.length ? "all" : null })}>All</button></li>
      ${kinds.map((each) => html`<li><button type="button" class="chip" aria-pressed=${each === kind} onClick=${() => change({ k: each })}>${TITLES[each]}s</button></li>`)}</ul>
    ${picked.length === 2 && html`<p><button type="button" onClick=${() => go(address(["c"], { a: picked[0], b: picked[1] }))}>Compare the two</button></p>`}
    <p class="row-count" role="status">${word.format(chosen.length)} of ${word.format(entries.length)}</p>
    <ul class="entries">${chosen.slice(0, n).map((entry) => html`<${Entry} key=${entry.kind + entry.id} entry=${entry} picked=${picked.includes(entry.id)} toggle=${toggle} />`)}</ul>
    ${chosen.length > n && html`<p><button type="button" onClick=${() => more(n + 4 * PAGE)}>Show more</button></p>`}`;
}

function all({ experiments, artifacts }) {
  const named = experiments.map((entry) => ({ ...entry, kind: "experiments", id: entry.name, title: entry.name }));
  return [...named, ...artifacts.map((entry) => ({ ...entry, title: entry.names[0] ?? entry.id.slice(0, 12) }))];
}

function Entry({ entry, picked, toggle }) {
  const isOpen = entry.status === "open";
  const hasOnlyMatches = entry.kind === "experiments" && Object.keys(entry.tasks).length === 0;
  const route = isOpen ? { runs: "live", recordings: "a" }[entry.kind] : hasOnlyMatches ? "m" : ROUTES[entry.kind];
  const title = html`<${Name} of=${entry.title} />`;
  const canPick = isServed && entry.kind === "evaluations" && entry.status === "sealed";
  return html`<li class="entry"><div class="title">
      ${canPick && html`<input type="checkbox" checked=${picked} aria-label=${`Compare ${entry.title}`} onChange=${() => toggle(entry.id)} />`}
      ${route ? html`<a href=${address([route, entry.id])}>${title}</a>` : html`<b>${title}</b>`}
      <span class="muted">${TITLES[entry.kind]} · ${minute(entry.created)}</span>
      ${entry.status && entry.status !== "sealed" && html`<span class=${`pill ${entry.status === "damaged" ? "failed" : "unscored"}`}>${entry.status}</span>`}
      <span class="muted">${counts(entry.counts)}${entry.used ? ` · ${entry.used}` : ""}</span></div>
    ${entry.kind === "experiments" ? Object.entries(entry.tasks).slice(0, 12).map(([task, id]) => html`<${Card} key=${id} name=${task} kind="evaluations" id=${id} />`)
      : !isOpen && ["runs", "evaluations"].includes(entry.kind) && html`<${Card} kind=${entry.kind} id=${entry.id} />`}</li>`;
}

function counts(found) {
  const pairs = Object.entries(found ?? {}).filter(([, n]) => typeof n === "number");
  return pairs.map(([status, n]) => `${word.format(n)} ${status}`).join(", ");
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
    ${card?.metrics.map((metric) => html`<li><${Name} of=${metric.label} /> <b>${number(metric.value)}</b>${metric.low !== null ? html` <span class="muted">[${number(metric.low)}, ${number(metric.high)}]</span>` : ""}</li>`)}
  </ul>`;
}
