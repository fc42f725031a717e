// The language of filters: `score.right < 1 and topic == "plus"`, over the columns of a grid.
//
//   condition   either `and`/`or`/`not`/parentheses of conditions, or NAME OPERATOR VALUE, or NAME alone (is there a value?)
//   NAME        an attribute; score.SCORER, status.SCORER, label.SCORER; outcome, duration, index, replication, disagree
//   TASK.NAME   of one task; without it, of any task
//   OPERATOR    == != < <= > >=, or `in` with a list in brackets
//   VALUE       a number, or a text in quotes; a name with other characters than letters and digits is quoted too
//
// A missing value matches nothing, as in filters of the command line.

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
  const wrong = (what) => new Error(`${what} at character ${(peek()?.from ?? text.length) + 1}`);
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
    const readers = column(grid, names(), wrong);
    const sign = peek()?.sign;
    if (takes("in")) {
      const values = list();
      return any(readers, (value) => values.some((each) => equal(value, each)));
    }
    if (!["==", "!=", "<", "<=", ">", ">="].includes(sign)) return any(readers, () => true);
    next();
    return any(readers, TESTS[sign](literal()));
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
  function list() {
    if (!takes("[")) throw wrong("a list in brackets is expected");
    const values = [];
    while (!takes("]")) {
      values.push(literal());
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

/** A text is equal to a number that it writes, and to the words true and false, which are 1 and 0. */
function equal(a, b) {
  if (typeof a === typeof b) return a === b;
  if (typeof a !== "string" && typeof b !== "string") return a <= b && a >= b; // a number and a BigInt
  const [text, number] = typeof a === "string" ? [a, b] : [b, a];
  return text === "true" || text === "false" ? number === Number(text === "true") : equal(numberOf(text), number);
}

const TESTS = {
  "==": (wanted) => (value) => equal(value, wanted),
  "!=": (wanted) => (value) => !equal(value, wanted),
  "<": (wanted) => (value) => comparable(value, wanted) < wanted,
  "<=": (wanted) => (value) => comparable(value, wanted) <= wanted,
  ">": (wanted) => (value) => comparable(value, wanted) > wanted,
  ">=": (wanted) => (value) => comparable(value, wanted) >= wanted,
};

/** A text is compared with a number by the number that it writes. */
const comparable = (value, wanted) => (typeof wanted !== "string" && typeof value === "string" ? numberOf(value) : value);

/** Whether any task has a value that passes; a missing one (undefined) never does. */
const any = (readers, test) => (row) => readers.some((read) => { const value = read(row); return value !== undefined && test(value); });

/** For each task a function row → its value, or undefined. */
function column(grid, names, wrong) {
  const number = grid.tasks.findIndex((task) => task.task === names[0]);
  const find = (tasks, [what, of, ...rest]) => (rest.length ? [] : tasks).map((task) => reader(grid, task, what, of, wrong)).filter(Boolean);
  let found = number >= 0 && names.length > 1 ? find([number], names.slice(1)) : [];
  if (!found.length) found = find(grid.tasks.map((_, i) => i), names); // a task may be called `score`
  if (!found.length && names.at(-1) === "disagree" && names.length === (number >= 0 ? 2 : 1)) return [(row) => (disagree(grid, row) ? 1 : undefined)];
  if (!found.length) throw wrong(`no column is called ${names.join(".")}; there are ${known(grid).join(", ")};`);
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

function reader(grid, number, what, of, wrong) {
  const { head, columns } = grid.tasks[number];
  const place = grid.places[number];
  const at = (read) => (row) => (place[row] < 0 ? undefined : read(place[row]));
  if (of !== undefined) {
    const i = head.scorers.findIndex((scorer) => scorer.name === of);
    if (i < 0) return null;
    const { labels } = head.scorers[i];
    if (what === "score") return at((row) => (Number.isNaN(columns[`value-${i}`][row]) ? undefined : columns[`value-${i}`][row]));
    if (what === "status") return at((row) => head.statuses[columns[`status-${i}`][row]] || undefined);
    if (what === "label" && labels) return at((row) => labels[columns[`label-${i}`][row] - 1]);
    return null;
  }
  const a = head.attributes.findIndex((attribute) => attribute.name === what);
  if (a >= 0) {
    const { values, n } = head.attributes[a];
    if (values) return at((row) => values[columns[`attribute-${a}`][row] - 1]);
    if (n === null) throw wrong(`${what} has more than 65,535 different values, too many to filter by; search the text for one of them;`);
    throw Object.assign(wrong(`the values of ${what} are not read yet`), { needs: { number, attribute: a } });
  }
  if (what === "outcome") return at((row) => head.outcomes[columns.outcome[row]]);
  if (what === "duration") return at((row) => (Number.isNaN(columns.duration[row]) ? undefined : columns.duration[row]));
  if (what === "index") return at((row) => exact(columns.index[row]));
  if (what === "replication") return at((row) => columns.replication[row]);
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
