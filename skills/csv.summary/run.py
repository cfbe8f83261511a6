"""Summarises the columns of a CSV file of the workspace."""

import csv
import json
import os

ROOT = os.environ.get("GLOVEBOX_WORK", "/workspace/work")
ARTIFACTS = os.environ.get("GLOVEBOX_ARTIFACTS", "/workspace/artifacts")


def given():
    with open(os.environ["GLOVEBOX_SKILL_INPUT"], encoding="utf-8") as file:
        return json.load(file)


def answer(output):
    with open(os.path.join(ARTIFACTS, "output.json"), "w", encoding="utf-8") as file:
        json.dump(output, file, ensure_ascii=False)


def below(path):
    """The path in the workspace, wherever its links lead, or an end with a reason."""
    root = os.path.realpath(ROOT)
    whole = os.path.realpath(os.path.join(root, path))
    if whole != root and not whole.startswith(root + os.sep):
        raise SystemExit(f"`{path}` leads out of the workspace")
    return whole


DISTINCT_MAX = 10_000


class Column:
    def __init__(self, name):
        self.name = name
        self.empty = self.numbers = self.texts = 0
        self.distinct = set()
        self.total = 0.0
        self.least = self.most = None

    def add(self, text):
        if text == "":
            self.empty += 1
            return
        if len(self.distinct) < DISTINCT_MAX:
            self.distinct.add(text)
        number = as_number(text)
        if number is None:
            self.texts += 1
            return
        self.numbers += 1
        self.total += number
        self.least = number if self.least is None else min(self.least, number)
        self.most = number if self.most is None else max(self.most, number)

    def summary(self):
        told = {"name": self.name, "empty": self.empty, "distinct": len(self.distinct)}
        if self.texts:
            return {**told, "kind": "text", "min": min(self.distinct), "max": max(self.distinct)}
        if self.numbers:
            mean = self.total / self.numbers
            return {**told, "kind": "number", "min": self.least, "max": self.most, "mean": mean}
        return {**told, "kind": "empty"}


def as_number(text):
    try:
        number = float(text)
    except ValueError:
        return None
    # What JSON has no word for is a text.
    return number if number - number == 0 else None


def main():
    wish = given()
    try:
        with open(below(wish["path"]), encoding="utf-8-sig", errors="replace", newline="") as file:
            rows = csv.reader(file, delimiter=wish["delimiter"])
            columns = [Column(name) for name in next(rows, [])]
            count = 0
            for row in rows:
                if not row:
                    continue
                count += 1
                for column, text in zip(columns, row):
                    column.add(text)
                for column in columns[len(row):]:
                    column.add("")
    except (OSError, csv.Error) as error:
        raise SystemExit(f"it cannot be read: {error}")
    answer({"rows": count, "columns": [column.summary() for column in columns]})


main()
