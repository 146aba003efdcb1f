"""A real browser: Chromium without a window, by playwright-core (tests/browser/bridge.js)."""

import json
import os
import shutil
import subprocess

import pytest

from running import ROOT

MODULES = ROOT / "build/deps/playwright-core/node_modules"

# Where text stands on its background with less than 4.5:1, as WCAG 2 reckons it.
FAINT = """() => {
  const canvas = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
  const rgb = (colour) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const light = (c) => c.slice(0, 3).map((v) => v / 255)
    .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const ground = (node) => {
    for (; node; node = node.parentElement) {
      const colour = rgb(getComputedStyle(node).backgroundColor);
      if (colour[3] === 255) return colour;
    }
    return [255, 255, 255, 255];
  };
  return [...document.querySelectorAll("body *")]
    .filter((node) => node.checkVisibility() && !node.disabled)
    .filter((node) => [...node.childNodes].some((c) => c.nodeType === 3 && c.data.trim()))
    .map((node) => {
      const [a, b] = [light(rgb(getComputedStyle(node).color)), light(ground(node))];
      return [(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), node.className, node.textContent];
    })
    .filter(([ratio]) => ratio < 4.5);
}"""


class Browser:
    def __init__(self, *arguments):
        node, chromium = shutil.which("node"), shutil.which("chromium")
        if chromium is None:
            pytest.skip("no chromium on this machine")
        if node is None or not MODULES.exists():
            pytest.skip("no node with playwright-core on this machine (make deps)")
        without_proxies = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
        self.process = subprocess.Popen(
            [node, ROOT / "tests/browser/bridge.js", chromium, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**without_proxies, "NODE_PATH": str(MODULES)},
        )

    def __getattr__(self, command):
        """browser.open(url=…), browser.evaluate(script=…), …: as the bridge's table has them."""
        return lambda **options: self._ask({"command": command, **options})

    def _ask(self, question):
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, f"the browser has ended with {self.process.wait()}"
        reply = json.loads(line)
        assert "error" not in reply, reply["error"]
        return reply["answer"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
