// Matches and ratings: who is better, and all pairs of responses, contradictory ones first.
import { html } from "htm/preact";
import { PairBrowser } from "../matches/browser.js";
import { Head, Loaded } from "../parts/frame.js";
import { Markup } from "../parts/markup.js";
import { pathOf, useRead } from "../source.js";

export function MatchesPage({ parts }) {
  const found = useRead(pathOf("matches", parts.join("/")));
  return html`<${Loaded} found=${found}>${({ title, kind, ratings, matches, sets }) => html`
    <${Head} title=${title} kind=${kind} />
    ${sets === "" && html`<p class="muted">No matches compare these runs, or the store has lost them.</p>`}
    ${matches && html`<section id="matches" class="of-report" aria-label="What was compared" dangerouslySetInnerHTML=${{ __html: matches }} />`}
    ${ratings && html`<section id="ratings" class="of-report" aria-labelledby="ratings-title"><h2 id="ratings-title">Ratings</h2><${Markup} of=${ratings} /></section>`}
    ${sets && html`<section aria-labelledby="pairs-title"><h2 id="pairs-title">Pairs</h2><${PairBrowser} sets=${sets} /></section>`}`}</${Loaded}>`;
}
