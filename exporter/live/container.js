// Containers, one a row.

const MAX_CONTAINERS = 40;

const short = (name) => (/^[0-9a-f]{32,}$/.test(name) ? name.slice(0, 12) : name);

function containerValues(metrics) {
  const containers = new Map();
  const add = (name, field, valueOf) => {
    for (const sample of metrics.all(name)) {
      const entry = containers.get(sample.labels.id);
      const value = entry && valueOf(sample);
      if (value !== undefined) entry[field] = (entry[field] ?? 0) + value;
    }
  };
  for (const { labels } of metrics.all("container_memory_working_set_bytes")) {
    const isSandbox = labels.pod && !labels.container;
    if (labels.name && !isSandbox) containers.set(labels.id, { labels });
  }
  const rate = ({ labels, value }) => past.rate(`container ${JSON.stringify(labels)}`, value);
  add("container_cpu_usage_seconds_total", "cpu", rate);
  add("container_memory_working_set_bytes", "memory", ({ value }) => value);
  add("container_gpu_memory_bytes", "gpuMemory", ({ value }) => value);
  add("container_energy_estimate_joules_total", "watts", rate);
  return containers;
}

const COLUMNS = [
  { field: "cpu", title: "CPU", unit: "cores" },
  { field: "memory", title: "Memory", unit: "bytes" },
  { field: "gpuMemory", title: "GPU memory", unit: "bytes" },
  { field: "watts", title: "Power", unit: "watts" },
];

class ContainerRow {
  #name = element("b");
  #place = element("span", { class: "note" });
  #cells = COLUMNS.map(({ title }) => {
    const plot = new Plot(past, true);
    const value = element("span", { class: "amount" });
    return { plot, value, node: element("td", { "data-title": title }, value, plot.svg) };
  });

  constructor() {
    const head = element("th", { scope: "row" }, this.#name, this.#place);
    this.node = element("tr", {}, head, ...this.#cells.map((cell) => cell.node));
  }

  draw(id, values) {
    const { labels } = values;
    const name = labels.container || short(labels.name);
    say(this.#name, name);
    say(this.#place, [labels.namespace, labels.pod ?? labels.image].filter(Boolean).join(" · "));
    COLUMNS.forEach(({ field, title, unit }, i) => {
      const key = `container ${id} ${field}`;
      const { plot, value } = this.#cells[i];
      past.put(key, values[field]);
      say(value, words(values[field], unit));
      plot.draw([{ key }], { unit, title: `${name}: ${title}` });
      plot.svg.toggleAttribute("hidden", values[field] === undefined);
    });
  }
}

const containerRows = new Cards(byId("containers"));

function drawContainers(metrics) {
  const nameOf = ({ labels }) => `${labels.container ?? ""} ${labels.name}`;
  const found = [...containerValues(metrics)].sort(([, a], [, b]) => nameOf(a).localeCompare(nameOf(b)));
  for (const [id, values] of found.slice(0, MAX_CONTAINERS)) {
    containerRows.card(id, () => new ContainerRow()).draw(id, values);
  }
  sayMore("more-containers", found.length - MAX_CONTAINERS);
  byId("section-containers").hidden = containerRows.finish() === 0;
}
