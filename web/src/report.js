// What people interact with in a report: its rows, which take the place of an element, and its tables, which can be sorted.
import { html } from "htm/preact";
import { render } from "preact";
import { Grid } from "./grid/grid.js";
import { Loaded } from "./parts/frame.js";
import { act, openExample } from "./parts/markup.js";
import { useRead } from "./source.js";
import { offerThemes } from "./theme.js";

function Rows() {
  return html`<${Loaded} found=${useRead("tasks")}>${(tasks) => html`<${Grid} tasks=${tasks} />`}</${Loaded}>`;
}

const PARTS = { rows: Rows };

for (const place of document.querySelectorAll("[data-part]")) render(html`<${PARTS[place.dataset.part]} />`, place);

const follow = (replace) => { if (location.hash.startsWith("#example=")) openExample(location.hash, replace); };

offerThemes();
addEventListener("click", act);
addEventListener("hashchange", () => follow(true));
follow(true);
