// A value as a block: text as it is or rendered, JSON as a tree or as it is.
import { html } from "htm/preact";
import { createContext } from "preact";
import { useContext, useMemo, useState } from "preact/hooks";
import { shown, textOf, word } from "../text.js";
import { parseJson } from "../json.js";
import { JsonTree } from "./json.js";
import { Markdown, looksLikeMarkdown } from "./markdown.js";

const ONE_LINE = 80;

export const isText = (cell) => typeof cell === "string" || "t" in cell;

/** That something was cut, and the command that shows it. */
export const Cut = ({ text, command }) => html`<p class="cut">${text}: <code>${command}</code></p>`;

/** The level of headings within a part, below that of what the part stands in. */
export const Level = createContext(4);

export const Heading = ({ children }) => html`<h4 aria-level=${useContext(Level)}>${children}</h4>`;

/** A value as a block; `command` shows the whole of a value that was cut. */
export function Block({ cell, search = "", command, kind = "" }) {
  const text = textOf(cell);
  const tree = useMemo(() => (cell && !isText(cell) && !cell.c && text.length > ONE_LINE ? parseJson(text) : null), [cell]);
  const isMarkdown = useMemo(() => cell !== null && isText(cell) && looksLikeMarkdown(text), [cell]);
  if (cell === null || cell === undefined) return html`<p class="cut">not in this store</p>`;
  const raw = html`<pre class=${`text-block ${isText(cell) ? "" : "json"} ${kind}`} dir="auto" tabindex="0">${
    text === "" && !cell.c ? html`<span class="muted">(empty text)</span>` : shown(text, search)}</pre>`;
  const cut = cell.c ? html`<${Cut} text=${`${word.format(cell.c)} characters more; the whole`} command=${command} />` : null;
  if (tree?.items) return html`<${Views} names=${["Tree", "Text"]} search=${search} views=${[html`<${JsonTree} tree=${tree} />`, raw]} />`;
  if (isMarkdown) return html`<${Views} names=${["Text", "Rendered"]} views=${[raw, html`<${Markdown} text=${text} search=${search} />`]} />${cut}`;
  return html`${raw}${cut}`;
}

/** One of two views; what is searched for is marked in the text, since a tree may hide it in a fold. */
function Views({ names, views, search = "" }) {
  const [chosen, choose] = useState(null);
  const shownOne = chosen ?? (search ? 1 : 0);
  return html`<div class="views"><div class="view-choice" role="group" aria-label="Show as">${names.map((name, i) => html`
    <button type="button" aria-pressed=${String(i === shownOne)} onClick=${() => choose(i)}>${name}</button>`)}</div>${views[shownOne]}</div>`;
}

/** Names and values; a value is a text, nodes or a cell. */
export const Definitions = ({ pairs, search = "", kind = "" }) => html`<dl class=${`pairs ${kind}`}>${pairs.map(([name, value]) => html`
  <dt>${shown(name)}</dt><dd dir="auto">${typeof value === "string" ? shown(value, search) : value}</dd>`)}</dl>`;
