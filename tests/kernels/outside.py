"""The protocol of docs/adding-a-protocol.md, for tests of what a package from outside may declare wrongly."""

import hashlib
import re
from types import ModuleType
from typing import Any

from quorisk.kernels.engines.points import Point
from quorisk.kernels.model import Model
from tests.support import ROOT

_PAGE = (ROOT / "docs" / "adding-a-protocol.md").read_text()
(_CODE,) = re.findall(r"^`primary_backup/__init__.py`:\n\n```python\n(.*?)^```", _PAGE, re.MULTILINE | re.DOTALL)
PACKAGE: Any = ModuleType("primary_backup_of_the_page")
exec(compile(_CODE, "primary_backup", "exec"), PACKAGE.__dict__)
MODEL: Model = PACKAGE.MODEL
VALUES = {"replicas": 4, "acks": 2, "max_crashes": 3, "elect_holder": 0}
PARAMS = MODEL.make_params(VALUES)


def changed(case: str, **fields: Any) -> Model:
    """The page's model with some fields of its own: under another name, as compiled code is kept by names."""
    digest = hashlib.sha256(_CODE.encode() + repr(sorted(fields)).encode()).hexdigest()[:8]
    return MODEL._replace(name=f"told_wrongly_{case}_{digest}", **fields)


def point(**rates: float) -> Point:
    """A point of any such model."""
    return Point(VALUES, rates, message_loss=0.2, max_steps=1000, horizon=float("inf"))


def action(name: str, **fields: Any) -> tuple[Any, ...]:
    """The page's actions, one of them changed."""
    return tuple(each._replace(**fields) if each.name == name else each for each in MODEL.actions)
