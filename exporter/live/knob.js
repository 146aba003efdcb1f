// Knobs of plugins: shown as they are, turned by whoever may write.

const SELECTORS = ["container", "job", "namespace", "pod"];

// The server's own words, which come as JSON or as a line of text.
function wordsOf(answer, text) {
  try {
    return JSON.parse(text).error ?? text;
  } catch {
    return text.trim() || `${answer.status} ${answer.statusText}`;
  }
}

async function putParam(labels, param, value) {
  // All of them, also the empty ones: another plugin of that name is not meant.
  const none = Object.fromEntries(SELECTORS.map((name) => [name, ""]));
  const query = new URLSearchParams({ ...none, ...labels });
  const path = `api/v1/plugins/${encodeURIComponent(labels.plugin)}/params/${encodeURIComponent(param)}`;
  const answer = await fetch(`${path}?${query}`, { method: "PUT", body: JSON.stringify({ value }) });
  const text = await answer.text();
  if (!answer.ok) throw new Error(wordsOf(answer, text));
  return JSON.parse(text).data;
}

function inputOf(spec) {
  if (spec.type === "enum") {
    return element("select", {}, ...spec.values.map((value) => element("option", { value, text: value })));
  }
  if (spec.type === "bool") return element("input", { type: "checkbox" });
  if (spec.type === "string" || spec.type === "any") return element("input", { type: "text", maxlength: 1024 });
  const bounded = spec.min !== undefined && spec.max !== undefined;
  const step = spec.step ?? (spec.type === "int" ? 1 : "any");
  return element("input", { type: bounded ? "range" : "number", min: spec.min, max: spec.max, step });
}

// 480 and true as they are; whatever else somebody types is a string.
function scalarOf(text) {
  try {
    const value = JSON.parse(text);
    return typeof value === "object" ? text : value;
  } catch {
    return text;
  }
}

class Knob {
  #value = element("output", { class: "number" });
  #unit = element("span", { class: "unit" });
  #state = element("p", { class: "note", role: "status" });
  #refused = element("p", { class: "refused", role: "alert" });
  #back = element("button", { type: "button", text: "Default" });
  #labels;
  #spec;
  #isTouched = false;

  constructor(labels, spec, mayWrite) {
    const id = `knob-${Knob.count++}`;
    this.#labels = labels;
    this.#spec = spec;
    this.input = inputOf(spec);
    this.input.id = id;
    this.input.disabled = !mayWrite;
    this.mayWrite = mayWrite;
    const name = element("h3", {}, element("label", { for: id, text: spec.param }));
    const value = element("p", { class: "value" }, this.#value, this.#unit);
    this.node = element(
      "article",
      { class: `card knob ${spec.type}` },
      element("header", {}, name, value),
      element("p", { class: "note", id: `${id}-help`, text: spec.help ?? "" }),
      element("div", { class: "control" }, this.input, this.#back),
      this.#state,
      this.#refused,
    );
    this.input.setAttribute("aria-describedby", `${id}-help`);
    this.#back.setAttribute("aria-label", `${spec.param}: back to the default`);
    this.input.addEventListener("input", () => this.#touch());
    this.input.addEventListener("change", () => this.#turn(this.#chosen()));
    this.input.addEventListener("blur", () => (this.#isTouched = false));
    this.#back.addEventListener("click", () => this.#turn(null));
    this.update(spec);
  }

  #chosen() {
    const { type } = this.#spec;
    if (type === "bool") return this.input.checked;
    if (type === "any") return scalarOf(this.input.value);
    return type === "int" || type === "float" ? Number(this.input.value) : this.input.value;
  }

  #touch() {
    this.#isTouched = true;
    this.#show(this.#chosen());
  }

  async #turn(value) {
    this.#isTouched = true;
    try {
      const spec = await putParam(this.#labels, this.#spec.param, value);
      say(this.#refused, "");
      this.#isTouched = false;
      this.update(spec);
    } catch (error) {
      say(this.#refused, error.message);
      this.#isTouched = false;
      this.update(this.#spec);
    }
  }

  #show(value) {
    const isNumber = typeof value === "number";
    say(this.#value, isNumber ? String(value) : value === true ? "on" : value === false ? "off" : value ?? "–");
    say(this.#unit, this.#spec.unit ?? "");
  }

  #stateOf(isWaiting) {
    const { applied, connected, requested_by: who } = this.#spec;
    const since = who ? ` by ${who}` : "";
    if (!connected) return isWaiting ? `asked for${since}, kept until the plugin is back` : "the plugin is away";
    return isWaiting ? `asked for${since}, not applied yet` : applied === null ? "" : "applied";
  }

  update(spec) {
    this.#spec = spec;
    const { requested, applied } = spec;
    const isWaiting = requested !== null && requested !== applied;
    say(this.#state, this.#stateOf(isWaiting));
    this.node.classList.toggle("waiting", isWaiting);
    this.#back.disabled = !this.mayWrite || (requested ?? applied) === spec.default;
    if (this.#isTouched) return; // somebody is turning it
    const value = requested ?? applied ?? spec.default;
    if (spec.type === "bool") this.input.checked = value === true;
    else this.input.value = value ?? "";
    this.#show(value);
  }
}
Knob.count = 0;
