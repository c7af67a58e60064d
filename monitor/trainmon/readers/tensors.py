"""The number in a scalar tensor.

TF2's and torch's new-style writers log scalars as tensors of rank 0; some log shape [1]. Every numeric type is
read, both from `tensor_content` (raw little-endian bytes) and from the typed fields, as TensorFlow's
`Tensor::FromProto` does (a typed field left empty means zero).
"""

from __future__ import annotations

from struct import Struct, pack, unpack

# DataType number → (typed field, struct format of the content)
TYPES: dict[int, tuple[str, str]] = {
    1: ("float_val", "f"),
    2: ("double_val", "d"),
    3: ("int_val", "i"),
    4: ("int_val", "B"),
    5: ("int_val", "h"),
    6: ("int_val", "b"),
    9: ("int64_val", "q"),
    10: ("bool_val", "B"),
    14: ("half_val", ""),  # bfloat16: the upper half of a float32
    17: ("int_val", "H"),
    19: ("half_val", "e"),
    22: ("uint32_val", "I"),
    23: ("uint64_val", "Q"),
}
STRING, BOOL, BFLOAT16, HALF = 7, 10, 14, 19


def read_tensor(data: bytes) -> float | bytes | None:
    """Return a scalar tensor's number, a string tensor's first string, or None for any other tensor.

    Raises
    ------
    ValueError
        If the bytes are no tensor.
    """
    from google.protobuf.message import DecodeError  # noqa: PLC0415
    from tensorboard.compat.proto.tensor_pb2 import TensorProto  # noqa: PLC0415

    try:
        tensor = TensorProto.FromString(data)
    except DecodeError:
        raise ValueError("a tensor can't be decoded") from None
    if tensor.dtype == STRING:
        return bytes(tensor.string_val[0]) if tensor.string_val else None
    if tensor.dtype not in TYPES or tensor.tensor_shape.unknown_rank:
        return None
    if [d.size for d in tensor.tensor_shape.dim] not in ([], [1]):
        return None
    typed, code = TYPES[tensor.dtype]
    if tensor.tensor_content:
        return _from_content(tensor.dtype, code, tensor.tensor_content)
    values = getattr(tensor, typed)
    if not values:
        return 0.0
    if tensor.dtype in (HALF, BFLOAT16):
        return _from_content(tensor.dtype, code, pack("<H", values[0] & 0xFFFF))
    return float(values[0])


def _from_content(dtype: int, code: str, content: bytes) -> float | None:
    if dtype == BFLOAT16:
        return float(unpack("<f", b"\0\0" + content)[0]) if len(content) == 2 else None
    number = Struct("<" + code)
    if len(content) != number.size:
        return None
    value = number.unpack(content)[0]
    return float(bool(value)) if dtype == BOOL else float(value)
