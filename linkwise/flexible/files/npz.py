"""NumPy's archives: a reduced body written by us, or matrices of a model. Nothing in them is unpickled."""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from linkwise.array_types import Array
from linkwise.errors import LinkwiseError, ModelFileError
from linkwise.flexible.body import FlexibleBody, FlexibleNode
from linkwise.flexible.files.matrix_files import LARGEST_FILE, MatrixModel, read_bytes
from linkwise.flexible.integrals import ModalIntegrals
from linkwise.flexible.mode_choice import BOUNDARIES
from linkwise.flexible.nodal import Nodes
from linkwise.flexible.structure import MatrixLike

_FORMAT = "linkwise flexible body 1"


def write_body(body: FlexibleBody, path: str | os.PathLike[str]) -> None:
    """Every number of the body as plain arrays."""
    nodes = body.nodes
    arrays: dict[str, Any] = {
        "format": np.array(_FORMAT),
        "boundary": np.array(body.boundary),
        "stiffening": np.array(body.stiffening),
        "held": np.array(body.held),
        "stiffness": body.stiffness,
        "damping": body.damping,
        "node_numbers": np.array([node.number for node in nodes]),
        "node_names": np.array([node.name or "" for node in nodes]),
        "node_positions": np.array([node.position for node in nodes]),
        "node_Gamma": np.array([node.Gamma for node in nodes]),
        "node_Lambda": np.array([node.Lambda for node in nodes]),
        "node_Q": np.array([node.Q for node in nodes]),
        **{f"integral_{each.name}": np.asarray(getattr(body.integrals, each.name)) for each in fields(body.integrals)},
    }
    with Path(path).open("wb") as stream:
        np.savez_compressed(stream, **arrays)


def read_npz(path: str | os.PathLike[str]) -> FlexibleBody | MatrixModel:
    """Body or matrices that the archive holds."""
    content = read_bytes(path)
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
        if size > LARGEST_FILE:
            raise ModelFileError(
                "the archive unpacks to too much", file=path, got=f"{size} bytes", allowed=f"{LARGEST_FILE}"
            )
        with np.load(io.BytesIO(content), allow_pickle=False) as data:
            arrays = {name: data[name] for name in data.files}
    except (ValueError, OSError, EOFError, zipfile.BadZipFile) as error:
        raise ModelFileError("this is not an archive of plain arrays", file=path, got=str(error)[:120]) from None
    if "format" in arrays:
        return _body(arrays, path)
    return _matrices(arrays, path)


def _matrices(arrays: Mapping[str, Array], path: str | os.PathLike[str]) -> MatrixModel:
    positions = _array(arrays, "nodes", path)
    numbers = arrays.get("numbers")
    nodes: Nodes = positions
    if numbers is not None:
        if numbers.shape != (len(positions),) or len(np.unique(numbers)) != len(numbers):
            raise ModelFileError(
                "numbers does not number the nodes",
                file=path,
                got=str(numbers.shape),
                allowed=f"({len(positions)},), all different",
            )
        nodes = {int(number): position for number, position in zip(numbers, positions, strict=True)}
    dofs = arrays.get("dofs")
    if dofs is not None and (dofs.ndim != 2 or dofs.shape[1] != 2):
        raise ModelFileError("dofs is not a list of pairs", file=path, got=str(dofs.shape), allowed="(N, 2)")
    pairs = None if dofs is None else [(int(node), int(component)) for node, component in dofs]
    return MatrixModel(nodes, _matrix(arrays, "M", path), _matrix(arrays, "K", path), pairs)


def _matrix(arrays: Mapping[str, Array], name: str, path: str | os.PathLike[str]) -> MatrixLike:
    if name in arrays:
        return _array(arrays, name, path)
    if f"{name}_data" not in arrays:
        raise ModelFileError(
            f"the archive has no matrix {name}",
            file=path,
            got=", ".join(arrays),
            allowed=f"{name}, or {name}_data, {name}_indices, {name}_indptr",
        )
    data, indices, indptr = (_array(arrays, f"{name}_{part}", path) for part in ("data", "indices", "indptr"))
    size = len(indptr) - 1
    try:
        matrix = sparse.csr_array((data, indices.astype(int), indptr.astype(int)), shape=(size, size))
        matrix.check_format()
    except (ValueError, IndexError) as error:
        raise ModelFileError(f"the sparse matrix {name} is broken", file=path, got=str(error)[:120]) from None
    return matrix


def _body(arrays: Mapping[str, Array], path: str | os.PathLike[str]) -> FlexibleBody:
    if str(arrays["format"]) != _FORMAT:
        raise ModelFileError(
            "the format of this body is not known", file=path, got=repr(str(arrays["format"])), allowed=repr(_FORMAT)
        )
    K, D, *of_nodes = (
        _array(arrays, name, path)
        for name in ("stiffness", "damping", "node_numbers", "node_positions", "node_Gamma", "node_Lambda", "node_Q")
    )
    boundary = str(arrays.get("boundary", ""))
    if boundary not in BOUNDARIES:
        raise ModelFileError(
            "the kind of modes is not known", file=path, got=repr(boundary), allowed=", ".join(BOUNDARIES)
        )
    names = np.atleast_1d(arrays.get("node_names", np.zeros(0, dtype=str)))
    integrals: dict[str, Any] = {
        each.name: _array(arrays, f"integral_{each.name}", path) for each in fields(ModalIntegrals)
    }
    if any(len(np.atleast_1d(each)) != len(names) for each in of_nodes):
        raise ModelFileError(
            "the arrays of nodes have different lengths", file=path, got=str([np.shape(each) for each in of_nodes])
        )
    try:
        integrals["mass"] = float(integrals["mass"])
        nodes = tuple(
            FlexibleNode(int(number), str(name) or None, *shapes)
            for name, number, *shapes in zip(names, *of_nodes, strict=True)
        )
        return FlexibleBody(
            nodes=nodes,
            stiffness=K,
            damping=D,
            integrals=ModalIntegrals(**integrals),
            boundary=boundary,
            stiffening=bool(arrays.get("stiffening", False)),
            held=int(arrays.get("held", 0)),
        )
    except LinkwiseError as error:
        raise ModelFileError(f"the body is not possible: {error.what}", file=path, got=error.got) from None
    except (TypeError, ValueError, OverflowError) as error:  # no number where one must be
        raise ModelFileError("the body is not possible", file=path, got=str(error)[:120]) from None


def _array(arrays: Mapping[str, Array], name: str, path: str | os.PathLike[str]) -> Array:
    if name not in arrays:
        raise ModelFileError(f"the archive has no array {name!r}", file=path, got=", ".join(arrays))
    array = arrays[name]
    if array.dtype.kind not in "fiu":
        raise ModelFileError(f"the array {name!r} does not hold numbers", file=path, got=str(array.dtype))
    if not np.isfinite(array).all():
        raise ModelFileError(f"the array {name!r} is not finite", file=path)
    return array
