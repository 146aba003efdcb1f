// Lines in a box. All text goes in as text: names and labels come from whoever pushes.

const WIDTH = 300;
const HEIGHT = 72;
const MAX_LINES = 8;
const SVG = "http://www.w3.org/2000/svg";

const byId = (id) => document.getElementById(id);

// element("p", {class: "hint", text: "…"}, child, …)
function element(name, properties = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key === "text") node.textContent = value;
    else if (value !== undefined && value !== false) node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...children);
  return node;
}

function shape(name, attributes) {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  return node;
}

// Only what differs is touched: the reader's selection stays.
function say(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

// About what is left out.
const moreWords = (left) => (left > 0 ? `${left} more under Metrics` : "");
const sayMore = (id, left) => say(byId(id), moreWords(left));

// The points as a path, with a hole wherever there was nothing.
function pathOf(points, scale) {
  const parts = [];
  let last;
  for (const [at, value] of points) {
    const seen = Number.isFinite(value);
    if (seen) {
      const joined = last !== undefined && at - last <= GAP_MS;
      parts.push(`${joined ? "L" : "M"}${scale.x(at).toFixed(1)} ${scale.y(value).toFixed(1)}`);
    }
    last = seen ? at : undefined;
  }
  return parts.join("");
}

class Plot {
  #paths = new Map();
  #area = shape("path", { class: "area" });
  #colours = 0;

  constructor(history, small) {
    this.history = history;
    this.svg = shape("svg", {
      viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
      preserveAspectRatio: "none",
      role: "img",
      class: small ? "spark" : "plot",
    });
    for (const y of small ? [] : [0.5, HEIGHT / 2, HEIGHT - 0.5]) {
      this.svg.append(shape("path", { class: "rule", d: `M0 ${y}H${WIDTH}` }));
    }
    this.svg.append(this.#area);
  }

  #path(key) {
    if (!this.#paths.has(key)) {
      const path = shape("path", { class: `line c${this.#colours++ % MAX_LINES}` });
      this.svg.append(path);
      this.#paths.set(key, path);
    }
    return this.#paths.get(key);
  }

  colour(key) {
    return this.#path(key).getAttribute("class").split(" ")[1];
  }

  // The ends of the scale: given, or round numbers around what is to be seen.
  #ends(lines, { unit, top, floats }) {
    const from = this.history.now - this.history.window;
    const values = lines
      .flatMap((line) => this.history.points(line.key))
      .filter(([at, value]) => at >= from && Number.isFinite(value))
      .map(([, value]) => value);
    if (values.length === 0) return { low: 0, high: top ?? 1, least: NaN, most: NaN };
    const least = Math.min(...values);
    const most = Math.max(...values);
    const low = floats ? Math.floor((least - 2) / 10) * 10 : Math.min(0, least);
    const high = floats ? Math.ceil((most + 2) / 10) * 10 : Math.max(top ?? roundUp(most, unit), most);
    return { low, high, least, most };
  }

  // Draws the lines, [{key, name, value}]; returns the scale.
  draw(lines, options) {
    const { now, window } = this.history;
    const ends = this.#ends(lines, options);
    const scale = {
      x: (at) => WIDTH - ((now - at) / window) * WIDTH,
      y: (value) => HEIGHT - 2 - ((value - ends.low) / (ends.high - ends.low)) * (HEIGHT - 4),
    };
    for (const [key, path] of this.#paths) {
      if (!lines.some((line) => line.key === key)) {
        path.remove();
        this.#paths.delete(key);
      }
    }
    for (const line of lines) {
      this.#path(line.key).setAttribute("d", pathOf(this.history.points(line.key), scale));
    }
    const alone = lines.length === 1 ? pathOf(this.history.points(lines[0].key), scale) : "";
    this.#area.setAttribute("d", alone.replace(/M([^M]*)/g, (all, run) => this.#under(run)));
    this.svg.setAttribute("aria-label", this.#describe(ends, options));
    return ends;
  }

  // The area below one unbroken run of the line.
  #under(run) {
    const at = run.split("L").map((pair) => pair.split(" ")[0]);
    return `M${at[0]} ${HEIGHT}L${run}L${at.at(-1)} ${HEIGHT}Z`;
  }

  #describe({ least, most }, { title, unit }) {
    const range = Number.isFinite(least) ? `${words(least, unit)} to ${words(most, unit)}` : "no data";
    return `${title}, last ${duration(this.history.window / 1000)}: ${range}`;
  }
}

// A card: what it is, its value, the lines, and what each of them is.
class Chart {
  #title = element("h3");
  #number = element("span", { class: "number" });
  #unit = element("span", { class: "unit" });
  #note = element("p", { class: "note" });
  #top = element("span", { class: "top" });
  #bottom = element("span", { class: "bottom" });
  #since = element("span");
  #legend = element("ul", { class: "legend" });

  constructor(history) {
    this.plot = new Plot(history, false);
    const value = element("p", { class: "value" }, this.#number, this.#unit);
    this.node = element(
      "article",
      { class: "card" },
      element("header", {}, this.#title, value),
      element("div", { class: "scale" }, this.#note, this.#top),
      element("div", { class: "frame" }, this.plot.svg, this.#bottom),
      element("p", { class: "time", "aria-hidden": "true" }, this.#since, element("span", { text: "now" })),
      this.#legend,
    );
  }

  // options: title, unit, value (the headline), note, top (of the scale), floats (it need not begin
  // at 0)
  draw(lines, options) {
    const shown = lines.slice(0, MAX_LINES);
    const ends = this.plot.draw(shown, options);
    const [number, unit] = Number.isFinite(options.value) ? UNITS[options.unit](options.value) : ["–", ""];
    say(this.#title, options.title);
    say(this.#number, number);
    say(this.#unit, unit);
    say(this.#note, [options.note, moreWords(lines.length - shown.length)].filter(Boolean).join(" · "));
    say(this.#top, words(ends.high, options.unit));
    say(this.#bottom, ends.low === 0 ? "" : words(ends.low, options.unit));
    say(this.#since, `\u2212${minutes(this.plot.history.window)}`);
    this.#explain(lines.length > 1 ? shown : [], options.unit);
  }

  #explain(lines, unit) {
    while (this.#legend.children.length > lines.length) this.#legend.lastChild.remove();
    lines.forEach((line, i) => {
      if (this.#legend.children.length <= i) {
        this.#legend.append(element("li", {}, element("i"), element("span"), element("b")));
      }
      const [swatch, name, value] = this.#legend.children[i].children;
      swatch.className = this.plot.colour(line.key);
      say(name, line.name);
      say(value, words(line.value, unit));
    });
  }
}

// Cards by key, in the order in which they are drawn; what is not drawn any more goes.
class Cards {
  #cards = new Map();
  #drawn = new Set();

  constructor(node) {
    this.node = node;
  }

  card(key, make) {
    if (!this.#cards.has(key)) this.#cards.set(key, make());
    const card = this.#cards.get(key);
    const place = this.node.children[this.#drawn.size];
    if (place !== card.node) this.node.insertBefore(card.node, place ?? null);
    this.#drawn.add(key);
    return card;
  }

  chart(key, lines, options) {
    const keyed = lines.map((line) => ({ ...line, key: `${key}\n${line.name}` }));
    for (const line of keyed.slice(0, MAX_LINES)) past.put(line.key, line.value);
    this.card(key, () => new Chart(past)).draw(keyed, options);
  }

  finish() {
    for (const [key, card] of this.#cards) {
      if (!this.#drawn.has(key)) {
        card.node.remove();
        this.#cards.delete(key);
      }
    }
    this.#drawn.clear();
    return this.#cards.size;
  }
}
