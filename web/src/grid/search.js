// The search for a text where no server searches; both take the same characters for each other's capitals.

/** @returns a function: whether any of some texts holds a text, whatever its case. */
export function holder(text) {
  const pattern = new RegExp(text.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&"), "iu");
  return (texts) => texts.some((each) => pattern.test(each));
}

/** The texts of a row as it is shown. */
export const textsOf = ({ id, input, expected, attributes, metadata, error, responses, scores }) => textsIn([id, input, expected, attributes, metadata, error, responses,
  scores.map(({ label, reason, explanation }) => [label, reason, explanation])]);

function textsIn(value) {
  if (typeof value === "string") return [value];
  return value === null || typeof value !== "object" ? [] : Object.values(value).flatMap(textsIn);
}
