"""TensorBoard event files, written by torch's `SummaryWriter`; a resumed job opens another file in the same folder.

Settings go where the framework puts them (option `settings`): `json`, one text (Hugging Face's `args`); `table`, a
Markdown table (scripts after CleanRL); `hparams`, the hparams plugin (Lightning). Values are single precision there.

The writer takes host and clock of the machine for the file's name and its first event. Both are replaced, so that the
same run gives the same bytes.
"""

from __future__ import annotations

import io
import json
import struct
import tempfile
from pathlib import Path
from typing import Any

from trainmon_reference.logs.base import START, Writer
from trainmon_reference.record import Record


class TensorBoard(Writer):
    """Writer of event files."""

    def begin(self) -> None:
        """Wait: the first record says at which time the first file begins."""
        self._writer: Any = None
        self._files = 0

    def write(self, record: Record) -> None:
        """Write one record, a point a tag."""
        time = START + record.seconds
        if self._writer is None:
            self._open(time)
        if epoch := self.framework.options.get("epoch"):
            self._writer.add_scalar(epoch, record.epoch, record.step, time)
        for tag, value in self.framework.tags(record).items():
            self._writer.add_scalar(tag, value, record.step, time)

    def resume(self, step: int) -> None:
        """End the file; the next record begins another one."""
        self.close()

    def close(self) -> None:
        """End the file."""
        if self._writer is None:
            return
        self._writer.close()
        self._writer = None
        [written] = Path(self._draft.name).iterdir()
        name = f"events.out.tfevents.{int(self._began)}.host.1.{self._files}"
        (self.folder / name).write_bytes(_begun_at(written.read_bytes(), self._began))
        self._draft.cleanup()
        self._files += 1

    def _open(self, time: float) -> None:
        from torch.utils.tensorboard import SummaryWriter  # noqa: PLC0415 - names and scenarios load without torch

        self._began = time
        self._draft = tempfile.TemporaryDirectory(dir=self.folder)
        self._writer = SummaryWriter(self._draft.name, max_queue=1000)
        if self.settings:
            getattr(self, f"_settings_as_{self.framework.options['settings']}")(time)

    def _settings_as_json(self, time: float) -> None:
        self._writer.add_text("args", json.dumps(self.settings, indent=2), 0, time)

    def _settings_as_table(self, time: float) -> None:
        rows = "\n".join(f"|{name}|{value}|" for name, value in self.settings.items())
        self._writer.add_text("hyperparameters", f"|param|value|\n|-|-|\n{rows}", 0, time)

    def _settings_as_hparams(self, time: float) -> None:
        """Write them as Lightning does, with its placeholder for a metric."""
        from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData  # noqa: PLC0415
        from torch.utils.tensorboard.summary import hparams  # noqa: PLC0415

        self._writer.add_scalar("hp_metric", -1.0, 0, time)
        for summary in hparams(self.settings, {"hp_metric": -1.0}):  # type: ignore[no-untyped-call]
            for value in summary.value:  # a map's order is left open by protobuf unless asked for
                data = HParamsPluginData.FromString(value.metadata.plugin_data.content)
                value.metadata.plugin_data.content = data.SerializeToString(deterministic=True)
            self._writer.file_writer.add_summary(summary, 0, time)


def _begun_at(data: bytes, time: float) -> bytes:
    """Return an event file with the time of its first event (the file's version) replaced."""
    from tensorboard.compat.proto.event_pb2 import Event  # noqa: PLC0415
    from tensorboard.summary.writer.record_writer import RecordWriter  # noqa: PLC0415

    (length,) = struct.unpack_from("<Q", data)  # a record: length, its checksum (4 bytes), payload, its checksum
    event = Event.FromString(data[12 : 12 + length])
    event.wall_time = time
    out = io.BytesIO()
    RecordWriter(out).write(event.SerializeToString())
    return out.getvalue() + data[16 + length :]
