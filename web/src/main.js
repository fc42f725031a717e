// The page: which part of it an address shows.
import { html } from "htm/preact";
import { render } from "preact";
import { path } from "./address.js";
import { Frame, Problem } from "./parts/frame.js";
import { AppPage } from "./pages/app.js";
import { ComparePage } from "./pages/compare.js";
import { ExamplePage } from "./pages/example.js";
import { ListPage } from "./pages/list.js";
import { LivePage } from "./pages/live.js";
import { MatchesPage } from "./pages/matches.js";
import { ResultsPage } from "./pages/results.js";
import { TracePage } from "./pages/trace.js";
import { TradeoffPage } from "./pages/tradeoff.js";

const PAGES = {
  "": ListPage, c: ComparePage, e: ResultsPage, live: LivePage, r: ResultsPage, t: TracePage, v: ResultsPage, x: ExamplePage,
  a: AppPage, m: MatchesPage, o: TradeoffPage,
};

function Page() {
  const [kind = "", ...rest] = path.value;
  const Shown = PAGES[kind];
  return html`<${Frame}>
    ${Shown ? html`<${Shown} key=${path.value.join("/")} parts=${rest} />` : html`<${Problem} text="There is no such page." />`}
  </${Frame}>`;
}

render(html`<${Page} />`, document.getElementById("page"));
