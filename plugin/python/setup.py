import pathlib
import re

from setuptools import setup

with open("waap/__init__.py") as file:
    version = re.search(r'__version__ = "(.*)"', file.read()).group(1)

setup(
    name="waap",
    version=version,
    description="Metrics and parameters of a plugin, through the waap exporter",
    packages=["waap"],
    package_data={"waap": ["with-waggle/waggle/__init__.py"]},
    extras_require={"waggle": ["waap-waggle @ " + pathlib.Path("waap-waggle").resolve().as_uri()]},
    python_requires=">=3.6",
)
