// Of known names the one that a person may have meant.

/**
 * @param names parts of a name, such as `score` and `right`.
 * @param known lists of such parts.
 * @returns the one of `known` with the fewest changes, a missing first part being none; undefined if a third of the last part would change.
 */
export function nearest(names, known) {
  const wanted = names.join(".").toLowerCase();
  const most = Math.round(names.at(-1).length / 3);
  let [found, least] = [undefined, most + 1];
  for (const each of known) {
    const changes = Math.min(...[each, each.slice(1)].filter((parts) => parts.length).map((parts) => countChanges(wanted, parts.join(".").toLowerCase(), least)));
    if (changes < least) [found, least] = [each, changes];
  }
  return found;
}

/** How many characters are to be put in, left out or replaced to make one text of another; `limit` if at least so many. */
function countChanges(from, to, limit) {
  if (Math.abs(from.length - to.length) >= limit) return limit;
  let row = Array.from({ length: to.length + 1 }, (_, i) => i);
  for (let i = 0; i < from.length; i++) {
    const next = [i + 1];
    for (let j = 0; j < to.length; j++) next.push(Math.min(next[j] + 1, row[j + 1] + 1, row[j] + (from[i] === to[j] ? 0 : 1)));
    row = next;
  }
  return Math.min(row[to.length], limit);
}
