"""Recognition by content: every format, every refusal, and text that only looks like one of them."""

import json
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reading import lines, read

from trainmon.readers import HEAD, sniff
from trainmon.readers.recognition import is_json_prefix, lines_of
from trainmon_rules.errors import BadInput

ROW = '{"step": 1, "loss": 2.0}'


def kind(data, name="some/file"):
    data = data if isinstance(data, bytes) else lines(*data)
    return sniff(name, data[:HEAD]).format


def is_log_text(data):
    """Whether it goes to the reader of log text, or is refused because it holds no metric."""
    try:
        return kind(data) == "text"
    except BadInput as error:
        return "is not a training log" in error.error


@pytest.mark.parametrize(
    "data",
    [
        [ROW],
        ROW.encode(),
        [ROW, '{"step": 2, "loss": NaN}'],
        b"\xef\xbb\xbf" + lines(ROW, ROW),
        ["", "", ROW, ""],
        lines(ROW, ROW).replace(b"\n", b"\r\n"),
        ["<<<<<<< HEAD", ROW, "=======", ROW, ">>>>>>> x"],
        [ROW, "Traceback", ROW],
        ['.5, "loss": 2.0}', ROW, ROW],
        [ROW, ROW + ","],
        ['{"step": 1, "loss": 2.0, "bbox": [0.1, 0.2]}'],
        [json.dumps({"args": {"a": "x" * 60000}}), ROW],
        [ROW] * 5000,
        lines(ROW, ROW) + b'{"step": 3, "lo',
        b"\0" * 4096 + lines(ROW),
    ],
)
def test_json_lines(data):
    assert kind(data) == "jsonl"


@pytest.mark.parametrize(
    "value",
    [
        {"log_history": [{"step": 1, "loss": 1.0}], "max_steps": 5},
        {"log_history": [], "max_steps": 5},
        [{"step": 1, "loss": 1.0}, {"step": 2, "loss": 1.0}],
        {"iters": [1, 2], "loss": [1.0, 2.0]},
        {"log_history": [{"step": i, "loss": float("nan")} for i in range(9000)]},
        {"meta": {"a": "\u00e9" * 50000}, "iters": [1, 2], "loss": [1.0, 2.0]},
    ],
)
@pytest.mark.parametrize("indent", [None, 0, 2])
def test_documents(value, indent):
    data = json.dumps(value, indent=indent, ensure_ascii=False).encode()
    assert kind(data) == "json"
    assert kind(data[: len(data) // 2]) == "json" or indent is None


def test_pretty_printed_objects_are_a_document():
    assert kind(json.dumps({"eval_loss": 1.0, "epoch": 3}, indent=4).encode()) == "json"
    assert kind((json.dumps({"step": 1, "loss": 1.0}, indent=4) + "\n").encode() * 3) == "json"


@pytest.mark.parametrize(
    "data",
    [
        ["step,loss", "1,0.5"],
        ["step,loss", "1,0.5", "2,0."],
        ["step,loss"],
        ["Wall time,Step,Value"],
        ["epoch;loss;val_loss", "0;0.1;0.2"],
        ["step\tloss", "1\t0.5"],
        ["   epoch,   train/box_loss, metrics/mAP_0.5:0.95", "   0,  0.1,  0.2"],
        ["val_loss,val_accuracy", "<<<<<<< HEAD", "1,2", "=======", "1,2", ">>>>>>> x"],
        ["a,b,c,d", "1,2", "3,4"],
        ["1,0.5", "2,0.4"],
        ["loss", "0.5", "0.4"],
        ["run,state,loss", "a,done,0.5", "b,failed,"],
        ['"step","note","loss"', '1,"a, b",0.5'],
        ["#{}", "r,l,t", "1,2,3"],
        [",step,loss", "0,1,0.5"],
        lines("step,loss", "1,0.5").replace(b"\n", b"\r\r\n"),
        ["step,loss", *(f"{i},{i / 7}" for i in range(9000))],
    ],
)
def test_tables(data):
    assert kind(data) == "table"


def test_mlflow_is_named_by_its_file():
    reader = sniff("mlruns/0/abc/metrics/val_loss", b"1664364007310 3.25 0\n1664364007320 1e-5 10\n")
    assert (reader.format, reader.tag) == ("mlflow", "val_loss")
    assert kind(b"1664364007310 nan 0") == "mlflow"
    assert kind(b"1664364007310 1.5\n") == "mlflow"


def test_tensorboards_export_is_named_by_its_file():
    assert sniff("x/run-train-tag-epoch_loss.csv", b"Wall time,Step,Value\n").tag == "epoch_loss"
    assert sniff("x/loss.csv.gz", b"Wall time,Step,Value\n").tag == "loss"


@pytest.mark.parametrize(
    "data",
    [
        ["Loading model", "step 1: loss 2.0"],
        ["Loading the data, please wait"],
        ["[default7]: iteration 1/ 10 | lm loss: 2.0", "[default7]: iteration 2/ 10 | lm loss: 2.0"],
        ["[2024-01-01 00:00:00,123] INFO epoch 1, loss 2.0", "[2024-01-01 00:00:01,123] INFO epoch 2, loss 2.0"],
        ["{'loss': 2.0, 'epoch': 0.1}", "{'loss': 1.0, 'epoch': 0.2}"],
        ["epoch 0, total_step 2, total loss is 47.09 , time 240.0 samples/sec"] * 3,
        ["Iteration 0, loss = 21.4", "    Train net output #0: accuracy = 0.75"] * 3,
        ["s:0 tel:10.98", "s:250 tel:6.3"],
        ["199         311500      3.58667", "199         311600      3.52114"],
        ["epoch | loss 3.9 | ppl 4.6", "valid | loss 3.9 | ppl 4.6"],
    ],
)
def test_log_text_is_none_of_these(data):
    assert is_log_text(data)


@pytest.mark.parametrize(
    "data", [["starting", ROW, ROW], [f"INFO | train | {ROW}"] * 3, [ROW, *["some text"] * 5], ["a", "b", "c", ROW]]
)
def test_json_among_log_text_goes_to_the_text_reader(data):
    assert kind(data) == "text"


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "is empty"),
        (b" \n\r\n\xef\xbb\xbf", "is empty"),
        (b"\0" * 5000, "nothing but zero bytes"),
        (b":W&B\xe1\xbe\x00", "run.history()"),
        (lines(ROW).decode().encode("utf-16"), "iconv"),
        (lines(ROW).decode().encode("utf-16-le"), "iconv"),
        (lines(ROW).decode().encode("utf-16-be"), "iconv"),
        (b"SQLite format 3\0" + b"\0" * 100, "SQLite"),
        (b"PK\x03\x04rest", "zip archive"),
        (pickle.dumps({"loss": [1, 2]}), "pickle"),
        (b"\x89PNG\r\n\x1a\n", "PNG"),
        (b"PAR1\x15\x04", "Parquet"),
        (b"\x7fELF\x02\x01", "executable"),
        (b"text" + b"\0\x01\x02" * 30 + b"text", "is binary"),
        (bytes(range(256)) * 8, "is binary"),
    ],
)
def test_refusals_are_one_line_that_says_what_to_do(data, says):
    with pytest.raises(BadInput) as refused:
        sniff("dir/name", data)
    assert says in str(refused.value)
    assert str(refused.value).startswith("dir/name: ")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "is_json"),
    [
        ('{"a": [1, 2, {"b": "x\\"y', True), ('{"a": tru', True), ("[1, -", True), ("[{}, {}]", True), ("{} {}", True),
        ("[rank0]: x", False), ("[1 2]", False), ("{'a': 1}", False), ('{"a": 1]', False), ("[2024-01-01 x]", False),
        ("{a}", False), ('{"a" 1}', False), ("[,1]", False), ("1 2", False),
    ],
)  # fmt: skip
def test_json_as_far_as_it_goes(text, is_json):
    assert is_json_prefix(text.encode()) == is_json


def test_a_hostile_head_is_judged_quickly():
    for data in (b"\r" * HEAD, b"[" * HEAD, b'"' * HEAD, b"{" * HEAD, b"," * HEAD, b'["' + b"\\" * HEAD, b"1" * HEAD):
        lines_of(data)
        try:
            sniff("x", data[:HEAD])
        except BadInput as error:
            assert error.error


PARTS = ["{", "}", "[", "]", ",", ":", '"', "step", "loss", "1", "2.5", "NaN", ";", "="]
soup = st.one_of(
    st.binary(max_size=300),
    st.text(max_size=200).map(lambda t: t.encode("utf-8", "surrogatepass")),
    st.lists(st.sampled_from([*PARTS, " ", "\n", "\r", ROW, "<<<<<<< a\n"]), max_size=60).map(
        lambda parts: "".join(parts).encode()
    ),
)


@given(soup)
def test_whatever_the_bytes_it_is_refused_or_read(data):
    try:
        reader = sniff("x", data)
    except BadInput as error:
        assert "\n" not in error.error
        return
    r = read(reader, data)
    assert all("\n" not in p.error for p in r.problems)
    assert all(tag.isprintable() or tag.strip("\xa0\u3000") for tag in r.points)
    json.dumps(list(r.points)).encode()
