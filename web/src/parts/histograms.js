// How the numbers of the rows of a task are distributed; a bar sets the filter of the grid to its rows.
import { html } from "htm/preact";
import { change, state } from "../address.js";
import { quotedName } from "../grid/filter.js";
import { pathOf, useRead } from "../source.js";
import { Name, number, plural, seconds, shown, word } from "../text.js";
import { Loaded } from "./frame.js";

export function Histograms({ task }) {
  const found = useRead(pathOf("histograms", task.run, task.evaluation ?? "-"));
  return html`<${Loaded} found=${found}>${({ rows, quantities, absent }) => html`
    <div class="histograms">${quantities.map((each) => html`<${Quantity} of=${each} rows=${rows} />`)}</div>
    ${absent.length > 0 && html`<p class="note">No row has a number for ${shown(absent.join(", "))}.</p>`}`}</${Loaded}>`;
}

function Quantity({ of, rows }) {
  const text = (value) => (of.unit === "seconds" ? seconds(value) : number(value));
  const [low, high] = of.ends;
  const unit = of.unit === "seconds" ? "" : of.unit;
  return html`<figure><figcaption><b><${Name} of=${of.title} /></b> <span class="muted">${shown(unit)} ${of.lowest && "lowest score of each row, "}${of.n < rows && `${word.format(of.n)} of `}${plural(rows, "row")}</span></figcaption>
    ${of.drawn === null ? html`<p class="cut">${low === high ? `${text(low)} in each of them` : `${text(low)} to ${text(high)}`}</p>` : html`
      <div class="bars"><div dangerouslySetInnerHTML=${{ __html: of.drawn.chart }} />${of.name && html`<${Bins} name=${of.name} drawn=${of.drawn} text=${text} />`}</div>
      <p class="ends" aria-hidden="true"><span>${text(low)}</span><span>${text(high)}</span></p>`}</figure>`;
}

/** A button over each bar. */
function Bins({ name, drawn: { edges, counts }, text }) {
  const column = name.map(quotedName).join(".");
  const last = counts.length - 1;
  const filter = state.value.get("f");
  return html`<div class="bins" role="group" aria-label=${`Rows by ${name.at(-1)}`}>${counts.map((n, i) => {
    const ends = [i > 0 && `${column} >= ${edges[i]}`, i < last && `${column} < ${edges[i + 1]}`].filter(Boolean).join(" and ");
    const title = `${text(edges[i])} to ${text(edges[i + 1])}: ${plural(n, "row")}`;
    const choose = () => {
      change({ f: filter === ends ? null : ends, x: null });
      document.getElementById("rows")?.scrollIntoView({ block: "nearest" });
    };
    return n > 0 ? html`<button type="button" class="bin" title=${title} aria-label=${title} aria-pressed=${String(filter === ends)} onClick=${choose} />` : html`<span />`;
  })}</div>`;
}
