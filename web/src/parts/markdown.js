// Markdown as nodes: headings, lists, quotes, code, emphasis, tables and links. Everything else stays the text that it is.
import { html } from "htm/preact";
import { shown } from "../text.js";

const SIGNS = [/^#{1,6} \S/m, /^ {0,3}(?:[-*+]|\d+[.)]) \S.*\n+ {0,3}(?:[-*+]|\d+[.)]) \S/m, /^```/m, /\*\*\S[^*\n]*\*\*/, /`[^`\n]+`/, /\[[^[\]\n]+\]\(https?:[^()\s]+\)/, /^\|.+\|\s*\n\|[ :|-]+\|/m];

/** Whether a text has signs of markdown. */
export const looksLikeMarkdown = (text) => SIGNS.some((sign) => sign.test(text));

export const Markdown = ({ text, search = "" }) => html`<div class="markdown" dir="auto" tabindex="0">${blocks(text.split("\n"), search, 0)}</div>`;

const DEEPEST = 8;
const FENCE = /^ {0,3}(`{3,}|~{3,})/;
const HEADING = /^ {0,3}(#{1,6}) +(\S.*)$/;
const RULE = /^ {0,3}(?:(?:\* *){3,}|(?:- *){3,}|(?:_ *){3,})$/;
const QUOTE = /^ {0,3}> ?/;
const ITEM = /^( {0,3}(?:[-*+]|(\d{1,9})[.)]) +)(?=\S)/;
const DIVIDER = /^ {0,3}\|?(?: *:?-+:? *\|)+ *(?::?-+:? *)?$/;

/** The blocks of some lines. */
function blocks(lines, search, depth) {
  if (depth > DEEPEST) return shown(lines.join("\n"), search);
  const found = [];
  let at = 0;
  const take = (wanted) => {
    const taken = [];
    while (at < lines.length && wanted(lines[at])) taken.push(lines[at++]);
    return taken;
  };
  const startsOther = (line) => !line.trim() || FENCE.test(line) || HEADING.test(line) || RULE.test(line) || QUOTE.test(line) || ITEM.test(line);
  while (at < lines.length) {
    const line = lines[at];
    const heading = HEADING.exec(line);
    if (!line.trim()) at += 1;
    else if (FENCE.test(line)) {
      const [, fence] = FENCE.exec(lines[at++]);
      const held = take((one) => !(FENCE.exec(one)?.[1].startsWith(fence) && !one.trim().slice(fence.length).replaceAll(fence[0], "")));
      at += 1;
      found.push(html`<pre>${shown(held.join("\n"), search)}</pre>`);
    } else if (heading) {
      at += 1;
      found.push(html`<p class="h" role="heading" aria-level=${Math.min(heading[1].length + 4, 6)}>${inline(heading[2].trim().replace(/ #+$/, ""), search)}</p>`);
    } else if (RULE.test(line)) {
      at += 1;
      found.push(html`<hr />`);
    } else if (QUOTE.test(line)) {
      found.push(html`<blockquote>${blocks(take((one) => QUOTE.test(one)).map((one) => one.replace(QUOTE, "")), search, depth + 1)}</blockquote>`);
    } else if (ITEM.test(line)) found.push(list(take, lines, () => at, search, depth));
    else if (line.includes("|") && DIVIDER.test(lines[at + 1] ?? "")) found.push(table(take((one) => one.includes("|")), search));
    else {
      const held = [lines[at++], ...take((one) => !startsOther(one))];
      found.push(html`<p>${inline(held.join("\n"), search)}</p>`);
    }
  }
  return found;
}

function list(take, lines, where, search, depth) {
  const ordered = ITEM.exec(lines[where()])[2] !== undefined;
  const items = [];
  const isOne = (line) => ITEM.test(line) && (ITEM.exec(line)[2] !== undefined) === ordered;
  while (where() < lines.length && isOne(lines[where()])) {
    const width = ITEM.exec(lines[where()])[1].length;
    let first = true;
    const held = take((line) => {
      if (first) { first = false; return true; }
      return !line.trim() ? /^ {2,}/.test(lines[where() + 1] ?? "") : /^ {2,}/.test(line);
    });
    items.push([held[0].slice(width), ...held.slice(1).map((line) => line.replace(new RegExp(`^ {0,${width}}`), ""))]);
  }
  const entries = items.map((held) => html`<li>${held.length === 1 ? inline(held[0], search) : blocks(held, search, depth + 1)}</li>`);
  return ordered ? html`<ol>${entries}</ol>` : html`<ul>${entries}</ul>`;
}

function table(lines, search) {
  const cells = (line) => line.trim().replace(/^\||\|$/g, "").split("|").map((cell) => inline(cell.trim(), search));
  const [head, , ...rows] = lines;
  return html`<div class="scroll" role="region" aria-label="Table in the text" tabindex="0"><table class="numbers small"><thead><tr>${cells(head).map((cell) => html`<th scope="col" class="text">${cell}</th>`)}</tr></thead>
    <tbody>${rows.map((row) => html`<tr>${cells(row).map((cell) => html`<td class="text">${cell}</td>`)}</tr>`)}</tbody></table></div>`;
}

// Code, bold, italic and links, whichever comes first. Nothing here may take long on any text: no two parts that repeat
// can match the same characters.
const SPAN = /(`{1,3})([^`\n]+)\1|\*\*(?=\S)([^\n]+?)\*\*|(?<![\w*])[*_](?=[^\s*_])([^*_\n]+)[*_](?!\w)|\[([^[\]\n]+)\]\((https?:\/\/[^\s()<>]+)\)/g;

/** The parts of a line. */
function inline(text, search, depth = 0) {
  if (depth > DEEPEST) return shown(text, search);
  const found = [];
  let last = 0;
  for (const match of text.matchAll(SPAN)) {
    const [whole, , code, bold, italic, name, address] = match;
    found.push(...shown(text.slice(last, match.index), search));
    if (code !== undefined) found.push(html`<code>${shown(code, search)}</code>`);
    else if (bold !== undefined) found.push(html`<strong>${inline(bold, search, depth + 1)}</strong>`);
    else if (italic !== undefined) found.push(html`<em>${inline(italic, search, depth + 1)}</em>`);
    else found.push(html`<a href=${address} rel="noreferrer noopener" target="_blank">${inline(name, search, depth + 1)}</a> <span class="muted">(${shown(address, search)})</span>`);
    last = match.index + whole.length;
  }
  return [...found, ...shown(text.slice(last), search)];
}
