"""Parameters: knobs that others turn while the plugin runs."""

import math
import operator
import re

from waap._series import MAX_TEXT, clean_text

MAX_VALUES = 100
NAME = re.compile("[a-zA-Z_][a-zA-Z0-9_]*\\Z")
TYPES = {"int": int, "float": float, "bool": bool, "string": str, "enum": str, "any": None}


def is_truth(value):
    """Also numpy's own, which is no number either."""
    return isinstance(value, bool) or type(value).__name__ in ("bool", "bool_")


def is_whole(value):
    """Whether it is an int by itself, as numpy's are; an array's looks alike, and raises."""
    try:
        return not is_truth(value) and operator.index(value) is not None
    except Exception:
        return hasattr(value, "__int__") and not hasattr(value, "__float__")


def clean_number(kind, value):
    """The number as JSON has it, of whatever type it was: numpy's, Decimal, Fraction."""
    if is_whole(value):
        number = int(value)
    elif hasattr(value, "__float__") and not is_truth(value):
        number = float(value)
    else:
        raise ValueError("neither int nor float")
    if not math.isfinite(number) or number != kind(number):
        raise ValueError("not finite, or a fraction")
    return kind(number)


def clean_scalar(value):
    """What a parameter without a type can be."""
    if is_truth(value):
        return bool(value)
    if isinstance(value, str):
        return clean_text(value)
    return clean_number(int if is_whole(value) else float, value)


def infer_type(default, values, bounds):
    if values is not None:
        return "enum"
    if is_truth(default):
        return "bool"
    if isinstance(default, str):
        return "string"
    numbers = [number for number in (default,) + bounds if number is not None]
    return "any" if not numbers else "int" if all(map(is_whole, numbers)) else "float"


class Param:
    def __init__(self, client, name, default, low, high, step, unit, help, values, type, on_change):
        if not isinstance(name, str) or len(name) > MAX_TEXT or not NAME.match(name):
            raise ValueError("{!r}: a param's name has letters, digits and _ only, and begins with none of the digits"
                             .format(name))
        self._client = client
        self.name = clean_text(name)
        self._type = type or infer_type(default, values, (low, high, step))
        if self._type not in TYPES:
            raise ValueError("{}: no type {!r}, but {}".format(name, type, ", ".join(TYPES)))
        if TYPES[self._type] not in (int, float) and (low, high, step) != (None, None, None):
            raise ValueError("{}: min, max and step are for int and float, not for {}".format(name, self._type))
        self._low, self._high = self._bound("min", low), self._bound("max", high)
        self._step = self._bound("step", step)
        if self._low is not None and self._high is not None and self._low > self._high:
            raise ValueError("{}: min, {!r}, is above max, {!r}".format(name, self._low, self._high))
        if self._step is not None and self._step < 0:
            raise ValueError("{}: step: {!r} is below 0".format(name, self._step))
        self._unit, self._help = self._text("unit", unit), self._text("help", help)
        self._values = None if values is None else self._texts("values", values)
        if self._type == "enum" and not 0 < len(self._values or ()) <= MAX_VALUES:
            raise ValueError("{}: an enum needs values".format(name))
        if self._type != "enum" and self._values is not None:
            raise ValueError("{}: values are for enum, not for {}".format(name, self._type))
        if on_change is not None and not callable(on_change):
            raise ValueError("{}: on_change: {!r} cannot be called".format(name, on_change))
        self.on_change = on_change
        self.default = None if default is None else self.check(default)
        if self._step and default is not None and not self._is_on_step(self.default):
            raise ValueError("{}: default: {!r} is not one of its steps of {!r}".format(name, default, step))
        self._state = (0, self.default)  # version and value change as one
        self.applied = 0  # the version that the application has taken over
        self.is_bare = self.declaration() == {"param": self.name, "type": "any", "default": None}
        self.forget()

    def refine(self, other):
        """A later declaration says more than the name. A value that it allows stays."""
        version, value = self._state
        try:
            value = other.default if value is None else other.check(value)
        except ValueError:
            value = other.default
        turned = value is not other.default
        self.__dict__.update(other.__dict__, on_change=other.on_change or self.on_change)
        self._state = (version + 1, value)
        self.applied = version if turned else version + 1

    def __repr__(self):
        return "<param {}={!r}>".format(self.name, self._state[1])

    def forget(self):
        """As if nothing had been sent."""
        self.declared = False
        self.reported = None

    # What is declared is converted on the caller's thread, which hears of what cannot be.

    def _bound(self, field, value):
        try:
            return None if value is None else clean_number(TYPES[self._type], value)
        except Exception:  # whatever a type of others has for what is no number
            raise ValueError("{}: {}: {!r} is no {}".format(self.name, field, value, self._type)) from None

    def _text(self, field, value):
        try:
            return None if value is None else clean_text(value)[:MAX_TEXT]
        except Exception as error:  # whatever its __str__ does
            raise ValueError("{}: {}: is no text".format(self.name, field)) from error

    def _texts(self, field, values):
        try:
            values = list(values)
        except TypeError:
            raise ValueError("{}: {}: {!r} is no list".format(self.name, field, values)) from None
        return [self._text(field, value) for value in values]

    def _is_on_step(self, value):
        """The exporter looks more closely, and says so; this is for what is clearly beside them."""
        try:
            steps = (value - (self._low or 0)) / self._step
        except OverflowError:  # ints that no float can hold
            return True
        if not -1e15 < steps < 1e15:  # where floats have no fractions to speak of, or it is none
            return True
        return abs(steps - round(steps)) < 0.02

    def _range(self):
        bounds = (("at least", self._low), ("at most", self._high))
        return ", ".join("{} {!r}".format(word, bound) for word, bound in bounds if bound is not None)

    def check(self, value):
        """The value in the parameter's own type; ValueError says why it cannot be."""
        kind = TYPES[self._type]
        if value is None and self.default is None:
            return None
        try:
            if kind is None:
                value = clean_scalar(value)
            elif kind in (int, float):
                value = clean_number(kind, value)
            elif not (is_truth(value) if kind is bool else isinstance(value, str)):
                raise ValueError("another type")
            else:
                value = bool(value) if kind is bool else clean_text(value)
        except Exception:  # whatever a type of others has for what is no number
            wanted = self._type if kind else "number, bool or string"
            raise ValueError("{}: {!r} is no {}".format(self.name, value, wanted)) from None
        below = self._low is not None and value < self._low
        if below or (self._high is not None and value > self._high):
            raise ValueError("{}: {!r} is out of range, {}".format(self.name, value, self._range()))
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
        """Takes over what the exporter asks for; returns whether on_change is to be called. What is applied already
        is told again with every connection: that is no change."""
        version, old = self._state
        value = self.check(value)
        if value == old and version == self.applied:
            self.reported = None
            return False
        self._state = (version + 1, value)
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
