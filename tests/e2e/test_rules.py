"""The rules under deploy/prometheus, checked and run by promtool, and their names by our own list."""

import pathlib
import re
import shutil
import subprocess

import pytest

from test_readme import listed

ROOT = pathlib.Path(__file__).resolve().parents[2]
RULES = sorted((ROOT / "deploy/prometheus/rules").glob("*.yml"))
TESTS = sorted((ROOT / "tests/rules").glob("*.yml"))
WORDS = re.compile(r"\b(?:cgroup|container|gpu|jetson|node|nvidia|waap)_[a-z0-9_]+\b")


def promtool(*arguments):
    program = shutil.which("promtool")
    if program is None:
        pytest.skip("promtool is not installed")
    done = subprocess.run([program, *arguments], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("path", RULES, ids=lambda path: path.stem)
def test_rules_are_sound(path):
    promtool("check", "rules", path)


@pytest.mark.parametrize("path", TESTS, ids=lambda path: path.stem)
def test_rules_do_what_they_should(path):
    promtool("test", "rules", path)


@pytest.mark.parametrize("path", RULES, ids=lambda path: path.stem)
def test_every_rule_has_its_test(path):
    assert ROOT / "tests/rules" / path.name in TESTS


@pytest.mark.parametrize("path", RULES, ids=lambda path: path.stem)
def test_rules_ask_for_what_there_is(path, waap_binary):
    names = {row[0] for row in listed(waap_binary)}
    text = re.sub(r"#.*", "", path.read_text())
    asked = set(WORDS.findall(text))
    assert asked
    assert asked <= names
