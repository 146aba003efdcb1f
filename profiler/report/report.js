"use strict";
// Reading a time line under the pointer. The plots are drawn without this.

const units = { B: [["Ti", 2 ** 40], ["Gi", 2 ** 30], ["Mi", 2 ** 20], ["Ki", 2 ** 10]], ratio: [] };
const small = [["G", 1e9], ["M", 1e6], ["", 0.1], ["m", 1e-3], ["µ", 1e-6]];

function human(value, unit) {
  if (unit === "ratio") [value, unit] = [value * 100, "%"];
  if (unit === "celsius") unit = "°C";
  const table = units[unit] ?? (["s", "J", "W"].includes(unit) ? small : []);
  const [prefix, factor] = table.find(([, from]) => Math.abs(value) >= from) ?? ["", 1];
  return `${Number((value / (prefix ? factor : 1)).toPrecision(4))} ${prefix}${unit}`.trim();
}

function points(path) {
  path.points ??= path.getAttribute("d").slice(1).split("L").map((pair) => pair.split(" ").map(Number));
  return path.points;
}

function nearest(list, x) {
  return list.reduce((best, point) => (Math.abs(point[0] - x) < Math.abs(best[0] - x) ? point : best));
}

// From a place in the drawing to a value: data-x and data-y hold two places and their values.
function scale(svg, name) {
  const [a, from, b, to] = svg.dataset[name].split(" ").map(Number);
  return (place) => from + ((place - a) / (b - a)) * (to - from);
}

function begin(svg) {
  const cursor = document.createElementNS(svg.namespaceURI, "path");
  cursor.setAttribute("class", "cursor");
  const reading = document.createElement("output");
  reading.className = "reading";
  reading.hidden = true;
  svg.append(cursor);
  svg.parentElement.append(reading);
  const lines = [...svg.querySelectorAll(".line")];
  const x = scale(svg, "x");
  const y = scale(svg, "y");

  function read(event) {
    const place = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
    const at = nearest(lines.flatMap(points), place.x)[0];
    const height = svg.viewBox.baseVal.height;
    cursor.setAttribute("d", `M${at} 14V${height - 22}`);
    const values = lines
      .map((line) => [line, nearest(points(line), at)])
      .filter(([, point]) => Math.abs(point[0] - at) < 12)
      .map(([line, point]) => `${lines.length > 1 ? line.dataset.name + " " : ""}${human(y(point[1]), svg.dataset.unit)}`);
    reading.textContent = `${Number(x(at).toFixed(1))} s: ${values.join(" · ")}`;
    reading.hidden = false;
  }

  svg.addEventListener("pointermove", read);
  svg.addEventListener("pointerdown", read);
  svg.addEventListener("pointerleave", () => {
    reading.hidden = true;
    cursor.removeAttribute("d");
  });
}

document.querySelectorAll("svg.time").forEach(begin);
