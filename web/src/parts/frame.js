// What every page has: its head, and what is shown while it reads or when it cannot.
import { html } from "htm/preact";
import { computed, signal } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import { address, path } from "../address.js";
import { hasLinks, isLocal, makeLink } from "../source.js";
import { shown } from "../text.js";

export function Frame({ children }) {
  return html`<a class="skip" href="#main">Skip to the content</a>
    <header class="top"><a class="home" href=${address([])}>evaluand</a><nav aria-label="Page"><${Crumbs} /></nav>
      ${hasLinks ? html`<${OtherBrowser} />` : null}</header>
    <main id="main" tabindex="-1">${children}</main>`;
}

/** Makes a link for another browser, and copies it. */
function OtherBrowser() {
  const [made, tell] = useState(null);
  const make = async () => {
    try {
      const link = await makeLink();
      const copied = await navigator.clipboard.writeText(link).then(() => true, () => false); // not without HTTPS
      tell({ link, text: `${copied ? "Copied; it" : "It"} opens once, within ten minutes${isLocal(link) ? ", and only on this machine" : ""}` });
    } catch (error) {
      tell({ link: "", text: error.message });
    }
  };
  return html`<span class="other-browser"><button type="button" class="plain" onClick=${make}>Link for another browser</button>
    <span role="status">${made ? html`<span class="muted">${shown(made.text)}</span>` : null}</span>
    ${made?.link ? html` <input readonly aria-label="Link for another browser" value=${made.link} onFocus=${(event) => event.target.select()} />` : null}</span>`;
}

const place = computed(() => path.value.join("/"));
const headed = signal({ place: null, title: "", within: null }); // what the page that is shown calls itself

/** Where the page is: by the name of what it shows, once that is known. */
function Crumbs() {
  if (!path.value.length) return null;
  const { title, within } = headed.value.place === place.value ? headed.value : { title: path.value.slice(1).map(short).join(" / "), within: null };
  if (!title) return null;
  const slash = html`<span class="muted" aria-hidden="true">/</span>`;
  return html`${within && html`${slash} <a href=${within.to}><bdi>${shown(within.name)}</bdi></a> `}${slash} <bdi>${shown(title)}</bdi>`;
}

const short = (part) => (/^[0-9a-f]{32}$/.test(part) ? part.slice(0, 12) : part);

/** The head of a page; also the title of the window, and with `within`, `{name, to}` of what it is a part of, the way there. */
export function Head({ title, kind, within = null, children }) {
  useEffect(() => {
    document.title = `${title} – evaluand`;
    headed.value = { place: place.value, title, within };
  }, [title, within?.name, within?.to]);
  return html`<div class="head"><p class="kind">${kind}</p></div>
    <h1 dir="auto">${shown(title)}</h1>${children}`;
}

export const Problem = ({ text }) => html`<p class="failed" role="alert">${shown(text)}</p>`;

export const Waiting = ({ what = "Reading" }) => html`<p class="muted" role="status">${what} …</p>`;

/** What has been read, or that it is being read, or why it cannot be. */
export function Loaded({ found, children }) {
  if (found.error) return html`<${Problem} text=${found.error} />`;
  return found.value === null ? html`<${Waiting} />` : children(found.value);
}
