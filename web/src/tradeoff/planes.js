// The planes of a trade-off, which are markup, with a ring around the picked point; a click picks the nearest one.
import { html } from "htm/preact";
import { useEffect, useRef } from "preact/hooks";
import { VALUES } from "./pick.js";

const NEAR = 24; // units of the picture

export function Planes({ figures, frames, points, place, onPick }) {
  const box = useRef(null);
  const svgs = () => [...box.current.querySelectorAll(".plot2 > svg.plane")].slice(0, frames.length);
  useEffect(() => {
    svgs().forEach((svg, plane) => {
      svg.querySelector(".picked")?.remove();
      if (place < 0) return;
      const [x, y] = positionOf(points[place], frames[plane], plane + 1);
      const ring = document.createElementNS("http://www.w3.org/2000/svg", "circle");
      for (const [name, value] of Object.entries({ class: "picked", cx: x, cy: y, r: 9 })) ring.setAttribute(name, value);
      svg.append(ring);
    });
  }, [figures, place]);
  const pickNearest = (event) => {
    const svg = event.target.closest("svg.plane");
    const plane = svg ? svgs().indexOf(svg) : -1;
    if (plane < 0) return;
    const { x, y } = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
    let [nearest, least] = [-1, NEAR];
    points.forEach((point, i) => {
      const [px, py] = positionOf(point, frames[plane], plane + 1);
      const distance = Math.hypot(px - x, py - y);
      if (distance < least) [nearest, least] = [i, distance];
    });
    if (nearest >= 0) onPick(nearest);
  };
  return html`<div class="of-report tradeoff-figures" ref=${box} onClick=${pickNearest} dangerouslySetInnerHTML=${{ __html: figures }} />`;
}

/** Where a point is in a plane of the first objective against another one. */
function positionOf(point, [x, y], across) {
  const at = ([low, high, from, to], value) => from + (Math.min(Math.max((value - low) / (high - low), 0), 1) || 0) * (to - from);
  return [at(x, point[VALUES][across]), at(y, point[VALUES][0])];
}
