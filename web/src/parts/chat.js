// What was said to language models and what they replied, as bubbles; reasoning and calls of tools are folded.
import { html } from "htm/preact";
import { shown, snippet, textOf, word } from "../text.js";
import { Block, Cut, Heading } from "./cell.js";

const SIDES = { user: "user", assistant: "assistant" };

export const Chats = ({ row, search, command }) => row.chats.map((chat, i) => html`
  <${Heading}>${row.chats.length > 1 ? `Conversation ${i + 1} of ${row.chats.length}` : "Conversation"}</${Heading}>
  <ol class="chat">${chat.turns.map((turn) => html`<${Bubble} turn=${turn} search=${search} command=${command} />`)}</ol>
  ${chat.left_out > 0 && html`<${Cut} text=${`${word.format(chat.left_out)} messages more`} command=${command} />`}`);

const Bubble = ({ turn, search, command }) => html`<li class=${`bubble ${Object.hasOwn(SIDES, turn.role) ? SIDES[turn.role] : "other"}`}>
  <p class="role">${shown(turn.role)}</p>
  ${turn.reasoning && html`<details>
    <summary>reasoning<span class="gist" dir="auto">${shown(snippet(turn.reasoning), search)}</span></summary>
    <${Block} cell=${turn.reasoning} search=${search} command=${command} /></details>`}
  ${(textOf(turn.text) !== "" || turn.text?.c || !turn.tools) && html`<div class="said" dir="auto" tabindex="0">${shown(textOf(turn.text), search)}</div>
    ${turn.text?.c && html`<${Cut} text=${`${word.format(turn.text.c)} characters more; the whole`} command=${command} />`}`}
  ${(turn.tools ?? []).map((tool) => html`<${Tool} tool=${tool} search=${search} command=${command} />`)}</li>`;

const Tool = ({ tool, search, command }) => html`<details>
  <summary>calls <code>${shown(tool.name)}</code><span class="gist" dir="auto">${
    shown(snippet(tool.arguments) + (tool.result === null ? "" : ` → ${snippet(tool.result)}`), search)}</span></summary>
  <p class="cut">arguments</p><${Block} cell=${tool.arguments} search=${search} command=${command} />
  ${tool.result !== null && html`<p class="cut">result</p><${Block} cell=${tool.result} search=${search} command=${command} />`}</details>`;
