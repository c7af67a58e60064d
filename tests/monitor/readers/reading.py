"""Helpers of the readers' tests: read bytes in any pieces, and put what came out into comparable form."""

import math
import pickle
from collections import Counter
from itertools import pairwise

from hypothesis import strategies as st


def canon(x):
    """A float that equals itself: NaN and -0.0 have a text."""
    return repr(x) if math.isnan(x) or x == 0 else x


class Result:
    """All that a reader said about a source: points by tag, events, problems, counts."""

    def __init__(self, reader, batches):
        self.points = {}
        for b in batches:
            for c in b.chunks:
                assert len(c.step) == len(c.time) == len(c.value) == len(c.row) > 0
                assert (c.row[1:] >= c.row[:-1]).all()
                points = zip(c.row.tolist(), c.step.tolist(), c.time.tolist(), c.value.tolist(), strict=True)
                self.points.setdefault(c.tag, []).extend((r, s, canon(t), canon(v)) for r, s, t, v in points)
        self.events = sorted((e for b in batches for e in b.events), key=lambda e: e.row)
        self.problems = [p for b in batches for p in b.problems]
        self.skipped = Counter(reader.skipped)
        self.axis = reader.axis
        self.offset = reader.offset

    @property
    def count(self):
        return sum(map(len, self.points.values()))

    def steps(self, tag):
        return [s for _, s, _, _ in self.points[tag]]

    def times(self, tag):
        return [t for _, _, t, _ in self.points[tag]]

    def values(self, tag):
        return [v for _, _, _, v in self.points[tag]]

    def of(self, kind):
        return [e for e in self.events if isinstance(e, kind)]

    __hash__ = None

    def __eq__(self, other):
        # Settings may hold NaN, which equals itself in a repr only once it was pickled.
        return {**vars(self), "events": repr(self.events)} == {**vars(other), "events": repr(other.events)}

    def __repr__(self):
        return repr(vars(self))


def read(reader, data, cuts=(), pickled=False):
    """Read `data` cut at the given places; pickle the reader between the pieces if asked."""
    batches = []
    for a, b in pairwise((0, *sorted(c for c in cuts if 0 < c < len(data)), len(data))):
        batches.append(reader.feed(data[a:b]))
        if pickled:
            reader = pickle.loads(pickle.dumps(reader))
    batches.append(reader.finish())
    return Result(reader, batches)


def lines(*texts):
    return "".join(t + "\n" for t in texts).encode()


cuts = st.lists(st.integers(0, 4000), max_size=8)
