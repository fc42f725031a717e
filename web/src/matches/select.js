// Which pairs are shown, in which order, and their texts: a server is asked for those that are seen, files for pieces.
import { readAt } from "../grid/columns.js";
import { isServed, pathOf, read } from "../source.js";

export const PAIR_CLASS = ["wrong", "good", "", "unscored", "failed"];
const [CONTRADICTORY, DECIDED] = [0, 1];

export const ORDERS = { "": "contradictory first", decisive: "most decisive", index: "example" };

/** The number of the system that won a decided pair; -1 of any other. */
export function winnerOf(columns, row) {
  if (columns.outcome[row] !== DECIDED) return -1;
  return columns.share[row] > 0.5 ? columns.a[row] : columns.b[row];
}

/**
 * The places of the pairs that fit.
 *
 * @param filter numbers or null: `set`, `one` and `other` of systems, `outcome`, `won`.
 */
export function selectPairs({ head, columns }, filter, order) {
  const meets = (row, system) => columns.a[row] === system || columns.b[row] === system;
  const rows = [];
  for (let row = 0; row < head.rows; row++) {
    if (filter.set !== null && columns.set[row] !== filter.set) continue;
    if (filter.one !== null && !meets(row, filter.one)) continue;
    if (filter.other !== null && !meets(row, filter.other)) continue;
    if (filter.outcome !== null && columns.outcome[row] !== filter.outcome) continue;
    if (filter.won !== null && winnerOf(columns, row) !== filter.won) continue;
    rows.push(row);
  }
  const distance = (row) => (Number.isNaN(columns.share[row]) ? 0 : Math.abs(columns.share[row] - 0.5));
  if (order === "decisive") rows.sort((x, y) => distance(y) - distance(x) || x - y);
  if (order === "index") rows.sort((x, y) => (columns.index[x] < columns.index[y] ? -1 : columns.index[x] > columns.index[y] ? 1 : x - y));
  return rows; // they are stored with contradictory ones first
}

export const countOutcomes = ({ head, columns }) => head.outcomes.map((_, outcome) => columns.outcome.reduce((n, each) => n + (each === outcome), 0));

export const isContradictory = (outcome) => outcome === CONTRADICTORY;

/** The pairs at some places, at most as many as a piece has. */
export async function readPairs(sets, { head, columns }, places) {
  if (places.length === 0) return [];
  if (isServed) return read(`${pathOf("pairs-at", sets)}?places=${places.join()}`);
  const pieceOf = (piece) => pathOf("pairs", sets, String(piece));
  if (!columns.case) return Promise.all(places.map((place) => readAt(head, pieceOf, place)));
  return Promise.all(places.map(async (place) => pairOf(await readAt(head, pieceOf, columns.case[place]), columns.place[place])));
}

/** A pair of a case, which has each response to an input once. */
function pairOf(its, place) {
  const row = its.rows[place];
  const sides = [row.a, row.b];
  return { ...its, ...row, responses: sides.map((system) => its.responses[system]), styles: sides.map((system) => its.styles[system]) };
}
