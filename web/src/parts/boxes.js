// The boxes of each response over their image, or over the extent of their coordinates.
import { html } from "htm/preact";
import { useEffect, useState } from "preact/hooks";
import { shown, word } from "../text.js";
import { Heading } from "./cell.js";

const FOUND = [["✓", "right", "good"], ["−", "missed", "unscored"], ["+", "spurious", "failed"]];

export function Boxes({ row }) {
  return (row.frames ?? []).map((frame, i) => {
    if (frame === null) return null;
    const counts = FOUND.map(([sign, name], kind) => `${sign} ${word.format(frame.counts[kind])} ${name}`);
    const more = frame.more ? `; ${word.format(frame.more)} more are not drawn` : "";
    const summary = `${counts.join(" · ")}, at an overlap of 0.5${more}`;
    return html`<${Heading}>${row.frames.length > 1 ? `Boxes of response ${i + 1}` : "Boxes"}</${Heading}>
      <p class="cut">${summary}</p><${Frame} frame=${frame} image=${row.image} caption=${summary} />
      <details><summary>Boxes as a list</summary><ul class="boxes">${frame.boxes.map(line)}</ul></details>`;
  });
}

function line(box) {
  const [sign, name, style] = FOUND[box[5]];
  const certain = box[6] === null ? "" : ` ${+box[6].toFixed(3)}`;
  return html`<li><span class=${style}>${sign} ${name}</span> ${box[4] !== null && html`<bdi>${shown(box[4])}</bdi>`}${certain} at ${box.slice(0, 4).map((n) => +n.toFixed(1)).join(", ")}</li>`;
}

function Frame({ frame, image, caption }) {
  const [size, tell] = useState(null);
  useEffect(() => {
    if (!image) return undefined;
    const loaded = new Image();
    loaded.onload = () => tell([loaded.naturalWidth, loaded.naturalHeight]);
    loaded.src = image;
    return () => { loaded.onload = null; };
  }, [image]);
  const [x, y, width, height] = size ? [0, 0, ...size] : extent(frame.boxes);
  const thick = Math.max(width, height) / 32;
  return html`<div class="frame"><svg viewBox=${`${x} ${y} ${width} ${height}`} role="img" aria-label=${caption}>
    ${size && html`<image href=${image} x=${x} y=${y} width=${width} height=${height} />`}
    ${[...frame.boxes].reverse().map((box) => drawn(box, x, y, height, thick))}</svg></div>`;
}

function extent(boxes) {
  const corners = [0, 1, 2, 3].map((n) => boxes.map((box) => box[n]));
  const [left, top] = [0, 1].map((n) => Math.min(0, ...corners[n]));
  const [right, bottom] = [2, 3].map((n) => Math.max(...corners[n]));
  const margin = Math.max(right - left, bottom - top, 1) * 0.06;
  return [left, top, right - left + margin, bottom - top + margin];
}

function drawn(box, x, y, height, thick) {
  const [x0, y0, x1, y1, label, kind, certain] = box;
  const [sign, name, style] = FOUND[kind];
  const words = [label ?? "", certain === null ? "" : String(+certain.toFixed(3))].filter(Boolean).join(" ");
  const above = y0 - thick * 0.3 > y + thick ? y0 - thick * 0.3 : Math.min(y1 + thick, y + height - thick * 0.2);
  return html`<g class=${`box ${name} ${style}`}><title>${`${name}: ${codes(words) || "a box"}`}</title>
    <rect x=${x0} y=${y0} width=${x1 - x0} height=${y1 - y0} />
    <text x=${Math.max(x0, x)} y=${above} font-size=${thick} stroke-width=${thick / 5}>${`${sign} ${codes(words)}`}</text></g>`;
}

/** Pictures hold no marked characters, so those that cannot be seen are their codes there. */
const codes = (text) => shown(text).map((part) => (typeof part === "string" ? part : part.props.children)).join("");
