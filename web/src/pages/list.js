import { html } from "htm/preact";
export const ListPage = () => html`<p>list</p>`;
