// Text from data as nodes: never markup, with invisible characters made visible and search results marked.
import { html } from "htm/preact";
import { parseJson } from "./json.js";

export const word = new Intl.NumberFormat("en");

// Characters that would not be seen or would change the direction of what follows.
const INVISIBLE =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\ud800-\udfff]/u;
const INVISIBLE_ALL = new RegExp(INVISIBLE.source, "gu");

/** Text as nodes: invisible characters as marked codes, and what was searched for, in lower case, highlighted. */
export function shown(text, search = "") {
  const whole = String(text);
  const plain = (part) => (search ? highlighted(part, search) : [part]);
  if (!INVISIBLE.test(whole)) return plain(whole);
  const nodes = [];
  let last = 0;
  for (const match of whole.matchAll(INVISIBLE_ALL)) {
    nodes.push(...plain(whole.slice(last, match.index)));
    const code = codeOf(match[0]);
    nodes.push(html`<span class="invisible" title=${`invisible character ${code}`}>${code}</span>`);
    last = match.index + match[0].length;
  }
  return [...nodes, ...plain(whole.slice(last))];
}

/** A text where nodes cannot stand, such as an option; cut. */
export function plainly(of, length = 60) {
  const text = String(of).replace(INVISIBLE_ALL, codeOf);
  return text.length > length ? `${text.slice(0, length - 1)}…` : text;
}

/** A sentence as nodes, with what is between backticks as code. */
export function sentence(text) {
  const parts = String(text).split("`");
  return parts.length % 2 ? parts.map((part, i) => (i % 2 ? html`<code>${shown(part)}</code>` : shown(part))) : shown(text);
}

const codeOf = (character) => `U+${character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`;

function highlighted(text, search) {
  const low = text.toLowerCase();
  if (low.length !== text.length) return [text];
  const parts = [];
  let last = 0;
  for (let at = low.indexOf(search); at >= 0; at = low.indexOf(search, last)) {
    parts.push(text.slice(last, at), html`<mark>${text.slice(at, at + search.length)}</mark>`);
    last = at + search.length;
  }
  return [...parts, text.slice(last)];
}

/** A name from data, isolated from the direction of the text around it. */
export const Name = ({ of, search = "" }) => html`<bdi>${shown(of, search)}</bdi>`;

/** The text of a cell: a text, `{t}` of a text that was cut, or `{j}` of JSON; `c` counts the characters left out. */
export const textOf = (cell) => (cell === null || cell === undefined ? "" : typeof cell === "string" ? cell : (cell.t ?? cell.j));

export const snippet = (cell, length = 300) => textOf(cell).slice(0, length).replace(/\s+/g, " ");

/** The first of a value without the JSON around it: `answer: 17 · unit: apples`. */
export function plain(cell, length = 300) {
  const text = textOf(cell);
  if (cell === null || typeof cell === "string" || !("j" in cell) || cell.c) return text.slice(0, length).replace(/\s+/g, " ");
  const tree = parseJson(text);
  return (tree ? flat(tree) : text).slice(0, length).replace(/\s+/g, " ");
}

function flat({ kind, text, items }) {
  if (!items) return text;
  if (kind === "list") return items.length ? items.map(([, held]) => flat(held)).join(", ") : "(empty list)";
  const prediction = items.find(([name]) => name === "prediction");
  if (prediction) return flat(prediction[1]);
  return items.length === 1 ? flat(items[0][1]) : items.map(([name, held]) => `${name}: ${flat(held)}`).join(" · ");
}

/** A number with four significant digits, and all digits before the point. */
export function number(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
  const size = Math.abs(value);
  if (Number.isInteger(value) || (size >= 1000 && size < 1e9)) return exact.format(value).replaceAll("-", "−");
  const text = value.toPrecision(4);
  return (Number.isInteger(Number(text)) ? text : String(Number(text))).replaceAll("-", "−"); // 0.99999 is not 1
}

const exact = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });

/** An interval, without dashes that could be taken for signs; empty without both ends. */
export function interval(low, high, form = number) {
  if (low === null && high === null) return "";
  return `${low === null ? "−∞" : form(low)} to ${high === null ? "∞" : form(high)}`;
}

export function seconds(time) {
  if (time === null || time === undefined || Number.isNaN(time)) return "time unknown";
  if (time < 0.9995) return `${Number((time * 1000).toPrecision(3))} ms`;
  if (time < 59.95) return `${Number(time.toPrecision(3))} s`;
  const all = Math.round(time);
  const [hours, minutes] = [Math.floor(all / 3600), Math.floor(all / 60) % 60];
  return hours ? `${word.format(hours)} h ${minutes} min` : `${minutes} min ${all % 60} s`;
}

export const minute = (time) => (time ? `${time.slice(0, 10)} ${time.slice(11, 16)}` : "");

export const plural = (n, one, many = `${one}s`) => `${word.format(n)} ${n === 1 ? one : many}`;

/** A sentence with its full stop. */
export const ended = (text) => (/[.:!?]$/.test(text) ? text : `${text}.`);
