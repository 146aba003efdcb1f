"""What the collector zoo of waap-fake holds, written down a second time and by other means."""

import math
import struct

BAD = "\ufffd"

WEIGHTS = {
    "nothing": 0.0,
    "less": -0.0,
    "tenth": 0.1,
    "third": 1 / 3,
    "1e21": 1e21,
    "1e22": 1e22,
    "1e23": 1e23,
    "eighth": 123456789.125,
    "least": 5e-324,
    "least normal": 2.2250738585072014e-308,
    "most": 1.7976931348623157e308,
    "most negative": -1.7976931348623157e308,
    "infinite": math.inf,
    "infinitely negative": -math.inf,
    "not a number": math.nan,
    "2^53-1": 2.0**53 - 1,
    "2^53": 2.0**53,
    "2^53+2": 2.0**53 + 2,
    "-2^53": -(2.0**53),
    "2^32+0.5": 2.0**32 + 0.5,
    "1e-5": 0.00001,
    "hardest to read": float.fromhex("0x0.fffffffffffffp-1022"),
    "2^-20": 2.0**-20,
}
SIGNS = {
    'quote " backslash \\ newline \n end': 1,
    f"not UTF-8: {BAD} {BAD}( {BAD * 3}": 2,
    "🦁 € ü": 3,
    None: 4,
    " ": 5,
    "\\": 6,
    "\\n": 7,
    '}, {a="b"} 7 # EOF': 8,
    "tab \t return \r bell \a": 9,
    "100% %s %n": 10,
}
STEPS = {"snail": 0, "ant": 2**53, "centipede": 1e22, "sloth": 0.1 + 0.2, "rotifer": math.inf}
MEALS = {"bear": {"0.0": 0.5, "0.5": 1.25, "0.99": 7e-9, "1.0": 8}, "bird": {"0.5": math.nan}}
MEAL_SUMS = {"bear": (1234.5678, 99), "bird": (0, 0)}
WAITS = {
    "north": {"0.005": 1, "1.0": 2, "2.5": 2, "1e+06": 3, "1e+22": 4, "+Inf": 5},
    "south": {"+Inf": 0},
}
WAIT_SUMS = {"north": (1e23, 5), "south": (0, 0)}


def series(name, /, **labels):
    return name, frozenset((key, value) for key, value in labels.items() if value is not None)


def expected():
    """{(name, labels): value} of every sample."""
    rows = {
        series("zoo_frames"): 29.97,
        series("zoo_frames_total"): 123456789,
        series("zoo_keeper_info", name='Ada "the" L\\ion\n'): 1,
        series("zoo_odd"): -1e-7,
    }
    rows |= {series("zoo_weight_grams", who=who): value for who, value in WEIGHTS.items()}
    rows |= {series("zoo_sign", text=text): value for text, value in SIGNS.items()}
    rows |= {series("zoo_steps_total", who=who): value for who, value in STEPS.items()}
    for base, edge, suffix, parts, sums in (
        ("zoo_meal_seconds", "quantile", "", MEALS, MEAL_SUMS),
        ("zoo_wait_seconds", "le", "_bucket", WAITS, WAIT_SUMS),
    ):
        label = "who" if edge == "quantile" else "gate"
        for member, bounds in parts.items():
            for bound, value in bounds.items():
                rows[series(base + suffix, **{label: member, edge: bound})] = value
            total, count = sums[member]
            rows[series(base + "_sum", **{label: member})] = total
            rows[series(base + "_count", **{label: member})] = count
    return {key: bits(value) for key, value in rows.items()}


def bits(value):
    """Equal for equal doubles only: tells -0 from 0, and NaN is equal to NaN."""
    if math.isnan(value):
        return "NaN"
    return struct.pack(">d", float(value)).hex()
