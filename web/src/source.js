// Where the page reads: from a server, from files beside it, or from elements within it. All have the same paths.
import { useEffect, useState } from "preact/hooks";

const script = document.currentScript;
const base = script?.dataset.source ?? "/api/";
const source = script?.dataset.kind ?? "server";

/** Whether the page may interrupt the run that is made meanwhile. */
export const canStop = script?.dataset.stop === "yes";

/** Whether a server answers, which can do more than what is written once. */
export const isServed = source === "server";

/** Whether all that can be read is within the page. */
export const isReport = source === "elements";

/** Whether the server makes links for other browsers. */
export const hasLinks = isServed && script?.dataset.links === "yes";

/** Whether the server takes labels. */
export const canLabel = isServed && script?.dataset.label === "yes";

const known = new Map();
const MOST = isServed ? 200 : 40; // what is written once comes in larger pieces

/** What a path holds, as JSON or as bytes; read once. */
export function read(path, kind = "json") {
  if (known.has(path)) {
    const found = known.get(path);
    known.delete(path);
    known.set(path, found);
    return found;
  }
  const reading = { server: fetched, files: fromFile, elements: fromElement }[source](path, kind);
  known.set(path, reading);
  reading.catch(() => known.delete(path));
  if (known.size > MOST) known.delete(known.keys().next().value);
  return reading;
}

/** Reads again what may have changed: of a path, or all but what is found by ids alone, which never changes. */
export function forget(path = null) {
  for (const each of path === null ? [...known.keys()] : [path]) if (path !== null || !FIXED.test(each)) known.delete(each);
}

const FIXED = /^(columns|rows|at|words|digests|texts|find|pair-columns|pairs|histograms|trace|dataset-columns|dataset-examples|dataset-difference|record|records)\//;

async function fetched(path, kind) {
  const answer = await fetch(base + path, { headers: { accept: "*/*" } }).catch(() => { throw new Error("The server has ended; start it again with: evaluand view"); });
  if (!answer.ok) throw new Error((await answer.text()).slice(0, 500) || `the server says ${answer.status}`);
  return kind === "json" ? answer.json() : answer.arrayBuffer();
}

/** Sends something that changes what the server has; returns what it answers. */
export async function send(path, body) {
  const answer = await fetch(`/${path}`, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
  if (!answer.ok) throw new Error((await answer.text()).slice(0, 1000) || `the server says ${answer.status}`);
  return answer.json();
}

/** A link that opens what the page shows in another browser, once. */
export async function makeLink() {
  const answer = await fetch("/session/link", { method: "POST" });
  if (!answer.ok) throw new Error(await answer.text());
  const link = new URL((await answer.json()).link);
  const shown = new URL(location.href);
  link.pathname = shown.pathname;
  link.search = new URLSearchParams([...link.searchParams, ...shown.searchParams]);
  return link.href;
}

/** Whether a link leads to the machine that it is opened on, whichever that is. */
export const isLocal = (link) => /^(localhost|127(\.\d+){3}|\[::1\])$/.test(new URL(link).hostname);

const waiting = new Map();

/** Files call this with their path and content: of pages without a server, scripts are all that can be loaded. */
globalThis.evaluand = (path, content, problem) => { waiting.get(path)?.(content, problem); waiting.delete(path); };

function fromFile(path, kind) {
  return new Promise((resolve, reject) => {
    const loader = document.createElement("script");
    waiting.set(path, (content, problem) => (problem ? reject(new Error(problem)) : unpack(content, kind).then(resolve, reject)));
    loader.addEventListener("error", () => { loader.remove(); waiting.delete(path); reject(new Error("this is not among the files of the page")); });
    loader.addEventListener("load", () => { loader.remove(); if (waiting.delete(path)) reject(new Error("this file of the page holds something else")); });
    loader.src = `${base}${fileOf(path)}.js`;
    document.head.append(loader);
  });
}

async function fromElement(path, kind) {
  const element = document.getElementById(`data:${path}`);
  if (!element) throw new Error("this is not part of the report");
  return unpack(element.textContent, kind);
}

// The name of the file of a path, as `name_file` in bundle.py: no name leads elsewhere, is a device of Windows or too long.
const fileOf = (path) => path
  .replace(/[^a-z0-9\/-]/g, (one) => `_${one.codePointAt(0).toString(16)}_`)
  .replace(/[^\/]{100}(?=[^\/])/g, "$&+/")
  .replace(/(^|\/)(con|prn|aux|nul|com[0-9]|lpt[0-9])(?=\/|$)/g, "$1$2_");

async function unpack(content, kind) {
  const bytes = Uint8Array.from(atob(content), (one) => one.charCodeAt(0));
  const stream = new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip")));
  return kind === "json" ? stream.json() : stream.arrayBuffer();
}

/** What a path holds, for a component: `{value, error}`, both null while it is read; null for no path. */
export function useRead(path, kind = "json") {
  const [found, tell] = useState({ path: null, value: null, error: null });
  useEffect(() => {
    if (path === null) return undefined;
    let wanted = true;
    read(path, kind).then(
      (value) => wanted && tell({ path, value, error: null }),
      (error) => wanted && tell({ path, value: null, error: error.message }));
    return () => { wanted = false; };
  }, [path, kind]);
  return found.path === path ? found : { value: null, error: null };
}

/** A path of parts that may hold any character. */
export const pathOf = (...parts) => parts.map((part) => encodeURIComponent(part).replace(/[!'()*]/g, (one) => `%${one.charCodeAt(0).toString(16).toUpperCase()}`)).join("/");
