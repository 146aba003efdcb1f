"""The manual pages are whole, match the program, and mandoc finds no fault."""

import re
import shutil
import subprocess
import sys

import pytest

from running import ROOT

PAGES = ("waap.1", "waap.yaml.5", "waap-metrics.7")


@pytest.fixture(scope="module")
def pages(waap_binary, tmp_path_factory):
    directory = tmp_path_factory.mktemp("man")
    for page in PAGES:
        done = subprocess.run([sys.executable, ROOT / "deploy/man/generate.py", waap_binary, page],
                              capture_output=True, text=True, timeout=60, check=True)
        (directory / page).write_text(done.stdout)
    return directory


@pytest.fixture(scope="module")
def shown(pages):
    """A page as text without line breaks in its words."""
    if shutil.which("groff") is None:
        pytest.skip("no groff here (package groff-base)")

    def show(page):
        done = subprocess.run(["groff", "-man", "-Tascii", "-rLL=200n", "-P-cbou", pages / page],
                              capture_output=True, text=True, timeout=60, check=True)
        return done.stdout

    return show


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("judge", [["groff", "-man", "-Tascii", "-ww", "-z"],
                                   ["groff", "-man", "-Tutf8", "-ww", "-z"], ["mandoc", "-Tlint", "-Wall"]])
def test_no_tool_complains(pages, page, judge):
    if shutil.which(judge[0]) is None:
        pytest.skip(f"no {judge[0]} here")
    done = subprocess.run([*judge, pages / page], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_every_command_has_its_section(shown, run_waap):
    text = shown("waap.1")
    lines = [line for line in run_waap("help").stdout.splitlines() if line.startswith("  ")]
    assert len(lines) >= 5
    for line in lines:
        assert re.search(rf"^   waap {line.split()[0]}$", text, re.M), line


def settings(run_waap):
    return [line.split() for line in run_waap("serve", "--list-settings").stdout.splitlines()[1:]]


def test_every_flag_is_explained(shown, run_waap):
    text = shown("waap.1")
    for flag, _, variable, *_ in settings(run_waap):
        assert re.search(rf"^ +--(\[no-\])?{re.escape(flag)}\b", text, re.M), flag
        assert re.search(rf"; {variable}$", text, re.M), variable


def test_every_key_is_explained(shown, run_waap):
    text = shown("waap.yaml.5")
    for _, key, variable, *_ in settings(run_waap):
        if key != "-":
            assert re.search(rf"^ +{re.escape(key)}$", text, re.M), key
            assert re.search(rf"\b{variable}$", text, re.M), variable


def test_every_metric_is_explained(shown, run_waap):
    text = shown("waap-metrics.7")
    for line in run_waap("serve", "--list-metrics").stdout.splitlines()[1:]:
        name, *_ = line.split()
        assert re.search(rf"^ +{name}$", text, re.M), name
        words = re.match("[ -~]*", line.split("  ")[-1].strip(" ."))[0]
        assert words[:60] in text, name


def test_the_example_is_a_configuration(shown, run_waap, tmp_path):
    example = shown("waap.yaml.5").split("EXAMPLE\n")[1].split("\nSETTINGS")[0]
    (tmp_path / "waap.yaml").write_text(re.sub(r"^ {11}", "", example, flags=re.M))
    done = run_waap("check-config", tmp_path / "waap.yaml")
    assert done.returncode == 0, done.stderr
