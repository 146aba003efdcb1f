#!/usr/bin/python3
"""Writes the program around a file of unit tests: make_main.py TEST.c PROGRAM.c

Every function `static void test_…(void)` is run, in the order of the file, so none is forgotten.
suiteSetUp and suiteTearDown, as Unity's own generator has them, are called before and after."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
HELPER = re.compile(r'^#include "(tests/unit/.*)"$', re.MULTILINE)
TEST = re.compile(r"^static void (test_\w+)\(void\) \{$", re.MULTILINE)


def program(path, text):
    tests = list(TEST.finditer(text))
    if not tests:
        sys.exit(f"{path}: no function of the form: static void test_something(void) {{")
    text += "".join((ROOT / header).read_text() for header in HELPER.findall(text))
    yield f'#include "{path}"\n'
    for name in ("setUp", "tearDown"):
        if f"void {name}(void)" not in text:
            yield f"void {name}(void) {{\n}}"
    yield "\nint main(void) {"
    if "void suiteSetUp(void)" in text:
        yield "    suiteSetUp();"
    yield f'    UnityBegin("{path}");'
    for match in tests:
        line = text.count("\n", 0, match.start()) + 1
        yield f'    UnityDefaultTestRun({match[1]}, "{match[1]}", {line});'
    tear_down = "int suiteTearDown(int failures)" in text
    yield f"    return {'suiteTearDown(UnityEnd())' if tear_down else 'UnityEnd()'};\n}}"


def main():
    source = pathlib.Path(sys.argv[1]).resolve()
    path = source.relative_to(ROOT)
    pathlib.Path(sys.argv[2]).write_text("\n".join(program(path, source.read_text())) + "\n")


if __name__ == "__main__":
    main()
