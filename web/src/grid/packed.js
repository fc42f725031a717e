// Columns as `pack_columns` packs them: the length of a head, the head in JSON, then an array for each column.

const KINDS = { i8: BigInt64Array, i4: Int32Array, u1: Uint8Array, f8: Float64Array, u2: Uint16Array, u4: Uint32Array, f4: Float32Array };
const LENGTH = 8;

/** The head, and an array for each column. */
export function unpackColumns(bytes) {
  const length = Number(new TextDecoder().decode(new Uint8Array(bytes, 0, LENGTH)));
  const head = JSON.parse(new TextDecoder().decode(new Uint8Array(bytes, LENGTH, length)));
  const columns = {};
  for (const [name, { type, at }] of Object.entries(head.columns)) {
    columns[name] = new KINDS[type](bytes, LENGTH + length + at, head.rows);
  }
  return { head, columns };
}
