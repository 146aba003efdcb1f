"""Writes the style sheet and the script of reports as one C file, with the policy that allows no others."""

import base64
import hashlib
import json
import pathlib
import sys


def literal(name, text):
    # JSON's strings are C's, but for what C takes for a trigraph.
    lines = [json.dumps(line, ensure_ascii=False).replace("??", "?\\?") for line in text.splitlines(keepends=True)]
    lines = "\n".join("    " + line for line in lines)
    return f"const char {name}[] =\n{lines};\n"


def source(text):
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"


def main(css, script, output):
    css, script = (pathlib.Path(path).read_text(encoding="utf-8") for path in (css, script))
    policy = f"default-src 'none'; img-src data:; style-src {source(css)}; script-src {source(script)}; base-uri 'none'; form-action 'none'"
    pathlib.Path(output).write_text(
        '#include "profiler/report/pages.h"\n\n'
        + literal("report_css", css)
        + literal("report_js", script)
        + literal("report_policy", policy),
        encoding="utf-8",
    )


main(*sys.argv[1:])
