"use strict";
// What lists of rows share: compressed pieces are unpacked, and whatever comes from data becomes text, never markup.
const evaluandRows = (() => {
  const byId = (id) => document.getElementById(id);
  const word = new Intl.NumberFormat("en");
  const KEPT = 24; // unpacked pieces

  async function unpacked(id) {
    const text = byId(id).textContent;
    const raw = atob(text);
    const bytes = new Uint8Array(raw.length);
    for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip")));
  }

  /** The rows in compressed pieces, of which the last used stay unpacked; `starts` has the number of each one's first row. */
  function rowPieces(prefix, starts) {
    const known = new Map(); // number → promise of its rows, the last used last
    const unpack = (number) => unpacked(`${prefix}-${number}`).then((response) => response.json());

    function piece(number) {
      const rows = known.get(number) ?? unpack(number);
      known.delete(number);
      known.set(number, rows);
      if (known.size > KEPT) known.delete(known.keys().next().value);
      return rows;
    }

    function pieceOf(row) {
      let low = 0;
      let high = starts.length - 1;
      while (low < high) {
        const middle = (low + high + 1) >> 1;
        if (starts[middle] <= row) low = middle;
        else high = middle - 1;
      }
      return low;
    }

    async function at(row) {
      const number = pieceOf(row);
      return (await piece(number))[row - starts[number]];
    }

    return { at, peek: (number) => known.get(number) ?? unpack(number) };
  }

  function element(tag, attributes = {}, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) if (value !== null) made.setAttribute(name, value);
    made.append(...children.filter((child) => child !== null));
    return made;
  }

  // Characters that would not be seen or would change the direction of what follows.
  const INVISIBLE =
    /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\ud800-\udfff]/u;
  const INVISIBLE_ALL = new RegExp(INVISIBLE.source, "gu");

  /** Text as nodes: invisible characters as marked codes, and what was searched for highlighted. */
  function shown(text, search = "") {
    const into = document.createDocumentFragment();
    let last = 0;
    const plain = (part) => into.append(...(search ? highlighted(part, search) : [part]));
    if (INVISIBLE.test(text)) {
      for (const match of text.matchAll(INVISIBLE_ALL)) {
        plain(text.slice(last, match.index));
        const code = "U+" + match[0].codePointAt(0).toString(16).toUpperCase().padStart(4, "0");
        into.append(element("span", { class: "invisible", title: `invisible character ${code}` }, code));
        last = match.index + match[0].length;
      }
    }
    plain(text.slice(last));
    return into;
  }

  function highlighted(text, search) {
    const low = text.toLowerCase();
    if (low.length !== text.length) return [text];
    const parts = [];
    let last = 0;
    for (let at = low.indexOf(search); at >= 0; at = low.indexOf(search, last)) {
      parts.push(text.slice(last, at), element("mark", {}, text.slice(at, at + search.length)));
      last = at + search.length;
    }
    return [...parts, text.slice(last)];
  }

  const textOf = (cell) => (cell === null ? "" : typeof cell === "string" ? cell : (cell.t ?? cell.j));

  function snippet(cell) {
    return textOf(cell).slice(0, 300).replace(/\s+/g, " ");
  }

  function number(value) {
    if (value === null || Number.isNaN(value)) return "–";
    return Number.isInteger(value) ? word.format(value) : String(Number(value.toPrecision(4)));
  }

  const heading = (...text) => element("h4", {}, ...text);

  /** A value as a block of text; `command` shows the whole of a value that was cut. */
  function cellBlock(cell, search, command, kind = "") {
    if (cell === null) return [element("p", { class: "cut" }, "not in this store")];
    const isText = typeof cell === "string" || "t" in cell;
    const made = element("pre", { class: `text-block ${isText ? "" : "json"} ${kind}`, dir: "auto", tabindex: "0" });
    made.append(textOf(cell) === "" && !cell.c ? element("span", { class: "muted" }, "(empty text)") : shown(textOf(cell), search));
    if (!cell.c) return [made];
    return [made, element("p", { class: "cut" },
      `${word.format(cell.c)} characters more; the whole: `, element("code", {}, command))];
  }

  function seconds(time) {
    if (time === null) return "time unknown";
    if (time < 1) return `${Number((time * 1000).toPrecision(3))} ms`;
    return time < 60 ? `${Number(time.toPrecision(3))} s` : `${Math.floor(time / 60)} min ${Math.round(time % 60)} s`;
  }

  /** Spans as a tree; `more` is how many are left out, and `command` shows values that were cut. */
  function spanTree(spans, more, command, search = "") {
    const children = new Map();
    const known = new Set(spans.map((span) => span[0]));
    for (const span of spans) {
      const parent = span[1] !== null && known.has(span[1]) ? span[1] : null;
      if (!children.has(parent)) children.set(parent, []);
      children.get(parent).push(span);
    }
    const list = (parent, kind, depth) => element("ul", { class: kind }, ...children.get(parent).map((span) => branch(span, depth)));
    const branch = (span, depth) => {
      const [id, , name, kind, , duration, status, ...held] = span;
      const line = [element("bdi", {}, shown(name, search)), element("span", { class: "time" },
        `${kind === "span" ? "" : `${kind} · `}${duration !== null ? seconds(duration / 1e6) : status === "unset" ? "open" : seconds(null)}`)];
      if (status === "error") line.push(element("span", { class: "failed" }, " error"));
      if (held[0] !== null || held[1] !== null) line.push(element("span", { class: "gist", dir: "auto" },
        shown((held[0] === null ? "" : snippet(held[0])) + (held[1] === null ? "" : ` → ${snippet(held[1])}`), search)));
      const within = [];
      ["input", "output", "attributes", "events"].forEach((what, i) => {
        if (held[i] !== null) within.push(element("p", { class: "cut" }, what), ...cellBlock(held[i], search, command));
      });
      const below = children.has(id) && depth < 60 ? list(id, null, depth + 1) : null;
      if (!within.length && !below) return element("li", { class: "leaf" }, ...line);
      return element("li", {}, element("details", depth < 3 ? { open: "" } : {}, element("summary", {}, ...line),
        within.length ? element("div", { class: "held" }, element("details", {}, element("summary", { class: "cut" }, "what it held"), ...within)) : null, below));
    };
    const made = [list(null, "spans", 0)];
    if (more > 0) made.push(element("p", { class: "cut" }, `${word.format(more)} spans more`));
    return made;
  }

  return { byId, word, unpacked, rowPieces, element, shown, textOf, snippet, number, heading, cellBlock, seconds, spanTree };
})();
