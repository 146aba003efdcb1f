"""`from waggle import plugin` with waap's hooks: see plugin/README.md.

pywaggle's files stay as they are. The hooks are added to its module and to its class Plugin when they are imported;
where pywaggle is not installed, a module with the hooks alone takes its place. Nothing happens without install().
It runs at the start of every interpreter, so it imports little.
"""

import sys
from importlib.machinery import ModuleSpec

HOOKS = ("counter", "gauge", "histogram", "metric", "metrics", "param", "timeit")
DURATION = "plugin.duration."  # pywaggle's own names of durations


def add_hooks(module):
    from waap import plugin

    owner = getattr(module, "Plugin", None)
    if hasattr(owner, "timeit"):
        owner.timeit = publish_and_observe(owner.timeit)
    for name in HOOKS:
        hook = getattr(plugin, name)
        if not hasattr(module, name):
            setattr(module, name, hook)
        if owner is not None and not hasattr(owner, name):
            setattr(owner, name, staticmethod(hook))


def publish_and_observe(timeit):
    """pywaggle's timeit, which publishes a duration, and the histogram of these durations."""
    from contextlib import contextmanager
    from functools import wraps

    from waap import plugin

    def span(name):
        if name.startswith(DURATION):  # as the exporter names what it reads in pywaggle's log
            return plugin.timeit("plugin_duration", labels={"name": name[len(DURATION):]})
        return plugin.timeit(name)

    @wraps(timeit)
    @contextmanager
    def hooked(self, name):
        with timeit(self, name):
            if isinstance(name, str) and name:
                with span(name):
                    yield
            else:  # pywaggle's to reject
                yield

    return hooked


class Hooked:
    """A loader that adds the hooks to what another one loads."""

    def __init__(self, loader):
        self._loader = loader

    def __getattr__(self, name):
        return getattr(self._loader, name)

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        self._loader.exec_module(module)
        add_hooks(module)


class StandIn:
    """Loads an empty `waggle`, and a `waggle.plugin` that has the hooks alone."""

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        if module.__name__ == "waggle.plugin":
            module.Plugin = type("Plugin", (_Plugin,), {"__module__": module.__name__})
            add_hooks(module)


class _Plugin:
    """pywaggle's Plugin where pywaggle is not installed: it cannot publish."""

    def __init__(self, *_, **__):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def __getattr__(self, name):
        raise AttributeError("{}: needs pywaggle, which is not installed: there are only waap's hooks: {}".format(
            name, ", ".join(HOOKS)))


class Finder:
    """Asks the others first: pywaggle is never shadowed."""

    def find_spec(self, name, path=None, target=None):
        if name not in ("waggle", "waggle.plugin"):
            return None
        found = None
        for finder in sys.meta_path:
            if found is None and finder is not self and hasattr(finder, "find_spec"):
                found = finder.find_spec(name, path, target)
        if found is None:
            return ModuleSpec(name, StandIn(), origin="waap", is_package=name == "waggle")
        if name == "waggle.plugin" and hasattr(found.loader, "exec_module"):
            found.loader = Hooked(found.loader)
        return found


def install():
    """From here on `from waggle import plugin` has the hooks."""
    if not any(isinstance(finder, Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, Finder())
        if "waggle.plugin" in sys.modules:
            add_hooks(sys.modules["waggle.plugin"])
