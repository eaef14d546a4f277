"""The files that are made from the declared metrics."""

from pathlib import Path

from manifests.monitoring import fleet, grafana, health, job, reference, rules

BOARDS = (fleet.BOARD, job.BOARD, health.BOARD)


def outputs(root: Path) -> dict[Path, str]:
    """Path → text: the reference, the rules and the boards, and the chart's copies of these."""
    boards = {one.uid.removeprefix("spottrain-") + ".json": grafana.render(one) for one in BOARDS}
    made = rules.render()
    chart = root / "charts/spottrain/files"
    return {
        root / "docs/metrics.md": reference.render(),
        root / "manifests/rules.yaml": made,
        chart / "rules.yaml": made,
        **{root / "manifests/dashboards" / name: text for name, text in boards.items()},
        **{chart / "dashboards" / name: text for name, text in boards.items()},
    }
