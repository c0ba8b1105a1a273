"""Edits of a TLA+ module's text, each of which says exactly where it applies: a module that has changed is refused."""

import re


class Module:
    """The text of a module."""

    def __init__(self, text: str) -> None:
        self.text = text

    def replace(self, old: str, new: str, times: int = 1) -> None:
        """Replace text that stands in the module this many times."""
        found = self.text.count(old)
        if found != times:
            raise ValueError(f"{found} times instead of {times}: {old}")
        self.text = self.text.replace(old, new)

    def definition(self, operator: str) -> str:
        """The text of an operator's definition."""
        start, end = self._definition(operator)
        return self.text[start:end]

    def within(self, operator: str, old: str, new: str) -> None:
        """Replace text that the definition of an operator has once."""
        start, end = self._definition(operator)
        part = Module(self.text[start:end])
        part.replace(old, new)
        self.text = self.text[:start] + part.text + self.text[end:]

    def redefine(self, operator: str, definition: str) -> None:
        """Put another definition in the place of an operator's."""
        start, end = self._definition(operator)
        self.text = self.text[:start] + definition.strip("\n") + self.text[end:]

    def insert_before(self, operator: str, definitions: str) -> None:
        """Put definitions before an operator's."""
        start, _ = self._definition(operator)
        self.text = self.text[:start] + definitions.strip("\n") + "\n\n" + self.text[start:]

    def append(self, definitions: str) -> None:
        """Put definitions at the end of the module."""
        body, mark, _ = self.text.rpartition("\n====")
        if not mark:
            raise ValueError("the module has no end")
        self.text = f"{body}\n{definitions.strip(chr(10))}\n\n{'=' * 77}\n"

    def _definition(self, operator: str) -> tuple[int, int]:
        """Where an operator's definition begins and ends: at the next line that is empty or not indented."""
        found = re.search(rf"^{operator}\b[^\n]*==", self.text, re.MULTILINE)
        if not found:
            raise ValueError(f"no definition of {operator}")
        end = re.compile(r"\n(?=\S|[ \t]*\n)").search(self.text, found.end())
        return found.start(), end.start() if end else len(self.text)
