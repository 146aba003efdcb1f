"""Manual pages out of what the program says about itself: its commands, settings and metrics are in no
second place. generate.py WAAP waap.1|waap.yaml.5|waap-metrics.7 writes the page to standard output."""

import os
import re
import subprocess
import sys
import textwrap
import time

SUMMARIES = {
    "waap.1": "Prometheus exporter and profiler for edge-AI nodes",
    "waap.yaml.5": "settings of the exporter waap",
    "waap-metrics.7": "metrics of the exporter waap",
}


class Program:
    def __init__(self, path):
        self.path = path

    def ask(self, *arguments):
        done = subprocess.run([self.path, *arguments], capture_output=True, encoding="utf-8", timeout=60)
        return done.stdout

    def commands(self):
        """(name, arguments, summary) of each line of `waap help`."""
        rows = [re.split(r" {2,}", line.strip()) for line in self.ask("help").splitlines()
                if line.startswith("  ")]
        return [(row[0], " ".join(row[1:-1]), row[-1]) for row in rows]

    def table(self, question):
        """The rows of a list below its titles, as lists of cells; "-" is an empty one."""
        titles, *lines = self.ask("serve", question).splitlines()
        rows = [re.split(r" {2,}", line, maxsplit=len(titles.split()) - 1) for line in lines]
        return [["" if cell == "-" else cell for cell in row] for row in rows]


# ---- roff ----


def no_requests(text):
    """No line begins with what a request begins with."""
    return re.sub(r"^([.'])", r"\\&\1", text, flags=re.M)


def escape(text):
    """Text that shows as it is, also on a terminal that has ASCII only: a dash is the dash one types,
    and a long word may be broken."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("…", "...")
    text = "".join(c if ord(c) < 128 else f"\\[u{ord(c):04X}]" for c in text)
    return no_requests(re.sub(r"\S{40,}", lambda word: re.sub(r"([|,/])", r"\1\\:", word[0]), text))


def fill(text):
    return no_requests(textwrap.fill(text, 76, break_long_words=False, break_on_hyphens=False))


def bold(text):
    return f"\\fB{escape(text)}\\fR"


def italic(text):
    return f"\\fI{escape(text)}\\fR"


def prose(text):
    """Words in `backquotes` are bold."""
    parts = text.split("`")
    return fill("".join(bold(part) if i % 2 else escape(part) for i, part in enumerate(parts)))


def paragraphs(*texts):
    return "".join(f".PP\n{prose(' '.join(text.split()))}\n" for text in texts)


def tagged(tag, body):
    return f".TP\n{tag}\n{body}\n"


def example(text):
    return f".RS 4\n.nf\n{escape(text)}\n.fi\n.RE\n"


def title(page, version):
    name, section = page.rsplit(".", 1)
    day = time.gmtime(int(os.environ.get("SOURCE_DATE_EPOCH", time.time())))
    return (f'.TH "{escape(name).upper()}" "{section}" "{time.strftime("%Y-%m-%d", day)}" "{version}"\n'
            ".nh\n.ad l\n"
            f".SH NAME\n{escape(name)} \\- {escape(SUMMARIES[page])}\n")


# ---- waap(1) ----


def options(lines):
    """The entries of a group: `  --flag  text`, or the flag alone and the text further in below it."""
    out = []
    for line in lines:
        flag = re.fullmatch(r" {2,4}(-\S+(?: \S+)*)(?:  +(\S.*))?", line)
        if flag:
            out.append((flag[1], [flag[2]] if flag[2] else []))
            goes_on = flag[2] is not None
        elif out and goes_on:
            out[-1][1][-1] += " " + line.strip()
        elif out:
            out[-1][1].append(line.strip())
        else:
            return None
    return out


def block(lines):
    """One block of a help text: options with or without a title, an example, or a paragraph."""
    head = "" if lines[0].startswith(" ") else lines[0]
    rest = lines[1:] if head else lines
    entries = options(rest) if rest and all(line.startswith(" ") for line in rest) else None
    if entries:
        name = f".PP\n{italic(head.rstrip(':'))}\n" if head else ""
        return name + "".join(
            tagged(bold(flag), "\n.br\n".join(fill(escape(line)) for line in body) or "\\&")
            for flag, body in entries)
    if rest and all(line.startswith(" ") for line in rest):
        return (f".PP\n{escape(head)}\n" if head else ".PP\n") + example("\n".join(rest))
    return f".PP\n{fill(escape(' '.join(line.strip() for line in lines)))}\n"


def command_section(program, name, arguments, summary):
    text = program.ask("help", name) or f"usage: waap {name} {arguments}\n\n{summary}\n"
    usage, _, rest = text.partition("\n\n")
    lines = [escape(line.strip()) for line in usage.removeprefix("usage: ").split("\n")]
    out = f".SS {bold(f'waap {name}')}\n" + "\n.br\n".join(lines) + "\n"
    blocks = [part.split("\n") for part in re.split(r"\n(?:[ \t]*\n)+", rest.strip("\n")) if part.strip()]
    return out + ("".join(map(block, blocks)) or paragraphs(summary))


def page_waap(program):
    commands = program.commands()
    synopsis = "\n.br\n".join(f"{bold(f'waap {name}')} {escape(arguments)}".rstrip()
                              for name, arguments, _ in commands)
    return "".join((
        f".SH SYNOPSIS\n{synopsis}\n",
        ".SH DESCRIPTION\n",
        prose("`waap` turns what a node and its AI plugins do into Prometheus metrics, and carries decisions "
              "back to the plugins. `waap serve` is the daemon; it needs no configuration."), "\n",
        ".SH COMMANDS\n",
        "".join(command_section(program, *command) for command in commands),
        ".SH SIGNALS\n",
        tagged(bold("SIGHUP"), prose("Reads the configuration again, and applies or refuses it as a whole.")),
        tagged(bold("SIGTERM") + ", " + bold("SIGINT"), "Answers the requests in progress, and ends."),
        ".SH EXIT STATUS\n",
        tagged("0", "All went well."),
        tagged("1", "It could not be done; standard error says why."),
        tagged("2", "The command line or the configuration is wrong."),
        ".SH ENVIRONMENT\n",
        tagged(bold("WAAP_*"), prose("Every setting of `waap serve`; its variable stands beside each flag.")),
        tagged(bold("NOTIFY_SOCKET") + ", " + bold("WATCHDOG_USEC"),
               prose("Where a service manager hears that the daemon is ready, reloads, stops and lives.")),
        tagged(bold("LISTEN_FDS") + ", " + bold("LISTEN_FDNAMES"),
               prose("Sockets that a service manager hands over: those named `push` are for plugins, "
                     "all others for web requests.")),
        ".SH FILES\n",
        tagged(italic("/etc/waap/waap.yaml"), "What the service reads; see \\fBwaap.yaml\\fR(5)."),
        tagged(italic("/run/waap/push.sock"), "The socket on which plugins push."),
        tagged(italic("/run/waap-store/push.table"), "What they have pushed; only the daemon can read or write it."),
        ".SH SEE ALSO\n.BR waap.yaml (5),\n.BR waap\\-metrics (7)\n",
    ))


# ---- waap.yaml(5) ----


def setting(key, variable, takes, default, help_text):
    facts = [f"{takes[:1].upper()}{takes[1:]}", f"default {default or 'empty'}", variable]
    return tagged(bold(key), f"{fill(escape(help_text))}.\n.br\n" + fill(escape("; ".join(facts))))


def page_yaml(program):
    rows = [row for row in program.table("--list-settings") if row[1]]
    out = [
        ".SH DESCRIPTION\n",
        prose("`waap serve --config.file=FILE` reads its settings from a YAML file. All of them have a default, "
              "and a file without any means the same as none."), "\n",
        paragraphs(
            "A key below is written with points for levels: `web.max_requests` is `max_requests` in the mapping "
            "`web`. It is also the flag with dashes for underscores (`--web.max-requests`) and the variable that "
            "stands beside it. Flags win over variables, variables over the file.",
            "Sizes are written 512, 64KiB, 10MiB or 1GiB; durations 500ms, 10s, 1m30s or 1h. What is repeatable "
            "takes a list, or one value.",
            "`waap check-config FILE` names every mistake with its line. SIGHUP has the daemon read the file again: "
            "a good one is applied, a bad one is refused as a whole."),
        ".SH EXAMPLE\n",
        example('web:\n  listen_address: ["127.0.0.1:9090", "unix:/run/proxy/waap.sock"]\n'
                "collector:\n  nvml: {enabled: false}\n  container: {max_containers: 50}"),
        ".SH SETTINGS\n",
    ]
    group = None
    for _, key, variable, takes, default, help_text in rows:
        if key.split(".")[0] != group:
            group = key.split(".")[0]
            out.append(f".SS {escape(group)}\n")
        out.append(setting(key, variable, takes, default, help_text))
    out.append(".SH SEE ALSO\n.BR waap (1),\n.BR waap\\-metrics (7)\n")
    return "".join(out)


# ---- waap-metrics(7) ----


def metric(name, kind, labels, help_text):
    facts = kind.capitalize()
    if labels:
        facts += "; labels " + ", ".join(italic(label) for label in labels.split(", "))
    return tagged(bold(name), fill(escape(help_text.rstrip("."))) + ".\n.br\n" + fill(facts))


def page_metrics(program):
    collectors = [(name, reads) for name, _, reads in program.table("--list-collectors")]
    rows = program.table("--list-metrics")
    out = [
        ".SH DESCRIPTION\n",
        prose("What `waap serve` can show under /metrics, by the collector it comes from. Units are seconds, bytes, "
              "watts, joules, degrees Celsius and hertz; ratios go from 0 to 1. What cannot be read is missing, never 0."),
        "\n",
        paragraphs("`waap serve --list-metrics` prints the same list."),
    ]
    for collector, reads in [*collectors, ("", "About the exporter itself")]:
        of_it = [row for row in rows if row[3] == collector]
        if of_it:
            out.append(f".SH {escape(collector.upper() or 'THE EXPORTER ITSELF')}\n{prose(reads.rstrip('.'))}.\n")
            out += [metric(name, kind, labels, help_text) for name, kind, labels, _, help_text in of_it]
    out.append(".SH SEE ALSO\n.BR waap (1),\n.BR waap.yaml (5)\n")
    return "".join(out)


PAGES = {"waap.1": page_waap, "waap.yaml.5": page_yaml, "waap-metrics.7": page_metrics}


def main(path, page):
    program = Program(path)
    version = program.ask("version").split(" (")[0]
    sys.stdout.write(title(page, version) + PAGES[page](program))


if __name__ == "__main__":
    main(*sys.argv[1:])
