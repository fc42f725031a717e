// The spans of a call in time: a tree of names beside bars, each unfolding to what the span held.
import { html } from "htm/preact";
import { useMemo, useRef, useState } from "preact/hooks";
import { plural, seconds, shown, word } from "../text.js";
import { Block, Heading, Definitions } from "./cell.js";
import { parseJson } from "../json.js";
import { Held } from "./json.js";
import { HELD, byParent, spanTime } from "./trace.js";

const DEEPEST = 60;
const MANY = 200; // spans, of which the deeper ones are folded at first
const OPEN = 2;
const SIBLINGS = 200; // spans below the same one, shown at a time
const WIDTH = 1000; // of a lane, in its own units
const INDENTS = 12;
const KINDS = { llm: "k-llm", tool: "k-tool", retriever: "k-retriever", agent: "k-agent", embedding: "k-retriever", reranker: "k-retriever", guardrail: "k-tool", evaluator: "k-agent" };

const START = 4;
const DURATION = 5;
const USED = 11;

/** The span of the call itself, which a trace has only if something was noted in it. */
const rootOf = (row, task) => [0, null, task, "task", 0, row.duration === null ? null : row.duration * 1e6,
  row.error ? "error" : "ok", row.input, row.responses?.[0] ?? null, null, null, null];

/** All spans, the call first, the others below it. */
export function allSpans(row, task) {
  const own = row.spans.find((span) => span[0] === 0);
  const root = rootOf(row, task);
  if (own) for (const at of [9, 10, USED]) root[at] = own[at] ?? null;
  const known = new Set(row.spans.map((span) => span[0]));
  return [root, ...row.spans.filter((span) => span[0] !== 0).map((span) => known.has(span[1]) ? span : [span[0], 0, ...span.slice(2)])];
}

const tokens = (used) => (used?.input_tokens ?? 0) + (used?.output_tokens ?? 0);

const cost = (used) => (used?.cost === undefined ? "" : `${Number(used.cost.toPrecision(3))} ${used.currency ?? ""}`.trim());

export function Waterfall({ row, task, command }) {
  const spans = useMemo(() => allSpans(row, task), [row, task]);
  const below = useMemo(() => byParent(spans), [spans]);
  const end = useMemo(() => spans.reduce((last, span) => Math.max(last, span[START] + (span[DURATION] ?? 0)), 0) || 1, [spans]);
  const start = useMemo(() => spans.reduce((first, span) => Math.min(first, span[START]), 0), [spans]);
  const [turned, turn] = useState(() => new Set()); // spans whose fold is not as at first
  const [opened, open] = useState(() => new Set()); // spans that show what they held
  const [more, tellMore] = useState(() => new Map()); // how many are shown below each span
  const list = useRef(null);
  const flip = (set, tell, id) => { const next = new Set(set); next.delete(id) || next.add(id); tell(next); };
  const isUnfolded = (id, depth) => (spans.length <= MANY || depth < OPEN) !== turned.has(id);
  const move = (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step || !event.target.matches(".span-row")) return;
    const rows = [...list.current.querySelectorAll(".span-row")];
    const next = rows[rows.indexOf(event.target) + step];
    if (next) { event.preventDefault(); next.focus(); }
  };
  const branches = (parent, depth) => {
    const [all, most] = [below.get(parent), more.get(parent) ?? SIBLINGS];
    return html`${all.slice(0, most).map((span) => branch(span, depth))}${all.length > most && html`<li key="more"><button type="button" class="plain"
      onClick=${() => tellMore(new Map(more).set(parent, most + SIBLINGS))}>show ${word.format(Math.min(SIBLINGS, all.length - most))} of ${word.format(all.length - most)} more spans here</button></li>`}`;
  };
  const branch = (span, depth) => {
    const [id, , name] = span;
    const under = depth < DEEPEST ? (below.get(id) ?? []) : [];
    const unfolded = under.length > 0 && isUnfolded(id, depth);
    return html`<li key=${id}><div class=${`span-line in-${Math.min(depth, INDENTS)} ${opened.has(id) ? "opened" : ""}`}>
      ${under.length > 0 && html`<button type="button" class="fold" aria-expanded=${String(unfolded)}
        aria-label=${`${unfolded ? "Fold" : "Unfold"} the ${plural(under.length, "span")} below ${name}`} onClick=${() => flip(turned, turn, id)}>${unfolded ? "▾" : "▸"}</button>`}
      <button type="button" class="span-row" aria-expanded=${String(opened.has(id))} onClick=${() => flip(opened, open, id)}>
        <${Summary} span=${span} start=${start} end=${end} /></button></div>
      ${opened.has(id) && html`<${Detail} span=${span} command=${command} />`}
      ${unfolded && html`<ol>${branches(id, depth + 1)}</ol>`}</li>`;
  };
  const left = row.n_spans - row.spans.length;
  return html`<div class=${`waterfall ${spans.some((span) => span[USED]) ? "has-used" : ""}`} onKeyDown=${move}>
    <div class="scale" aria-hidden="true"><span><span>0</span><span>${seconds((end - start) / 2e6)}</span><span>${seconds((end - start) / 1e6)}</span></span></div>
    <ol ref=${list} aria-label="Spans">${branches(null, 0)}</ol>
    ${left > 0 && html`<p class="cut">${word.format(left)} spans more: <code>${command}</code></p>`}</div>`;
}

function Summary({ span, start, end }) {
  const [, , name, kind, from, duration, status, , , , , used] = span;
  const isOpen = duration === null;
  const at = (time) => ((time - start) / (end - start)) * WIDTH;
  const x = Math.min(at(from), WIDTH - 3);
  const width = isOpen ? (status === "unset" ? WIDTH - x : 3) : Math.max((duration / (end - start)) * WIDTH, 3);
  const style = [Object.hasOwn(KINDS, kind) ? KINDS[kind] : "", status === "error" ? "bad" : "", isOpen ? "open" : ""].join(" ");
  return html`<span class="span-name"><bdi>${shown(name)}</bdi>${!["span", "task"].includes(kind) && html` <span class="kind-of">${shown(kind)}</span>`}${
      status === "error" && html` <span class="failed">error</span>`}</span>
    <svg class="lane" viewBox=${`0 0 ${WIDTH} 10`} preserveAspectRatio="none" aria-hidden="true">
      <path class="grid" d="M500 0V10" vector-effect="non-scaling-stroke" /><rect class=${`span-bar ${style}`} x=${x} y="1.5" width=${Math.min(width, WIDTH - x)} height="7" /></svg>
    <span class="span-used">${tokens(used) > 0 && `${word.format(tokens(used))} tok`}${cost(used) && html` <span>${shown(cost(used))}</span>`}</span>
    <span class="span-time">${spanTime(duration, status)}</span>`;
}

function Detail({ span, command }) {
  const [, , name, kind, from, duration, status, ...held] = span;
  const used = span[USED];
  const pairs = [["kind", kind], ["time", `${spanTime(duration, status)}, from ${seconds(from / 1e6)}`]];
  if (used?.model) pairs.push(["model", used.model]);
  if (tokens(used)) pairs.push(["tokens", `${word.format(used.input_tokens ?? 0)} in, ${word.format(used.output_tokens ?? 0)} out`]);
  if (cost(used)) pairs.push(["cost", cost(used)]);
  const none = HELD.every((_, i) => held[i] === null || held[i] === undefined);
  return html`<div class="span-detail detail" role="region" aria-label=${`What ${name} held`}><${Definitions} pairs=${pairs} />
    ${HELD.map((what, i) => held[i] !== null && held[i] !== undefined && html`<${Heading}>${what[0].toUpperCase() + what.slice(1)}</${Heading}>${
      what === "events" ? html`<${Events} cell=${held[i]} command=${command} />` : html`<${Block} cell=${held[i]} command=${command} />`}`)}
    ${none && html`<p class="cut">It held no input, output, attributes or events.</p>`}</div>`;
}

/** What was noted, and when; as a block if it was cut. */
function Events({ cell, command }) {
  const tree = useMemo(() => (cell.j && !cell.c ? parseJson(cell.j) : null), [cell]);
  const events = tree?.kind === "list" ? tree.items.map(([, event]) => event.items?.map(([, part]) => part) ?? []) : [];
  if (!events.length || !events.every(([name, time, body]) => name?.kind === "text" && time?.kind === "word" && body)) return html`<${Block} cell=${cell} command=${command} />`;
  return html`<ol class="events">${events.map(([name, time, body]) => html`<li><p><b><bdi>${shown(name.text)}</bdi></b> <span class="muted">at ${seconds(Number(time.text) / 1e6)}</span></p>
    <div class="tree" dir="auto"><${Held} node=${body} search="" open=${tree.count <= MANY} /></div></li>`)}</ol>`;
}
