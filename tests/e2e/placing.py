"""`waap place` while a test asks it."""

import json

import pytest

from conftest import WAAP
from running import ROOT, Program, Waap

# Builds with sanitizers have none of their own.
OWN = WAAP.parent.parent / "placement/predictor.ubj"
PREDICTOR = OWN if OWN.exists() else ROOT / "build/placement/predictor.ubj"
ASKED = {
    "model": "yolo",
    "conv_layers": 59,
    "fc_layers": 1,
    "filter_details": 7280,
    "model_input_size": 150000,
    "model_output_size": 22000,
    "pool_layers": 15,
    "total_parameters": 6998555,
}


class Place(Waap):
    """`waap place` on a port of its own; it ends as the daemon does."""

    def __init__(self, *flags, **options):
        if not PREDICTOR.exists():
            pytest.skip("no predictor in this build: no libxgboost (make deps)")
        if PREDICTOR != OWN:
            flags = (f"--predictor={PREDICTOR}", *flags)
        flags = ("--web.listen-address=127.0.0.1:0", *flags)
        Program.__init__(self, [WAAP, "place", *flags], None, **options)
        self.wait_listening()

    def ask(self, body=None, path="/api/profiling", headers=None):
        body = json.dumps(ASKED) if body is None else body
        body = body if isinstance(body, bytes) else body.encode()
        return self.get(path, headers=headers, method="POST", body=body)

    def explain(self, **changes):
        answer = self.ask(json.dumps({**ASKED, **changes}), "/api/profiling?explain=1")
        assert answer.status == 200, answer.text
        return json.loads(answer.text)["explain"]
