"""report.html in a real browser."""

import pytest

from browser import FAINT
from record import MIB, Model, Record, make_record, record_run
from running import ROOT

SCREENSHOTS = ROOT / "build/screenshots"
SCHEMES = [("light", 1280), ("dark", 390)]
GATES = [{"metric": "fps.p50", "min": 19}, {"metric": "memory.peak", "max": 400 * MIB}, {"metric": "wall", "max_increase": 0.1}]
KNOBS = {f"cpu.res={res}": {"res": res} for res in (240, 480, 720)}
FPS = dict(zip(KNOBS, (40.0, 22.0, 11.0)))

# What is drawn: the title of each time line with the points of its lines and whether they lie inside.
LINES = """() => [...document.querySelectorAll("svg.time")].map((svg) => {
  const box = svg.viewBox.baseVal;
  const points = [...svg.querySelectorAll(".line")].map((line) =>
    line.getAttribute("d").slice(1).split("L").map((pair) => pair.split(" ").map(Number)));
  return {
    title: svg.querySelector("title").textContent,
    points: points.map((line) => line.length),
    inside: points.flat().every(([x, y]) => x >= 0 && x <= box.width && y >= 0 && y <= box.height),
    phases: [...svg.querySelectorAll("rect.phase")].map((rect) => rect.getAttribute("class").split(" ")[1]),
  };
})"""


@pytest.fixture
def page(run_waap, browser):
    """page(directory, …): makes the reports and opens the page."""

    def show(directory, **options):
        done = run_waap("report", directory)
        assert done.stderr == ""
        browser.open(url=f"file://{directory}/report.html", **options)
        return browser

    return show


@pytest.mark.parametrize("scheme, width", SCHEMES)
def test_two_targets(page, tmp_path, scheme, width):
    directory = make_record(tmp_path / "r", targets=("cpu", "gpu"), repeats=3, warmup=1, seconds=8, gates=GATES,
                            fps={"cpu": 20.0, "gpu": 31.0}, watts={"cpu": 8.0, "gpu": 11.0})
    browser = page(directory, scheme=scheme, width=width)
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    browser.screenshot(path=str(SCREENSHOTS / f"report-{scheme}-{width}.png"))
    lines = browser.evaluate(script=f"({LINES})()")
    titles = [line["title"] for line in lines]
    assert titles == 2 * ["fps", "inference_seconds, mean", "CPU", "Memory", "GPU", "GPU memory", "Power", "Temperature",
                          "Clocks held back", "cars"]
    for line in lines:
        assert len(line["points"]) == (2 if line["title"] == "Temperature" else 3)
        assert min(line["points"]) > 50 and line["inside"], line["title"]
        assert line["phases"] == ["baseline", "run", "cooldown"]
    assert browser.evaluate(script='document.querySelectorAll("svg.spread .bar").length') > 100
    assert browser.evaluate(script='document.querySelectorAll("svg.strip .dot").length') >= 2 * 3 * 8
    assert browser.evaluate(script='document.querySelectorAll("svg.bars .bar").length') >= 2 * 8
    assert browser.text(selector=".pills .bad") == ["2 of 4 gates broken"]
    assert browser.evaluate(script="document.documentElement.scrollWidth") <= width
    assert browser.evaluate(script=f"({FAINT})()") == []


def test_sweep(page, tmp_path):
    browser = page(make_record(tmp_path / "r", targets=list(KNOBS), knobs=KNOBS, fps=FPS, repeats=2, seconds=5))
    browser.screenshot(path=str(SCREENSHOTS / "report-sweep.png"), above="#target-0")
    heights = browser.evaluate(script="""[...document.querySelectorAll("svg.curve")]
        .filter((svg) => svg.querySelector("title").textContent === "fps")
        .flatMap((svg) => [...svg.querySelectorAll("circle")].map((dot) => Number(dot.getAttribute("cy"))))""")
    assert len(heights) == 3 and heights == sorted(heights)  # fewer frames at a higher resolution: further down


def test_values_under_the_pointer(page, tmp_path):
    browser = page(make_record(tmp_path / "r", repeats=1, seconds=10, noise=0.0))
    reading = browser.evaluate(script="""(() => {
      const svg = [...document.querySelectorAll("svg.time")].find((s) => s.querySelector("title").textContent === "Power");
      const box = svg.getBoundingClientRect();
      const place = {clientX: box.x + box.width / 2, clientY: box.y + box.height / 2, bubbles: true};
      svg.dispatchEvent(new PointerEvent("pointermove", place));
      return svg.parentElement.querySelector(".reading").textContent;
    })()""")
    assert reading.endswith(" s: 9 W")


def test_without_scripts(run_waap, browser, tmp_path):
    """As artifact viewers show pages."""
    directory = make_record(tmp_path / "r", seconds=5)
    run_waap("report", directory)
    browser.open(url=f"file://{directory}/report.html", scripts=False)
    assert browser.text(selector="h1") == ["objcounter"]
    assert len(browser.text(selector="figcaption")) > 10


def test_nothing_from_elsewhere(run_waap, tmp_path):
    directory = make_record(tmp_path / "r", seconds=5)
    run_waap("report", directory)
    text = (directory / "report.html").read_text()
    assert "http" not in text.replace("http-equiv", "")
    assert "default-src 'none'" in text and "unsafe" not in text


def test_texts_stay_texts(page, tmp_path):
    name = '<img src=x onerror="alert(1)"></title></script><script>alert(2)</script>'
    record = Record(tmp_path / "r", gates=[{"metric": name, "max": 1}], application=name, environment={name: name})
    record.target(name, args=[name], knobs={name: 1})
    record.target(name + "2", args=[name], knobs={name: 2})
    record.write("series", key="app.<img_x", type="gauge", unit=name, help=name)
    for target in (name, name + "2"):
        record.phase(target, 1, "run")
        record.sample(target, 1, {"app.<img_x": 3})
        record.sample(target, 1, {"app.<img_x": 4})
        record_run(record, target, 1, Model(), 3, error=name)
    browser = page(record.finish())
    assert browser.text(selector="h1") == [name]
    assert browser.evaluate(script='document.querySelectorAll("img, section script").length') == 0


def test_a_crash_in_the_first_second(page, tmp_path):
    record = Record(tmp_path / "r")
    record.target("cpu")
    record.phase("cpu", 1, "run")
    record.file.close()
    browser = page(tmp_path / "r")
    assert browser.text(selector=".pills .doubt") == ["incomplete"]
