// The input with the spans of each response and those expected, each marked by a sign, a word and an underline.
import { html } from "htm/preact";
import { shown, textOf, word } from "../text.js";
import { Heading } from "./cell.js";

const MARKS = [["✓", "in both", "good"], ["−", "only expected", "unscored"], ["+", "only answered", "failed"]];

/** For those who listen. */
export const Unseen = ({ children }) => html`<span class="unseen">${children}</span>`;

export function Marks({ row, search }) {
  return row.marks.map((marks, i) => {
    if (marks === null) return null;
    const counts = MARKS.map(([sign, name], kind) => `${sign} ${word.format(marks.spans.filter((span) => span[3] === kind).length)} ${name}`);
    const more = marks.more ? `, and ${word.format(marks.more)} more` : "";
    return html`<${Heading}>${row.responses.length > 1 ? `Spans of response ${i + 1}` : "Spans"}</${Heading}>
      <p class="cut">${counts.join(" · ") + more}</p><${MarkedText} marks=${marks} cell=${marks.text ?? row.input} search=${search} />`;
  });
}

function MarkedText({ marks, cell, search }) {
  const characters = Array.from(textOf(cell)); // as spans count them
  const borders = [...new Set([0, ...marks.spans.flatMap((span) => [span[0], span[1]]), characters.length])].sort((a, b) => a - b);
  return html`<div class="text-block tagged" dir="auto" tabindex="0">${borders.map((start, i) => html`
    ${marks.spans.filter((span) => span[1] === start).map((span) => html`<${Unseen}>${[" end of ", shown(span[2]), " "]}</${Unseen}>`)}${
    marks.spans.filter((span) => span[0] === start).sort((a, b) => b[1] - a[1]).map(tag)}${
    underlined(shown(characters.slice(start, borders[i + 1] ?? start).join(""), search), marks.spans, start)}`)}</div>`;
}

function tag([, , name, kind]) {
  const [sign, meaning, style] = MARKS[kind];
  return html`<b class=${style}><span aria-hidden="true">${sign}</span><${Unseen}>${meaning + " "}</${Unseen}><bdi>${shown(name)}</bdi></b>`;
}

function underlined(piece, spans, start) {
  const kinds = new Set(spans.filter((span) => span[0] <= start && start < span[1]).map((span) => span[3]));
  for (const kind of kinds) piece = html`<span class=${`marked ${MARKS[kind][1].split(" ").pop()}`}>${piece}</span>`;
  return piece;
}
