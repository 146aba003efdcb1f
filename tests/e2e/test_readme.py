"""The table of metrics in the chapters is what the program lists, links resolve, and README stays short."""

import pathlib
import re
import subprocess
import sys
import urllib.parse

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
METRICS = ROOT / "collectors/README.md"
BEGIN = "<!-- metrics begin -->\n"
END = "<!-- metrics end -->\n"


def listed(binary):
    """(metric, type, labels, collector) of every row of --list-metrics."""
    text = subprocess.run([binary, "serve", "--list-metrics"], check=True, capture_output=True, text=True).stdout
    rows = [re.split(r"\s{2,}", line.strip(), maxsplit=4) for line in text.splitlines()[1:]]
    return [tuple("" if cell == "-" else cell for cell in row[:4]) for row in rows]


def shown(text):
    """The same from the table of a text."""
    table = text.split(BEGIN)[1].split(END)[0]
    rows = [[cell.strip(" `") for cell in line.strip("|\n").split("|")] for line in table.splitlines()[2:]]
    return [tuple(row) for row in rows]


def render(rows):
    lines = ["| metric | type | labels | from |", "| --- | --- | --- | --- |"]
    lines += [f"| `{metric}` | {kind} | {labels} | {source} |" for metric, kind, labels, source in rows]
    return "\n".join(lines) + "\n"


def test_metrics_table_is_complete_and_true(waap_binary):
    assert shown(METRICS.read_text()) == listed(waap_binary)


def expand(name):
    """`a_{b,c}` as a_b and a_c."""
    braces = re.search(r"\{([^}]*)\}", name)
    if braces is None:
        return [name]
    return [one for word in braces.group(1).split(",")
            for one in expand(name[:braces.start()] + word + name[braces.end():])]


def explained(text, heading):
    """What the first column of the table under a heading names."""
    section = re.split(r"^## ", text.split(f"\n## {heading}\n")[1], flags=re.M)[0]
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    return {one for row in rows for name in re.findall(r"`([a-z][a-z0-9_{},]*)`", row) for one in expand(name)}


@pytest.mark.parametrize("collector, heading", [("jetson", "Jetson"), ("nvml", "NVIDIA GPUs")])
def test_every_metric_has_its_source(waap_binary, collector, heading):
    names = {row[0] for row in listed(waap_binary) if row[3] == collector and row[0][0].islower() and not row[0].startswith("tegra_")}
    assert explained(METRICS.read_text(), heading) == names


def texts():
    """All texts of the tree, not those that are built or fetched."""
    names = [str(path.relative_to(ROOT)) for path in sorted(ROOT.rglob("*.md"))]
    return [pytest.param(ROOT / name, id=name) for name in names if not re.match(r"(build|subprojects)/|.*/\.", name)]


def prose(path):
    """A text without its code, in which brackets are no links and # is no heading."""
    return re.sub(r"^ {4}.*$", "", path.read_text(), flags=re.M)


def anchors(path):
    """The anchors of its headings, as Git's web pages make them."""
    names = [re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")
             for heading in re.findall(r"^#+ (.*)$", prose(path), flags=re.M)]
    assert len(names) == len(set(names)), f"{path}: two headings of one name"
    return names


@pytest.mark.parametrize("path", texts())
def test_links_lead_somewhere(path):
    links = re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`\n]*`", "", prose(path)))
    for link in links:
        place, _, anchor = urllib.parse.unquote(link).partition("#")
        if ":" in place:
            continue
        target = (path.parent / place).resolve() if place else path
        assert target.exists() and target.is_relative_to(ROOT), link
        assert not anchor or anchor in anchors(target), link


@pytest.mark.parametrize("path", texts())
def test_files_named_in_prose_exist(path):
    tops = "|".join(sorted(top.name for top in ROOT.iterdir() if top.is_dir() and top.name not in ("build", "subprojects")))
    for name in re.findall(rf"`((?:{tops})/[\w./-]*)`", prose(path)):
        assert (ROOT / name).exists(), name


def test_flags_that_texts_name_exist(waap_binary):
    text = subprocess.run([waap_binary, "serve", "--list-settings"], check=True, capture_output=True, text=True).stdout
    settings = {line.split()[0] for line in text.splitlines()}
    groups = "|".join({re.escape(name.split(".")[0]) for name in settings})
    for param in texts():
        named = re.findall(rf"--(?:no-)?((?:{groups})\.[a-z.-]*[a-z])(?![a-z.-]*…)", param.values[0].read_text())
        assert set(named) <= settings, param.id


def test_every_chapter_can_be_found():
    front = prose(ROOT / "README.md")
    for param in texts():
        assert f"]({param.id}" in front or param.id == "README.md" or param.id.startswith(".github/"), param.id


def test_the_architecture_lists_the_folders_in_their_order():
    rooms = re.findall(r"^    '(.*)',$", (ROOT / "meson.build").read_text().split("\nrooms = [\n")[1].split("]")[0], flags=re.M)
    section = (ROOT / "docs/architecture.md").read_text().split("\n## Folders, in their order\n")[1].split("\n## ")[0]
    cells = [line.split("|")[1] for line in section.splitlines() if line.startswith("| [")]
    named = [name for cell in cells for name in re.findall(r"\[(.*?)\]", cell)]
    assert named == [*rooms, "exporter/main.c"]


@pytest.mark.parametrize("path", texts())
def test_lines_are_short(path):
    """Those of tables cannot be."""
    assert [line for line in prose(path).splitlines() if len(line) > 120 and not line.lstrip().startswith("|")] == []


def test_readme_is_one_page():
    assert len((ROOT / "README.md").read_text().split()) < 1000


if __name__ == "__main__":
    assert sys.argv[1:] == ["--write"], "usage: test_readme.py --write"
    before, rest = METRICS.read_text().split(BEGIN)
    after = rest.split(END)[1]
    METRICS.write_text(before + BEGIN + render(listed(ROOT / "build/exporter/waap")) + END + after)
