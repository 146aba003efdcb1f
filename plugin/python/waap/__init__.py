"""What a plugin says about itself, live, through the waap exporter of its node: see waap.plugin."""

__version__ = "0.1.0"
