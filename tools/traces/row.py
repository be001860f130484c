"""A line of the table of tools/bench-traces."""
import dataclasses


@dataclasses.dataclass
class Row:
    case: str
    published: str
    ours: str
    met: bool | None = None  # None: no published claim
    note: str = ""
