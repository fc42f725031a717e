// What people interact with in a report: rows, pairs and trade-offs, each in the place of an element; and tables to sort.
import { html } from "htm/preact";
import { render } from "preact";
import { Grid } from "./grid/grid.js";
import { Loaded } from "./parts/frame.js";
import { act, openExample } from "./parts/markup.js";
import { PairBrowser } from "./matches/browser.js";
import { useRead } from "./source.js";
import { offerThemes } from "./theme.js";
import { Chooser } from "./tradeoff/chooser.js";

function Rows() {
  return html`<${Loaded} found=${useRead("tasks")}>${(tasks) => html`<${Grid} tasks=${tasks} />`}</${Loaded}>`;
}

/** The figures of a trade-off are in the place that it takes, for those who read without a script. */
function Tradeoff({ section, figures }) {
  return html`<${Loaded} found=${useRead(`tradeoffs/${section}`)}>${(one) => html`<${Chooser} section=${section} one=${{ ...one, figures }} />`}</${Loaded}>`;
}

const PARTS = {
  pairs: () => html`<${PairBrowser} sets="report" />`,
  rows: () => html`<${Rows} />`,
  tradeoff: (place) => html`<${Tradeoff} section=${place.dataset.section} figures=${place.querySelector(".tradeoff-figures").innerHTML} />`,
};

for (const place of document.querySelectorAll("[data-part]")) {
  const part = PARTS[place.dataset.part](place);
  place.replaceChildren();
  render(part, place);
}

const follow = (replace) => { if (location.hash.startsWith("#example=")) openExample(location.hash, replace); };

offerThemes();
addEventListener("click", act);
addEventListener("hashchange", () => follow(true));
follow(true);
