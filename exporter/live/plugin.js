// Plugins: whatever they push, and their knobs.

const MAX_PLUGINS = 30;
const MAX_PLUGIN_CHARTS = 6;
const SILENT_SECONDS = 60;

const identity = (labels) => JSON.stringify(["plugin", ...SELECTORS].map((name) => labels[name] ?? ""));

// What tells series of one metric apart, for a legend.
function otherLabels(labels) {
  const others = Object.keys(labels).filter((name) => name !== "plugin" && name !== "le" && !SELECTORS.includes(name));
  return others.map((name) => labels[name]).join(" ");
}

function unitOf(name) {
  if (/(^|_)fps$/.test(name)) return "fps";
  const suffix = /_(seconds|bytes|ratio|celsius|watts)$/.exec(name)?.[1];
  return suffix ?? "number";
}

const titleOf = (name) => name.replace(/_(seconds|bytes|ratio|celsius|watts|total)$/, "").replaceAll("_", " ");

// The metrics of each plugin: {identity: {labels, families: {name: samples}}}.
function pluginFamilies(metrics) {
  const plugins = new Map();
  for (const name of metrics.names()) {
    if (/^plugin_param(_requested)?(_info)?$|^waap_/.test(name)) continue; // knobs have their own cards
    for (const sample of metrics.all(name)) {
      if (sample.labels.plugin === undefined) continue;
      const key = identity(sample.labels);
      if (!plugins.has(key)) plugins.set(key, { labels: sample.labels, families: new Map() });
      const { families } = plugins.get(key);
      if (!families.has(name)) families.set(name, []);
      families.get(name).push(sample);
    }
  }
  return plugins;
}

function histogramLines(key, samples) {
  const groups = new Map(samples.map(({ labels }) => [otherLabels(labels), []]));
  for (const sample of samples) groups.get(otherLabels(sample.labels)).push(sample);
  return [...groups].flatMap(([name, group]) => {
    const buckets = group.map(({ labels, value }) => [labels.le === "+Inf" ? Infinity : Number(labels.le), value]);
    const recent = past.recent(`${key} ${name}`, buckets.sort(([a], [b]) => a - b));
    return [0.5, 0.95].map((q) => ({ name: `${name} p${q * 100}`.trim(), value: quantile(q, recent) }));
  });
}

function counterLines(key, samples) {
  return samples.map(({ labels, value }) => {
    const name = otherLabels(labels);
    return { name, value: past.rate(`${key} ${name}`, value) };
  });
}

function histogramChart(key, base, samples) {
  const unit = unitOf(base);
  const lines = histogramLines(key, samples);
  const title = unit === "seconds" ? `${titleOf(base)} latency` : titleOf(base);
  return { rank: 1, title, unit, lines, value: lines[0]?.value, note: `median of ${duration(QUANTILE_MS / 1000)}` };
}

function counterChart(key, name, samples) {
  const lines = counterLines(key, samples);
  const note = lines.length > 1 ? "sum, per second" : "per second";
  return { rank: 3, title: titleOf(name), unit: "perSecond", lines, value: totalOf(lines), note };
}

function gaugeChart(name, samples) {
  const unit = unitOf(name);
  const lines = samples.map(({ labels, value }) => ({ name: otherLabels(labels), value }));
  const note = lines.length > 1 ? "highest" : "";
  return { rank: unit === "fps" ? 0 : 2, title: titleOf(name), unit, lines, value: highest(lines), note };
}

// One metric as a chart: {rank, title, unit, lines, value, note}; undefined where it is part of
// another.
function pluginChart(key, name, samples, families, types) {
  const base = name.replace(/_(bucket|sum|count|total)$/, "");
  if (types.get(base) === "histogram") {
    return name.endsWith("_bucket") ? histogramChart(`${key} ${name}`, base, samples) : undefined;
  }
  if (types.get(base) === "summary" && name !== base) return undefined;
  if (types.get(name) !== "counter") return gaugeChart(name, samples);
  // The mean of a rate says it already.
  return families.has(base) ? undefined : counterChart(`${key} ${name}`, name, samples);
}

class PluginCard {
  #title = element("h3");
  #about = element("p", { class: "note" });
  #more = element("p", { class: "hint" });
  #grid = element("div", { class: "grid small" });
  #cards = new Cards(this.#grid);

  constructor() {
    const header = element("header", {}, this.#title, this.#about);
    this.node = element("article", { class: "plugin" }, header, this.#grid, this.#more);
  }

  draw(key, labels, families, types, listed, mayWrite) {
    say(this.#title, labels.plugin);
    const where = ["namespace", "pod", "job"].filter((name) => labels[name]).map((name) => `${name} ${labels[name]}`);
    const silent = listed !== undefined ? listed.now - listed.seen_at : 0;
    if (silent > SILENT_SECONDS) where.push(`silent for ${duration(silent)}`);
    say(this.#about, where.join(" · "));
    const charts = [...families]
      .map(([name, samples]) => ({ name, ...pluginChart(key, name, samples, families, types) }))
      .filter((chart) => chart.lines !== undefined)
      .sort((a, b) => a.rank - b.rank);
    for (const chart of charts.slice(0, MAX_PLUGIN_CHARTS)) {
      this.#cards.chart(`${key} ${chart.name}`, chart.lines, chart);
    }
    for (const spec of (listed?.params ?? []).sort((a, b) => a.param.localeCompare(b.param))) {
      const kind = JSON.stringify([spec.param, spec.type, spec.min, spec.max, spec.step, spec.values, mayWrite]);
      this.#cards.card(kind, () => new Knob(listed.labels, spec, mayWrite)).update(spec);
    }
    say(this.#more, moreWords(charts.length - MAX_PLUGIN_CHARTS));
    this.#cards.finish();
  }
}

const pluginCards = new Cards(byId("plugins"));

function drawPlugins(metrics, listed, refusal) {
  const found = pluginFamilies(metrics);
  const byKey = new Map(listed.map((plugin) => [identity(plugin.labels), plugin]));
  for (const [key, { labels }] of byKey) {
    if (!found.has(key)) found.set(key, { labels, families: new Map() });
  }
  for (const key of [...found.keys()].sort().slice(0, MAX_PLUGINS)) {
    const { labels, families } = found.get(key);
    const card = pluginCards.card(key, () => new PluginCard());
    card.draw(key, labels, families, metrics.types, byKey.get(key), refusal === "");
  }
  byId("section-plugins").hidden = pluginCards.finish() === 0;
  sayMore("more-plugins", found.size - MAX_PLUGINS);
  const hasKnobs = listed.some((plugin) => plugin.params.length > 0);
  byId("refusal").hidden = refusal === "" || !hasKnobs;
  say(byId("refusal"), `Knobs are for reading: ${refusal}.`);
}
