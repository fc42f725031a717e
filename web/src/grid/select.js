// Which rows of a grid are shown, in which order: presets, a filter, the rows that hold a text, a sort.
import { compile, disagree } from "./filter.js";

const outcomeIs = (...names) => (grid) => (row) => grid.tasks.some((task, t) => {
  const place = grid.places[t][row];
  return place >= 0 && names.includes(task.head.outcomes[task.columns.outcome[place]]);
});

/** Name → title and (grid → test). */
const PRESETS = {
  all: { title: "All", test: () => null },
  failed: { title: "Failed", test: outcomeIs("failed") },
  wrong: { title: "Wrong", test: outcomeIs("wrong") },
  unscored: { title: "Not scored", test: outcomeIs("not scored", "failed") },
};

const DIFFER = { title: "Differ", test: (grid) => (row) => disagree(grid, row) };
const MOST_PAIRED = 3; // tasks of which every two have presets; of more only the first two

/** The presets that a grid has, by name: of two tasks those in which one is better need a metric that both were summarised by. */
export function presetsOf(grid) {
  const own = Object.entries({ ...PRESETS, wrong: { ...PRESETS.wrong, by: decisiveOf(grid) } });
  if (grid.tasks.length < 2) return own;
  const paired = grid.tasks.length > MOST_PAIRED ? [0, 1] : [...grid.tasks.keys()];
  const pairs = paired.flatMap((a) => paired.filter((b) => b > a).flatMap((b) => [[a, b], [b, a]]));
  return [...own, ["differ", DIFFER], ...pairs.flatMap(([better, worse]) => presetOfPair(grid, better, worse))];
}

/** The scorers that say which rows are wrong, as the title of the preset; null if there are none. */
function decisiveOf({ tasks }) {
  const names = [...new Set(tasks.map(({ head }) => head.decisive).filter(Boolean))];
  return names.length ? `by ${names.join(", ")}` : null;
}

/** The rows in which one task does better than another, as a comparison counts them by the first metric that both have; none without one. */
function presetOfPair({ tasks, places }, better, worse) {
  const [a, b] = [better, worse].map((t) => tasks[t]);
  const [first, second] = findCompared(a, b);
  if (!first) return [];
  const scorer = a.head.scorers[first.number];
  const sign = scorer.compared.direction === "lower" ? -1 : 1;
  const test = () => (row) => {
    const [one, other] = [places[better][row], places[worse][row]];
    return one >= 0 && other >= 0 && sign * differenceOf(first.values[one], second.values[other]) > 0;
  };
  return [[`better-${better}-${worse}`, { title: `${a.task} better than ${b.task}`, by: `by ${first.signature} of ${scorer.name}`, test }]];
}

/** What two tasks are compared by: of each the number of the scorer and the numbers of its rows; empty if there is nothing. */
function findCompared(a, b) {
  const [first, second] = [a, b].map((task) => task.head.scorers.flatMap(({ name, compared }, number) => (compared
    ? [{ number, rank: compared.rank, signature: compared.signature, key: JSON.stringify([name, compared.signature, compared.target]), values: task.columns[`compared-${number}`] }] : [])));
  const pairs = first.sort((one, other) => one.rank - other.rank).map((each) => [each, second.find((other) => other.key === each.key)]);
  return pairs.find(([, other]) => other) ?? [];
}

const ROUNDING = 64 * Number.EPSILON; // as `change_of_rows` of comparisons

/** The difference of two numbers; 0 if it is nothing but rounding. */
const differenceOf = (a, b) => (Math.abs(a - b) < ROUNDING * Math.max(Math.abs(a), Math.abs(b)) ? 0 : a - b);

/** What the rows can be sorted by: value → title. */
export function sorts(grid) {
  const found = { "": "worst outcome first", index: "index", slow: "slowest first" };
  grid.tasks.forEach((task, t) => task.head.scorers.forEach((scorer, s) => {
    if (task.columns[`value-${s}`].every(Number.isNaN)) return;
    const name = grid.tasks.length > 1 ? `${scorer.name} of ${task.task}` : scorer.name;
    found[`+${t}.${s}`] = `${name}, lowest first`;
    found[`-${t}.${s}`] = `${name}, highest first`;
  }));
  return found;
}

/** The rows that are shown, in order. Throws an Error if the filter is wrong. */
export function select(grid, { preset = "all", filter = "", found = null, sort = "" }) {
  const chosen = presetsOf(grid).find(([name]) => name === preset)?.[1];
  const tests = [chosen ? chosen.test(grid) : null, filter ? compile(filter, grid) : null, found ? (row) => found[row] === 1 : null].filter(Boolean);
  const rows = new Uint32Array(grid.n);
  let n = 0;
  for (let row = 0; row < grid.n; row++) if (tests.every((test) => test(row))) rows[n++] = row;
  return order(grid, rows.subarray(0, n), sort);
}

function order(grid, rows, by) {
  if (by === "index") return rows;
  if (by === "slow") return byKey(rows, grid.n, (row) => -most(grid, row, (task, place) => task.columns.duration[place]));
  if (/^[+-]\d+\.\d+$/.test(by)) {
    const sign = by[0] === "-" ? -1 : 1;
    const [t, s] = by.slice(1).split(".").map(Number);
    const values = grid.tasks[t]?.columns[`value-${s}`];
    if (values) return byKey(rows, grid.n, (row) => (grid.places[t][row] < 0 ? NaN : sign * values[grid.places[t][row]]));
  }
  const outcome = (row) => -most(grid, row, (task, place) => -task.columns.outcome[place]);
  const graded = grid.tasks.map(badnessOf);
  if (!graded.some(Boolean)) return byKey(rows, grid.n, outcome);
  return byKey(byKey(rows, grid.n, (row) => worstOf(grid, graded, row)), grid.n, outcome);
}

/** Of each row of a task how bad it is among those with its outcome: the lower, the worse; null if all are alike. As `rank_badness`. */
function badnessOf({ head, columns }) {
  const s = head.scorers.findIndex(({ compared }) => compared?.direction);
  if (s < 0 || head.scorers[s].binary) return null;
  const sign = head.scorers[s].compared.direction === "lower" ? -1 : 1;
  return (place) => sign * columns[`compared-${s}`][place];
}

/** How bad a row is for the tasks for which its outcome is the worst. */
function worstOf(grid, graded, row) {
  const places = grid.tasks.map((_, t) => grid.places[t][row]);
  const outcomes = grid.tasks.map((task, t) => (places[t] < 0 ? Infinity : task.columns.outcome[places[t]]));
  const least = Math.min(...outcomes);
  return Math.min(...graded.map((bad, t) => { const value = outcomes[t] === least && bad ? bad(places[t]) : NaN; return Number.isNaN(value) ? Infinity : value; }));
}

function most(grid, row, value) {
  let found = -Infinity;
  for (let t = 0; t < grid.tasks.length; t++) {
    const place = grid.places[t][row];
    if (place >= 0) { const each = value(grid.tasks[t], place); if (each > found) found = each; }
  }
  return found;
}

/** Rows in the order of a key, lowest first, rows without one last, those with one key as they were. Few distinct keys are counted, which is linear. */
function byKey(rows, n, key) {
  const keys = new Float64Array(n);
  const distinct = new Map();
  for (const row of rows) {
    const value = key(row);
    keys[row] = Number.isNaN(value) ? Infinity : value;
    if (distinct.size <= MOST_DISTINCT) distinct.set(keys[row], (distinct.get(keys[row]) ?? 0) + 1);
  }
  if (distinct.size > MOST_DISTINCT) return rows.sort((a, b) => (keys[a] < keys[b] ? -1 : keys[a] > keys[b] ? 1 : 0));
  const starts = new Map();
  let at = 0;
  for (const value of [...distinct.keys()].sort((a, b) => (a < b ? -1 : 1))) { starts.set(value, at); at += distinct.get(value); }
  const sorted = new Uint32Array(rows.length);
  for (const row of rows) { const place = starts.get(keys[row]); sorted[place] = row; starts.set(keys[row], place + 1); }
  return sorted;
}

const MOST_DISTINCT = 64;
