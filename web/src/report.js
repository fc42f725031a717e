// What people interact with in a report: rows and pairs, which take the place of an element, and tables that can be sorted.
import { html } from "htm/preact";
import { render } from "preact";
import { Grid } from "./grid/grid.js";
import { Loaded } from "./parts/frame.js";
import { act, openExample } from "./parts/markup.js";
import { Pairs } from "./matches/browser.js";
import { useRead } from "./source.js";
import { offerThemes } from "./theme.js";

function Rows() {
  return html`<${Loaded} found=${useRead("tasks")}>${(tasks) => html`<${Grid} tasks=${tasks} />`}</${Loaded}>`;
}

const PARTS = { pairs: () => html`<${Pairs} sets="report" />`, rows: Rows };

for (const place of document.querySelectorAll("[data-part]")) render(html`<${PARTS[place.dataset.part]} />`, place);

const follow = (replace) => { if (location.hash.startsWith("#example=")) openExample(location.hash, replace); };

offerThemes();
addEventListener("click", act);
addEventListener("hashchange", () => follow(true));
follow(true);
