import { html } from "htm/preact";
export const ResultsPage = () => html`<p>results</p>`;
