// The spans of a call as a tree.
import { html } from "htm/preact";
import { seconds, shown, snippet, word } from "../text.js";
import { Block } from "./cell.js";

const DEEPEST = 60;
const OPEN = 3;

/** The spans below each span, by its number; those without one among them are below `null`. */
export function byParent(spans) {
  const known = new Set(spans.map((span) => span[0]));
  const below = new Map();
  for (const span of spans) {
    const parent = span[1] !== null && known.has(span[1]) ? span[1] : null;
    if (!below.has(parent)) below.set(parent, []);
    below.get(parent).push(span);
  }
  return below;
}

/** How long a span took, which one that is open does not say. */
export const spanTime = (duration, status) => (duration !== null ? seconds(duration / 1e6) : status === "unset" ? "open" : seconds(null));

export const gist = (input, output) => (input === null ? "" : snippet(input)) + (output === null ? "" : ` → ${snippet(output)}`);

export const HELD = ["input", "output", "attributes", "events"];

export function SpanTree({ row, search, command }) {
  const below = byParent(row.spans);
  const more = row.n_spans - row.spans.length;
  const list = (parent, kind, depth) => html`<ul class=${kind}>${below.get(parent).map((span) => branch(span, depth))}</ul>`;
  const branch = (span, depth) => {
    const [id, , , , , , , ...held] = span;
    const within = HELD.map((what, i) => held[i] !== null && html`<p class="cut">${what}</p><${Block} cell=${held[i]} search=${search} command=${command} />`);
    const under = below.has(id) && depth < DEEPEST ? list(id, null, depth + 1) : null;
    if (!within.some(Boolean) && !under) return html`<li class="leaf"><${Line} span=${span} search=${search} /></li>`;
    return html`<li><details open=${depth < OPEN}><summary><${Line} span=${span} search=${search} /></summary>
      ${within.some(Boolean) && html`<div class="held"><details><summary class="cut">what it held</summary>${within}</details></div>`}${under}</details></li>`;
  };
  return html`${below.has(null) && list(null, "spans", 0)}${more > 0 && html`<p class="cut">${word.format(more)} spans more</p>`}`;
}

function Line({ span, search }) {
  const [, , name, kind, , duration, status, input, output] = span;
  return html`<bdi>${shown(name, search)}</bdi><span class="time">${kind !== "span" && html`${shown(kind)} · `}${spanTime(duration, status)}</span>${
    status === "error" && html`<span class="failed"> error</span>`}${
    (input !== null || output !== null) && html`<span class="gist" dir="auto">${shown(gist(input, output), search)}</span>`}`;
}
