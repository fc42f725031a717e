// The page: which part of it an address shows.
import { html } from "htm/preact";
import { render } from "preact";
import { useMemo } from "preact/hooks";
import { path } from "./address.js";
import { Frame, Problem } from "./parts/frame.js";
import { AppPage } from "./pages/app.js";
import { ComparePage } from "./pages/compare.js";
import { DatasetPage } from "./pages/dataset.js";
import { ExamplePage } from "./pages/example.js";
import { JudgesPage } from "./pages/judges.js";
import { LabelPage } from "./pages/label.js";
import { ListPage } from "./pages/list.js";
import { LivePage } from "./pages/live.js";
import { MatchesPage } from "./pages/matches.js";
import { ResultsPage } from "./pages/results.js";
import { TracePage } from "./pages/trace.js";
import { TradeoffPage } from "./pages/tradeoff.js";
import { forget } from "./source.js";

const PAGES = {
  "": ListPage, a: AppPage, c: ComparePage, d: DatasetPage, e: ResultsPage, j: JudgesPage, l: LabelPage, live: LivePage,
  m: MatchesPage, o: TradeoffPage, r: ResultsPage, t: TracePage, v: ResultsPage, x: ExamplePage,
};

function Page() {
  const [kind = "", ...rest] = path.value;
  useMemo(() => forget(), [path.value.join("/")]); // what is stored meanwhile is there on the next page
  const Shown = PAGES[kind];
  return html`<${Frame}>
    ${Shown ? html`<${Shown} key=${path.value.join("/")} parts=${rest} />` : html`<${Problem} text="There is no such page." />`}
  </${Frame}>`;
}

render(html`<${Page} />`, document.getElementById("page"));
