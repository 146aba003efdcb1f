"""What `pip install ./plugin/python[waggle]` adds: a line that every interpreter of the environment runs."""

import os
import shutil

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py


class Line(Distribution):
    def has_pure_modules(self):  # or nothing would be built
        return True


class BuildLine(build_py):
    def run(self):
        os.makedirs(self.build_lib, exist_ok=True)
        shutil.copy("waap-waggle.pth", self.build_lib)


setup(
    name="waap-waggle",
    version="0.1.0",
    description="waap's metrics and parameters in `from waggle import plugin`",
    py_modules=[],
    distclass=Line,
    cmdclass={"build_py": BuildLine},
    python_requires=">=3.6",
)
