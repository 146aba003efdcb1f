"""Not pywaggle, but what PYTHONPATH=…/waap/with-waggle puts before it: leaves the path again, and imports `waggle`
(pywaggle, or a stand-in) with waap's hooks."""

import importlib
import os
import sys

_place = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:] = [path for path in sys.path if not isinstance(path, str) or os.path.abspath(path) != _place]
try:
    from waap import _waggle
except ImportError:  # the folder was copied to a place of its own
    sys.path.append(os.path.dirname(os.path.dirname(_place)))
    from waap import _waggle
_waggle.install()
del sys.modules[__name__]
importlib.import_module(__name__)
