// The language of filters: `score.right < 1 and topic == "plus"`, over the columns of a grid.
//
//   condition   either `and`/`or`/`not`/parentheses of conditions, or NAME OPERATOR VALUE, or NAME alone (is there a value?)
//   NAME        an attribute; score.SCORER, status.SCORER, label.SCORER; outcome, duration, index, replication, disagree
//   TASK.NAME   of one task; without it, of any task
//   OPERATOR    == != < <= > >=, or `in` with a list in brackets
//   VALUE       a number, or a text in quotes; a name with other characters than letters and digits is quoted too
//
// A missing value matches nothing, as in filters of the command line. A number and a text that writes none are not compared.
import { nearest } from "./nearest.js";

const TOKEN = /(?:(-?\d+\.?\d*(?:e[+-]?\d+)?(?![\p{L}\p{N}_]))|("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|`([^`]+)`|(\p{N}*[\p{L}_][\p{L}\p{N}_-]*)|(==|!=|<=|>=|[<>()[\],.]))/uy;

/**
 * @returns a function row → whether it passes.
 * @throws an Error that says what is wrong and where, or that `needs` the values of an attribute, see `completeWords`.
 */
export function compile(text, grid) {
  const tokens = split(text);
  let at = 0;
  const peek = () => tokens[at];
  const next = () => tokens[at++];
  const wrong = (what, token = peek()) => new Error(`${what} at character ${(token?.from ?? text.length) + 1}`);
  const takes = (value) => (peek()?.sign === value || (peek()?.name === value && !peek().quoted) ? next() : null);

  function either() {
    let left = both();
    while (takes("or")) { const a = left; const b = both(); left = (row) => a(row) || b(row); }
    return left;
  }
  function both() {
    let left = one();
    while (takes("and")) { const a = left; const b = one(); left = (row) => a(row) && b(row); }
    return left;
  }
  function one() {
    if (takes("not")) { const inner = one(); return (row) => !inner(row); }
    if (takes("(")) {
      const inner = either();
      if (!takes(")")) throw wrong("a closing parenthesis is missing");
      return inner;
    }
    return comparison();
  }
  function comparison() {
    const start = peek();
    const { readers, name: called, labels } = column(grid, names(), (what) => wrong(what, start));
    const comparedWith = () => {
      const token = peek();
      const wanted = literal();
      if (!readers.some((each) => isComparable(each, wanted))) throw wrong(describeMismatch(called, labels, readers, wanted), token);
      return wanted;
    };
    const sign = peek()?.sign;
    if (takes("in")) {
      const values = list(comparedWith);
      return any(readers, (value) => values.some((each) => equal(value, each)));
    }
    if (!["==", "!=", "<", "<=", ">", ">="].includes(sign)) return any(readers, () => true);
    next();
    return any(readers, TESTS[sign](comparedWith()));
  }
  function names() {
    const found = [name()];
    while (takes(".")) found.push(name());
    return found;
  }
  function name() {
    const token = next();
    if (token?.name !== undefined) return token.name;
    if (typeof token?.value === "string") return token.value;
    at--;
    throw wrong("a name is expected");
  }
  function literal() {
    const token = next();
    if (token?.value !== undefined) return token.value;
    if (token?.name === "true") return 1;
    if (token?.name === "false") return 0;
    at--;
    throw wrong("a number or a text in quotes is expected");
  }
  function list(value) {
    if (!takes("[")) throw wrong("a list in brackets is expected");
    const values = [];
    while (!takes("]")) {
      values.push(value());
      if (!takes(",") && peek()?.sign !== "]") throw wrong("a comma or ] is expected");
    }
    return values;
  }

  if (!tokens.length) return () => true;
  const test = either();
  if (at < tokens.length) throw wrong("and, or, or the end is expected");
  return test;
}

/**
 * Reads the values of attributes in a filter where they are too many to come with the columns.
 *
 * @param readValues task, number of the attribute → promise of its values.
 * @returns whether there were such.
 */
export async function completeWords(grid, filter, readValues) {
  for (let hasRead = false; ; hasRead = true) {
    const needs = whatNeeds(grid, filter);
    if (!needs) return hasRead;
    const task = grid.tasks[needs.number];
    task.head.attributes[needs.attribute].values = await readValues(task, needs.attribute);
  }
}

function whatNeeds(grid, filter) {
  try {
    compile(filter, grid);
  } catch (error) {
    return error.needs;
  }
  return undefined;
}

function split(text) {
  const tokens = [];
  for (let from = skip(text, 0); from < text.length; from = skip(text, TOKEN.lastIndex)) {
    TOKEN.lastIndex = from;
    const match = TOKEN.exec(text);
    if (!match) throw new Error(`${JSON.stringify(text[from])} is not expected at character ${from + 1}${text[from] === "=" ? "; write == to compare" : ""}`);
    const [, digits, quoted, other, plain, sign] = match;
    if (digits !== undefined) tokens.push({ from, value: numberOf(digits) });
    else if (quoted !== undefined) tokens.push({ from, value: quoted.slice(1, -1).replace(/\\(.)/g, "$1") });
    else if (other !== undefined) tokens.push({ from, name: other, quoted: true });
    else if (plain !== undefined) tokens.push({ from, name: plain });
    else tokens.push({ from, sign });
  }
  return tokens;
}

const skip = (text, from) => from + text.slice(from).search(/\S|$/);

/** The number that a text writes; a whole one that only a BigInt holds exactly is one, which compares exactly with any number. */
function numberOf(text) {
  const number = text.trim() === "" ? NaN : Number(text);
  return Number.isInteger(number) && !Number.isSafeInteger(number) && /^\s*-?\d+\s*$/.test(text) ? BigInt(text) : number;
}

/** A value beside one of the other kind: of a text the number that it writes, where true and false are 1 and 0; NaN if it writes none. */
const asNumber = (value) => (typeof value !== "string" ? value : value === "true" || value === "false" ? Number(value === "true") : numberOf(value));

function equal(a, b) {
  if (typeof a === typeof b) return a === b;
  const [one, other] = [a, b].map(asNumber);
  return one <= other && one >= other; // a number may be a BigInt
}

/** Tests of an order: of two texts as texts, else of numbers. */
const ordered = (test) => (wanted) => (value) => (typeof value === typeof wanted ? test(value, wanted) : test(asNumber(value), asNumber(wanted)));

const TESTS = {
  "==": (wanted) => (value) => equal(value, wanted),
  "!=": (wanted) => (value) => !equal(value, wanted),
  "<": ordered((value, wanted) => value < wanted),
  "<=": ordered((value, wanted) => value <= wanted),
  ">": ordered((value, wanted) => value > wanted),
  ">=": ordered((value, wanted) => value >= wanted),
};

const writesNumber = (text) => !Number.isNaN(asNumber(text));

/** Whether the values of a column, numbers or `texts`, can be compared with a value. */
function isComparable({ texts }, wanted) {
  if (texts === null) return writesNumber(wanted);
  return typeof wanted === "string" || !texts.length || texts.some(writesNumber);
}

/** What is wrong with the value that a column is compared with, and what to write. */
function describeMismatch(name, labels, readers, wanted) {
  if (typeof wanted === "string") return `${name} is a number and ${JSON.stringify(wanted)} is not (compare it with a number${labels ? `, or compare ${labels}` : ""})`;
  const example = readers.flatMap((each) => each.texts).find(Boolean);
  return `no value of ${name} is a number (compare it with a text in quotes${example ? `, such as ${JSON.stringify(example)}` : ""})`;
}

/** Whether any task has a value that passes; a missing one (undefined) never does. */
const any = (readers, test) => (row) => readers.some(({ read }) => { const value = read(row); return value !== undefined && test(value); });

/**
 * @returns `readers`, one for each task that has the column; its `name` as a filter has it, and that of the `labels` that a score has
 *   beside its number, or null.
 */
function column(grid, names, wrong) {
  const readers = findReaders(grid, names, wrong);
  const name = names.map(quotedName).join(".");
  if (!readers.length) throw wrong(`no column is called ${name}${describeOthers(grid, names)}`);
  const beside = names.at(-2) === "score" ? names.with(-2, "label") : null;
  const hasLabels = beside && findReaders(grid, beside, wrong).some(({ texts }) => texts?.length);
  return { readers, name, labels: hasLabels ? beside.map(quotedName).join(".") : null };
}

function findReaders(grid, names, wrong) {
  const number = grid.tasks.findIndex((task) => task.task === names[0]);
  const find = (tasks, [what, of, ...rest]) => (rest.length ? [] : tasks).map((task) => reader(grid, task, what, of, wrong)).filter(Boolean);
  let found = number >= 0 && names.length > 1 ? find([number], names.slice(1)) : [];
  if (!found.length) found = find(grid.tasks.map((_, i) => i), names); // a task may be called `score`
  const isDisagree = names.at(-1) === "disagree" && names.length === (number >= 0 ? 2 : 1);
  if (!found.length && isDisagree) return [{ read: (row) => (disagree(grid, row) ? 1 : undefined), texts: null }];
  return found;
}

/** A name as a filter has it. */
export const quotedName = (name) => (PLAIN_NAME.test(name) && !WORDS.includes(name) ? name : `"${name.replace(/["\\]/g, "\\$&")}"`);

const PLAIN_NAME = /^(?!\d+e\d+$)\p{N}*[\p{L}_][\p{L}\p{N}_-]*$/iu;
const WORDS = ["and", "or", "not", "in", "true", "false"];

export function known(grid) {
  const scorers = [...new Set(grid.tasks.flatMap((task) => task.head.scorers.map((scorer) => `score.${quotedName(scorer.name)}`)))];
  const systems = grid.tasks.length > 1 ? grid.tasks.flatMap((task) => task.head.scorers.map((scorer) => `${quotedName(task.task)}.score.${quotedName(scorer.name)}`)) : [];
  return [...scorers, ...systems, ...new Set(grid.tasks.flatMap((task) => task.head.attributes.map((each) => quotedName(each.name)))), "outcome", "duration", "index", "disagree"];
}

/** The name that was meant, if one is near; else all that there are. */
function describeOthers(grid, names) {
  const near = nearest(names, allNames(grid));
  return near ? ` (did you mean ${near.map(quotedName).join(".")}?)` : `; there are ${known(grid).join(", ")};`;
}

/** Every name of a column, as its parts: those of any task before those of one. */
function allNames(grid) {
  const own = grid.tasks.map(({ head }) => [
    ...["score", "status", "label"].flatMap((what) => head.scorers.filter(({ labels }) => what !== "label" || labels?.length).map(({ name }) => [what, name])),
    ...head.attributes.map(({ name }) => [name]), ["outcome"], ["duration"], ["index"], ["replication"], ["disagree"]]);
  return [...own.flat(), ...(own.length > 1 ? own.flatMap((all, t) => all.map((names) => [grid.tasks[t].task, ...names])) : [])];
}

/** How a column of a task is read: `read`, a function row → its value or undefined, and the `texts` that it may be, or null if it is a number. */
function reader(grid, number, what, of, wrong) {
  const { head, columns } = grid.tasks[number];
  const place = grid.places[number];
  const at = (texts, read) => ({ texts, read: (row) => (place[row] < 0 ? undefined : read(place[row])) });
  if (of !== undefined) {
    const i = head.scorers.findIndex((scorer) => scorer.name === of);
    if (i < 0) return null;
    const { labels } = head.scorers[i];
    if (what === "score") return at(null, (row) => (Number.isNaN(columns[`value-${i}`][row]) ? undefined : columns[`value-${i}`][row]));
    if (what === "status") return at(head.statuses, (row) => head.statuses[columns[`status-${i}`][row]] || undefined);
    if (what === "label" && labels) return at(labels, (row) => labels[columns[`label-${i}`][row] - 1]);
    return null;
  }
  const a = head.attributes.findIndex((attribute) => attribute.name === what);
  if (a >= 0) {
    const { values, n } = head.attributes[a];
    if (values) return at(values, (row) => values[columns[`attribute-${a}`][row] - 1]);
    if (n === null) throw wrong(`${what} has more than 65,535 different values, too many to filter by; search the text for one of them;`);
    throw Object.assign(wrong(`the values of ${what} are not read yet`), { needs: { number, attribute: a } });
  }
  if (what === "outcome") return at(head.outcomes, (row) => head.outcomes[columns.outcome[row]]);
  if (what === "duration") return at(null, (row) => (Number.isNaN(columns.duration[row]) ? undefined : columns.duration[row]));
  if (what === "index") return at(null, (row) => exact(columns.index[row]));
  if (what === "replication") return at(null, (row) => columns.replication[row]);
  return null;
}

/** A whole number: a BigInt only where nothing else holds it exactly. */
const exact = (value) => (Number.isSafeInteger(Number(value)) ? Number(value) : value);

/** Whether the tasks have different outcomes, or scores of the same name that differ. */
export function disagree(grid, row) {
  const outcomes = new Set();
  const scores = new Map();
  for (let t = 0; t < grid.tasks.length; t++) {
    const place = grid.places[t][row];
    const { head, columns } = grid.tasks[t];
    if (place < 0) continue;
    outcomes.add(columns.outcome[place]);
    for (let s = 0; s < head.scorers.length; s++) {
      const value = columns[`value-${s}`][place];
      const { name } = head.scorers[s];
      if (scores.has(name) && !Object.is(scores.get(name), value)) return true;
      scores.set(name, value);
    }
  }
  return outcomes.size > 1;
}
