"""What the tests of the event reader share: writing records by hand, and TensorBoard's own messages as oracle."""

import math
import pickle
import struct
from itertools import pairwise

import numpy as np
from google.protobuf.message import DecodeError
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.types_pb2 import DataType
from tensorboard.util import tensor_util

from trainmon.readers.crc import masked
from trainmon_rules.points import Params

NOT_SCALARS = ("audio", "histograms", "images", "mesh", "pr_curves")


def frame(payload, length=None):
    """A record; `length` replaces the true one, with a checksum that fits it."""
    header = struct.pack("<Q", len(payload) if length is None else length)
    return header + struct.pack("<I", masked(header)) + payload + struct.pack("<I", masked(payload))


def scalar(step, value, tag="loss", wall_time=1.7e9):
    event = Event(wall_time=wall_time + step, step=step)
    event.summary.value.add(tag=tag, simple_value=value)
    return event.SerializeToString()


def version():
    return Event(wall_time=1.7e9, file_version="brain.Event:2").SerializeToString()


def payloads(data):
    """The payloads of an unbroken file, read in the simplest way."""
    at = 0
    while at < len(data):
        (length,) = struct.unpack_from("<Q", data, at)
        yield data[at + 12 : at + 12 + length]
        at += 16 + length


def oracle(data):
    """(tag, step, time, value, row) of each scalar, by TensorBoard's messages."""
    return [p for row, payload in enumerate(payloads(data)) for p in oracle_event(payload, row)]


def oracle_event(payload, row=0):
    event = Event.FromString(payload)
    time = event.wall_time or math.nan  # zero and missing are the same
    for value in event.summary.value:
        plugin = value.metadata.plugin_data.plugin_name
        if plugin == "hparams":
            continue
        if value.WhichOneof("value") == "simple_value":
            if value.tag == "hp_metric" and value.simple_value == -1:
                continue
            yield value.tag, event.step, time, value.simple_value, row
        elif value.WhichOneof("value") == "tensor" and plugin not in NOT_SCALARS:
            shape = [d.size for d in value.tensor.tensor_shape.dim]
            if shape in ([], [1]) and value.tensor.dtype != DataType.DT_STRING:
                number = tensor_util.make_ndarray(value.tensor).item()
                yield value.tag, event.step, time, float(number), row


def decodes(payload):
    try:
        Event.FromString(payload)
    except DecodeError:
        return False
    return True


def points(batches):
    """(tag, step, time, value, row) of all points, in order of rows."""
    out = []
    for batch in batches:
        for c in batch.chunks:
            assert c.step.dtype == c.row.dtype == np.int64
            assert c.time.dtype == c.value.dtype == np.float64
            assert (np.diff(c.row) >= 0).all()
            rows = (c.step.tolist(), c.time.tolist(), c.value.tolist(), c.row.tolist())
            out.extend(zip([c.tag] * len(c), *rows, strict=True))
    return out


def by_tag(found):
    """Points grouped by tag, comparable even with NaN in them."""
    out = {}
    for tag, step, time, value, row in found:
        out.setdefault(tag, []).append((step, _bits(time), _bits(value), row))
    return out


def _bits(x):
    return "nan" if math.isnan(x) else x


def events_of(batches):
    return [e for b in batches for e in b.events]


def params_of(batches):
    return {k: v for e in events_of(batches) if isinstance(e, Params) for k, v in e.values.items()}


def problems_of(batches):
    return [p for b in batches for p in b.problems]


def pieces(data, cuts):
    """`data` cut at the given places."""
    edges = [0, *sorted({min(c, len(data)) for c in cuts}), len(data)]
    return [data[a:b] for a, b in pairwise(edges)]


def read(reader, parts, pickled=False):
    """All batches of a reader that is fed the parts in turn."""
    out = []
    for part in parts:
        out.append(reader.feed(part))
        if pickled:
            reader = pickle.loads(pickle.dumps(reader))
    out.append(reader.finish())
    return reader, out
