// Where the page is: the parts of the path and the state, both in the address, so that a link shows the same.
// A server has paths of its own; files have everything behind `#`.
import { computed, signal } from "@preact/signals";

const inHash = !/^https?:$/.test(location.protocol) || document.currentScript?.dataset.address === "hash";

const read = () => {
  if (!inHash) return location.pathname + location.search;
  return location.hash.startsWith("#/") ? location.hash.slice(1) : "/";
};

const here = signal(read());
const isPlace = () => inHash && location.hash && !location.hash.startsWith("#/"); // on this page, such as `#main`
const follow = () => { if (!isPlace()) here.value = read(); };
addEventListener(inHash ? "hashchange" : "popstate", follow);

/** The parts of the path, decoded: `["e", "support/base"]`. */
export const path = computed(() => here.value.split("?")[0].split("/").filter(Boolean).map(decode));

/** The state: what is filtered, sorted and open. */
export const state = computed(() => new URLSearchParams(here.value.split("?")[1] ?? ""));

/** A part of an address as the text that it stands for. */
export function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** The address of a path with a state. */
export function address(parts, values = {}) {
  const query = new URLSearchParams(Object.entries(values).filter(([, value]) => value !== null && value !== ""));
  const text = `/${parts.map(encodeURIComponent).join("/")}${query.size ? `?${query}` : ""}`;
  return inHash ? `#${text}` : text;
}

/** Goes to an address; `replace` leaves no step to go back to. */
export function go(to, replace = false) {
  if (inHash && !replace) { location.hash = to.slice(1); return; }
  history[replace ? "replaceState" : "pushState"](null, "", to);
  follow();
}

/** Changes values of the state; an empty one is removed. */
export function change(values, replace = true) {
  go(address(path.value, { ...Object.fromEntries(state.value), ...values }), replace);
}

/** Whether a link led to a place on this page that has a state, which the place would take out of the address. */
function keepsState(link, event) {
  const to = link.getAttribute("href");
  const place = /^#[\w-]+$/.test(to) ? document.getElementById(to.slice(1)) : null;
  if (!place || here.value === "/" || event.defaultPrevented) return false;
  event.preventDefault();
  place.scrollIntoView();
  return true;
}

/** Follows links of the page without loading it again. */
addEventListener("click", (event) => {
  const link = event.target.closest?.("a[href]");
  if (link && inHash && keepsState(link, event)) return;
  if (!link || inHash || event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey || link.target || link.download) return;
  if (link.origin !== location.origin || link.pathname.startsWith("/api/")) return;
  if (link.hash && link.pathname === location.pathname) return;
  event.preventDefault();
  go(link.pathname + link.search);
  scrollTo(0, 0);
});
