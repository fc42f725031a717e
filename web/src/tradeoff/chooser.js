// The choice of a point of a trade-off: sliders for limits, the point that is best within them, and what is known of it.
import { html } from "htm/preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { change, state } from "../address.js";
import { Command, shellQuoted } from "../parts/command.js";
import { Problem } from "../parts/frame.js";
import { Name, number, plainly, plural, shown, word } from "../text.js";
import { limitAt, nameOf, pick, readLimit, slideOf, stopsOf, VALUES } from "./pick.js";
import { Planes } from "./planes.js";
import { Points, Rates } from "./tables.js";

const WAIT = 200; // milliseconds until the address and the server learn what has been set

/** A value that follows another one once it rests. */
export function useRested(value) {
  const [rested, tell] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => tell(value), WAIT);
    return () => clearTimeout(timer);
  }, [value]);
  return rested;
}

/** What is set, for each objective the text of a limit, and which is to be best; it follows the address and the address it. */
function useChoice(place, n) {
  const keys = [...Array(n).keys(), "best"].map((key) => `${place}.${key}`);
  const written = JSON.stringify(keys.map((key) => state.value.get(key) ?? ""));
  const [held, tell] = useState(written);
  const own = useRef(written); // what this part has written into the address itself, which may be older than what is held
  useEffect(() => { if (written !== own.current) tell(own.current = written); }, [written]);
  const rested = useRested(held);
  useEffect(() => {
    if (rested !== held || rested === written) return;
    own.current = rested;
    change(Object.fromEntries(JSON.parse(rested).map((text, i) => [keys[i], text])));
  }, [rested]);
  const texts = JSON.parse(held);
  return { limits: texts.slice(0, n), best: Number(texts[n]) in Array(n).fill(0) ? Number(texts[n]) : 0, set: (limits, best) => tell(JSON.stringify([...limits, best ? String(best) : ""])) };
}

/**
 * The figures, sliders for limits, the point that is best within them, and the points to choose from.
 *
 * @param section the number of the trade-off, by which its limits are named in the address.
 * @param one `choice`, `figures`, `frames`; `command` is null where the command line has no names for the objectives.
 * @param elsewhere what else is shown of a picked point.
 */
export function Chooser({ section, one, elsewhere = null }) {
  const { choice, figures, frames } = one;
  const { limits, best, set } = useChoice(section, choice.names.length);
  const read = limits.map(readLimit);
  const faults = read.map(({ fault }) => fault).filter(Boolean);
  const numbers = read.map(({ value }) => value ?? null);
  const { place, kept, reason } = useMemo(() => (faults.length ? { place: -1, kept: 0, reason: "Nothing is chosen until each limit is a number." } : pick(choice, best, numbers)), [choice, best, limits.join("\n")]);
  const point = place < 0 ? null : choice.points[place];
  const choose = (i) => set(choice.points[i][VALUES].map(String), best);
  return html`<div class="tradeoff-choice"><${Limits} title=${one.name ? `Limits of ${plainly(one.name)}` : "Limits"} id=${`limits-${section}`} choice=${choice} limits=${limits} numbers=${numbers} best=${best} set=${set} />
      <div class="chosen-point"><p role="status" class="picked-point">${point ? html`<b><${Name} of=${nameOf(choice, point)} /></b>` : html`<span class="unscored">${reason}</span>`}</p>
        ${faults.map((fault) => html`<${Problem} text=${fault} />`)}
        ${point && html`<dl class="pairs">${choice.names.map((name, i) => html`<dt>${shown(name)}</dt><dd><b>${number(point[VALUES][i])}</b></dd>`)}</dl>`}
        ${!faults.length && html`<p class="cut">${word.format(kept)} of ${plural(choice.points.length, "point")} keep the limits.</p>`}
        ${point && one.command !== undefined && (one.command ? html`<p><${Command} text=${commandOf(one, best, numbers)} /></p>`
          : html`<p class="note">The command line has no names for all of these objectives; <code>Tradeoff.pick</code> does the same in Python.</p>`)}</div></div>
    <p class="note">A point that is chosen for its values looks better than it is: evaluate it on other data. Points that accept nobody or everybody are not chosen.</p>
    <${Planes} figures=${figures} frames=${frames} points=${choice.points} place=${place} onPick=${choose} />
    <${Rates} choice=${choice} point=${point} />
    ${point && elsewhere && elsewhere(choice, place)}
    <h3>Points</h3><${Points} choice=${choice} place=${place} onPick=${choose} />`;
}

function Limits({ title, id, choice, limits, numbers, best, set }) {
  const stops = useMemo(() => choice.names.map((_, i) => stopsOf(choice, i)), [choice]);
  const put = (i, text) => set(limits.map((own, other) => (other === i ? text : own)), best);
  const anyLimit = limits.some(Boolean) || best > 0;
  return html`<form class="limits" aria-label=${title} onSubmit=${(event) => event.preventDefault()}>
    <label for=${`${id}-best`}>Best by</label><select id=${`${id}-best`} value=${String(best)} onChange=${(event) => set(limits, Number(event.target.value))}>
      ${choice.names.map((name, i) => html`<option value=${String(i)} selected=${i === best}>${plainly(name)}</option>`)}</select>
    <span class="reset">${anyLimit && html`<button type="button" class="plain" onClick=${() => set(limits.map(() => ""), 0)}>Clear the limits</button>`}</span>
    ${choice.names.map((name, i) => {
      const isLower = choice.lower[i];
      const words = `${plainly(name)} ${isLower ? "at most" : "at least"}`;
      const limit = numbers[i];
      return html`<label for=${`${id}-${i}`}><${Name} of=${name} /> ${isLower ? "at most" : "at least"}</label>
        <input type="range" aria-label=${words} min="0" max=${stops[i].length} step="1" value=${slideOf(stops[i], isLower, limit)} aria-valuetext=${limit === null ? "no limit" : String(limit)}
          onInput=${(event) => { const at = limitAt(stops[i], isLower, Number(event.target.value)); put(i, at === null ? "" : String(at)); }} />
        <input id=${`${id}-${i}`} type="text" inputmode="decimal" autocomplete="off" placeholder="no limit" value=${limits[i]} aria-invalid=${String(Boolean(readLimit(limits[i]).fault))} onInput=${(event) => put(i, event.target.value)} />`;
    })}</form>`;
}

function commandOf({ choice, metrics, command }, best, numbers) {
  const store = command.at(-1);
  const where = numbers.flatMap((limit, i) => (limit === null ? [] : ["--where", `${metrics[i]} ${choice.lower[i] ? "<=" : ">="} ${limit}`]));
  const words = ["evaluand", "tradeoff", "pick", ...command.slice(0, -1), "--best", metrics[best], ...where];
  return words.map(shellQuoted).join(" ") + (store ? ` ${store}` : "");
}
