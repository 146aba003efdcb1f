"""A real browser: Chromium without a window, by playwright-core (tests/browser/bridge.js)."""

import json
import os
import shutil
import subprocess

import pytest

from running import ROOT

MODULES = ROOT / "build/deps/playwright-core/node_modules"


class Browser:
    def __init__(self):
        node, chromium = shutil.which("node"), shutil.which("chromium")
        if chromium is None:
            pytest.skip("no chromium on this machine")
        if node is None or not MODULES.exists():
            pytest.skip("no node with playwright-core on this machine (make deps)")
        self.process = subprocess.Popen(
            [node, ROOT / "tests/browser/bridge.js", chromium],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "NODE_PATH": str(MODULES)},
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
