// A section of a report in the page: its markup comes escaped from the server, and its tables and links work here.
import { html } from "htm/preact";
import { change } from "../address.js";

export const Markup = ({ of, className = "" }) => html`<div class=${className} onClick=${act} dangerouslySetInnerHTML=${{ __html: of }} />`;

/** What a click on markup does: it sorts a table, or opens the row of an example. */
export function act(event) {
  const head = event.target.closest("table.sortable thead th");
  if (head) sort(head.closest("table"), head);
  const link = event.target.closest('a[href^="#example="]');
  if (!link) return;
  event.preventDefault();
  openExample(link.getAttribute("href"));
}

/** Opens the row of `#example=TASK/INDEX/REPLICATION`. */
export function openExample(link, replace = false) {
  change({ x: null, example: link.slice("#example=".length) }, replace);
  document.querySelector(".examples")?.scrollIntoView();
}

const NEXT = { none: "ascending", ascending: "descending", descending: "none" };
const originals = new WeakMap(); // body → its rows in their first order

/** Sorts the rows of a table by a column: ascending, then descending, then as they were. */
function sort(table, head) {
  const heads = [...table.querySelectorAll("thead th")];
  const [body] = table.tBodies;
  if (!originals.has(body)) originals.set(body, [...body.rows]);
  const next = NEXT[head.getAttribute("aria-sort") ?? "none"];
  for (const other of heads) other.removeAttribute("aria-sort");
  if (next !== "none") head.setAttribute("aria-sort", next);
  const sign = next === "descending" ? -1 : 1;
  const place = heads.indexOf(head);
  const value = (row) => row.cells[place].dataset.v ?? row.cells[place].textContent;
  const compare = (a, b) => {
    const difference = Number(value(a)) - Number(value(b));
    return sign * (Number.isNaN(difference) ? value(a).localeCompare(value(b), "en", { numeric: true }) : difference);
  };
  body.append(...(next === "none" ? originals.get(body) : [...originals.get(body)].sort(compare)));
}
