// JSON as a tree that folds.
import { html } from "htm/preact";
import { useState } from "preact/hooks";
import { plural, shown, word } from "../text.js";

const SHOWN = 50; // of a list or an object at first
const OPEN = 200; // values of a tree that is open from the start

export const JsonTree = ({ tree, search }) => html`<div class="tree" dir="auto" tabindex="0">
  <${Held} node=${tree} search=${search} open=${tree.count <= OPEN} /></div>`;

/** A value; what lists and objects hold folds. */
export function Held({ node, search, open }) {
  if (!node.items) return html`<${Plain} node=${node} search=${search} />`;
  if (!node.items.length) return html`<span class="muted">${node.kind === "list" ? "[ ]" : "{ }"}</span>`;
  return html`<${Items} node=${node} search=${search} open=${open} />`;
}

function Items({ node, search, open }) {
  const [most, more] = useState(SHOWN);
  const left = node.items.length - most;
  if (isShortList(node)) {
    return html`<span class="short">${node.items.slice(0, most).map(([, held], i) => html`${i > 0 && ", "}<${Plain} node=${held} search=${search} />`)}${left > 0 && html`, <${More} left=${left} show=${() => more(most + 10 * SHOWN)} />`}</span>`;
  }
  return html`<ul class=${node.kind}>
    ${node.items.slice(0, most).map(([name, held]) => html`<li key=${name}><${Item} name=${name} node=${held} search=${search} open=${open} /></li>`)}
    ${left > 0 && html`<li><${More} left=${left} show=${() => more(most + 10 * SHOWN)} /></li>`}
  </ul>`;
}

const More = ({ left, show }) => html`<button type="button" class="plain" onClick=${show}>show ${left > 10 * SHOWN ? `${word.format(10 * SHOWN)} of ` : ""}${word.format(left)} more</button>`;

const SHORT = 20; // characters
const FEW = 8; // values of a list that needs no fold

const isShortList = (node) => node.kind === "list" && node.items.every(([, held]) => isShort(held));

/** Whether a value needs no line of its own. */
const isShort = (node) => node.kind === "word" || (node.kind === "text" && node.text.length <= SHORT && !node.text.includes("\n"));

function Item({ name, node, search, open }) {
  const [unfolded, tell] = useState(open);
  const key = html`<span class="key">${shown(name, search)}</span>`;
  if (!node.items?.length || (isShortList(node) && node.items.length <= FEW)) return html`${key} <${Held} node=${node} search=${search} />`;
  const size = node.kind === "list" ? plural(node.items.length, "item") : plural(node.items.length, "field");
  return html`<details open=${unfolded} onToggle=${(event) => tell(event.currentTarget.open)}>
    <summary>${key} <span class="muted">${size}</span></summary>
    ${unfolded && html`<${Held} node=${node} search=${search} open=${open} />`}</details>`;
}

const LOOKS_ELSE = /^(?:|-?\d[\d.eE+-]*|true|false|null|\s.*|.*\s)$/s;

const Plain = ({ node, search }) => node.kind === "word" ? html`<code class="word">${shown(node.text, search)}</code>`
  : html`<span class=${node.text.includes("\n") ? "text lines" : "text"}>${LOOKS_ELSE.test(node.text) ? html`<q>${shown(node.text, search)}</q>` : shown(node.text, search)}</span>`;
