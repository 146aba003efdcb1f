"""What a query in PromQL asks for."""

import re

STRINGS = re.compile(r'"(?:\\.|[^"\\])*"')
COMMENTS = re.compile(r"#.*")
# Label names stand in selectors and after these words, and nowhere else.
SELECTORS = re.compile(r"\{[^}]*\}|\[[^]]*\]")
LABELS = re.compile(r"\b(?:by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)")
WORDS = re.compile(r"(?<![\w$.:])[a-zA-Z_:][\w:]*(?!\s*\()(?![\w:])")
KEYWORDS = {"and", "bool", "group_left", "group_right", "offset", "or", "unless"}

# Recorded by plugins: not in our list, as their names are the plugins' own. Those of the demo, and
# those that grafana/README.md tells plugins to use.
OF_PLUGINS = {
    "fps",
    "fps_target",
    "fps_total",
    "inference_seconds_bucket",
    "inference_seconds_count",
    "inference_seconds_sum",
    "plugin_duration_seconds_bucket",
    "plugin_duration_seconds_count",
}
OF_PROMETHEUS = {"ALERTS", "up"}


def asked(query):
    """The names of the metrics in a query."""
    for pattern in (STRINGS, COMMENTS, SELECTORS, LABELS):
        query = pattern.sub(" ", query)
    return set(WORDS.findall(query)) - KEYWORDS
