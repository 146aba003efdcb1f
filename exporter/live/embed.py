"""Writes the files of the live page as one C file: the frame as text, the rest packed."""

import gzip
import hashlib
import json
import pathlib
import sys

ROW = 20


def array(data):
    rows = [", ".join(map(str, data[i : i + ROW])) for i in range(0, len(data), ROW)]
    return "{\n    " + ",\n    ".join(rows) + ",\n}"


def packed_file(path, content_type, text):
    # Without a time of packing, so that the same tree gives the same program.
    packed = gzip.compress(text, 9, mtime=0)
    name = path.strip("/").replace(".", "_")
    return f"""
static const unsigned char {name}_gzip[] = {array(packed)};
const struct live_file {name} = {{"{path}", "{content_type}", {name}_gzip,
    {len(packed)}, {len(text)}}};
"""


def main(html, css, *scripts, output):
    css = pathlib.Path(css).read_bytes()
    script = b"\n".join(pathlib.Path(path).read_bytes() for path in scripts)
    # In the addresses of what browsers keep: another version is another address.
    version = hashlib.sha256(css + script).hexdigest()[:12]
    lines = pathlib.Path(html).read_text().replace("@HASH@", version).splitlines(keepends=True)
    pathlib.Path(output).write_text(
        '#include "exporter/live/live_files.h"\n\n'
        + "const char live_html[] =\n"
        + "\n".join("    " + json.dumps(line) for line in lines)
        + ";\n"
        + packed_file("/live.css", "text/css; charset=utf-8", css)
        + packed_file("/live.js", "text/javascript; charset=utf-8", script)
    )


main(*sys.argv[1:-1], output=sys.argv[-1])
