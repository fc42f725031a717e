// The rows of several tasks side by side, paired as `evaluand compare` pairs them: by the content of their examples.

/**
 * The grid: a row for each example and replication, with the place of each task's row, or -1.
 *
 * @param tasks with `head` and `columns`.
 * @param digests dataset → the columns of its digests; those of the only dataset are not needed.
 * @returns {{n, tasks, index, replication, places, dataset}} `index` is that of the first task that has the row, and
 *   `dataset` the number of its dataset, or null if there is only one.
 */
export function join(tasks, digests) {
  if (areAlike(tasks)) {
    const { index, replication } = tasks[0].columns;
    const own = new Int32Array(index.length);
    for (let row = 0; row < own.length; row++) own[row] = row;
    return { n: own.length, tasks, index, replication, places: tasks.map(() => own), dataset: null };
  }
  const datasets = [...new Set(tasks.map((task) => task.head.dataset))];
  const contents = new Map(datasets.map((dataset) => [dataset, contentsOf(dataset, digests.get(dataset))]));
  const numbers = new Map(); // of rows, by content and replication
  const keys = [];
  const rows = tasks.map(({ head, columns }) => Int32Array.from(columns.index, (index, row) => {
    const replication = columns.replication[row];
    const key = `${contents.get(head.dataset)(index)} ${replication}`;
    if (!numbers.has(key)) { numbers.set(key, keys.length); keys.push({ dataset: datasets.indexOf(head.dataset), index, replication }); }
    return numbers.get(key);
  }));
  const order = keys.map((_, i) => i).sort((a, b) => keys[a].dataset - keys[b].dataset || compare(keys[a].index, keys[b].index) || keys[a].replication - keys[b].replication);
  const rank = new Int32Array(keys.length);
  order.forEach((key, row) => { rank[key] = row; });
  const places = rows.map((own) => {
    const place = new Int32Array(keys.length).fill(-1);
    own.forEach((key, row) => { place[rank[key]] = row; });
    return place;
  });
  const [index, replication, dataset] = ["index", "replication", "dataset"].map((name) => order.map((key) => keys[key][name]));
  return { n: keys.length, tasks, index, replication, places, dataset: datasets.length > 1 ? dataset : null };
}

/** Whether all tasks have the same rows of one dataset. */
const areAlike = ([first, ...others]) => others.every((task) => task.head.dataset === first.head.dataset
  && same(task.columns.index, first.columns.index) && same(task.columns.replication, first.columns.replication));

/** Whether two columns of whole numbers are the same; numbers of 64 bits are slow to compare, and their halves are not. */
function same(a, b) {
  const [first, second] = [a, b].map((column) => new Int32Array(column.buffer, column.byteOffset, column.byteLength / 4));
  return first.length === second.length && first.every((value, row) => value === second[row]);
}

/** index → a text that is the same for equal examples, the first of each dataset with the first; without digests the place alone. */
function contentsOf(dataset, digests) {
  const known = new Map();
  digests?.index.forEach((each, row) => known.set(each, [digests.first, digests.second, digests.earlier].map((column) => column[row]).join(" ")));
  return (each) => known.get(each) ?? `${dataset} ${each}`;
}

const compare = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
