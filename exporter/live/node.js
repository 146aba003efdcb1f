// The machine: processors, memory, GPUs, temperatures, power, network.

const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);
const known = (lines) => lines.map((line) => line.value).filter(Number.isFinite);
const totalOf = (lines) => (known(lines).length > 0 ? sum(known(lines)) : undefined);
const highest = (lines) => (known(lines).length > 0 ? Math.max(...known(lines)) : undefined);

const gpuName = ({ labels }) => `GPU ${labels.gpu}`;

function linesOf(samples, nameOf) {
  return samples.map((sample) => ({ name: nameOf(sample), value: sample.value }));
}

function cpuCount(metrics) {
  return new Set(metrics.all("node_cpu_seconds_total").map(({ labels }) => labels.cpu)).size;
}

function cpu(metrics) {
  const samples = metrics.all("node_cpu_seconds_total");
  if (samples.length === 0) return undefined;
  const idle = samples.filter(({ labels }) => labels.mode === "idle" || labels.mode === "iowait");
  const all = past.rate("cpu all", sum(samples.map((s) => s.value)));
  const value = 1 - past.rate("cpu idle", sum(idle.map((s) => s.value))) / all;
  const busy = Number.isFinite(value) ? Math.min(1, Math.max(0, value)) : undefined;
  return { value: busy, lines: [{ name: "busy", value: busy }], note: `of ${cpuCount(metrics)} CPUs` };
}

function memory(metrics) {
  const total = metrics.one("node_memory_MemTotal_bytes")?.value;
  const used = total - metrics.one("node_memory_MemAvailable_bytes")?.value;
  if (!Number.isFinite(used)) return undefined;
  return { value: used, lines: [{ name: "used", value: used }], top: total, note: `of ${words(total, "bytes")}` };
}

function load(metrics) {
  const lines = ["1", "5", "15"]
    .map((minutes) => ({ name: `${minutes} min`, value: metrics.one(`node_load${minutes}`)?.value }))
    .filter(({ value }) => value !== undefined);
  return { value: lines[0]?.value, lines, note: `${cpuCount(metrics)} CPUs` };
}

function network(metrics) {
  const lines = ["receive", "transmit"].map((way) => {
    const devices = metrics.all(`node_network_${way}_bytes_total`).filter(({ labels }) => labels.device !== "lo");
    const rates = devices.map(({ labels, value }) => past.rate(`${way} ${labels.device}`, value));
    const seen = rates.filter((rate) => rate !== undefined);
    return { name: way, value: seen.length > 0 ? sum(seen) : undefined };
  });
  return metrics.one("node_network_receive_bytes_total") && { value: totalOf(lines), lines, note: "sum" };
}

function gpu(metrics) {
  const lines = linesOf(metrics.all("gpu_utilization_ratio"), gpuName);
  const models = new Set(metrics.all("gpu_info").map(({ labels }) => labels.name));
  return { value: highest(lines), lines, note: [...models].join(", ") + (lines.length > 1 ? ", busiest" : "") };
}

function gpuMemory(metrics) {
  const lines = linesOf(metrics.all("gpu_memory_used_bytes"), gpuName);
  const totals = metrics.all("gpu_memory_total_bytes").map((s) => s.value);
  const total = Math.max(...totals);
  const of = totals.length > 1 ? `sum, of ${words(total, "bytes")} each` : `of ${words(total, "bytes")}`;
  return { value: totalOf(lines), lines, top: total > 0 ? total : undefined, note: total > 0 ? of : "" };
}

// The first source that has something: the board's own names are better than the kernel's.
function temperature(metrics) {
  const sources = [
    linesOf(metrics.all("jetson_temperature_celsius"), ({ labels }) => labels.zone),
    linesOf(metrics.all("gpu_temperature_celsius"), gpuName),
    linesOf(metrics.all("node_thermal_zone_temp"), ({ labels }) => labels.type),
    linesOf(metrics.all("node_hwmon_temp_celsius"), ({ labels }) => `${labels.chip} ${labels.sensor}`),
  ];
  const lines = sources.find((source) => source.length > 0) ?? [];
  const value = highest(lines);
  const hottest = lines.find((line) => line.value === value);
  return { value, lines, note: lines.length > 1 ? `${hottest?.name} is hottest` : "" };
}

function power(metrics) {
  const rails = linesOf(metrics.all("jetson_rail_power_watts"), ({ labels }) => labels.rail);
  const cards = linesOf(metrics.all("gpu_power_watts"), gpuName);
  const board = metrics.one("jetson_power_total_watts")?.value;
  const mode = metrics.one("jetson_power_mode")?.labels.name;
  const limits = sum(metrics.all("gpu_power_limit_watts").map((s) => s.value));
  const note = mode ?? (limits > 0 ? `limit ${words(limits, "watts")}` : "");
  return { value: board ?? totalOf(cards), lines: [...rails, ...cards], note };
}

const NODE = [
  { title: "CPU", unit: "ratio", top: 1, read: cpu },
  { title: "Memory", unit: "bytes", read: memory },
  { title: "GPU", unit: "ratio", top: 1, read: gpu },
  { title: "GPU memory", unit: "bytes", read: gpuMemory },
  { title: "Temperature", unit: "celsius", floats: true, read: temperature },
  { title: "Power", unit: "watts", read: power },
  { title: "Load", unit: "number", read: load },
  { title: "Network", unit: "bytesPerSecond", read: network },
];

const nodeCards = new Cards(byId("charts"));

function drawNode(metrics) {
  for (const { read, ...options } of NODE) {
    const found = read(metrics);
    if (found?.lines.length > 0) nodeCards.chart(options.title, found.lines, { ...options, ...found });
  }
  byId("section-node").hidden = nodeCards.finish() === 0;
  const model = metrics.one("jetson_info")?.labels.model;
  const boot = metrics.one("node_boot_time_seconds")?.value;
  const up = metrics.one("node_time_seconds")?.value - boot;
  const parts = [model, metrics.one("node_uname_info")?.labels.nodename];
  if (up > 0) parts.push(`up ${duration(up)}`);
  const text = parts.filter(Boolean).join(" · ");
  if (text !== "") say(byId("node"), text);
}
