// Trade-offs: the planes of points and fronts, and the point that is best within limits that sliders set.
import { html } from "htm/preact";
import { address } from "../address.js";
import { Head, Loaded, Problem } from "../parts/frame.js";
import { isServed, pathOf, useRead } from "../source.js";
import { Name, plural, shown } from "../text.js";
import { Chooser, useRested } from "../tradeoff/chooser.js";
import { Elsewhere } from "../tradeoff/tables.js";

export function TradeoffPage({ parts }) {
  const name = parts.join("/");
  const found = useRead(pathOf("tradeoffs", name));
  return html`<${Loaded} found=${found}>${({ title, id, tradeoffs }) => html`
    <${Head} title=${title} kind="Trade-offs"><p class="meta">${plural(tradeoffs.length, "trade-off")} · <a href=${address(["v", id])}>all results</a></p></${Head}>
    ${tradeoffs.length === 0 && html`<p class="muted">These results have no trade-offs; an experiment asks for them under <code>tradeoffs</code>.</p>`}
    ${tradeoffs.map((one, i) => html`<section key=${i} aria-labelledby=${`tradeoff-${i}`} class="tradeoff"><h2 id=${`tradeoff-${i}`} dir="auto"><${Name} of=${one.name} /></h2>
      ${one.reason !== null ? html`<p class="note">${shown(one.reason)}</p>` : html`<${Chooser} section=${i} one=${one} elsewhere=${isServed && ((choice, place) => html`<${There} of=${name} section=${i} place=${place} choice=${choice} />`)} />`}</section>`)}`}</${Loaded}>`;
}

function There({ of, section, place, choice }) {
  const found = useRead(pathOf("tradeoff-elsewhere", of, String(section), String(useRested(place))));
  return found.error ? html`<${Problem} text=${found.error} />` : found.value && html`<${Elsewhere} choice=${choice} found=${found.value} />`;
}
