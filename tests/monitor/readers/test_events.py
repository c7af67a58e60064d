"""Event files: the points that TensorBoard's own messages hold, whoever wrote them and however they are cut."""

import json
import math
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from tensorboard.compat.proto.summary_pb2 import HistogramProto, Summary, SummaryMetadata
from tensorboard.compat.proto.tensor_pb2 import TensorProto
from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto
from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData
from tensorboard.summary.writer.event_file_writer import EventFileWriter
from tfevents_kit import (
    by_tag,
    decodes,
    events_of,
    frame,
    oracle,
    oracle_event,
    params_of,
    payloads,
    pieces,
    points,
    problems_of,
    read,
    scalar,
    version,
)

from trainmon.readers import HEAD, sniff
from trainmon.readers.events import EventReader
from trainmon_rules.points import Boundary, Finish

FLOAT, DOUBLE, INT32, UINT8, INT16, INT8, STRING, INT64, BOOL = 1, 2, 3, 4, 5, 6, 7, 9, 10
BFLOAT16, UINT16, HALF, UINT32, UINT64 = 14, 17, 19, 22, 23


def tensor(dtype, shape=(), content=b"", **typed):
    dims = [TensorShapeProto.Dim(size=n) for n in shape]
    return TensorProto(dtype=dtype, tensor_shape=TensorShapeProto(dim=dims), tensor_content=content, **typed)


def metadata(plugin, content=b""):
    return SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name=plugin, content=content))


def event(*values, step=3, wall_time=1.7e9):
    return Event(wall_time=wall_time, step=step, summary=Summary(value=values)).SerializeToString()


def tensor_value(tag, proto, plugin="scalars", content=b""):
    return Summary.Value(tag=tag, tensor=proto, metadata=metadata(plugin, content))


def text_value(tag, text):
    return tensor_value(tag, tensor(STRING, (1,), string_val=[text.encode()]), "text")


def read_payloads(*records):
    return read(EventReader(), [b"".join(map(frame, records))])


def values_of(*records):
    return [p[3] for p in points(read_payloads(*records)[1])]


# ---------------------------------------------------------------------- scalars
CONTENTS = [
    (FLOAT, struct.pack("<f", -2.5), -2.5),
    (DOUBLE, struct.pack("<d", 0.1), 0.1),
    (HALF, struct.pack("<e", 0.5), 0.5),
    (BFLOAT16, struct.pack("<f", 1.5)[2:], 1.5),
    (INT8, struct.pack("<b", -7), -7),
    (INT16, struct.pack("<h", -700), -700),
    (INT32, struct.pack("<i", -70000), -70000),
    (INT64, struct.pack("<q", -(1 << 40)), -(1 << 40)),
    (UINT8, b"\xff", 255),
    (UINT16, struct.pack("<H", 65535), 65535),
    (UINT32, struct.pack("<I", 1 << 31), 1 << 31),
    (UINT64, struct.pack("<Q", 1 << 63), 1 << 63),
    (BOOL, b"\1", 1),
]
TYPED = [
    (FLOAT, {"float_val": [-2.5]}, -2.5),
    (DOUBLE, {"double_val": [0.1]}, 0.1),
    (HALF, {"half_val": [0x3800]}, 0.5),
    (BFLOAT16, {"half_val": [0x3FC0]}, 1.5),
    (INT8, {"int_val": [-7]}, -7),
    (INT16, {"int_val": [-700]}, -700),
    (INT32, {"int_val": [-70000]}, -70000),
    (INT64, {"int64_val": [-(1 << 40)]}, -(1 << 40)),
    (UINT8, {"int_val": [255]}, 255),
    (UINT16, {"int_val": [65535]}, 65535),
    (UINT32, {"uint32_val": [1 << 31]}, 1 << 31),
    (UINT64, {"uint64_val": [1 << 63]}, 1 << 63),
    (BOOL, {"bool_val": [True]}, 1),
    (FLOAT, {}, 0.0),  # TensorFlow leaves out what is zero
]


@pytest.mark.parametrize("shape", [(), (1,)])
@pytest.mark.parametrize(("dtype", "content", "expected"), CONTENTS)
def test_every_numeric_type_from_raw_content(dtype, content, expected, shape):
    record = event(tensor_value("x", tensor(dtype, shape, content)))
    assert values_of(record, record) == [expected] * 2  # the second goes by the remembered shape


@pytest.mark.parametrize("shape", [(), (1,)])
@pytest.mark.parametrize(("dtype", "typed", "expected"), TYPED)
def test_every_numeric_type_from_typed_fields(dtype, typed, expected, shape):
    record = event(tensor_value("x", tensor(dtype, shape, **typed)))
    assert values_of(record, record) == [expected] * 2


@pytest.mark.parametrize(
    "proto",
    [
        tensor(FLOAT, (2,), struct.pack("<ff", 1, 2)),
        tensor(FLOAT, (1, 1), struct.pack("<f", 1)),
        tensor(FLOAT, (), b"\0\0"),
        tensor(8, (), bytes(8)),  # complex
        TensorProto(dtype=FLOAT, tensor_shape=TensorShapeProto(unknown_rank=True), float_val=[1]),
    ],
)
def test_other_tensors_are_counted(proto):
    reader, batches = read_payloads(event(tensor_value("x", proto)))
    assert points(batches) == []
    assert reader.skipped == {"tensors": 1}
    assert not problems_of(batches)


def test_a_missing_step_is_zero_and_a_missing_time_is_nan():
    value = Summary.Value(tag="x", simple_value=2)
    bare = Event(summary=Summary(value=[value])).SerializeToString()
    [(_, step, time, number, row)] = points(read_payloads(bare)[1])
    assert (step, number, row) == (0, 2, 0)
    assert math.isnan(time)
    assert math.isnan(points(read_payloads(event(value, wall_time=math.nan))[1])[0][2])


@pytest.mark.parametrize("step", [0, 1, 127, 128, 16383, 16384, 1 << 48, 1 << 56, (1 << 63) - 1, -1, -(1 << 63)])
def test_steps_of_every_width(step):
    record = event(Summary.Value(tag="x", simple_value=2), step=step)
    assert [p[1] for p in points(read_payloads(record, record)[1])] == [step] * 2


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 0.0])
def test_values_that_are_not_finite_are_points(value):
    assert str(values_of(*[scalar(i, value) for i in range(3)])) == str([value] * 3)


def test_values_of_one_event_share_its_row_and_tags_stand_in_order_of_appearance():
    pair = event(Summary.Value(tag="b", simple_value=1), Summary.Value(tag="a", simple_value=2))
    _, [batch, _] = read_payloads(version(), scalar(0, 3.0, "c"), pair, pair)
    assert [(c.tag, c.row.tolist()) for c in batch.chunks] == [("c", [1]), ("b", [2, 3]), ("a", [2, 3])]


def test_a_tag_that_is_no_utf8_keeps_its_points():
    record = scalar(1, 2.0, "abc").replace(b"abc", b"a\xffc")
    pair = event(Summary.Value(tag="abc", simple_value=1), Summary.Value(tag="d", simple_value=2))
    reader, batches = read_payloads(record, record, pair.replace(b"abc", b"a\xffc"))
    assert [(p[0], p[3]) for p in points(batches)] == [("a�c", 2), ("a�c", 2), ("a�c", 1), ("d", 2)]
    assert not reader.skipped


def test_unknown_fields_are_passed_over():
    record = scalar(1, 2.0) + b"\xfa\x01\x03abc"
    assert values_of(record, record) == [2, 2]


# ---------------------------------------------------------------------- what is no scalar
def test_everything_else_is_counted_by_kind():
    reader, batches = read_payloads(
        version(),
        Event(graph_def=b"x").SerializeToString(),
        Event(meta_graph_def=b"x").SerializeToString(),
        Event(tagged_run_metadata={"tag": "t"}).SerializeToString(),
        Event(session_log=SessionLog(status=SessionLog.CHECKPOINT)).SerializeToString(),
        event(Summary.Value(tag="i", image=Summary.Image(height=1)), Summary.Value(tag="l", simple_value=1)),
        event(Summary.Value(tag="h", histo=HistogramProto(min=1)), Summary.Value(tag="a", audio=Summary.Audio())),
        event(tensor_value("h2", tensor(DOUBLE, (1, 3), bytes(24)), "histograms")),
        event(tensor_value("i2", tensor(STRING, (3,), string_val=[b"1", b"1", b"png"]), "images")),
        event(tensor_value("keras", tensor(STRING, string_val=[b"{}"]), "graph_keras_model")),
        event(Summary.Value(tag="none")),
        event(text_value("sample", "Once upon a time\nthere was")),
    )
    assert reader.skipped == {
        "graphs": 3, "run metadata": 1, "images": 2, "histograms": 2, "audio": 1,
        "values without a number": 1, "text": 1,
    }  # fmt: skip
    assert [p[0] for p in points(batches)] == ["l"]
    assert not events_of(batches)
    assert not problems_of(batches)


@pytest.mark.parametrize("records", [[], [version()], [Event(wall_time=1).SerializeToString()], [b""]])
def test_files_without_a_point_are_read_quietly(records):
    reader, batches = read_payloads(*records)
    assert not any(batches)
    assert not reader.skipped


def test_a_record_that_is_no_event_is_a_problem_and_the_rest_goes_on():
    reader, batches = read_payloads(scalar(0, 1.0), b"\x2a\xff", scalar(1, 2.0), b"\x03", scalar(2, 3.0))
    assert [(p[3], p[4]) for p in points(batches)] == [(1, 0), (2, 2), (3, 4)]
    first, second = len(frame(scalar(0, 1.0))), len(frame(scalar(1, 2.0)))
    assert [p.offset for p in problems_of(batches)] == [first, first + len(frame(b"ab")) + second]
    assert reader.skipped == {"corrupt records": 2}


# ---------------------------------------------------------------------- settings and marks
def test_hparams_of_the_plugin():
    data = HParamsPluginData()
    for name, value in {"lr": 1e-3, "batch_size": 32.0}.items():
        data.session_start_info.hparams[name].number_value = value
    data.session_start_info.hparams["optimizer"].string_value = "adamw"
    data.session_start_info.hparams["amp"].bool_value = True
    start = Summary.Value(tag="_hparams_/session_start_info", metadata=metadata("hparams", data.SerializeToString()))
    end = Summary.Value(tag="_hparams_/session_end_info", metadata=metadata("hparams", b"\x22\x02\x08\x01"))
    reader, batches = read_payloads(version(), event(start), event(end))
    [params] = events_of(batches)
    assert params.row == 1
    assert params.values == {"lr": 1e-3, "batch_size": 32, "optimizer": "adamw", "amp": True}
    assert reader.skipped == {"hparams": 1}


def test_the_placeholder_metric_is_no_point():
    reader, batches = read_payloads(scalar(0, -1.0, "hp_metric"), scalar(0, -1.0, "loss"), scalar(1, 0.5, "hp_metric"))
    assert [(p[0], p[3]) for p in points(batches)] == [("loss", -1), ("hp_metric", 0.5)]
    assert reader.skipped == {"placeholder hp_metric": 1}


ARGS = {"learning_rate": 5e-5, "fp16": True, "optim": {"name": "adamw", "betas": [0.9, 0.95]}, "seed": None}


@pytest.mark.parametrize(
    ("tag", "text", "expected"),
    [
        ("args/text_summary", json.dumps(ARGS, indent=2), {"learning_rate": 5e-5, "optim/name": "adamw"}),
        ("args", "\t{\n\t  \"lr\": 0.1,\n\t}".replace(",\n\t}", "\n\t}"), {"lr": 0.1}),
        ("hyperparameters/text_summary", "|param|value|\n|-|-|\n|lr|0.1|\n|env|a|b|", {"lr": 0.1, "env": "a|b"}),
        ("hps", "key | value\n:--- | :---:\n`clip` | True\nname | x", {"clip": True, "name": "x"}),
        ("num_layers/text_summary", "24", {"num_layers": 24}),
        ("lr/text_summary", "0.00015", {"lr": 0.00015}),
        ("fp16/text_summary", "True", {"fp16": True}),
        ("load/text_summary", "None", {"load": None}),
        ("lr_decay_style", "cosine", {"lr_decay_style": "cosine"}),
    ],
)  # fmt: skip
def test_settings_in_texts(tag, text, expected):
    _, batches = read_payloads(event(text_value(tag, text)))
    found = params_of(batches)
    assert {k: found.get(k, "absent") for k in expected} == expected


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"two\nlines",
        b'{"broken": ',
        b"[1, 2]",
        b"x" * 600,
        b"{" * 100_000,
        b"a | b\nno bar here",
        b"\xed\xa0\x80\n",
    ],
)
def test_texts_that_hold_no_settings_are_counted(raw):
    record = event(tensor_value("some text", tensor(STRING, (1,), string_val=[raw]), "text"))
    reader, batches = read_payloads(record)
    assert not any(batches)
    assert reader.skipped == {"text": 1}


def test_only_the_first_text_of_a_tag_is_a_setting():
    reader, batches = read_payloads(*[event(text_value("sample", f"text {i}")) for i in range(5)])
    assert params_of(batches) == {"sample": "text 0"}
    assert reader.skipped == {"text": 4}


def test_the_second_start_is_a_resume_and_stop_is_the_end():
    def mark(status, step):
        return Event(step=step, session_log=SessionLog(status=status)).SerializeToString()

    start, stop = SessionLog.START, SessionLog.STOP
    _, batches = read_payloads(mark(start, 0), scalar(1, 1.0), mark(start, 5), scalar(5, 2.0), mark(stop, 9))
    assert events_of(batches) == [
        Boundary(2, "attempt", "SessionLog.START at step 5"),
        Finish(4, "SessionLog.STOP at step 9"),
    ]


# ---------------------------------------------------------------------- files
def test_a_file_by_tensorboards_own_writer(tmp_path):
    writer = EventFileWriter(str(tmp_path))
    for step in range(200):
        e = Event(wall_time=1.7e9 + step, step=step)
        e.summary.value.add(tag="loss", simple_value=2 / (step + 1))
        e.summary.value.append(tensor_value("lr", tensor(FLOAT, (), float_val=[1e-3 * step])))
        writer.add_event(e)
    writer.close()
    [path] = tmp_path.iterdir()
    data = path.read_bytes()
    reader = sniff(path.name, data[:HEAD])
    assert reader.format == "tfevents"
    reader, batches = read(reader, [data])
    assert by_tag(points(batches)) == by_tag(oracle(data))
    assert len(points(batches)) == 400
    assert reader.axis == "step"
    assert reader.offset == len(data)


tags = st.sampled_from(["loss", "train/grad norm", "Δ", "mfu(%)", "lm loss vs samples", "hp_metric", "x" * 600])
numbers = st.floats(width=32)


@st.composite
def logged_values(draw):
    tag, x = draw(tags), draw(numbers)
    return draw(
        st.sampled_from(
            [
                Summary.Value(tag=tag, simple_value=x),
                Summary.Value(tag=tag, simple_value=x, metadata=metadata("scalars")),
                Summary.Value(tag=tag, simple_value=x, node_name="n"),
                tensor_value(tag, tensor(FLOAT, (), struct.pack("<f", x))),
                tensor_value(tag, tensor(FLOAT, (1,), float_val=[x])),
                tensor_value(tag, tensor(DOUBLE, (), double_val=[x])),
                tensor_value(tag, tensor(INT64, (), int64_val=[draw(st.integers(-(2**63), 2**63 - 1))]), ""),
                tensor_value(tag, tensor(FLOAT, (2,), bytes(8))),
                text_value(tag, "lr"),
                Summary.Value(tag=tag, image=Summary.Image(encoded_image_string=b"\0" * 50)),
            ]
        )
    )


steps = st.one_of(st.integers(0, 300), st.integers(-(2**63), 2**63 - 1))
records = st.builds(
    lambda values, step, time: event(*values, step=step, wall_time=time),
    st.lists(logged_values(), max_size=3), steps, st.floats(),
)  # fmt: skip
files = (
    st.lists(records, max_size=12)
    .flatmap(lambda some: st.permutations(some * 2))
    .map(lambda r: b"".join(map(frame, r)))
)


@given(files, st.lists(st.integers(0, 6000), max_size=8), st.booleans())
def test_points_are_those_of_the_messages_however_the_file_is_cut(data, cuts, pickled):
    whole, expected = read(EventReader(), [data])
    assert by_tag(points(expected)) == by_tag(oracle(data))
    reader, batches = read(EventReader(), pieces(data, cuts), pickled)
    assert by_tag(points(batches)) == by_tag(points(expected))
    assert events_of(batches) == events_of(expected)
    assert reader.skipped == whole.skipped
    assert reader.row == whole.row == len(list(payloads(data)))
    assert not problems_of(batches)


@given(records, st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), min_size=1, max_size=3))
def test_a_strange_event_is_read_as_the_messages_read_it(record, changes):
    strange = bytearray(record)
    for at, byte in changes:
        strange[at % len(strange)] = byte
    strange = bytes(strange)
    _, batches = read_payloads(record, strange)
    if decodes(strange) and not problems_of(batches):
        try:
            expected = list(oracle_event(strange, 1))
        except (ValueError, TypeError, KeyError):
            return  # the oracle can't make an array of it
        found = [p for p in points(batches) if p[4] == 1]
        assert by_tag(found) == by_tag(expected)


def test_each_flipped_bit_loses_at_most_its_record_and_makes_up_no_point():
    tf2 = [event(tensor_value("lr", tensor(FLOAT, (), struct.pack("<f", i))), step=i) for i in range(4)]
    torch = [scalar(i, 1.0 / (i + 1)) for i in range(4)]
    parts = [frame(r) for r in [version(), *(r for pair in zip(torch, tf2, strict=True) for r in pair)]]
    data = b"".join(parts)
    true = [p[:4] for p in oracle(data)]
    stops = np.cumsum([len(p) for p in parts])
    for i in range(len(data)):
        hit = int(np.searchsorted(stops, i, side="right"))
        for bit in range(8):
            broken = bytearray(data)
            broken[i] ^= 1 << bit
            reader, batches = read(sniff("x", bytes(broken)), [bytes(broken)])
            expected = [p for row, p in enumerate(true, 1) if row != hit]
            assert sorted(p[:4] for p in points(batches)) == sorted(expected), (i, bit)
            [problem] = problems_of(batches)
            assert problem.offset == stops[hit] - len(parts[hit])
            assert reader.skipped["corrupt records"] == 1


def test_a_hole_filled_later_gives_every_point():
    data = b"".join(frame(scalar(i, 1.0 / (i + 1))) for i in range(40))
    reader = EventReader()
    first = reader.feed(data[:700] + bytes(300) + data[1000:])
    at = reader.rewind()
    assert at is not None
    assert at <= 700
    batches = [first, reader.feed(data[at:]), reader.finish()]
    assert points(batches) == oracle(data)
    assert not problems_of(batches)


def test_a_hole_can_be_given_up():
    data = b"".join(frame(scalar(i, 1.0 / (i + 1))) for i in range(40))
    reader = EventReader()
    batches = [reader.feed(data[:700] + bytes(300) + data[1000:]), reader.give_up()]
    size = len(frame(scalar(1, 0.5)))
    lost = 1 + (1000 - 700) // size
    assert lost <= 40 - len(points(batches)) <= lost + 1
    assert len(problems_of(batches)) == 1


# ---------------------------------------------------------------------- the corpus
def test_every_event_file_of_the_corpus(corpus):
    paths = sorted(p for p in (corpus / "tfevents").rglob("*tfevents*") if p.is_file())
    assert len(paths) > 30
    for path in paths:
        data = path.read_bytes()
        step = max(1, len(data) // 7)
        reader, batches = read(sniff(path.name, data[:HEAD]), pieces(data, range(step, len(data), step)))
        assert by_tag(points(batches)) == by_tag(oracle(data)), path.name
        assert not problems_of(batches), path.name
        assert "cut tail" not in reader.skipped
