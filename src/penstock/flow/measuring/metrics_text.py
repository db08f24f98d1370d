"""Metrics as text that Prometheus reads: one family after the other, each with its help, type and unit."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple


class Family(NamedTuple):
    """One metric: how it is called there, where it stands in the report, and what it means."""

    name: str
    kind: Literal["counter", "gauge"]
    path: tuple[str, ...]
    help: str


FAMILIES = (
    Family("penstock_batches_total", "counter", ("batches",), "Batches delivered."),
    Family("penstock_samples_total", "counter", ("samples",), "Samples delivered."),
    Family("penstock_bad_samples_total", "counter", ("bad_samples",), "Samples that were replaced."),
    Family("penstock_running_seconds_total", "counter", ("running_seconds",), "Seconds that epochs were running."),
    Family("penstock_waited_seconds_total", "counter", ("waited_seconds",), "Seconds that batches were waited for."),
    Family("penstock_consumer_seconds_total", "counter", ("consumer_seconds",), "Seconds that batches were used."),
    Family("penstock_core_wait_seconds_total", "counter", ("core_wait_seconds",), "Seconds that no core was free."),
    Family("penstock_ready_batches_mean", "gauge", ("ready_batches", "mean"), "Batches ready when one was asked for."),
    Family("penstock_ready_batches_least", "gauge", ("ready_batches", "least"), "The fewest that were ready."),
    Family("penstock_workers", "gauge", ("settings", "workers"), "Workers now."),
    Family("penstock_prefetch_batches", "gauge", ("settings", "prefetch"), "Batches made ahead now."),
)
HOP_FAMILIES = (
    Family("penstock_hop_items_total", "counter", ("items",), "Samples that passed a hop."),
    Family("penstock_hop_cpu_seconds_total", "counter", ("cpu_seconds",), "CPU seconds of a hop."),
    Family("penstock_hop_wait_seconds_total", "counter", ("wait_seconds",), "Seconds of a hop without the CPU."),
    Family("penstock_hop_bytes_total", "counter", ("bytes",), "Bytes that a hop read or wrote."),
)


def metrics_text(report: dict[str, Any], flow: str | None = None) -> str:
    """A report of metrics; `flow` tells several flows of a program apart."""
    common = {} if flow is None else {"flow": flow}
    lines: list[str] = []
    for family in FAMILIES:
        value: Any = report
        for key in family.path:
            value = value[key]
        lines += [*_head(family), f"{family.name}{_labels(common)} {_number(value)}"]
    for family in HOP_FAMILIES:
        lines += _head(family)
        for hop, cost in report["hops"].items():
            lines.append(f"{family.name}{_labels({**common, 'hop': hop})} {_number(cost[family.path[0]])}")
    return "\n".join(lines) + "\n"


def _head(family: Family) -> list[str]:
    return [f"# HELP {family.name} {family.help}", f"# TYPE {family.name} {family.kind}"]


def _labels(labels: dict[str, str]) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items()) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    return repr(float(value)) if isinstance(value, float) else str(int(value))
