"""The buffer that frames are written into (see `harebell.kernels.output`)."""

from __future__ import annotations

from harebell.kernels.output import OutBuffer

__all__ = ["OutBuffer"]
