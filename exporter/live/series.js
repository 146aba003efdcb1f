// What /metrics says, and how it has moved in the last minutes. Knows nothing of the page.

const POLL_MS = 2000;
const WINDOW_MS = 300000;
const GAP_MS = 5 * POLL_MS; // a longer silence is a hole in the chart, not a line
const QUANTILE_MS = 30000; // quantiles are those of so much time

const LABEL = /\s*([A-Za-z_]\w*)\s*=\s*"((?:[^"\\]|\\.)*)"\s*,?/y;
const UNESCAPED = { n: "\n", "\\": "\\", '"': '"' };

function parseLabels(line, start) {
  const labels = Object.create(null);
  LABEL.lastIndex = start;
  let end = start;
  for (let match; (match = LABEL.exec(line)) !== null; end = LABEL.lastIndex) {
    labels[match[1]] = match[2].replace(/\\(.)/g, (all, c) => UNESCAPED[c] ?? all);
  }
  return { labels, end };
}

function parseValue(text) {
  const word = text.trim().split(" ")[0];
  return word === "+Inf" ? Infinity : word === "-Inf" ? -Infinity : Number(word);
}

// The text format: {name: [{labels, value}]} and {name: type}. Lines that are no samples are left out.
function parseMetrics(text) {
  const samples = new Map();
  const types = new Map();
  for (const line of text.split("\n")) {
    if (line.startsWith("# TYPE ")) {
      const [, , name, type] = line.split(" ");
      types.set(name, type);
    }
    const name = /^[A-Za-z_:][\w:]*/.exec(line)?.[0];
    if (name === undefined) continue;
    const braced = line[name.length] === "{";
    const { labels, end } = braced
      ? parseLabels(line, name.length + 1)
      : { labels: Object.create(null), end: name.length };
    const value = parseValue(line.slice(braced ? end + 1 : end));
    if (!samples.has(name)) samples.set(name, []);
    samples.get(name).push({ labels, value });
  }
  return {
    types,
    all: (wanted) => samples.get(wanted) ?? [],
    one: (wanted) => samples.get(wanted)?.[0],
    names: () => samples.keys(),
  };
}

// The value below which a share `q` of what was observed lies; `buckets` is [[bound, count]] in
// order, cumulative. Within a bucket all values are taken to be equally likely.
function quantile(q, buckets) {
  const total = buckets.at(-1)?.[1] ?? 0;
  if (!(total > 0)) return undefined;
  const rank = q * total;
  const at = buckets.findIndex(([, count]) => count >= rank);
  const [low, below] = at > 0 ? buckets[at - 1] : [0, 0];
  const [high, count] = buckets[at];
  if (high === Infinity) return low;
  return low + ((high - low) * (rank - below)) / Math.max(count - below, Number.MIN_VALUE);
}

// Lines by key, and what is needed to make them of counters.
class History {
  #lines = new Map();
  #counters = new Map();
  #histograms = new Map();

  constructor() {
    this.now = 0;
    this.begin = undefined;
  }

  startReading(now) {
    this.now = now;
    this.begin ??= now;
    for (const kept of [this.#lines, this.#counters, this.#histograms]) {
      for (const [key, entry] of kept) {
        if (now - entry.at > WINDOW_MS) kept.delete(key);
      }
    }
  }

  // Charts begin with the last minute and grow.
  get window() {
    return Math.min(WINDOW_MS, Math.max(60000, this.now - (this.begin ?? this.now)));
  }

  put(key, value) {
    if (!this.#lines.has(key)) this.#lines.set(key, { points: [] });
    const line = this.#lines.get(key);
    line.at = this.now;
    line.points.push([this.now, value]);
    while (this.now - line.points[0][0] > WINDOW_MS) line.points.shift();
  }

  points(key) {
    return this.#lines.get(key)?.points ?? [];
  }

  // A counter's rise per second since the last reading; undefined at its first, after a gap and
  // where it started again.
  rate(key, total) {
    const last = this.#counters.get(key);
    if (last?.at === this.now) return last.rate;
    const apart = this.now - (last?.at ?? 0);
    const known = last !== undefined && apart <= GAP_MS && total >= last.total;
    const rate = known ? ((total - last.total) * 1000) / apart : undefined;
    this.#counters.set(key, { at: this.now, total, rate });
    return rate;
  }

  // What a histogram has observed lately: cumulative buckets, as quantile() takes them.
  recent(key, buckets) {
    const entry = this.#histograms.get(key) ?? { readings: [] };
    const last = entry.readings.at(-1);
    const began = last !== undefined && buckets.some(([, n], i) => n < (last.buckets[i]?.[1] ?? 0));
    if (began || this.now - (entry.at ?? this.now) > GAP_MS) entry.readings = [];
    entry.at = this.now;
    entry.readings.push({ at: this.now, buckets });
    while (this.now - entry.readings[0].at > QUANTILE_MS) entry.readings.shift();
    this.#histograms.set(key, entry);
    const first = entry.readings[0].buckets;
    return buckets.map(([bound, n], i) => [bound, n - (first[i]?.[1] ?? 0)]);
  }
}

const past = new History();

// ---- numbers for people ----

const BYTES = ["B", "KiB", "MiB", "GiB", "TiB"];

function digits(value) {
  const size = Math.abs(value);
  if (size >= 1e9) return value.toExponential(2);
  return value.toFixed(size >= 100 || size === 0 ? 0 : size >= 10 ? 1 : 2);
}

function bytes(value) {
  let unit = 0;
  for (; Math.abs(value) >= 1024 && unit < BYTES.length - 1; unit++) value /= 1024;
  return [unit === 0 ? value.toFixed(0) : digits(value), BYTES[unit]];
}

function large(value) {
  if (Number.isInteger(value) && Math.abs(value) < 1e6) return [String(value), ""];
  if (Math.abs(value) >= 1e15) return [digits(value), ""];
  const unit = Math.abs(value) >= 1e9 ? [1e9, "G"] : Math.abs(value) >= 1e6 ? [1e6, "M"] : [1, ""];
  return [digits(value / unit[0]), unit[1]];
}

// Each gives [number, unit].
const UNITS = {
  number: large,
  ratio: (v) => [(v * 100).toFixed(Math.abs(v) < 0.0995 && v !== 0 ? 1 : 0), "%"],
  bytes,
  bytesPerSecond: (v) => [bytes(v)[0], `${bytes(v)[1]}/s`],
  perSecond: (v) => [digits(v), "/s"],
  fps: (v) => [v.toFixed(1), "fps"],
  seconds: (v) => (Math.abs(v) < 1 ? [digits(v * 1e3), "ms"] : [digits(v), "s"]),
  celsius: (v) => [v.toFixed(1), "°C"],
  watts: (v) => [digits(v), "W"],
  cores: (v) => [v.toFixed(2), "cores"],
};

// "5.15 W", or a dash where there is no value.
function words(value, unit) {
  return Number.isFinite(value) ? UNITS[unit](value).join("\u202f").trim() : "–";
}

// A round number, not below `value`, for the top of a scale.
function roundUp(value, unit) {
  if (!(value > 0)) return 1;
  const isBytes = unit === "bytes" || unit === "bytesPerSecond";
  const base = isBytes ? 1024 ** Math.floor(Math.log2(value) / 10) : 1;
  const power = 10 ** Math.floor(Math.log10(value / base));
  return [1, 2, 3, 4, 5, 6, 8, 10].map((n) => n * power * base).find((n) => n >= value * 0.999);
}

// "4:59"
function minutes(ms) {
  const seconds = Math.round(ms / 1000);
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
}

function duration(seconds) {
  const [size, unit] = [[86400, "d"], [3600, "h"], [60, "min"]].find(([s]) => seconds >= s) ?? [1, "s"];
  return `${Math.floor(seconds / size)}\u202f${unit}`;
}
