// Which columns of a grid are shown. The address names those that are not as usual: `cols=-expected,duration`.
import { html } from "htm/preact";
import { change, state } from "../address.js";
import { Name } from "../text.js";
import { attributesOf, scorersOf } from "./columns.js";

/** All columns: a key, a title, the width, and whether a column is usually shown. Scores stand within the answers. */
const columnsOf = (grid) => [
  { key: "input", title: "Input", width: "minmax(9rem, 1.4fr)", least: 10, usual: true },
  { key: "expected", title: "Expected", width: "minmax(5rem, 0.6fr)", least: 6, usual: true },
  ...grid.tasks.map(({ task }, number) => ({ key: `answer.${task}`, title: task, number, width: "minmax(10rem, 1fr)", least: 11, usual: true })),
  ...scorersOf(grid).map((scorer) => ({ key: `score.${scorer}`, title: scorer, isWithin: true, usual: true })),
  ...attributesOf(grid).map((attribute) => ({ key: `attribute.${attribute}`, title: attribute, attribute, width: "minmax(5rem, 0.4fr)", least: 6, usual: false })),
  { key: "duration", title: "Duration", width: "minmax(5rem, 0.3fr)", least: 6, usual: false },
];

const changed = () => new Set((state.value.get("cols") ?? "").split(",").filter(Boolean));
const write = ({ key, usual }) => `${usual ? "-" : ""}${encodeURIComponent(key)}`;

/** The columns that are shown now. */
export function shownColumns(grid) {
  const others = changed();
  return columnsOf(grid).filter((column) => column.usual !== others.has(write(column)));
}

/** Chooses the columns; those that are hidden can be filtered by all the same. */
export function ColumnChoice({ grid }) {
  const others = changed();
  const toggle = (column) => {
    const name = write(column);
    if (!others.delete(name)) others.add(name);
    change({ cols: [...others].join(",") });
  };
  return html`<details class="column-choice"><summary>Columns</summary><div role="group" aria-label="Columns">${columnsOf(grid).map((column) => html`
    <label><input type="checkbox" checked=${column.usual !== others.has(write(column))} onChange=${() => toggle(column)} /> <${Name} of=${column.isWithin ? `score ${column.title}` : column.title} /></label>`)}</div></details>`;
}
