// Which point of the fronts is best by one objective among those that keep some limits: what `tradeoff pick` takes.
export const [SYSTEM, MODEL, THRESHOLD, ROW, VALUES, RATES, TRIVIAL] = [0, 1, 2, 3, 4, 5, 6];

/** A number as people write it: 0.05, 0,05, .05 or 5 %; nothing is a limit that is not set. */
export function readLimit(text) {
  const written = text.trim().replace("−", "-");
  if (written === "") return { value: null };
  if (/^[-+]?[1-9]\d{0,2},\d{3}$/.test(written)) return { fault: `“${text}” may be ${written.replace(",", ".")} or ${written.replace(",", "")}: write one of these.` };
  const [, digits, percent] = /^(.*?)\s*(%?)$/.exec(written);
  const plain = digits.includes(".") ? digits : digits.replace(",", ".");
  if (!/^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i.test(plain)) return { fault: `“${text}” is no number: write it as in 0.05.` };
  return { value: Number(plain) / (percent ? 100 : 1) };
}

/**
 * The place of the best point, or why there is none.
 *
 * @param limits a number or null for each objective.
 * @returns {{place: number, kept: number, reason: string|null}} place is -1 where there is none.
 */
export function pick({ lower, rounding, points }, best, limits) {
  const keeps = (values) => limits.every((limit, i) =>
    limit === null || (lower[i] ? values[i] <= limit + rounding[i] : values[i] >= limit - rounding[i]));
  const kept = [...points.keys()].filter((place) => keeps(points[place][VALUES]));
  const useful = kept.filter((place) => !points[place][TRIVIAL]); // one that accepts nobody or everybody is no use of a model
  const order = [best, ...lower.keys()];
  const place = useful.reduce((a, b) => (a < 0 || better(points[b][VALUES], points[a][VALUES], order, lower, rounding) ? b : a), -1);
  const reason = place >= 0 ? null : kept.length
    ? "Only points that decide equally for all rows (accept nobody or everybody) keep the limits."
    : "No point of the fronts keeps the limits.";
  return { place, kept: kept.length, reason };
}

// By the objective that is asked for, then by the others in their order; of equal points the first stays. Values that
// differ by rounding alone are equal.
function better(a, b, order, lower, rounding) {
  const place = order.find((i) => Math.abs(a[i] - b[i]) > rounding[i]);
  return place !== undefined && (lower[place] ? a[place] < b[place] : a[place] > b[place]);
}

const DIGITS = 4;

/** A number of few digits that is no stricter a limit. */
function loosened(value, isLower) {
  if (value === 0 || !Number.isFinite(value)) return value;
  const unit = 10 ** (Math.floor(Math.log10(Math.abs(value))) - DIGITS + 1);
  const steps = isLower ? Math.ceil(value / unit - 1e-9) : Math.floor(value / unit + 1e-9);
  return Number((steps * unit).toPrecision(DIGITS + 1));
}

/** The limits at which the slider of an objective stops, ascending: one for each point. */
export function stopsOf({ lower, points }, i) {
  const stops = new Set(points.map((point) => point[VALUES][i]).filter(Number.isFinite).map((value) => loosened(value, lower[i])));
  return [...stops].sort((a, b) => a - b);
}

/** Where the slider is: of an objective that is better high the first place is no limit, of another one the last. */
export function slideOf(stops, isLower, limit) {
  if (limit === null) return isLower ? stops.length : 0;
  const at = stops.findIndex((stop) => stop >= limit - Math.abs(limit) * 1e-12);
  if (isLower) return at < 0 ? stops.length : at;
  return (at < 0 ? stops.length - 1 : at) + 1;
}

/** The limit where the slider is; null for none. */
export const limitAt = (stops, isLower, slide) => (isLower ? stops[slide] : stops[slide - 1]) ?? null;

export const nameOf = ({ systems, models }, point) => [systems.length > 1 ? systems[point[SYSTEM]] : null, models[point[SYSTEM]][point[MODEL]], point[THRESHOLD]].filter(Boolean).join(" · ");
