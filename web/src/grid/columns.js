// The rows of several tasks as columns of numbers: what the grid filters and sorts without texts.
import { isReport, isServed, pathOf, read } from "../source.js";
import { completeWords } from "./filter.js";
import { join } from "./join.js";
import { unpackColumns } from "./packed.js";
import { holder, textsOf } from "./search.js";

const columnsPath = (task) => pathOf("columns", task.run, task.evaluation ?? "-");
const piecePath = (task, piece) => pathOf("rows", task.run, task.evaluation ?? "-", String(piece));

/** The columns of a task: a head, and an array for each of its columns. */
export const readColumns = (task) => readPacked(columnsPath(task));

/** The columns of a path: a head, and an array for each of its columns. */
export const readPacked = async (path) => unpackColumns(await read(path, "bytes"));

/** The grid of tasks; what their examples hold is asked for only if it is needed to pair them. */
export async function joinTasks(tasks) {
  const datasets = [...new Set(tasks.map((task) => task.head.dataset))];
  const digests = datasets.length < 2 ? [] : await Promise.all(datasets.map(async (dataset) => [dataset, (await readPacked(pathOf("digests", dataset))).columns]));
  return join(tasks, new Map(digests));
}

/** Whether only some of the rows are there. */
export const isCut = ({ head }) => head.total > head.rows;

/** The scorers and attributes of all tasks, by name. */
export const scorersOf = (grid) => unique(grid.tasks.flatMap((task) => task.head.scorers.map((scorer) => scorer.name)));
export const attributesOf = (grid) => unique(grid.tasks.flatMap((task) => task.head.attributes.map((attribute) => attribute.name)));
const unique = (names) => [...new Set(names)];

/** Reads the values of attributes that a filter needs; returns whether it needs any. */
export const readWords = (grid, filter) => completeWords(grid, filter, (task, attribute) => read(pathOf("words", task.run, task.evaluation ?? "-", String(attribute))));

const asked = new Map(); // path of a task's rows → places → those who wait for them
const known = new Map(); // path and place → promise of the row
const MOST = 2000;

/** The row of a task with its texts. A server is asked for the rows that one moment wants together. */
export function rowAt(task, place) {
  if (!isServed) return readAt(task.head, (piece) => piecePath(task, piece), place);
  const path = pathOf("at", task.run, task.evaluation ?? "-");
  const key = `${path}/${place}`;
  if (!known.has(key)) {
    known.set(key, new Promise((resolve, reject) => {
      if (!asked.has(path)) { asked.set(path, new Map()); setTimeout(() => ask(path, task.head.piece)); }
      asked.get(path).set(place, { resolve, reject });
    }));
    known.get(key).catch(() => known.delete(key));
    if (known.size > MOST) known.delete(known.keys().next().value);
  }
  return known.get(key);
}

/** The place of the first row of each piece; pieces of files have one size. */
const startsOf = ({ rows, piece, starts }) => starts ?? Array.from({ length: Math.ceil(rows / piece) }, (_, i) => i * piece);

/** What stands at a place, in one of the pieces that a head describes. */
export async function readAt(head, pathOfPiece, place) {
  const starts = startsOf(head);
  let low = 0;
  let high = starts.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (starts[middle] <= place) low = middle;
    else high = middle - 1;
  }
  return (await read(pathOfPiece(low)))[place - starts[low]];
}

function ask(path, size) {
  const wanted = [...asked.get(path)];
  asked.delete(path);
  for (let from = 0; from < wanted.length; from += size) {
    const part = wanted.slice(from, from + size);
    read(`${path}?places=${part.map(([place]) => place)}`).then(
      (rows) => part.forEach(([, { resolve }], i) => resolve(rows[i])),
      (error) => part.forEach(([, { reject }]) => reject(error)));
  }
}

/** The rows of the grid that hold a text, as a mark for each. */
export async function findText(grid, text) {
  const found = new Uint8Array(grid.n);
  await Promise.all(grid.tasks.map(async (task, t) => {
    const marks = new Uint8Array(task.head.rows);
    if (isServed) {
      for (const place of await read(`${pathOf("find", task.run, task.evaluation ?? "-")}?q=${encodeURIComponent(text)}`)) marks[place] = 1;
    } else {
      const holds = holder(text);
      for (const [piece, start] of startsOf(task.head).entries()) {
        const rows = await readTexts(task, piece);
        rows.forEach((texts, i) => { if (holds(texts)) marks[start + i] = 1; });
      }
    }
    grid.places[t].forEach((place, row) => { if (place >= 0 && marks[place]) found[row] = 1; });
  }));
  return found;
}

/** The texts of each row of a piece; a report has none but those that it shows. */
const readTexts = async (task, piece) => (isReport ? (await read(piecePath(task, piece))).map(textsOf) : read(pathOf("texts", task.run, task.evaluation ?? "-", String(piece))));
