"""The page at "/": what it is made of, and what a real browser makes of it."""

import json
import os
import re

import pytest

from browser import FAINT, Browser
from plugin import Plugin
from running import ROOT, free_port, own_address
from waiting import pace, wait_until

SCREENSHOTS = ROOT / "build/screenshots"
# The picture in README (deploy/screenshots/, with a palette) wants lines as long as its charts:
# WAAP_SCREENSHOT_SECONDS=180.
SCREENSHOT_SECONDS = float(os.environ.get("WAAP_SCREENSHOT_SECONDS", "0"))
GZIP = {"Accept-Encoding": "gzip"}
IMAGE = '<img src=x onerror="alert(1)">'


@pytest.fixture
def demo(waap, tmp_path):
    return lambda *flags: waap("--demo", *flags, env={"XDG_RUNTIME_DIR": str(tmp_path)})


def is_live(browser):
    return browser.text(selector="#state") == ["live"]


def open_live(browser, program, **options):
    browser.open(url=program.url + "/", **options)
    wait_until(lambda: is_live(browser), what="the page live")


def value_of(browser, title):
    """The headline of a card, as a number; None where there is none yet."""
    script = """(title) => [...document.querySelectorAll(".card")]
        .find((card) => card.querySelector("h3").textContent === title)
        ?.querySelector(".number").textContent"""
    text = browser.evaluate(script=f"({script})({json.dumps(title)})")
    return float(text) if text and text != "–" else None


def lines_of(browser):
    """The lines that have points."""
    script = '[...document.querySelectorAll(".line")].map((line) => line.getAttribute("d"))'
    return [line for line in browser.evaluate(script=script) if line]


def knob(program):
    plugins = json.loads(program.get("/api/v1/plugins").text)["data"]
    return next(plugin["params"][0] for plugin in plugins if plugin["params"])


def requests_of(program, handler):
    samples = program.samples().items()
    return sum(float(v) for name, v in samples if name.startswith("waap_http_requests_total") and handler in name)


# ---- as files ----


def test_page_is_small_strict_and_whole(demo):
    program = demo()
    page = program.get("/")
    files = re.findall(r'(?:href|src)="(live\.[^"]+)"', page.text)
    assert len(files) == 2
    plain = [program.get(f"/{file}") for file in files]
    packed = [program.get(f"/{file}", GZIP) for file in files]
    assert len(page.raw) + sum(len(answer.raw) for answer in plain) < 100_000
    assert len(page.raw) + sum(len(answer.raw) for answer in packed) < 25_000
    assert [answer.body for answer in plain] == [answer.body for answer in packed]
    assert "Content-Encoding" not in plain[0].headers
    types = {answer.headers["Content-Type"].split(";")[0] for answer in plain}
    assert types == {"text/css", "text/javascript"}
    for answer in (page, *plain, *packed):
        policy = answer.headers["Content-Security-Policy"].split("; ")
        assert "default-src 'none'" in policy and "script-src 'self'" in policy
        assert "unsafe" not in answer.headers["Content-Security-Policy"]
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert page.headers["Cache-Control"] == "no-store"
    assert "immutable" in packed[0].headers["Cache-Control"]
    assert not re.search(r"https?://", page.text + plain[0].text.replace("http://www.w3.org/", ""))
    assert not re.search(r"<style|<script>|\bstyle=|\bon\w+=", page.text)
    assert "innerHTML" not in "".join(answer.text for answer in plain)


def test_says_who_may_write(demo):
    program = demo()
    assert 'data-refusal=""' in program.get("/").text
    forwarded = program.get("/", {"X-Forwarded-For": "192.0.2.9"})
    assert 'data-refusal="a proxy may not write for others' in forwarded.text


# ---- in a browser ----


def test_a_page_under_a_strange_name_may_not_turn_knobs(demo):
    """As after DNS rebinding: for the browser, page and exporter are of one site."""
    address = own_address()
    program = demo(f"--web.listen-address={address}:0", f"--push.allow={address}", "--web.hostname=node.example")
    wait_until(lambda: [plugin for plugin in json.loads(program.get("/api/v1/plugins").text)["data"] if plugin["params"]])
    turn = """fetch("api/v1/plugins/object-detector/params/res", {method: "PUT", body: '{"value": 480}'})
        .then((answer) => answer.status)"""
    with Browser(f"--host-resolver-rules=MAP *.example {address}") as browser:
        for name, status, refusal in (("evil", 403, "--web.hostname=evil.example"), ("node", 200, "")):
            browser.open(url=f"http://{name}.example:{program.port}/")
            assert browser.evaluate(script=turn) == status
            assert refusal in browser.evaluate(script='document.getElementById("live").dataset.refusal')
            browser.close()


def test_without_scripts_the_state_is_there(demo, browser):
    program = demo()
    program.get("/metrics")
    browser.open(url=program.url + "/", scripts=False)
    text, = browser.text(selector="body")
    for part in ("waap", "version 0.", "Demo: a simulated", "Metrics", "Readiness", "jetson", "ok", "JavaScript"):
        assert part in text


def test_charts_move(demo, browser):
    open_live(browser, demo())
    wait_until(lambda: value_of(browser, "CPU") is not None, what="CPU")
    wait_until(lambda: value_of(browser, "inference latency") is not None, what="latency")
    first = lines_of(browser)
    assert len(first) > 15
    wait_until(lambda: all(a != b for a, b in zip(first, lines_of(browser))), what="every line moved")
    assert 0 < value_of(browser, "CPU") <= 100
    assert 30 < value_of(browser, "inference latency") < 70
    assert 15 < value_of(browser, "fps") < 25
    assert 3 < value_of(browser, "Power") < 20 and 30 < value_of(browser, "Temperature") < 90
    containers = browser.text(selector="#containers tr")
    assert len(containers) == 2 and re.search(r"object-detector.*cores.*MiB.*W", containers[0], re.S)
    assert browser.text(selector="#health") == ["5 collectors ok"]
    assert browser.text(selector=".demo")[0].startswith("Demo: a simulated")


def test_cards_of_a_server_are_shown(demo, browser):
    open_live(browser, demo("--demo=dgpu"))
    cards = {text.split("\n")[0]: text for text in browser.text(selector="#charts .card")}
    for title in ("GPU", "GPU memory", "Temperature", "Power"):
        assert "GPU 0" in cards[title] and "GPU 1" in cards[title]


def test_knob_reaches_the_plugin(demo, browser):
    program = demo()
    open_live(browser, program)
    wait_until(lambda: value_of(browser, "fps") is not None, what="fps")
    assert knob(program)["applied"] == 720 and value_of(browser, "res") == 720
    browser.press(selector=".knob input", key="ArrowLeft")
    browser.press(selector=".knob input", key="ArrowLeft")
    wait_until(lambda: knob(program)["applied"] == 480, what="the value applied")
    wait_until(lambda: browser.text(selector=".knob [role=status]") == ["applied"], what="seen as applied")
    wait_until(lambda: value_of(browser, "fps") > 27, 30, "more frames")
    assert value_of(browser, "res") == 480
    assert knob(program)["requested_by"] == "127.0.0.1"
    browser.click(selector=".knob button")
    wait_until(lambda: value_of(browser, "res") == 720, what="the default again")
    assert knob(program)["requested"] is None


def test_who_may_not_write_reads_why(demo, browser):
    program = demo()
    open_live(browser, program, headers={"X-Forwarded-For": "192.0.2.9"})
    assert "a proxy may not write for others" in browser.text(selector="#refusal")[0]
    assert browser.evaluate(script='document.querySelector(".knob input").disabled')
    # A user who loses the right to write: the server decides.
    turn = """() => {
        const input = document.querySelector(".knob input");
        input.disabled = false;
        input.value = 480;
        input.dispatchEvent(new Event("change"));
    }"""
    browser.evaluate(script=f"({turn})()")
    wait_until(lambda: "may not write" in browser.text(selector=".refused")[0], what="the server's words")
    assert value_of(browser, "res") == 720 and knob(program)["requested"] is None
    assert all("403" in problem for problem in browser.problems())


def test_restart_is_survived(demo, browser):
    port = free_port()
    address = f"--web.listen-address=127.0.0.1:{port}"
    first = demo(address)
    open_live(browser, first)
    wait_until(lambda: value_of(browser, "Network") is not None, what="a rate")
    lines = len(lines_of(browser))
    first.stop()
    away = "not reachable, trying again"
    wait_until(lambda: browser.text(selector="#state") == [away], 60, "the page says so")
    assert len(lines_of(browser)) == lines
    demo(address)
    wait_until(lambda: is_live(browser), what="live again")
    wait_until(lambda: (value_of(browser, "Network") or 0) > 0, what="a rate again")
    wait_until(lambda: value_of(browser, "CPU") is not None, what="CPU again")
    assert 0 <= value_of(browser, "CPU") <= 100
    assert "NaN" not in browser.text(selector="body")[0]
    assert all("ERR_CONNECTION" in problem or "Failed to load" in problem for problem in browser.problems())


def test_what_is_too_much_is_said(waap, browser):
    program = waap()
    push = {"metric": "fps", "type": "gauge", "set": 7}
    many = [{**push, "plugin": f"p{i:02}"} for i in range(32)]
    many += [{**push, "plugin": "p00", "labels": {"stage": str(i)}} for i in range(20)]
    for body in many:
        answer = program.get("/api/v1/push", method="POST", body=json.dumps(body).encode())
        assert answer.status < 300, answer.text
    open_live(browser, program)
    wait_until(lambda: len(browser.text(selector=".plugin")) == 30, what="the plugins")
    assert browser.text(selector="#more-plugins") == ["2 more under Metrics"]
    assert "13 more under Metrics" in browser.text(selector=".plugin")[0]


KNOBS = [
    {"param": "mode", "type": "enum", "values": ["b", IMAGE], "default": "b", "help": IMAGE, "unit": IMAGE},
    {"param": "on", "type": "bool", "default": False},
    {"param": "word", "type": "string", "default": ""},
    {"param": "gain", "type": "float", "default": 1.5},
]


def test_labels_stay_text(waap, browser, tmp_path):
    program = waap(f"--push.socket={tmp_path}/push.sock").wait_ready()
    with Plugin(tmp_path / "push.sock", {"plugin": IMAGE}) as plugin:
        fps = {"metric": "fps", "type": "gauge", "set": 7}
        stages = [IMAGE, "</script><b>"]
        plugin.tell(*({**fps, "labels": {"stage": stage}} for stage in stages), *KNOBS)
        open_live(browser, program)
        wait_until(lambda: browser.text(selector=".plugin > header h3") == [IMAGE], what="the name")
        assert IMAGE in browser.text(selector=".plugin .legend")[0]
        assert IMAGE in "".join(browser.text(selector=".knob"))
        browser.press(selector=".knob select", key="ArrowDown")
        assert plugin.hear() == {"param": "mode", "value": IMAGE}
        assert browser.evaluate(script="document.images.length + document.scripts.length") == 1


def test_knobs_of_every_type(waap, browser, tmp_path):
    program = waap(f"--push.socket={tmp_path}/push.sock").wait_ready()
    with Plugin(tmp_path / "push.sock", {"plugin": "a/b c"}) as plugin:
        plugin.tell(*KNOBS)
        open_live(browser, program)
        wait_until(lambda: len(browser.text(selector=".knob")) == 4, what="the knobs")
        browser.click(selector=".knob [type=checkbox]")
        assert plugin.hear() == {"param": "on", "value": True}
        browser.press(selector=".knob [type=text]", key="x")
        browser.press(selector=".knob [type=text]", key="Enter")
        assert plugin.hear() == {"param": "word", "value": "x"}
        browser.press(selector=".knob [type=number]", key="ArrowUp")
        assert plugin.hear() == {"param": "gain", "value": 2.5}
        waiting = "asked for by 127.0.0.1, not applied yet"
        assert waiting in browser.text(selector=".knob.waiting")[0]
        plugin.tell({"metric": "seen", "type": "gauge", "set": 1})
        wait_until(lambda: "seen" in browser.text(selector="body")[0], what="a chart beside the knobs")
        assert "plugin param" not in browser.text(selector="body")[0]
        plugin.tell({"metric": "seen", "set": 123456789012345678901234567890})
        wait_until(lambda: "1.23e+29" in browser.text(selector="body")[0], what="a number of a size")
    away = "kept until the plugin is back"
    wait_until(lambda: away in browser.text(selector=".knob.waiting")[0], what="that it has gone")


LONG_KNOBS = [
    {"param": "detection_model", "type": "string", "default": "yolov8n-coco-640-fp16"},
    {"param": "model", "type": "string", "default": "/models/" + 30 * "deeper/" + "yolo.onnx"},
    {"param": "the_resolution_of_the_pictures", "type": "int", "default": 480, "min": 240, "max": 1080, "unit": "px"},
]
# How many lines each knob's name takes, and what sticks out of its card.
KNOB_NAMES = """() => [...document.querySelectorAll(".knob")].map((card) => {
    const name = card.querySelector("h3");
    const right = card.getBoundingClientRect().right - parseFloat(getComputedStyle(card).paddingRight);
    const out = [...card.querySelectorAll("header *")].filter((node) => node.closest(".value") !== node.parentNode);
    return [Math.round(name.getBoundingClientRect().height / parseFloat(getComputedStyle(name).lineHeight)),
            out.filter((node) => node.getBoundingClientRect().right > right + 1).map((node) => node.textContent)];
})"""


@pytest.mark.parametrize(
    "name, options",
    [
        ("knobs", {"width": 1400}),
        ("knobs-dark", {"width": 1400, "scheme": "dark"}),
        ("knobs-phone", {"width": 390, "height": 844}),
        ("knobs-read-only", {"width": 1400, "headers": {"X-Forwarded-For": "192.0.2.9"}}),
    ],
)
def test_long_values_leave_names_their_room(name, options, waap, browser, tmp_path):
    program = waap(f"--push.socket={tmp_path}/push.sock").wait_ready()
    with Plugin(tmp_path / "push.sock", {"plugin": "detector"}) as plugin:
        counter = {"metric": "objects_total", "type": "counter"}
        counts = [{**counter, "inc": 20 + i, "labels": {"kind": kind}} for i, kind in enumerate(["car", "bus"])]
        plugin.tell(*LONG_KNOBS, *counts)
        open_live(browser, program, **options)
        wait_until(lambda: len(browser.text(selector=".knob")) == 3, what="the knobs")
        plugin.tell(*counts)
        wait_until(lambda: value_of(browser, "objects") is not None, what="a rate")
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        browser.screenshot(path=str(SCREENSHOTS / f"{name}.png"), above="#collectors")
        assert browser.evaluate(script=f"({KNOB_NAMES})()") == [[1, []]] * 3
        assert "sum, per second" in browser.text(selector=".plugin .card:not(.knob)")[0]
        assert browser.evaluate(script=f"({FAINT})()") == []


def test_a_hidden_page_asks_nothing(demo, browser):
    program = demo()
    open_live(browser, program)
    hide = """(hidden) => {
        Object.defineProperty(document, "hidden", {value: hidden, configurable: true});
        document.dispatchEvent(new Event("visibilitychange"));
    }"""
    browser.evaluate(script=f"({hide})(true)")
    # Timers fire in the order in which they are due: those that the page has set come before ours.
    wait = "() => new Promise((done) => setTimeout(done, 3000))"
    browser.evaluate(script=f"({wait})()")
    asked = requests_of(program, "/api/v1/plugins")
    browser.evaluate(script=f"({wait})()")
    assert requests_of(program, "/api/v1/plugins") == asked
    browser.evaluate(script=f"({hide})(false)")
    wait_until(lambda: requests_of(program, "/api/v1/plugins") > asked, what="asking again")


@pytest.mark.parametrize(
    "name, options",
    [
        ("live", {}),
        ("live-dark", {"scheme": "dark"}),
        ("live-phone", {"width": 390, "height": 844}),
    ],
)
def test_can_be_read_by_all(name, options, demo, browser):
    open_live(browser, demo(), **options)
    wait_until(lambda: value_of(browser, "CPU") is not None, what="CPU")
    pace(SCREENSHOT_SECONDS)
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    browser.screenshot(path=str(SCREENSHOTS / f"{name}.png"), above="#collectors")
    browser.screenshot(path=str(SCREENSHOTS / f"{name}-whole.png"))
    assert browser.evaluate(script=f"({FAINT})()") == []
    assert browser.evaluate(script="document.documentElement.scrollWidth <= innerWidth"), "too wide"
    nameless = """[...document.querySelectorAll("input, select, button, svg")]
        .filter((node) => !node.getAttribute("aria-label") && !node.labels?.length).length"""
    assert browser.evaluate(script=nameless) == 0
