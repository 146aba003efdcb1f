"""Parameters: knobs that others turn while the plugin runs."""

import math

from waap._series import MAX_TEXT, clean_text

MAX_VALUES = 100
TYPES = {"int": int, "float": float, "bool": bool, "string": str, "enum": str}


def infer_type(default, values, bounds):
    if values is not None:
        return "enum"
    if isinstance(default, bool):
        return "bool"
    if isinstance(default, str):
        return "string"
    numbers = [default] + [bound for bound in bounds if bound is not None]
    return "int" if all(isinstance(number, int) for number in numbers) else "float"


class Param:
    def __init__(self, client, name, default, low, high, step, unit, help, values, type, on_change):
        if not isinstance(name, str) or not name or len(name) > MAX_TEXT:
            raise ValueError("not a name: {!r}".format(name))
        self._client = client
        self.name = clean_text(name)
        self._type = type or infer_type(default, values, (low, high, step))
        if self._type not in TYPES:
            raise ValueError("{}: no type {!r}, but {}".format(name, type, ", ".join(TYPES)))
        self._low, self._high, self._step = low, high, step
        self._unit, self._help = unit, help
        self._values = None if values is None else [clean_text(value) for value in values]
        if self._type == "enum" and not 0 < len(self._values or ()) <= MAX_VALUES:
            raise ValueError("{}: an enum needs values".format(name))
        self.on_change = on_change
        self.default = self.check(default)
        self._state = (0, self.default)  # version and value change as one
        self.applied = 0  # the version that the application has taken over
        self.forget()

    def __repr__(self):
        return "<param {}={!r}>".format(self.name, self._state[1])

    def forget(self):
        """As if nothing had been sent."""
        self.declared = False
        self.reported = None

    def check(self, value):
        """The value in the parameter's own type; ValueError says why it cannot be."""
        kind = TYPES[self._type]
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if kind in (int, float):
            if not number or not math.isfinite(value) or value != kind(value):
                raise ValueError("{}: {!r} is no {}".format(self.name, value, self._type))
            value = kind(value)
            if (self._low is not None and value < self._low) or (self._high is not None and value > self._high):
                raise ValueError("{}: {!r} is out of range".format(self.name, value))
            return value
        if not isinstance(value, kind):
            raise ValueError("{}: {!r} is no {}".format(self.name, value, self._type))
        if self._type == "enum" and value not in self._values:
            raise ValueError("{}: {!r} is none of {}".format(self.name, value, ", ".join(self._values)))
        return value

    def get(self):
        """The value as it is. Reading it applies it, unless on_change does."""
        if not self._client.running:
            self._client.start()
        version, value = self._state
        if version != self.applied and self.on_change is None:
            self.applied = version
            self._client.wake()
        return value

    def turn(self, value):
        """Takes over what the exporter asks for; returns whether on_change is to be called."""
        self._state = (self._state[0] + 1, self.check(value))
        return self.on_change is not None

    def call(self):
        version, value = self._state
        self.on_change(value)
        self.applied = version

    def declaration(self):
        line = {"param": self.name, "type": self._type, "default": self.default}
        more = (("min", self._low), ("max", self._high), ("step", self._step), ("values", self._values),
                ("unit", self._unit), ("help", self._help))
        line.update((key, value) for key, value in more if value is not None)
        return line

    def lines(self):
        """What the exporter does not know yet."""
        lines = []
        if not self.declared:
            self.declared = True
            lines.append(self.declaration())
        version, value = self._state
        if version == self.applied and version != self.reported:
            self.reported = version
            lines.append({"param": self.name, "applied": value})
        return lines
