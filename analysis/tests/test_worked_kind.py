"""The traffic kind that docs/extend.md adds."""

import re
from pathlib import Path

from analysis.metrics.datagrams import Schedule
from traffic.shared.datagrams import DatagramKind, Train

PAGE = Path(__file__).resolve().parents[2] / "docs" / "extend.md"


def test_the_page_s_burst_is_a_kind_whose_datagrams_are_written_when_its_train_sends_them() -> None:
    section = PAGE.read_text().partition("## Add a traffic kind")[2]
    code = re.search(r"```python\n(.*?)```", section, re.DOTALL)
    assert code is not None
    module: dict[str, object] = {}
    exec("\n".join(line.removeprefix("   ") for line in code[1].splitlines()), module)
    kind = module["KIND"]
    assert isinstance(kind, DatagramKind)
    written = {"count": 5, "period": 0.5, "bytes": 512}
    assert kind.train(kind.keys.model_validate(written)) == Train(every_s=0.5, packets=5, packet_bytes=512)
    schedule = Schedule(0, kind.interval_s(written), 20, kind.at_once(written))
    assert [schedule.written_ns(number) for number in (0, 4, 5, 19)] == [0, 0, 500_000_000, 1_500_000_000]
