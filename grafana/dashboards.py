#!/usr/bin/env python3
"""Our Grafana dashboards. `python3 grafana/dashboards.py` writes grafana/dashboards/*.json from what stands here.

Names with colons are recorded by deploy/prometheus/rules/recording.yml."""

import json
import pathlib

from panels import (FAULTS, GOOD_BAD, HEADROOM, HEAT, LOAD, MARGIN, TARGET, YES_NO, curves, dashboard, heat_map,
                    number, query, row, states, table, variable)

RATE = "[$__rate_interval]"
NODE = 'node="$node"'
GPU = 'node="$node",gpu=~"$gpu"'
NODES = 'node=~"$node"'
CONTAINER = 'node=~"$node",container=~"$container"'
PLUGIN = 'node=~"$node",plugin=~"$plugin"'
IS_PLUGIN = "{{node}} {{plugin}}"
IS_PLUGIN_IN_POD = "{{node}} {{plugin}} {{pod}}"
IS_CONTAINER = "{{node}} {{container}}"


def container_rate(metric, factor=""):
    """A counter of containers per second, under the names that Kubernetes or Docker has for them."""
    return (f"sum by (node, container) (sum by (node, id) (rate({metric}{{{NODES}}}{RATE})){factor}"
            f" * on (node, id) group_left (container) container:labels:info{{{CONTAINER}}})")


def node_numbers():
    return row("Overview", [
        number("Head room", "What is left of the scarcest of CPUs, memory and GPU. Of several GPUs the idlest counts.",
               f"node:headroom:ratio{{{NODE}}}", "percentunit", HEADROOM),
        number("CPU", "Share of all CPUs that is in use.", f"node:cpu_utilization:ratio{{{NODE}}}", "percentunit", LOAD),
        number("GPU", "Share of time that the GPU was busy, the busiest of several.",
               f"max(gpu_utilization_ratio{{{GPU}}})", "percentunit", LOAD),
        number("Memory", "Share of the memory that is in use and cannot be reclaimed.",
               f"1 - node:memory_available:ratio{{{NODE}}}", "percentunit", LOAD),
        number("Power", "Of the Jetson module, or of all cards.", f"node:power:watts{{{NODE}}}", "watt"),
        number("Thermal margin", "Degrees until clocks are lowered because of heat.",
               f"node:thermal_margin:celsius{{{NODE}}}", "celsius", MARGIN),
    ])


def node_gpu():
    return row("GPU", [
        curves("GPU load", "Share of time that something ran on the GPU; the peak is that of samples between scrapes.", [
            query(f"gpu_utilization_ratio{{{GPU}}}", "GPU {{gpu}}"),
            query(f"gpu_utilization_peak_ratio{{{GPU}}}", "GPU {{gpu}} peak"),
        ], "percentunit", limits=(0, 1)),
        curves("GPU memory", "Allocated for the GPU, and what there is. A Jetson's GPU shares it with the CPUs.", [
            query(f"gpu_memory_used_bytes{{{GPU}}}", "GPU {{gpu}} used"),
            query(f"gpu_memory_total_bytes{{{GPU}}}", "GPU {{gpu}} total"),
        ], "bytes", limits=(0,)),
        curves("GPU temperature", "Of the chip.", [query(f"gpu_temperature_celsius{{{GPU}}}", "GPU {{gpu}}")],
               "celsius", steps=HEAT),
        curves("GPU clock", "And the highest that it may take.", [
            query(f"gpu_frequency_hertz{{{GPU}}}", "GPU {{gpu}}"),
            query(f"gpu_frequency_max_hertz{{{GPU}}}", "GPU {{gpu}} max"),
        ], "hertz", limits=(0,)),
    ])


def node_host():
    return row("Host", [
        curves("CPU by mode", "Share of all CPUs.",
               [query(f'avg by (mode) (rate(node_cpu_seconds_total{{{NODE},mode!="idle"}}{RATE}))', "{{mode}}")],
               "percentunit", stacked=True, limits=(0, 1)),
        curves("Memory", "In use, reclaimable, and free.", [
            query(f"node_memory_MemTotal_bytes{{{NODE}}} - node_memory_MemAvailable_bytes{{{NODE}}}", "used"),
            query(f"node_memory_MemAvailable_bytes{{{NODE}}} - node_memory_MemFree_bytes{{{NODE}}}", "reclaimable"),
            query(f"node_memory_MemFree_bytes{{{NODE}}}", "free"),
        ], "bytes", stacked=True, limits=(0,)),
        curves("Pressure", "Share of time that some task waited.", [
            query(f"rate(node_pressure_cpu_waiting_seconds_total{{{NODE}}}{RATE})", "for a CPU"),
            query(f"rate(node_pressure_io_waiting_seconds_total{{{NODE}}}{RATE})", "for input or output"),
            query(f"rate(node_pressure_memory_waiting_seconds_total{{{NODE}}}{RATE})", "for memory"),
        ], "percentunit", limits=(0,)),
        curves("Network", "Received, and sent (below zero).", [
            query(f'rate(node_network_receive_bytes_total{{{NODE},device!="lo"}}{RATE})', "{{device}} in"),
            query(f'-rate(node_network_transmit_bytes_total{{{NODE},device!="lo"}}{RATE})', "{{device}} out"),
        ], "Bps"),
        curves("Disks", "Read, and written (below zero).", [
            query(f"rate(node_disk_read_bytes_total{{{NODE}}}{RATE})", "{{device}} read"),
            query(f"-rate(node_disk_written_bytes_total{{{NODE}}}{RATE})", "{{device}} written"),
        ], "Bps"),
        curves("File systems", "Space that is left for users.",
               [query(f"node_filesystem_avail_bytes{{{NODE}}}", "{{mountpoint}}")], "bytes", limits=(0,)),
    ])


def node_jetson():
    return row("Jetson", [
        curves("Power by rail", "What the supply rails give; vdd_in is the whole module where there is one.",
               [query(f"jetson_rail_power_watts{{{NODE}}}", "{{rail}}")], "watt"),
        curves("Temperature by zone", "As the module's sensors tell, and from where on clocks are lowered.", [
            query(f"jetson_temperature_celsius{{{NODE}}}", "{{zone}}"),
            query(f'min by (node) (jetson_thermal_trip_celsius{{{NODE},type=~"hot|passive"}})', "clocks are lowered"),
        ], "celsius", steps=HEAT),
        curves("Memory controller and engines", "Share of time that they were busy; a gated engine has no curve.", [
            query(f"jetson_emc_utilization_ratio{{{NODE}}}", "memory controller"),
            query(f"jetson_engine_utilization_ratio{{{NODE}}}", "{{engine}}"),
        ], "percentunit", limits=(0, 1)),
        curves("CPU clocks", "Of the CPUs that are switched on.",
               [query(f"jetson_cpu_frequency_hertz{{{NODE}}}", "CPU {{cpu}}")], "hertz", limits=(0,)),
        states("Held back", "Whether clocks are lowered because of heat or current.",
               [query(f"jetson_throttle_alert{{{NODE}}}", "{{type}}")], [YES_NO], size=(8, 6)),
        curves("Fan", "How far it is driven.", [query(f"jetson_fan_pwm_ratio{{{NODE}}}", "fan {{fan}}")],
               "percentunit", limits=(0, 1), size=(8, 6)),
        number("Over-current alarms", "How often the supply could not follow, since the module was started.",
               f"sum(jetson_overcurrent_events_total{{{NODE}}})", "short", FAULTS, (4, 6)),
        number("Power mode", "Set by nvpmodel.", f"jetson_power_mode{{{NODE}}}", "short", size=(4, 6), legend="{{name}}"),
    ])


def node_cards():
    return row("Discrete GPU", [
        curves("Power", "And the lowest of all limits that hold.", [
            query(f"gpu_power_watts{{{GPU}}}", "GPU {{gpu}}"),
            query(f"gpu_power_limit_enforced_watts{{{GPU}}}", "GPU {{gpu}} limit"),
        ], "watt", limits=(0,)),
        states("Held back by", "What keeps clocks down. Power caps are normal under load, heat and brakes are not.",
               [query(f'nvidia_throttle_active{{{GPU},reason!="gpu_idle"}}', "GPU {{gpu}} {{reason}}")], [YES_NO]),
        curves("Memory bus, encoder, decoder", "Share of time that they were busy.", [
            query(f"gpu_memory_utilization_ratio{{{GPU}}}", "GPU {{gpu}} memory bus"),
            query(f"gpu_encoder_utilization_ratio{{{GPU}}}", "GPU {{gpu}} encoder"),
            query(f"gpu_decoder_utilization_ratio{{{GPU}}}", "GPU {{gpu}} decoder"),
        ], "percentunit", limits=(0, 1)),
        curves("Fans", "How far they are driven.", [query(f"gpu_fan_speed_ratio{{{GPU}}}", "GPU {{gpu}} fan {{fan}}")],
               "percentunit", limits=(0, 1)),
        number("Xid errors", "Errors that the driver has reported since waap was started.",
               f"sum(nvidia_xid_errors_total{{{GPU}}}) or vector(0)", "short", FAULTS, (6, 6)),
        number("PCIe lanes", "Fewer than the card has mean a bad seat or a shared slot.",
               f"min(gpu_pcie_link_lanes{{{GPU}}})", "short", size=(6, 6)),
        table("Cards", "What is built in.", [(f"gpu_info{{{GPU}}}", "", "short", None)], size=(12, 6),
              hidden=("Value", "__name__", "instance", "job", "node")),
    ], collapsed=True)


def node_exporter():
    return row("Exporter", [
        states("Collectors", "Whether each part of waap answered the scrape in time and without a fault.",
               [query(f"waap_collector_success{{{NODE}}}", "{{collector}}")], [GOOD_BAD]),
        curves("Time per collector", "How long each took for the scrape.",
               [query(f"waap_collector_duration_seconds{{{NODE}}}", "{{collector}}")], "s", limits=(0,)),
    ])


def node():
    variables = [
        variable("node", "Node", "label_values(waap_build_info, node)"),
        variable("gpu", "GPU", 'label_values(gpu_info{node="$node"}, gpu)', everything=True),
    ]
    rows = [node_numbers(), node_gpu(), node_host(), node_jetson(), node_cards(), node_exporter()]
    return dashboard("waap-node", "waap: node", "One machine, a Jetson or one with graphics cards.", variables, rows)


def containers():
    variables = [
        variable("node", "Node", "label_values(waap_build_info, node)", everything=True),
        variable("container", "Container", 'label_values(container:labels:info{node=~"$node"}, container)',
                 everything=True),
    ]
    rows = [row("Containers", [
        table("Containers", "At the moment. Power is above idle, as far as it is known whose it was.", [
            (f"sum by (node, container) (container:cpu:cores{{{CONTAINER}}})", "CPUs", "short", None),
            (f"sum by (node, container) (container:memory_working_set:bytes{{{CONTAINER}}})", "memory", "bytes", None),
            (f"sum by (node, container) (container:gpu_memory:bytes{{{CONTAINER}}})", "GPU memory", "bytes", None),
            (f"sum by (node, container) (container:power:watts{{{CONTAINER}}})", "power", "watt", None),
        ], links=[("node", "waap-node")], size=(24, 8)),
        curves("CPU", "CPUs in use.", [query(f"container:cpu:cores{{{CONTAINER}}}", IS_CONTAINER)], limits=(0,)),
        curves("Memory", "Working set: what cannot be reclaimed soon.",
               [query(f"container:memory_working_set:bytes{{{CONTAINER}}}", IS_CONTAINER)], "bytes", limits=(0,)),
        curves("GPU memory", "Of the container's processes.",
               [query(f"container:gpu_memory:bytes{{{CONTAINER}}}", IS_CONTAINER)], "bytes", limits=(0,)),
        curves("Power", "Estimated share of the measured power, above idle.",
               [query(f"container:power:watts{{{CONTAINER}}}", IS_CONTAINER)], "watt", stacked=True),
        curves("Where the energy goes", "All measured power of the nodes, by what it was for.",
               [query(f"sum by (source) (rate(container_energy_estimate_joules_total{{{NODES}}}{RATE}))", "{{source}}")],
               "watt", stacked=True),
        curves("Held back by the CPU limit", "Share of time that CPUs were denied because of the quota.",
               [query(container_rate("container_cpu_cfs_throttled_seconds_total"), IS_CONTAINER)], "percentunit"),
        curves("Pressure", "Share of time that some task of the container waited.", [
            query(container_rate("container_pressure_cpu_waiting_seconds_total"), f"{IS_CONTAINER} for a CPU"),
            query(container_rate("container_pressure_io_waiting_seconds_total"), f"{IS_CONTAINER} for input or output"),
            query(container_rate("container_pressure_memory_waiting_seconds_total"), f"{IS_CONTAINER} for memory"),
        ], "percentunit", limits=(0,)),
        curves("Disks", "Read, and written (below zero).", [
            query(container_rate("container_fs_reads_bytes_total"), f"{IS_CONTAINER} read"),
            query(container_rate("container_fs_writes_bytes_total", " * -1"), f"{IS_CONTAINER} written"),
        ], "Bps"),
        curves("Network", "Of pods and of containers with a network of their own; received, and sent (below zero).", [
            query(f"sum by (node, pod, name) (rate(container_network_receive_bytes_total{{{NODES}}}{RATE}))",
                  "{{node}} {{pod}} {{name}} in"),
            query(f"-sum by (node, pod, name) (rate(container_network_transmit_bytes_total{{{NODES}}}{RATE}))",
                  "{{node}} {{pod}} {{name}} out"),
        ], "Bps"),
        curves("Killed by the OOM killer", "Processes per second.",
               [query(container_rate("container_oom_events_total"), IS_CONTAINER)], limits=(0,)),
    ])]
    return dashboard("waap-containers", "waap: containers", "What each container takes of its node.", variables, rows)


def plugin_numbers():
    return row("Overview", [
        number("Frame rate", "Frames per second, over a minute.",
               f"sum by (node, plugin) (plugin:fps:rate1m{{{PLUGIN}}})", "short", legend=IS_PLUGIN),
        number("Of its target", "The target is the plugin's gauge or knob fps_target. Of several containers the worst.",
               f"min by (node, plugin) (plugin:fps_target:ratio{{{PLUGIN}}})", "percentunit", TARGET, legend=IS_PLUGIN),
        number("Latency, 95 %", "95 of 100 inferences take no longer. Of several containers the worst.",
               f"max by (node, plugin) (plugin:inference_seconds:p95{{{PLUGIN}}})", "s", legend=IS_PLUGIN),
        number("Joules per frame", "Power of the plugin's containers above idle, by its frame rate. Of several the worst.",
               f"max by (node, plugin) (plugin:energy_per_frame:joules{{{PLUGIN}}})", "joule", legend=IS_PLUGIN),
        number("CPUs", "In use by the plugin's containers.", f"sum by (node, plugin) (plugin:cpu:cores{{{PLUGIN}}})",
               legend=IS_PLUGIN),
        number("GPU memory", "Of the plugin's containers.",
               f"sum by (node, plugin) (plugin:gpu_memory:bytes{{{PLUGIN}}})", "bytes", legend=IS_PLUGIN),
    ])


def plugin_beside_hardware():
    return row("Frame rate beside the hardware", [
        curves("Frame rate", "As the plugin counts it, mean over ten seconds, and what it wants to reach.", [
            query(f"sum by (node, plugin, pod) (fps{{{PLUGIN}}})", IS_PLUGIN_IN_POD),
            query(f"plugin:fps_target:max{{{PLUGIN}}}", f"{IS_PLUGIN_IN_POD} target"),
        ], limits=(0,)),
        curves("GPU load", "Of the nodes; other plugins may share it.",
               [query(f"gpu_utilization_ratio{{{NODES}}}", "{{node}} GPU {{gpu}}")], "percentunit", limits=(0, 1)),
        curves("Power", "Of the nodes: of the Jetson module, or of all cards.",
               [query(f"node:power:watts{{{NODES}}}", "{{node}}")], "watt", limits=(0,)),
        curves("Temperature", "Of the GPUs.", [query(f"gpu_temperature_celsius{{{NODES}}}", "{{node}} GPU {{gpu}}")],
               "celsius", steps=HEAT),
    ])


def plugin_latency():
    buckets = f"sum by (le) (increase(inference_seconds_bucket{{{PLUGIN}}}{RATE}))"
    return row("Latency and energy", [
        heat_map("Latency", "How many inferences took how long: histogram inference_seconds, as timeit(\"inference\") "
                 "makes it.", buckets),
        curves("Latency quantiles", "Half, 95 and 99 of 100 inferences take no longer.", [
            query(f"plugin:inference_seconds:p50{{{PLUGIN}}}", f"{IS_PLUGIN_IN_POD} 50 %"),
            query(f"plugin:inference_seconds:p95{{{PLUGIN}}}", f"{IS_PLUGIN_IN_POD} 95 %"),
            query(f"plugin:inference_seconds:p99{{{PLUGIN}}}", f"{IS_PLUGIN_IN_POD} 99 %"),
        ], "s", limits=(0,)),
        curves("Joules per frame", "Power of the plugin's containers above idle, by its frame rate.",
               [query(f"plugin:energy_per_frame:joules{{{PLUGIN}}}", IS_PLUGIN_IN_POD)], "joule", limits=(0,)),
        curves("Power of the plugin", "Estimated for its containers, above idle.",
               [query(f"plugin:power:watts{{{PLUGIN}}}", IS_PLUGIN_IN_POD)], "watt", limits=(0,)),
    ])


def plugin_knobs():
    return row("Knobs", [
        states("Knobs", "Values as the plugin has applied them, and as they were asked for where somebody did.", [
            query(f"plugin_param{{{PLUGIN}}} or plugin_param_info{{{PLUGIN}}}",
                  f"{IS_PLUGIN_IN_POD} {{{{param}}}} {{{{value}}}}"),
            query(f"plugin_param_requested{{{PLUGIN}}} or plugin_param_requested_info{{{PLUGIN}}}",
                  f"{IS_PLUGIN_IN_POD} {{{{param}}}} {{{{value}}}} asked for"),
        ]),
        table("All that it pushes", "The latest values.",
              [(f'{{{PLUGIN},__name__!~".*(_bucket|:.*)"}}', "value", "short", None)],
              hidden=("instance", "job", "namespace", "pod")),
    ])


def plugin():
    variables = [
        variable("node", "Node", "label_values(waap_build_info, node)", everything=True),
        variable("plugin", "Plugin", 'label_values(plugin:containers:info{node=~"$node"}, plugin)', everything=True),
    ]
    rows = [plugin_numbers(), plugin_beside_hardware(), plugin_latency(), plugin_knobs()]
    return dashboard("waap-plugin", "waap: plugin", "What a plugin achieves, and what that takes.", variables, rows)


def fleet_nodes():
    columns = [
        (f"max by (node) (node:headroom:ratio{{{NODES}}})", "head room", "percentunit", HEADROOM),
        (f"max by (node) (node:cpu_utilization:ratio{{{NODES}}})", "CPU", "percentunit", LOAD),
        (f"max by (node) (gpu:utilization:ratio{{{NODES}}})", "GPU", "percentunit", LOAD),
        (f"sum by (node) (gpu:memory_free:bytes{{{NODES}}})", "free GPU memory", "bytes", None),
        (f"max by (node) (node:power:watts{{{NODES}}})", "power", "watt", None),
        (f"max by (node) (node:thermal_margin:celsius{{{NODES}}})", "thermal margin", "celsius", MARGIN),
        (f"count by (node) (group by (node, plugin) (plugin:fps:rate1m{{{NODES}}}))", "plugins", "short", None),
    ]
    return table("Nodes", "At the moment; a name leads to the node's own dashboard.", columns,
                 links=[("node", "waap-node")], size=(24, 9))


def fleet_plugins():
    columns = [
        (f"sum by (node, plugin) (plugin:fps:rate1m{{{NODES}}})", "frames per second", "short", None),
        (f"min by (node, plugin) (plugin:fps_target:ratio{{{NODES}}})", "of its target", "percentunit", TARGET),
        (f"max by (node, plugin) (plugin:inference_seconds:p95{{{NODES}}})", "latency, 95 %", "s", None),
        (f"max by (node, plugin) (plugin:energy_per_frame:joules{{{NODES}}})", "joules per frame", "joule", None),
    ]
    return table("Plugins", "At the moment; a name leads to the plugin's own dashboard.", columns,
                 links=[("plugin", "waap-plugin"), ("node", "waap-node")], size=(14, 9))


def fleet():
    variables = [variable("node", "Node", "label_values(waap_build_info, node)", everything=True)]
    rows = [row("Fleet", [
        number("Nodes", "That answer.", f'sum(up{{job="waap",{NODES}}})'),
        number("Nodes away", "That do not answer.", f'sum(1 - up{{job="waap",{NODES}}})', steps=FAULTS),
        number("Plugins", "That count frames.", f"count(group by (node, plugin) (plugin:fps:rate1m{{{NODES}}}))"),
        number("Frames per second", "Of all plugins together.", f"sum(plugin:fps:rate1m{{{NODES}}})"),
        number("Power", "Of all nodes together, as far as they can measure it.", f"sum(node:power:watts{{{NODES}}})", "watt"),
        number("Failing collectors", "Parts of the exporters that could not read what they should.",
               f"sum(1 - waap_collector_success{{{NODES}}})", steps=FAULTS),
        fleet_nodes(),
        fleet_plugins(),
        table("Alerts", "That fire, or are about to.",
              [(f"sum by (node, alertname, severity, alertstate) (ALERTS{{{NODES}}})", "count", "short", None)],
              links=[("node", "waap-node")], hidden=("Value",), size=(10, 9)),
        curves("Head room", "What is left of the scarcest of CPUs, memory and GPU.",
               [query(f"node:headroom:ratio{{{NODES}}}", "{{node}}")], "percentunit", limits=(0, 1)),
        curves("Power", "Of Jetson modules, or of all cards of a node.",
               [query(f"node:power:watts{{{NODES}}}", "{{node}}")], "watt", limits=(0,)),
        curves("Frame rate", "Of each plugin.", [query(f"plugin:fps:rate1m{{{NODES}}}", IS_PLUGIN_IN_POD)], limits=(0,)),
        curves("Thermal margin", "Degrees until clocks are lowered because of heat.",
               [query(f"node:thermal_margin:celsius{{{NODES}}}", "{{node}}")], "celsius"),
    ])]
    return dashboard("waap-fleet", "waap: fleet", "All nodes and plugins at a glance.", variables, rows)


DASHBOARDS = {"containers.json": containers, "fleet.json": fleet, "node.json": node, "plugin.json": plugin}


def text(name):
    return json.dumps(DASHBOARDS[name](), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    for name in DASHBOARDS:
        (pathlib.Path(__file__).parent / "dashboards" / name).write_text(text(name))
