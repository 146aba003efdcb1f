"""Grafana's JSON, as far as our dashboards need it: queries, panels, variables, and where they stand."""

WIDTH = 24  # of Grafana's grid
SOURCE = {"type": "prometheus", "uid": "${datasource}"}

# From green to red as values grow, or as they shrink.
LOAD = [("green", None), ("orange", 0.8), ("red", 0.95)]
HEADROOM = [("red", None), ("orange", 0.1), ("green", 0.25)]
MARGIN = [("red", None), ("orange", 5), ("green", 15)]
HEAT = [("green", None), ("orange", 80), ("red", 92)]
TARGET = [("red", None), ("orange", 0.9), ("green", 0.98)]
FAULTS = [("green", None), ("red", 1)]
PLAIN = [("blue", None)]

YES_NO = {"0": {"text": "no", "color": "green"}, "1": {"text": "yes", "color": "red"}}
GOOD_BAD = {"0": {"text": "fails", "color": "red"}, "1": {"text": "works", "color": "green"}}


def query(expr, legend="", **more):
    """One query of a panel; the letter that names it comes when the panel is placed."""
    return {"datasource": SOURCE, "expr": expr, "legendFormat": legend or "__auto", "range": True, **more}


def now(expr, legend="", **more):
    """A query for the latest value only."""
    return query(expr, legend, instant=True, **{"range": False, **more})


def panel(kind, title, description, queries, unit="short", size=(12, 8), steps=PLAIN, **more):
    """`more`: options of the panel's kind, `custom` ones of its fields, `mappings`, `overrides`, `limits`."""
    defaults = {
        "unit": unit,
        "color": {"mode": more.pop("color", "palette-classic")},
        "thresholds": {"mode": "absolute", "steps": [{"color": color, "value": at} for color, at in steps]},
        "custom": more.pop("custom", {}),
        "mappings": [{"type": "value", "options": value} for value in more.pop("mappings", [])],
        **dict(zip(("min", "max"), more.pop("limits", ()))),
    }
    return {
        "type": kind,
        "title": title,
        "description": description,
        "datasource": SOURCE,
        "targets": [{**one, "refId": chr(ord("A") + i)} for i, one in enumerate(queries)],
        "fieldConfig": {"defaults": defaults, "overrides": more.pop("overrides", [])},
        "gridPos": {"w": size[0], "h": size[1]},
        **more,
    }


def curves(title, description, queries, unit="short", stacked=False, **more):
    custom = {"lineWidth": 1, "fillOpacity": 30 if stacked else 8, "showPoints": "never", "spanNulls": False}
    custom["stacking"] = {"mode": "normal" if stacked else "none"}
    if "steps" in more:
        custom["thresholdsStyle"] = {"mode": "dashed"}
    options = {
        "legend": {"displayMode": "table", "placement": "bottom", "calcs": ["mean", "max", "lastNotNull"]},
        "tooltip": {"mode": "multi", "sort": "desc"},
    }
    return panel("timeseries", title, description, queries, unit, custom=custom, options=options, **more)


def number(title, description, expr, unit="short", steps=PLAIN, size=(4, 4), legend=""):
    options = {"reduceOptions": {"calcs": ["lastNotNull"]}, "graphMode": "area", "colorMode": "value"}
    return panel("stat", title, description, [query(expr, legend)], unit, size, steps, color="thresholds", options=options)


def states(title, description, queries, mappings=(), **more):
    custom = {"fillOpacity": 70, "lineWidth": 0}
    options = {"mergeValues": True, "showValue": "auto", "alignValue": "left", "rowHeight": 0.9}
    return panel("state-timeline", title, description, queries, custom=custom, options=options,
                 mappings=list(mappings), **more)


def heat_map(title, description, expr, **more):
    options = {
        "calculate": False,
        "cellGap": 1,
        "color": {"mode": "scheme", "scheme": "Turbo", "steps": 64},
        "yAxis": {"unit": "s"},
        "tooltip": {"mode": "single", "yHistogram": True},
    }
    return panel("heatmap", title, description, [query(expr, "{{le}}", format="heatmap")], options=options, **more)


def column(field, name, unit="short", steps=None):
    """How the values of a table's query are shown."""
    properties = [{"id": "displayName", "value": name}, {"id": "unit", "value": unit}]
    if steps:
        marks = [{"color": color, "value": at} for color, at in steps]
        properties += [
            {"id": "thresholds", "value": {"mode": "absolute", "steps": marks}},
            {"id": "custom.cellOptions", "value": {"type": "color-text"}},
        ]
    return {"matcher": {"id": "byName", "options": field}, "properties": properties}


def link(label, uid):
    """Leads from a cell with a label's value to another dashboard."""
    url = f"/d/{uid}?${{__url_time_range}}&var-datasource=${{datasource}}&var-{label}=${{__value.text}}"
    links = [{"title": f"Show this {label}", "url": url}]
    return {"matcher": {"id": "byName", "options": label}, "properties": [{"id": "links", "value": links}]}


def table(title, description, columns, links=(), hidden=(), **more):
    """columns: (query, name, unit, steps), joined by the labels they share; links: (label, dashboard)."""
    queries = [now(expr, format="table") for expr, *_ in columns]
    fields = ["Value"] if len(columns) == 1 else [f"Value #{chr(ord('A') + i)}" for i in range(len(columns))]
    overrides = [column(field, *rest) for field, (_, *rest) in zip(fields, columns)]
    overrides += [link(label, uid) for label, uid in links]
    hide = {"id": "organize", "options": {"excludeByName": {name: True for name in ("Time", *hidden)}}}
    return panel("table", title, description, queries, overrides=overrides, color="thresholds",
                 transformations=[{"id": "merge", "options": {}}, hide], options={"showHeader": True}, **more)


def variable(name, label, asks, **more):
    """A list of values to choose from; `everything` adds All."""
    several = more.pop("everything", False)
    return {
        "type": "query",
        "name": name,
        "label": label,
        "datasource": SOURCE,
        "query": {"query": asks, "refId": name},
        "refresh": 2,
        "sort": 1,
        "multi": several,
        "includeAll": several,
        **({"current": {"text": ["All"], "value": ["$__all"]}} if several else {}),
    }


DATASOURCE = {"type": "datasource", "name": "datasource", "label": "Data source", "query": "prometheus", "refresh": 1}


def row(title, panels, collapsed=False):
    """A headline and what stands below it."""
    return {"title": title, "panels": panels, "collapsed": collapsed}


def place(rows):
    """The panels of all rows with their places and numbers, from left to right and top to bottom."""
    placed, y, number_of = [], 0, 0
    for one in rows:
        number_of += 1
        head = {"type": "row", "title": one["title"], "id": number_of, "collapsed": one["collapsed"], "panels": []}
        head["gridPos"] = {"x": 0, "y": y, "w": WIDTH, "h": 1}
        placed.append(head)
        x, y, tallest = 0, y + 1, 0
        for body in one["panels"]:
            width, height = body["gridPos"]["w"], body["gridPos"]["h"]
            if x + width > WIDTH:
                x, y, tallest = 0, y + tallest, 0
            number_of += 1
            body = {**body, "id": number_of, "gridPos": {"x": x, "y": y, "w": width, "h": height}}
            (head["panels"] if one["collapsed"] else placed).append(body)
            x, tallest = x + width, max(tallest, height)
        y += tallest
    return placed


def dashboard(uid, title, description, variables, rows):
    others = {
        "type": "dashboards",
        "tags": ["waap"],
        "title": "waap",
        "tooltip": "The other dashboards, with the same choices",
        "icon": "dashboard",
        "includeVars": True,
        "keepTime": True,
        "asDropdown": False,
        "targetBlank": False,
    }
    return {
        "uid": uid,
        "title": title,
        "description": description,
        "tags": ["waap"],
        "schemaVersion": 39,
        "version": 1,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "15s",
        "time": {"from": "now-30m", "to": "now"},
        "timezone": "browser",
        "links": [others],
        "annotations": {"list": []},
        "templating": {"list": [DATASOURCE, *variables]},
        "panels": place(rows),
    }
