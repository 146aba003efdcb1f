// The page: asks the exporter every two seconds and draws what it says.

const TIMEOUT_MS = 10000;

// ---- what the server itself writes into the page ----

// Takes over the state of the collectors and the notices from the page as it is today.
function takeOver(fresh) {
  const rows = byId("collector-rows");
  const freshRows = fresh.getElementById("collector-rows");
  if (freshRows === null) return;
  if (rows.rows.length !== freshRows.rows.length) rows.replaceChildren(...document.importNode(freshRows, true).rows);
  [...freshRows.rows].forEach((row, i) => {
    [...row.cells].forEach((cell, j) => {
      const own = rows.rows[i].cells[j];
      say(own, cell.textContent);
      own.className = cell.className;
    });
  });
  byId("live").dataset.refusal = fresh.getElementById("live").dataset.refusal;
  say(byId("about"), fresh.getElementById("about").textContent);
}

// Nobody shall take a demo for real, nor keep the notice when it is over.
function showDemo(metrics, fresh) {
  const isDemo = metrics.one("waap_demo")?.value === 1;
  const notice = fresh.querySelector("p.demo")?.textContent ?? (isDemo ? "Demo: nothing shown is real." : "");
  let own = document.querySelector("p.demo");
  if (own === null && notice !== "") {
    own = element("p", { class: "demo" });
    byId("live").before(own);
  }
  if (own !== null) {
    own.hidden = notice === "";
    say(own, notice);
  }
}

function showHealth() {
  const states = [...byId("collector-rows").rows].map((row) => row.cells[1].textContent);
  const failing = states.filter((state) => state === "failing").length;
  const ok = states.filter((state) => state === "ok").length;
  const pill = byId("health");
  pill.hidden = false;
  pill.classList.toggle("bad", failing > 0);
  say(pill, failing > 0 ? `${failing} of ${ok + failing} collectors failing` : `${ok} collectors ok`);
}

function showState(kind, text) {
  const pill = byId("state");
  pill.hidden = false;
  pill.className = `pill ${kind}`;
  say(pill, text);
  byId("live").classList.toggle("stale", kind === "bad");
}

// ---- asking ----

async function get(path, accept) {
  const headers = accept === undefined ? {} : { Accept: accept };
  const answer = await fetch(path, { headers, cache: "no-store", signal: AbortSignal.timeout(TIMEOUT_MS) });
  const text = await answer.text();
  if (!answer.ok) throw new Error(wordsOf(answer, text));
  return { text, now: Date.parse(answer.headers.get("Date")) / 1000 };
}

async function readOnce() {
  const [page, plugins, frame] = await Promise.all([
    get(byId("metrics").href, "text/plain;version=0.0.4"),
    get("api/v1/plugins"),
    get("./"),
  ]);
  const metrics = parseMetrics(page.text);
  const listed = JSON.parse(plugins.text).data.map((plugin) => ({ ...plugin, now: plugins.now }));
  const fresh = new DOMParser().parseFromString(frame.text, "text/html");
  past.startReading(performance.now());
  takeOver(fresh);
  showDemo(metrics, fresh);
  showHealth();
  drawNode(metrics);
  drawPlugins(metrics, listed, byId("live").dataset.refusal);
  drawContainers(metrics);
}

let timer;
let isAsking = false;

async function poll() {
  if (document.hidden || isAsking) return;
  isAsking = true;
  clearTimeout(timer);
  try {
    await readOnce();
    showState("good", "live");
  } catch (error) {
    // Fetch words it differently in every browser; what the server says is worth reading.
    const isNetwork = error instanceof TypeError || error.name === "TimeoutError";
    showState("bad", isNetwork ? "not reachable, trying again" : `not reachable: ${error.message}`);
  }
  isAsking = false;
  if (!document.hidden) timer = setTimeout(poll, POLL_MS);
}

document.addEventListener("visibilitychange", () => {
  clearTimeout(timer);
  poll();
});
poll();
