"""Text logs: every dialect, the axis, overflows, hostile input, the user's own dialects, real files."""

# ruff: noqa: E501 - log lines are as long as they are

import itertools
import math
import pickle
import re
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainmon.readers.dialects import load_dialects
from trainmon.readers.prefixes import clean, strip_prefix, take_bar
from trainmon.readers.text import MAX_TEXT, TextReader, looks_like_text_log
from trainmon.readers.textvalues import to_number
from trainmon_rules.attempts import Splitter
from trainmon_rules.errors import BadConfig
from trainmon_rules.points import Boundary, Finish, Params

NAN = math.nan
INF = math.inf


def read(text, extra=None):
    reader = TextReader(extra)
    data = text if isinstance(text, bytes) else text.encode()
    return reader, [reader.feed(data), reader.finish()]


def points(batches):
    """All points by tag, as (step, value) with NaN written "nan" so that lists compare."""
    out = defaultdict(list)
    for batch in batches:
        for c in batch.chunks:
            out[c.tag] += [
                (s, "nan" if math.isnan(v) else v) for s, v in zip(c.step.tolist(), c.value.tolist(), strict=True)
            ]
    return dict(out)


def events(batches, kind):
    return [e for b in batches for e in b.events if isinstance(e, kind)]


DIALECTS = {
    "huggingface": (
        ("{'loss': 1.25, 'grad_norm': nan, 'learning_rate': 5e-05, 'epoch': 0.1}\n"
        "{'loss': '0.75', 'grad_norm': inf, 'learning_rate': '4e-05', 'epoch': '0.2'}\n"
        "{'eval_loss': 0.5, 'eval_runtime': 3.5, 'epoch': 0.2}\n"),
        {
            "loss": [(0, 1.25), (1, 0.75)],
            "grad_norm": [(0, "nan"), (1, INF)],
            "learning_rate": [(0, 5e-5), (1, 4e-5)],
            "epoch": [(0, 0.1), (1, 0.2), (2, 0.2)],
            "eval_loss": [(2, 0.5)],
            "eval_runtime": [(2, 3.5)],
        },
    ),
    "huggingface-epochs": (
        "{'loss': 1.25, 'epoch': 1.0}\n{'eval_loss': 1.5, 'epoch': 1.0}\n{'loss': 0.25, 'epoch': 2.0}\n",
        {"loss": [(1, 1.25), (2, 0.25)], "eval_loss": [(1, 1.5)]},
    ),
    "json": (
        ('2021-03-04 05:06:07 | INFO | train_inner | {"epoch": 1, "update": 0.14, "loss": "15.25", "num_updates": "100",'
        ' "loss_scale": "0", "note": "x"}\n'
        '2021-03-04 05:07:07 | INFO | valid | {"epoch": 1, "valid_loss": "14.5", "valid_num_updates": "120"}\n'),
        {
            "epoch": [(100, 1.0), (120, 1.0)],
            "update": [(100, 0.14)],
            "loss": [(100, 15.25)],
            "valid_loss": [(120, 14.5)],
        },
    ),
    "megatron": (
        (" iteration       10/     500 | consumed samples: 640 | lm loss: 2.500000E+00 | loss scale: 1024.0 |"
        " grad norm: 0.500 | number of skipped iterations:   0 | number of nan iterations:   0 |\n"
        "[default3]:validation loss at iteration 10 | lm loss value: 2.750000E+00 | lm loss PPL: 1.564263E+01 |\n"),
        {
            "consumed samples": [(10, 640.0)],
            "lm loss": [(10, 2.5)],
            "loss scale": [(10, 1024.0)],
            "grad norm": [(10, 0.5)],
            "number of skipped iterations": [(10, 0.0)],
            "number of nan iterations": [(10, 0.0)],
            "lm loss validation": [(10, 2.75)],
            "lm loss validation ppl": [(10, 15.64263)],
        },
    ),
    "fairseq": (
        ("| epoch 003:    20 / 400 loss=5.5, ppl=45.25, num_updates=820, lr=0.0005, gnorm=1.5, loss_scale=0\n"
        "| epoch 003 | loss 5.75 | ppl 53.75 | clip 12% | num_updates 1200 | lr 0.0005 | loss_scale 8.000 | wall 99\n"
        "| epoch 003 | valid on 'valid' subset | valid_loss 6.25 | num_updates 1200 | best 6\n"
        "| WARNING: overflow detected, setting loss scale to: 4.0\n"
        "FloatingPointError: Minimum loss scale reached (0.0001).\n"),
        {
            "loss": [(820, 5.5)],
            "ppl": [(820, 45.25)],
            "lr": [(820, 0.0005), (1200, 0.0005)],
            "gnorm": [(820, 1.5)],
            "epoch": [(1200, 3.0), (1200, 3.0)],
            "train_loss": [(1200, 5.75)],
            "train_ppl": [(1200, 53.75)],
            "train_clip": [(1200, 12.0)],
            "loss_scale": [(1200, 8.0), (1201, 4.0), (1201, 4.0)],
            "wall": [(1200, 99.0)],
            "valid_loss": [(1200, 6.25)],
            "valid_best": [(1200, 6.0)],
            "skipped_steps": [(1201, 1.0), (1201, 2.0)],
        },
    ),
    "deepspeed": (
        ("[2024-01-02 03:04:05,678] [INFO] [logging.py:96:log_dist] [Rank 0] step=40, skipped=3, lr=[0.001], mom=[0.9]\n"
        "[2024-01-02 03:04:06,678] [INFO] [loss_scaler.py:183:update_scale] [deepspeed] OVERFLOW! Rank 0 Skipping step."
        " Attempted loss scale: 64, but hysteresis is 2. Reducing hysteresis to 1\n"
        "[2024-01-02 03:04:07,678] [INFO] [loss_scaler.py:190:update_scale] [deepspeed] OVERFLOW! Rank 0 Skipping step."
        " Attempted loss scale: 64, reducing to 32\n"),
        {
            "skipped": [(40, 3.0)],
            "lr": [(40, 0.001)],
            "loss_scale": [(41, 64.0), (41, 32.0)],
            "skipped_steps": [(41, 1.0), (41, 2.0)],
        },
    ),
    "mmcv": (
        ("2021-01-01 00:00:00,000 - mmdet - INFO - Epoch [1][50/100]\tlr: 1.000e-02, eta: 1 day, 4:49:14, loss: 1.5, loss_bbox: nan\n"
        "2021-01-01 00:01:00,000 - mmdet - INFO - Epoch [2][50/100]\tlr: 1.000e-02, eta: 4:49:14, loss: 1.25, loss_bbox: 0.5\n"
        "2021-01-01 00:02:00,000 - mmdet - INFO - Epoch(val) [2][40]\tbbox_mAP: 0.125\n"),
        {
            "epoch": [(50, 1.0), (150, 2.0)],
            "lr": [(50, 0.01), (150, 0.01)],
            "loss": [(50, 1.5), (150, 1.25)],
            "loss_bbox": [(50, "nan"), (150, 0.5)],
            "val/bbox_mAP": [(150, 0.125)],
        },
    ),
    "mmengine": (
        ("2023/05/06 07:08:09 - mmengine - INFO - Epoch(train)  [3][ 20/200]  base_lr: 2.0e-03 lr: 1.0e-03  eta: 1:20:00"
        "  loss: 8.5\n"
        "2023/05/06 07:08:10 - mmengine - INFO - Epoch(val)  [3][10/50]    eta: 0:00:09  time: 0.5  memory: 99\n"
        "2023/05/06 07:08:11 - mmengine - INFO - Epoch(val) [3][50/50]    coco/bbox_mAP: 0.25  time: 0.5\n"
        "2023/05/06 07:08:12 - mmengine - INFO - Iter(train) [ 700/9000]  loss: 8.25\n"),
        {
            "epoch": [(420, 3.0)],
            "base_lr": [(420, 0.002)],
            "lr": [(420, 0.001)],
            "loss": [(420, 8.5), (700, 8.25)],
            "val/coco/bbox_mAP": [(420, 0.25)],
        },
    ),
    "detr": (
        ("Epoch: [0]  [ 10/80]  eta: 0:01:30  lr: 0.001  loss: 0.5 (0.75)  grad_norm: 2.5 (inf)  time: 0.25  max mem: 87\n"
        "Epoch: [1]  [ 10/80]  eta: 0:01:30  lr: 0.001  loss: 0.25 (0.5)  grad_norm: 1.5 (inf)  time: 0.25  max mem: 87\n"
        "Test:  [ 0/20]  eta: 0:00:30  loss: 1.5 (1.5)  acc1: 50.0 (50.0)  time: 0.25  max mem: 87\n"
        "Test:  [19/20]  eta: 0:00:00  loss: 0.5 (1.25)  acc1: 60.0 (55.5)  time: 0.25  max mem: 87\n"
        "* Acc@1 55.5 Acc@5 75.5 loss 1.25\n"),
        {
            "epoch": [(10, 0.0), (90, 1.0)],
            "lr": [(10, 0.001), (90, 0.001)],
            "loss": [(10, 0.5), (90, 0.25)],
            "grad_norm": [(10, 2.5), (90, 1.5)],
            "time": [(10, 0.25), (90, 0.25)],
            "max mem": [(10, 87.0), (90, 87.0)],
            "test_loss": [(90, 1.25)],
            "test_acc1": [(90, 55.5)],
            "test_Acc@1": [(90, 55.5)],
            "test_Acc@5": [(90, 75.5)],
        },
    ),
    "keras": (
        ("Epoch 1/3\n"
        "\r  1/100 [..............................] - ETA: 3:10 - loss: 2.5000 - accuracy: 0.1000"
        "\r  2/100 [..............................] - ETA: 3:09 - loss: 2.2500 - accuracy: 0.2000"
        "\r100/100 [==============================] - ETA: 0s - loss: 1.5000 - accuracy: 0.5000"
        "\r100/100 [==============================] - 9s 90ms/step - loss: 1.5000 - accuracy: 0.5000"
        " - val_loss: 1.7500 - val_accuracy: 0.2500\n"
        "Epoch 00001: val_loss improved from inf to 1.75000, saving model to best.h5\n"
        "Epoch 2/3\n"
        "\x1b[1m 50/100\x1b[0m \x1b[32m━━━━━━━━━━\x1b[0m\x1b[37m━━━━━━━━━━\x1b[0m \x1b[1m4s\x1b[0m 90ms/step - loss: nan\n"
        "Epoch 3/3\n"
        "100/100 - 9s - 90ms/step - loss: 1.2500 - val_loss: 1.5000\n"),
        {
            "loss": [(1, 2.5), (2, 2.25), (100, 1.5), (150, "nan"), (300, 1.25)],
            "accuracy": [(1, 0.1), (2, 0.2), (100, 0.5)],
            "val_loss": [(100, 1.75), (300, 1.5)],
            "val_accuracy": [(100, 0.25)],
        },
    ),
    "nanogpt": (
        ("step 0: train loss 10.5000, val loss 10.6250\n"
        "iter 0: loss 10.5625, time 1234.50ms, mfu -100.00%\n"
        "iter 10: loss 9.5000, time 200.50ms, mfu 17.50%\n"),
        {
            "train/loss": [(0, 10.5)],
            "val/loss": [(0, 10.625)],
            "loss": [(0, 10.5625), (10, 9.5)],
            "time": [(0, 1234.5), (10, 200.5)],
            "mfu": [(10, 17.5)],
        },
    ),
    "modded-nanogpt": (
        ('print0(f"step:{step}/{train_steps} val_loss:{val_loss:.4f} train_time:{t:.0f}ms step_avg:{t/n:.2f}ms")\n'
        "step:0/90 val_loss:10.5000 train_time:285ms step_avg:nanms\n"
        "step:1/90 train_loss:9.5000 train_time:300ms step_avg:15.50ms per_layer:1.5,2.5\n"),
        {
            "val_loss": [(0, 10.5)],
            "train_loss": [(1, 9.5)],
            "train_time": [(0, 285.0), (1, 300.0)],
            "step_avg": [(1, 15.5)],
        },
    ),
    "llm.c": (
        ("s:0 tel:10.5000\ns:0 trl:10.2500 lr:0.000100 norm:15.50\ns:1 trl:nan lr:0.000200 norm:inf\ns:1 eval:0.2500\n"
        "step   12/100 | loss 7.500000 (+1.20z)| norm 3.5000 (+nanz)| lr 1.00e-04 | 99.50 ms | 50.1% bf16 MFU | 9 tok/s\n"),
        {
            "tel": [(0, 10.5)],
            "trl": [(0, 10.25), (1, "nan")],
            "lr": [(0, 0.0001), (1, 0.0002), (12, 0.0001)],
            "norm": [(0, 15.5), (1, INF), (12, 3.5)],
            "eval": [(1, 0.25)],
            "loss": [(12, 7.5)],
        },
    ),
    "caffe": (
        ("I0719 12:00:00.123456 12345 solver.cpp:331] Iteration 0, Testing net (#0)\n"
        "I0719 12:00:01.123456 12345 solver.cpp:414]     Test net output #0: accuracy = 0.125\n"
        "I0719 12:00:02.123456 12345 solver.cpp:218] Iteration 20 (1.5 iter/s, 13s/20 iters), loss = 7.5\n"
        "I0719 12:00:02.123456 12345 solver.cpp:237]     Train net output #0: loss = 7.25 (* 1 = 7.25 loss)\n"
        "I0719 12:00:02.123456 12345 sgd_solver.cpp:105] Iteration 20, lr = 0.01\n"),
        {
            "test/accuracy": [(0, 0.125)],
            "loss": [(20, 7.5)],
            "train/loss": [(20, 7.25)],
            "lr": [(20, 0.01)],
        },
    ),
    "mxnet": (
        ("INFO:root:Epoch[0] Batch [50]\tSpeed: 160.50 samples/sec\tTrain-accuracy=0.125\n"
        "INFO:root:Epoch[0] Batch [100]\tSpeed: 161.50 samples/sec\tTrain-accuracy=0.25\n"
        "INFO:root:Epoch[0] Train-accuracy=0.1875\n"
        "INFO:root:Epoch[0] Validation-accuracy=0.375\n"
        "INFO:root:Epoch[1] Batch [0-50]\tSpeed: 160.50 samples/sec\tTrain-accuracy=0.5\n"),
        {
            "epoch": [(50, 0.0), (100, 0.0), (150, 1.0)],
            "Speed": [(50, 160.5), (100, 161.5), (150, 160.5)],
            "Train-accuracy": [(50, 0.125), (100, 0.25), (150, 0.5)],
            "Validation-accuracy": [(100, 0.375)],
        },
    ),
    "tensorflow": (
        ("epoch 0, total_step 50, total loss is 4.5 , reg_loss is nan, training accuracy is 0.25, time 99.0 samples/sec\n"
        "INFO:tensorflow:global step 60: loss = 3.5 (0.125 sec/step)\n"
        "INFO:tensorflow:loss = 3.25, step = 70 (1.5 sec)\n"),
        {
            "epoch": [(50, 0.0)],
            "total loss": [(50, 4.5)],
            "reg_loss": [(50, "nan")],
            "training accuracy": [(50, 0.25)],
            "loss": [(60, 3.5), (70, 3.25)],
            "step_time": [(60, 0.125)],
        },
    ),
    "chainer": (
        ("epoch       iteration   main/loss   validation/loss  lr\n"
        "1           100         2.5                          0.01\n"
        "1           200         2.25        2.75             0.01\n"),
        {
            "main/loss": [(100, 2.5), (200, 2.25)],
            "validation/loss": [(200, 2.75)],
            "lr": [(100, 0.01), (200, 0.01)],
        },
    ),
    "columns": (
        "7         300      3.5      0.25       0.001\n7         400      3.25      nan       0.001      5.5\n",
        {"col2": [(300, 3.5), (400, 3.25)], "col3": [(300, 0.25), (400, "nan")], "col4": [(300, 0.001), (400, 0.001)], "col5": [(400, 5.5)]},
    ),
    "dllogger": (
        "DLL 2020-01-02 03:04:05.678901 - Training Epoch: 0 Training Iteration: 30  average_loss : 2.5  step_loss : 3.5 \n",
        {"epoch": [(30, 0.0)], "average_loss": [(30, 2.5)], "step_loss": [(30, 3.5)]},
    ),
    "pytorch-examples": (
        ("Train Epoch: 1 [640/1000 (64%)]\tLoss: 2.250000\n"
        "Train Epoch: 2 [0/1000 (0%)]\tLoss: 1.250000\n"
        "\nTest set: Average loss: 0.5000, Accuracy: 98/100 (98%)\n"),
        {
            "epoch": [(640, 1.0), (1000, 2.0)],
            "Loss": [(640, 2.25), (1000, 1.25)],
            "test/loss": [(1000, 0.5)],
            "test/accuracy": [(1000, 0.98)],
        },
    ),
    "torchtitan": (
        ("[rank0]:[titan] 2024-12-16 21:40:05,123 - root - INFO - \x1b[31mstep: 10  \x1b[32mloss:  7.1250  "
        "\x1b[33mgrad_norm: 1.50  memory: 12.50GiB(13.16%)  tps: 1,234  mfu: 34.50%\x1b[39m\n"
        "[rank0]:[titan] 2024-12-16 21:40:05,123 - root - INFO - validate step: 10  loss: 7.2500  tps: 99\n"),
        {
            "loss": [(10, 7.125)],
            "grad_norm": [(10, 1.5)],
            "memory": [(10, 12.5)],
            "tps": [(10, 1234.0)],
            "mfu": [(10, 34.5)],
            "val/loss": [(10, 7.25)],
            "val/tps": [(10, 99.0)],
        },
    ),
    "torchtune": (
        ("Step 5 | loss:1.5 lr:0.0002 tokens_per_second_per_gpu:99.5 \n"
        "1|6|Loss: 1.25:   0%|          | 6/999 [00:10<1:00:00,  1.50s/it]\n"),
        {"loss": [(5, 1.5), (6, 1.25)], "lr": [(5, 0.0002)], "tokens_per_second_per_gpu": [(5, 99.5)]},
    ),
    "lightning": (
        ("Sanity Checking:   0%|          | 0/2 [00:00<?, ?it/s]\n"
        "\rEpoch 0:  50%|█████     | 50/100 [00:10<00:10,  5.00it/s, loss=1.5, v_num=7]"
        "\rEpoch 0:  50%|█████     | 50/100 [00:10<00:10,  5.00it/s, loss=1.5, v_num=7, val_loss=2.5]"
        "\rEpoch 1:  10%|█         | 10/100 [00:10<00:10,  5.00it/s, loss=1.25, v_num=7, train_loss=nan.0]Saved\n"),
        {
            "epoch": [(50, 0.0), (50, 0.0), (110, 1.0)],
            "loss": [(50, 1.5), (110, 1.25)],
            "val_loss": [(50, 2.5)],
            "train_loss": [(110, "nan")],
        },
    ),
    "lightning-rich": (
        "Epoch 1/9 ━━━━━╸━━━━━━━━━━ 30/100 0:00:08 • 0:00:10 11.13it/s v_num: 0.000 train_loss: 1.5\n",
        {"epoch": [(130, 1.0)], "train_loss": [(130, 1.5)]},
    ),
    "tqdm-epochs": (
        "Epoch 2/9: 30%|███       | 30/100 [00:10<00:10,  5.00it/s, loss=1.5]\nEpoch [3/9]: 30%|███       | 30/100 [00:10<00:10,  5.00it/s, loss=nan]\n",
        {"epoch": [(130, 2.0), (230, 3.0)], "loss": [(130, 1.5), (230, "nan")]},
    ),
    "fairseq-tqdm": (
        "epoch 003:  25%|██▌       | 100/400 [01:00<03:00,  1.66it/s, loss=5.5, ppl=45.25, num_updates=900, loss_scale=0.000]\n",
        {"loss": [(900, 5.5)], "ppl": [(900, 45.25)]},
    ),
    "tqdm": (
        ("\r 10%|█         | 10/100 [00:10<00:10,  5.00it/s, loss=1.5]\r100%|██████████| 100/100 [00:10<00:10,  5.00it/s, loss=1.25]"
        "\r 10%|█         | 10/100 [00:10<00:10,  5.00it/s, loss=1.125]\n"),
        {"loss": [(10, 1.5), (100, 1.25), (110, 1.125)]},
    ),
    "generic": (
        ("[2024-05-01 12:00:00] step=10 loss=1.5 lr=3e-4 eta=0:10:00\n"
        "Train | global_step: 20 | loss: 1.25 | tokens/s: 12,345\n"
        "Iteration 30: loss = nan (120ms)\n"
        "Validation step 30: loss=1.75, acc=12%\n"
        "step 40 of the plan is to buy milk\n"
        "the loss: 3 is not a line of ours\n"),
        {
            "loss": [(10, 1.5), (20, 1.25), (30, "nan")],
            "lr": [(10, 0.0003)],
            "val/loss": [(30, 1.75)],
            "val/acc": [(30, 12.0)],
            "tokens/s": [(20, 12345.0)],
        },
    ),
    "generic-epochs": (
        "Epoch [1/10], Step [100/600], Loss: 0.5\nEpoch [2/10], Step [100/600], Loss: 0.25, Val Loss: 0.75\n",
        {"epoch": [(100, 1.0), (700, 2.0)], "Loss": [(100, 0.5), (700, 0.25)], "Val Loss": [(700, 0.75)]},
    ),
    "generic-epoch-only": (
        "Epoch 1 | train loss: 0.5 | val loss: 0.75\nEpoch 2 | train loss: 0.25 | val loss: inf\n",
        {"train loss": [(1, 0.5), (2, 0.25)], "val loss": [(1, 0.75), (2, INF)]},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", DIALECTS)
def test_a_dialect(name):
    text, expected = DIALECTS[name]
    assert looks_like_text_log(text.encode())
    _, batches = read(text)
    assert points(batches) == expected
    assert not any(b.problems for b in batches)


def messages(data):
    """The messages of a log as the reader hears them."""
    for raw in re.split(rb"[\r\n]+", data):
        text, _ = strip_prefix(clean(raw))
        bar, rest = take_bar(text)
        yield from filter(None, (text,) if bar is None else (bar.text, strip_prefix(rest)[0]))


def test_shipped_patterns_exclude_each_other():
    patterns = [p for p in load_dialects().patterns if not p.fallback]
    for text, _ in DIALECTS.values():
        for message in messages(text.encode()):
            fitting = [p.match.pattern for p in patterns if p.match.match(message)]
            assert len(fitting) <= 1, message


def test_hints_are_never_wrong():
    for text, _ in DIALECTS.values():
        for message in messages(text.encode()):
            for p in load_dialects().patterns:
                if p.match.match(message):
                    assert not p.hints or any(h in message for h in p.hints), (message, p.hints)


# ---------------------------------------------------------------------- the axis
def test_a_progress_bar_gives_the_step_to_lines_that_have_none():
    text = (
        "Map: 100%|██████████| 9000/9000 [00:01<00:00, 9000.00 examples/s]\n"
        "\r  0%|          | 0/60 [00:00<?, ?it/s]\r  8%|▊         | 5/60 [00:10<01:50,  2.00s/it]\n"
        "{'loss': 2.5, 'epoch': 0.08}\n"
        "\r 17%|█▋        | 10/60 [00:20<01:40,  2.00s/it]\r 50%|█████     | 4/8 [00:01<00:01,  4.00it/s]\n"
        "{'eval_loss': 2.25, 'epoch': 0.17}\n"
        "{'loss': 2.0, 'epoch': 0.17}\n"
    )
    reader, batches = read(text)
    assert reader.axis == "step"
    assert points(batches) == {
        "loss": [(5, 2.5), (10, 2.0)],
        "eval_loss": [(10, 2.25)],
        "epoch": [(5, 0.08), (10, 0.17), (10, 0.17)],
    }


def test_without_step_or_bar_the_row_is_the_axis():
    reader, batches = read("{'loss': 2.5, 'epoch': 0.5}\n{'loss': 2.25, 'epoch': 0.5}\n")
    assert reader.axis == "row"
    assert points(batches)["loss"] == [(0, 2.5), (1, 2.25)]


def test_a_first_record_without_step_is_kept_when_steps_follow():
    _, batches = read("{'eval_loss': 2.5}\nstep:5/90 train_loss:2.0\nstep:6/90 train_loss:1.5\n")
    assert points(batches) == {"eval_loss": [(0, 2.5)], "train_loss": [(5, 2.0), (6, 1.5)]}


def test_time_stamps_are_wall_time_in_utc():
    _, batches = read("2024-01-02 03:04:05,500 | INFO | x | step=1 loss=2.5\nstep=2 loss=2.25\n")
    [chunk] = [c for b in batches for c in b.chunks]
    assert chunk.time[0] == 1704164645.5
    assert math.isnan(chunk.time[1])


def test_planned_steps_are_settings_and_reaching_them_a_finish():
    _, batches = read("step:1/2 train_loss:2.5\nstep:2/2 train_loss:2.25\nstep:2/2 val_loss:2.0\n")
    assert events(batches, Params) == [Params(0, {"max_steps": 2})]
    assert events(batches, Finish) == [Finish(1, "step 2 of 2")]
    assert not events(batches, Boundary)


def test_half_a_log_has_the_steps_of_the_whole():
    _, batches = read("Epoch [3][50/100]\tlr: 0.1, loss: 1.5\n")
    assert points(batches)["loss"] == [(250, 1.5)]


def test_a_line_printed_again_is_skipped_but_the_first_line_of_a_new_run_is_not():
    one = "step:0/30 val_loss:9.5\nstep:10/30 val_loss:8.5\nstep:20/30 val_loss:7.5\nstep:30/30 val_loss:6.5\n"
    reader, batches = read(one + "step:20/30 val_loss:7.5\nstep:30/30 val_loss:6.5\n" + one)
    assert [s for s, _ in points(batches)["val_loss"]] == [0, 10, 20, 30, 0, 10, 20, 30]
    assert reader.skipped == {"repeated lines": 2}


# ---------------------------------------------------------------------- NaN that is not printed
MEGATRON = " iteration {:8d}/  500 | {}loss scale: {} | grad norm: 0.5 | number of skipped iterations: {} | number of nan iterations: {} |\n"  # fmt: skip


@pytest.mark.parametrize(
    ("skipped", "nan", "expected"),
    [(0, 0, [(1, 2.5), (2, "nan")]), (1, 0, [(1, 2.5)]), (1, 1, [(1, 2.5), (2, "nan")])],
)
def test_a_loss_that_megatron_leaves_out_is_nan_unless_the_update_was_skipped(skipped, nan, expected):
    _, batches = read(MEGATRON.format(1, "lm loss: 2.5E+00 | ", 64, 0, 0) + MEGATRON.format(2, "", 32, skipped, nan))
    assert points(batches)["lm loss"] == expected


def test_a_loss_never_seen_is_not_missed():
    _, batches = read(MEGATRON.format(1, "", 64, 0, 0))
    assert "lm loss" not in points(batches)


# ---------------------------------------------------------------------- overflows
def apex(*scales, scaler=0):
    return "".join(
        f"Gradient overflow.  Skipping step, loss scaler {scaler} reducing loss scale to {s}\n" for s in scales
    )


def test_two_ranks_that_print_one_overflow_count_once_and_denormals_are_kept():
    _, batches = read(apex(4e-320, 4e-320, 2e-320, 2e-320, 1.3e-321, 1.3e-321))
    assert points(batches) == {
        "loss_scale": [(0, 4e-320), (1, 2e-320), (2, 1.3e-321)],
        "skipped_steps": [(0, 1.0), (1, 2.0), (2, 3.0)],
    }
    assert points(batches)["loss_scale"][2][1] > 0


def test_a_stuck_scale_goes_on_counting_once_the_number_of_ranks_is_known():
    _, one_rank = read(apex(4.0, 2.0, 1.0, 1.0, 1.0))
    assert [v for _, v in points(one_rank)["skipped_steps"]] == [1, 2, 3, 4, 5]
    _, two_ranks = read(apex(4.0, 4.0, 2.0, 2.0, 1.0, 1.0, 1.0, 1.0))
    assert [v for _, v in points(two_ranks)["skipped_steps"]] == [1, 2, 3, 4]


def test_overflows_stand_after_the_last_step_and_never_go_back():
    _, batches = read("step:7/90 train_loss:2.5\n" + apex(4.0, 2.0) + "step:8/90 train_loss:2.25\n" + apex(1.0))
    assert points(batches)["loss_scale"] == [(8, 4.0), (8, 2.0), (9, 1.0)]


def test_rows_give_way_to_steps_when_overflows_come_first():
    reader, batches = read(apex(4.0, 2.0) + "step:50/90 train_loss:2.5\n" + apex(1.0))
    assert reader.axis == "step"
    assert points(batches)["loss_scale"] == [(0, 4.0), (1, 2.0), (51, 1.0)]
    assert points(batches)["train_loss"] == [(50, 2.5)]


def test_an_overflow_stands_at_the_progress_bar_of_its_line():
    bar = " 14%|#4        | {}/99 [13:58:09<86:18:35, 132.44s/it]"
    line = bar + "[INFO] [stage2.py:1628:step] [deepscale] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: {}, reducing to {}\n"  # fmt: skip
    text = line.format(12, 2, 1) + line.format(13, 1, 1) + bar.format(14) + "\n{'loss': 2.5, 'epoch': 0.5}\n"
    text += "Exception: Current loss scale already at minimum - cannot decrease scale anymore. Exiting run.\n"
    _, batches = read(text)
    assert points(batches) == {
        "loss_scale": [(12, 1.0), (13, 1.0), (15, 1.0)],
        "skipped_steps": [(12, 1.0), (13, 2.0), (15, 3.0)],
        "loss": [(14, 2.5)],
        "epoch": [(14, 0.5)],
    }


def test_every_scaler_has_its_own_tag():
    _, batches = read(apex(4.0) + apex(8.0, scaler=1))
    assert points(batches)["loss_scale"] == [(0, 4.0)]
    assert points(batches)["loss_scale_1"] == [(1, 8.0)]


# ---------------------------------------------------------------------- contracts
EVERYTHING = "\r\n".join(text for text, _ in DIALECTS.values()).encode()


def joined(batches):
    out = defaultdict(list)
    for batch in batches:
        for c in batch.chunks:
            out[c.tag].append(np.stack([c.step, c.time, c.value, c.row]))
    found = {tag: np.concatenate(parts, axis=1) for tag, parts in out.items()}
    return found, [e for b in batches for e in b.events]


@settings(max_examples=25)
@given(st.lists(st.integers(0, len(EVERYTHING)), max_size=12), st.booleans())
def test_cuts_and_pickling_change_nothing(cuts, through_pickle):
    _, whole = read(EVERYTHING)
    reader, got = TextReader(), []
    edges = [0, *sorted(cuts), len(EVERYTHING)]
    for a, b in itertools.pairwise(edges):
        got.append(reader.feed(EVERYTHING[a:b]))
        if through_pickle:
            reader = pickle.loads(pickle.dumps(reader))
    got.append(reader.finish())
    (expected, events_expected), (found, events_found) = joined(whole), joined(got)
    assert expected.keys() == found.keys()
    for tag in expected:
        np.testing.assert_array_equal(expected[tag], found[tag], tag)
    assert events_found == events_expected


def test_a_reader_s_state_is_small():
    reader, _ = read(DIALECTS["llm.c"][0] * 100)
    assert len(pickle.dumps(reader)) < 8_000


HOSTILE = ["a", "1", " ", "loss: ", "loss=1 ", "| ", "%|", "1/1 ", "{'loss': ", "step 1 ", "Epoch [1][1/1] ", "[[", "nan", "-", "x.", "\t",
           "Epoch 1: 1%| | 1/2 [", "iteration 1/ 2 | ", "epoch 1 | a 1 | num_updates", "1.", "INFO | ", "2024-01-01 00:00:00 "]  # fmt: skip


@pytest.mark.parametrize("unit", HOSTILE)
def test_hostile_lines_are_survived(unit):
    longest = (unit * MAX_TEXT)[: MAX_TEXT - 60]
    for text in (longest, "step 1 " + longest, "Epoch: [1]  [1/2]  eta: " + longest, "Epoch 1: 1%|" + longest):
        read((text + "!\n") * 2)
    reader, batches = read(unit * (1 << 20) + "\nstep:1/9 train_loss:2.5\n")
    assert points(batches)["train_loss"] == [(1, 2.5)]
    assert reader.skipped["lines over the limit"] == 1


def repeats(parsed, inside=False):
    """Whether an expression repeats without bound what itself repeats without bound."""
    for op, arg in parsed:
        if str(op) in ("MAX_REPEAT", "MIN_REPEAT"):
            endless = str(arg[1]) == "MAXREPEAT"
            if (endless and inside) or repeats(arg[2], inside or endless):
                return True
        elif str(op) == "SUBPATTERN":
            if repeats(arg[3], inside):
                return True
        elif str(op) == "BRANCH" and any(repeats(b, inside) for b in arg[1]):
            return True
    return False


def test_no_shipped_expression_can_backtrack_exponentially():
    parser = pytest.importorskip("re._parser")
    assert repeats(parser.parse(r"(a+b?)*c"))
    for p in load_dialects().patterns:
        assert not repeats(parser.parse(p.match.pattern)), p.match.pattern
        if p.pairs is not None:
            assert not repeats(parser.parse(p.pairs.pattern)), p.pairs.pattern


@pytest.mark.parametrize(
    ("text", "value"),
    [("12.5ms", 12.5), ("34%", 34.0), ("1,234", 1234.0), ("12.5GiB(13.1%)", 12.5), ("98/100", 0.98), ("2.5,", 2.5),
     ("-1e-3", -0.001), ("nan", NAN), ("inf", INF), ("nan.0", NAN), ("nanms", None), ("1:30:00", None), ("1_000", None),
     ("6.6,2.9", None), ("1/0", None), ("", None), ("v1", None)],
)  # fmt: skip
def test_numbers_as_printed(text, value):
    found = to_number(text)
    assert found == value or (found is not None and value is not None and math.isnan(found) and math.isnan(value))


@pytest.mark.parametrize(
    "text",
    ["", "\n\n", "hello\n", "for step in range(10): loss = 0\n", "GPU 0: 33C, 111W\n", "a,b,c\n1,2,3\n", "\0\1\2" * 99,
     "    if step % 10 == 0: print(f'step {step} loss {loss:.4f}')\n", "Epoch 1/3\n", "val_loss: float = 0.0\n"],
)  # fmt: skip
def test_what_is_no_log_is_not_taken_for_one(text):
    assert not looks_like_text_log(text.encode())
    _, batches = read(text)
    assert points(batches) == {}


# ---------------------------------------------------------------------- a user's dialects
OWN = """
dialects:
  - name: ours
    lines:
      - match: 'tick (?P<step>{int}) energy (?P<energy>{num})'
        names: {energy: train/loss}
      - match: 'tock (?P<pairs>.*)'
        pairs: equals
        step_from: [t]
"""


def test_a_user_s_dialects_go_first(tmp_path):
    path = tmp_path / "own.yaml"
    path.write_text(OWN)
    reader, batches = read("tick 3 energy 2.5\ntock t=4 a=1.5\nstep:5/9 train_loss:2.0\n", path)
    assert points(batches) == {"train/loss": [(3, 2.5)], "a": [(4, 1.5)], "train_loss": [(5, 2.0)]}
    assert reader.matched == {"ours": 2, "modded-nanogpt": 1}
    again = pickle.loads(pickle.dumps(reader))
    assert points([again.feed(b"tick 6 energy 1.5\n")]) == {"train/loss": [(6, 1.5)]}


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("(?P<energy>{num})", "(?P<energy>{num}", 5, "bad regular expression: missing ), unterminated subpattern"),
        ("(?P<energy>{num})", "{num}", 5, "the pattern catches no number"),
        ("(?P<step>{int}) energy", "energy", 0, ""),
        ("names:", "nmaes:", 6, "unknown key 'nmaes'; did you mean 'names'?"),
        ("pairs: equals", "pairs: equal", 8, "unknown pairs 'equal'; did you mean 'equals'?"),
        ("pairs: equals", "kind: overflow", 7, "needs a named group 'scale'"),
        ("pairs: equals", "kind: metric", 8, "unknown kind 'metric'; did you mean 'metrics'?"),
        ("step_from: [t]", "step_from: t", 9, "step_from must be a list of strings"),
        ("- name: ours", "- about: ours", 3, "the key 'name' is missing"),
        ("dialects:", "dialect:", 2, "unknown key 'dialect'; did you mean 'dialects'?"),
        ("dialects:", "version: 2\ndialects:", 0, "version 2 is unknown"),
        ("tick", "'tick", 0, "not valid YAML"),
    ],
)
def test_a_bad_dialect_file_is_refused_with_file_and_line(tmp_path, old, new, line, message):
    path = tmp_path / "own.yaml"
    path.write_text(OWN.replace(old, new, 1))
    if not message:
        TextReader(path)
        return
    with pytest.raises(BadConfig, match=re.escape(message)) as error:
        TextReader(path)
    assert str(error.value).startswith(f"{path}:{line}: " if line else f"{path}:")
    assert "\n" not in str(error.value)


def test_what_a_user_s_pattern_catches_is_never_trusted(tmp_path):
    path = tmp_path / "own.yaml"
    path.write_text(
        "dialects:\n  - name: ours\n    lines:\n"
        "      - match: 'at (?P<step>\\S+) of (?P<total>\\S+) loss (?P<loss>\\S+)'\n"
        "      - match: 'in (?P<epoch>\\S+) (?P<batch>\\S+) (?P<batches>\\S+) loss (?P<loss>\\S+)'\n"
        "      - match: 'over (?P<scaler>\\S+) (?P<scale>\\S+)'\n        kind: overflow\n"
    )
    big = "9" * 4500
    text = f"at 1 of 9 loss 2.5\nat x of y loss 2.0\nat {big} of {big} loss 1.5\nat nan of inf loss 1.25\n"
    text += f"in x y z loss 1.0\nin {big} {big} {big} loss 0.5\nin 99999999999 99999999999 99999999999 loss 0.25\nover x y\n"
    _, batches = read(text, path)
    assert [v for _, v in points(batches)["loss"]] == [2.5, 2.0, 1.5, 1.25, 1.0, 0.5, 0.25]


def test_a_missing_dialect_file_is_one_line(tmp_path):
    with pytest.raises(BadConfig, match=r"none\.yaml: no such file"):
        TextReader(tmp_path / "none.yaml")


# ---------------------------------------------------------------------- real logs
BIG = "text/bigscience-workshop__bigscience/"
KELLER = "text/KellerJordan__modded-nanogpt/"
CORPUS = {  # file → (points a tag, NaN a tag); counted with grep, not with this reader
    "issue_pasted/935963004__LaBraM/mae_style_gradnorm_inf_avg.txt": ({"loss": 5, "grad_norm": 5, "loss_scale": 5}, {}),
    "issue_pasted/AILab-CVC__YOLO-World/mmengine_gradnorm_zero_nan.txt": ({"loss": 4, "loss_dfl": 4}, {"grad_norm": 1}),
    "issue_pasted/Bartzi__see/chainer_flat_tail.txt": ({"col2": 8, "col3": 8, "col4": 8, "col5": 1, "col6": 1}, {}),
    "issue_pasted/BinItAI__visdet/mmengine_all_nan.txt": (
        {"acc": 1},
        {"loss": 1, "loss_rpn_cls": 1, "loss_rpn_bbox": 1, "loss_cls": 1, "loss_bbox": 1},
    ),
    "issue_pasted/Junjue-Wang__FactSeg/apex_loss_scale_denormal.txt": ({"loss_scale": 5, "skipped_steps": 5}, {}),
    "issue_pasted/NVIDIA__DeepLearningExamples/bert_dllogger.txt": ({"average_loss": 5, "learning_rate": 5}, {}),
    "issue_pasted/Time-MoE__Time-MoE/hf_intermittent_gradnorm_nan.txt": ({"loss": 9}, {"grad_norm": 2}),
    "issue_pasted/Time-MoE__Time-MoE/hf_zero_loss_nan.txt": ({"loss": 10}, {"grad_norm": 10}),
    "issue_pasted/facebookresearch__fairseq/fairseq_gnorm_scale.txt": (
        {"loss": 1, "train_loss": 1, "valid_loss": 1, "loss_scale": 3},
        {},
    ),
    "issue_pasted/facebookresearch__fairseq/fairseq_scale_collapse.txt": ({"loss_scale": 13, "skipped_steps": 12}, {}),
    "issue_pasted/facebookresearch__fairseq/fairseq_valid_diverged.txt": ({"train_loss": 1, "valid_loss": 1}, {}),
    "issue_pasted/hszhao__PSPNet/caffe_8733_saturation.txt": ({"loss": 2, "train/accuracy": 2, "lr": 1}, {}),
    "issue_pasted/huggingface__transformers/deepspeed_scale_stuck_at_1.txt": ({"loss_scale": 4}, {}),
    "issue_pasted/manishsoni1908__Mobilenet-ssd-keras/keras_inf_batch3.txt": ({"loss": 2}, {}),
    "issue_pasted/open-mmlab__mmdetection/mmdet_intermittent_nan.txt": ({"lr": 4}, {"loss": 1, "loss_bbox": 1}),
    "issue_pasted/open-mmlab__mmdetection/mmdet_tiny_gradnorm.txt": ({"loss": 3, "grad_norm": 3}, {}),
    "issue_pasted/sirius-ai__MobileFaceNet_TF/tf_stuck_acc0.txt": ({"total loss": 9, "training accuracy": 9}, {}),
    "issue_pasted/xlvector__learning-dl/mxnet_late_start.txt": ({"Train-Accuracy": 13}, {}),
    "issue_pasted/ymcui__Chinese-LLaMA-Alpaca/deepspeed_scale_to_min.txt": ({"loss_scale": 6, "loss": 1}, {}),
    "text/Elluito__spase-resnet-50-experiments/wandb_2s811ss9_output.log": ({"top1_acc": 3}, {"train_loss": 3}),
    KELLER + "2024-06-06_AdamW.log": ({"tel": 76, "trl": 9536}, {}),
    KELLER + "2024-10-10_Muon_eb5659d0.txt": ({"val_loss": 51, "train_loss": 6200, "step_avg": 6238}, {}),
    KELLER + "2024-10-13_llmc_main.log": ({"tel": 80, "trl": 19560, "norm": 19560, "lr": 19560}, {}),
    KELLER + "slurm-90627_0.out": ({"val_loss": 51, "step_avg": 3100}, {}),
    KELLER + "track2_main.log": ({"tel": 241}, {}),
    KELLER + "track3_1bd8db7a_20runs.txt": ({"val_loss": 780, "step_avg": 760}, {}),
    KELLER + "track3_soda_batch_combined_stdout.txt": ({"val_loss": 196}, {}),
    "text/OrderLab__TrainCheck/training-log.log": ({"Loss": 94, "test/loss": 1, "test/accuracy": 1}, {}),
    BIG + "tr1-13B_chronicles_extract.log": ({"lm loss": 10, "grad norm": 10, "loss scale": 10}, {}),
    BIG + "tr11-176B_chronicles_extract.log": ({"lm loss": 18, "grad norm": 18, "lm loss validation": 1}, {}),
    BIG + "tr8-104B_chronicles_extract.log": ({"grad norm": 19, "lm loss validation": 1}, {"lm loss": 1}),
}


@pytest.mark.parametrize("name", CORPUS)
def test_a_real_log(corpus, name):
    data = (corpus / name).read_bytes()
    counts, nans = CORPUS[name]
    assert looks_like_text_log(data[: 1 << 16])
    _, batches = read(data)
    found = points(batches)
    assert {tag: len(found[tag]) for tag in counts} == counts
    assert {tag: n for tag, p in found.items() if (n := sum(v == "nan" for _, v in p))} == nans
    patterns = [p for p in load_dialects().patterns if not p.fallback]
    for message in messages(data[: 1 << 18]):
        assert sum(p.match.match(message) is not None for p in patterns) <= 1, message


def test_every_real_text_log_is_tested(corpus):
    files = {
        str(p.relative_to(corpus)) for d in ("text", "issue_pasted") for p in (corpus / d).rglob("*") if p.is_file()
    }
    assert {f for f in files if not f.endswith(".json")} == set(CORPUS)


def facts(corpus, name):
    reader, batches = read((corpus / name).read_bytes())
    return reader, batches, points(batches)


def test_what_real_logs_say(corpus):
    _, _, tr11 = facts(corpus, BIG + "tr11-176B_chronicles_extract.log")
    assert tr11["lm loss"][1:3] == [(31214, 2.198845), (31215, 2.220424)]
    assert dict(tr11["grad norm"])[31219] == 960.351
    assert tr11["lm loss validation"] == [(45000, 2.327091)]
    _, _, tr8 = facts(corpus, BIG + "tr8-104B_chronicles_extract.log")
    assert tr8["lm loss"][-1] == (9027, "nan")
    assert tr8["loss scale"][-2:] == [(9026, 16384.0), (9027, 8192.0)]
    _, _, apex_scale = facts(corpus, "issue_pasted/Junjue-Wang__FactSeg/apex_loss_scale_denormal.txt")
    assert apex_scale["loss_scale"] == [
        (0, 2.0237e-320),
        (1, 1.012e-320),
        (2, 5.06e-321),
        (3, 2.53e-321),
        (4, 1.265e-321),
    ]
    _, _, caffe = facts(corpus, "issue_pasted/hszhao__PSPNet/caffe_8733_saturation.txt")
    assert caffe["loss"] == [(0, 21.4058), (20, 87.3365)]
    assert caffe["train/accuracy"] == [(0, 0.754905), (20, 0.0)]
    _, _, mae = facts(corpus, "issue_pasted/935963004__LaBraM/mae_style_gradnorm_inf_avg.txt")
    assert max(v for _, v in mae["grad_norm"]) == 10.5632
    _, _, mmdet = facts(corpus, "issue_pasted/open-mmlab__mmdetection/mmdet_intermittent_nan.txt")
    assert mmdet["loss"] == [(50, 1.6522), (100, 1.0415), (150, "nan"), (200, 1.0595)]
    _, _, keras = facts(corpus, "issue_pasted/manishsoni1908__Mobilenet-ssd-keras/keras_inf_batch3.txt")
    assert keras["loss"] == [(3, 44.411), (4, INF)]
    _, _, alpaca = facts(corpus, "issue_pasted/ymcui__Chinese-LLaMA-Alpaca/deepspeed_scale_to_min.txt")
    assert alpaca["loss_scale"] == [(378, 32.0), (379, 16.0), (380, 8.0), (381, 4.0), (382, 2.0), (383, 2.0)]
    assert alpaca["loss"] == [(380, 2.0491)]
    _, _, fairseq = facts(corpus, "issue_pasted/facebookresearch__fairseq/fairseq_scale_collapse.txt")
    assert fairseq["loss_scale"][0] == (10198, 0.5)
    assert fairseq["loss_scale"][-1] == (10199, 0.0001220703125)
    assert fairseq["valid_loss"] == [(10198, 8.30118)]
    _, _, zero = facts(corpus, "issue_pasted/facebookresearch__fairseq/fairseq_valid_diverged.txt")
    assert "loss_scale" not in zero
    _, _, muon = facts(corpus, KELLER + "2024-10-10_Muon_eb5659d0.txt")
    assert muon["train_loss"][0] == (1, 10.9184)
    assert [muon["val_loss"][0], muon["val_loss"][-1]] == [(0, 10.9264), (6200, 3.2785)]


@pytest.mark.parametrize(
    ("name", "runs"), [("track3_1bd8db7a_20runs.txt", 20), ("track3_soda_batch_combined_stdout.txt", 7)]
)
def test_runs_in_one_real_file(corpus, name, runs):
    _, batches, found = facts(corpus, KELLER + name)
    steps = [s for s, _ in found["val_loss"]]
    assert sum(b < a for a, b in itertools.pairwise(steps)) == runs - 1
    splitter = Splitter()
    assert {(s.run, s.attempt) for b in batches for s in splitter.split(b)} == {(i, 0) for i in range(runs)}
