// What differs between two texts, word by word.
import { html } from "htm/preact";
import { shown } from "../text.js";

const MOST = 4000; // words of both texts together; longer ones are shown as they are
const MOST_CHANGES = 1200;

/**
 * The words of two texts in order, each as `[kind, text]` with kind 0 both, -1 only the first, 1 only the second.
 * Source: E. Myers, "An O(ND) difference algorithm and its variations" (Algorithmica 1, 1986).
 *
 * @returns null if they are too long, or differ too much, to say more than both.
 */
export function compareWords(first, second) {
  const [a, b] = [first, second].map((text) => text.match(/\s+|[\p{L}\p{N}_]+|[^\s\p{L}\p{N}_]/gu) ?? []);
  if (a.length + b.length > MOST) return null;
  const trace = [];
  let ends = new Map([[1, 0]]);
  for (let d = 0; d <= Math.min(a.length + b.length, MOST_CHANGES); d++) {
    trace.push(ends);
    const next = new Map(ends);
    for (let k = -d; k <= d; k += 2) {
      let x = k === -d || (k !== d && (ends.get(k - 1) ?? -1) < (ends.get(k + 1) ?? -1)) ? ends.get(k + 1) ?? 0 : (ends.get(k - 1) ?? 0) + 1;
      while (x < a.length && x - k < b.length && a[x] === b[x - k]) x++;
      next.set(k, x);
      if (x >= a.length && x - k >= b.length) return walk(trace, a, b, d);
    }
    ends = next;
  }
  return null;
}

function walk(trace, a, b, d) {
  const parts = [];
  let [x, y] = [a.length, b.length];
  for (let step = d; step >= 0; step--) {
    const ends = trace[step];
    const k = x - y;
    const before = k === -step || (k !== step && (ends.get(k - 1) ?? -1) < (ends.get(k + 1) ?? -1)) ? k + 1 : k - 1;
    const [px, py] = [ends.get(before) ?? 0, (ends.get(before) ?? 0) - before];
    while (x > px && y > py && x > 0 && y > 0) { parts.push([0, a[--x]]); y--; }
    if (step === 0) break;
    if (x === px) parts.push([1, b[--y]]);
    else parts.push([-1, a[--x]]);
  }
  return merge(parts.reverse());
}

function merge(parts) {
  const merged = [];
  for (const [kind, text] of parts) {
    if (merged.length && merged.at(-1)[0] === kind) merged.at(-1)[1] += text;
    else merged.push([kind, text]);
  }
  return merged;
}

/** Two texts as one, with what only one of them has marked. */
export function Diff({ first, second }) {
  const parts = compareWords(first, second);
  if (parts === null) return html`<p class="muted">The two texts are too long, or too different, to be compared word by word.</p>`;
  if (parts.every(([kind]) => kind === 0)) return html`<p class="muted">The two texts are the same.</p>`;
  return html`<pre class="text-block diff" dir="auto" tabindex="0">${parts.map(([kind, text]) => (kind === 0 ? shown(text) : kind < 0 ? html`<del>${shown(text)}</del>` : html`<ins>${shown(text)}</ins>`))}</pre>`;
}
