"""README's table of metrics is what the program lists."""

import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BEGIN = "<!-- metrics begin -->\n"
END = "<!-- metrics end -->\n"


def listed(binary):
    """(metric, type, labels, collector) of every row of --list-metrics."""
    text = subprocess.run([binary, "serve", "--list-metrics"], check=True, capture_output=True, text=True).stdout
    rows = [re.split(r"\s{2,}", line.strip(), maxsplit=4) for line in text.splitlines()[1:]]
    return [tuple("" if cell == "-" else cell for cell in row[:4]) for row in rows]


def shown(readme):
    """The same from README's table."""
    table = readme.split(BEGIN)[1].split(END)[0]
    rows = [[cell.strip(" `") for cell in line.strip("|\n").split("|")] for line in table.splitlines()[2:]]
    return [tuple(row) for row in rows]


def render(rows):
    lines = ["| metric | type | labels | from |", "| --- | --- | --- | --- |"]
    lines += [f"| `{metric}` | {kind} | {labels} | {source} |" for metric, kind, labels, source in rows]
    return "\n".join(lines) + "\n"


def test_metrics_table_is_complete_and_true(waap_binary):
    assert shown((ROOT / "README.md").read_text()) == listed(waap_binary)


def expand(name):
    """`a_{b,c}` as a_b and a_c."""
    braces = re.search(r"\{([^}]*)\}", name)
    if braces is None:
        return [name]
    return [one for word in braces.group(1).split(",")
            for one in expand(name[:braces.start()] + word + name[braces.end():])]


def explained(readme, heading):
    """What the first column of the table under a heading names."""
    section = re.split(r"^##", readme.split(f"\n### {heading}\n")[1], flags=re.M)[0]
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    return {one for row in rows for name in re.findall(r"`([a-z][a-z0-9_{},]*)`", row) for one in expand(name)}


@pytest.mark.parametrize("collector, heading", [("jetson", "Jetson"), ("nvml", "NVIDIA GPUs")])
def test_every_metric_has_its_source(waap_binary, collector, heading):
    names = {row[0] for row in listed(waap_binary) if row[3] == collector and not row[0].startswith("tegra_")}
    assert explained((ROOT / "README.md").read_text(), heading) == names


def test_links_lead_somewhere():
    for name in ("README.md", "CONTRIBUTING.md"):
        for link in re.findall(r"\]\(([^)#:]+)\)", (ROOT / name).read_text()):
            assert (ROOT / link).exists(), f"{name}: {link}"


if __name__ == "__main__":
    assert sys.argv[1:] == ["--write"], "usage: test_readme.py --write"
    path = ROOT / "README.md"
    before, rest = path.read_text().split(BEGIN)
    after = rest.split(END)[1]
    path.write_text(before + BEGIN + render(listed(ROOT / "build/exporter/waap")) + END + after)
