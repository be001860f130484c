"""A line of the table of tools/bench-traces."""
import dataclasses


@dataclasses.dataclass
class Row:
    case: str
    published: str
    ours: str
    met: bool | None = None  # None: nothing was claimed
    note: str = ""
