// The search for a text where no server searches; both take the same characters for each other's capitals.

/** @returns a function: whether any of some texts holds a text, whatever its case. */
export function holder(text) {
  const pattern = new RegExp(text.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&"), "iu");
  return (texts) => texts.some((each) => pattern.test(each));
}

/** The texts of a row as it is shown. */
export const textsOf = ({ id, input, expected, attributes, metadata, error, responses, scores, chats, spans }) => textsIn([id, input, expected, attributes, metadata, error, responses,
  scores.map(({ label, reason, explanation }) => [label, reason, explanation]), chats, spans]);

function textsIn(value) {
  if (typeof value === "string") return [value];
  if (value === null || typeof value !== "object") return [];
  return typeof value.j === "string" ? [withoutEscapes(value.j)] : Object.values(value).flatMap(textsIn);
}

/** JSON with the characters that it escapes, such as quotes in its texts; it may be cut. */
const withoutEscapes = (json) => json.replace(/(?:\\u[0-9a-fA-F]{4})+|\\[^u]/g, (escaped) => JSON.parse(`"${escaped}"`));
