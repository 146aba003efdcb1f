"""Where things are; the programs that run beside each other are those of the end-to-end tests."""

import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
BUILD = HERE.parents[1] / "build"
sys.path.append(str(HERE.parent / "e2e"))
