// JSON as a tree. It is parsed here, so that every number keeps its digits and every key its place.

const DEEPEST = 60;

/** The tree of a JSON text: `{kind, text}` or `{kind, items}` of `[name, node]`; null if it cannot be one. */
export function parseJson(text) {
  const token = /\s*([{}[\],:]|"[^"\\]*(?:\\.[^"\\]*)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null|$)/gy;
  let count = 0;
  const next = () => {
    const found = token.exec(text);
    if (!found) throw new SyntaxError("no JSON");
    return found[1];
  };
  const node = (one, depth) => {
    count += 1;
    if (depth > DEEPEST) throw new SyntaxError("too deep");
    if (one === "[" || one === "{") return nested(one, depth);
    if (one[0] === '"') return { kind: "text", text: JSON.parse(one) };
    if (/^[-\dtfn]/.test(one)) return { kind: "word", text: one };
    throw new SyntaxError("no JSON");
  };
  const nested = (open, depth) => {
    const [kind, close] = open === "[" ? ["list", "]"] : ["object", "}"];
    const items = [];
    let one = next();
    while (one !== close) {
      let name = items.length;
      if (kind === "object") {
        name = JSON.parse(one);
        if (next() !== ":") throw new SyntaxError("no JSON");
        one = next();
      }
      items.push([name, node(one, depth + 1)]);
      one = next();
      if (one === ",") one = next();
      else if (one !== close) throw new SyntaxError("no JSON");
    }
    return { kind, items };
  };
  try {
    const found = node(next(), 0);
    return next() === "" ? { ...found, count } : null;
  } catch {
    return null;
  }
}
