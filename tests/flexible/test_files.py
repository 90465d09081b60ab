"""Readers of OP2, OP4, DMIG, .mtx and .npz: files that other programs wrote, and broken files."""

import contextlib
import io
import struct
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from linkwise.errors import LinkwiseError, MissingExtraError, ModelFileError
from linkwise.flexible import FlexibleBody
from linkwise.flexible.files.abaqus import read_mtx, read_nodes
from linkwise.flexible.files.nastran import read_bulk
from linkwise.flexible.files.nastran_output import read_op2, read_op4
from tests.flexible import textbook

pytest.importorskip("pyyeti", reason="the extra fem is not installed")

DATA = Path(__file__).parent / "data"
NODES, M, K = textbook.beam(2)
A = np.array([[1.5, 0, -2e-30], [0, 0, 5], [3.25, 0, 0], [4, 7e12, 8]])
GRIDS = {10 * (k + 1): tuple(position) for k, position in enumerate(NODES)}


def reference():
    return FlexibleBody.from_arrays(NODES, M, K, root=0, keep=[2], modes=4)


# ---------------------------------------------------------------------------------------------------------------- OP2
def op2_file(matrices, order="<", integer=4, mtype=2):
    """An OUTPUT2 file as Nastran writes it: keys and records, each with its length on both sides."""
    word = {4: "i", 8: "q"}[integer]

    def record(body):
        size = struct.pack(order + "i", len(body))
        return size + body + size

    def key(*values):
        return b"".join(record(struct.pack(order + word, value)) for value in values)

    def name(text):
        return record(text.ljust(2 * integer).encode())

    made = key(3) + record(struct.pack(f"{order}3{word}", 11, 16, 26))
    made += key(7) + record(b"NASTRAN FORT TAPE ID CODE - ".ljust(7 * integer)) + key(2) + name("XXXXXXXX") + key(-1, 0)
    for k, (title, matrix) in enumerate(matrices.items()):
        rows, columns = matrix.shape
        trailer = struct.pack(f"{order}7{word}", 101 + k, columns, rows, 6, mtype, rows, 10000)
        made += key(2) + name(title) + key(-1, 7) + record(trailer) + key(-2, 1, 0, 2) + name(title) + key(-3, 1, 1)
        for j in range(columns):
            (filled,) = np.nonzero(matrix[:, j])
            if len(filled):
                first, last = filled[0], filled[-1] + 1
                numbers = matrix[first:last, j].astype(f"{order}{'f8' if mtype == 2 else 'f4'}").tobytes()
                words = len(numbers) // integer + 1
                made += key(words) + record(struct.pack(order + word, first + 1) + numbers)
            made += key(-(4 + j), 1, 1 if j + 1 < columns else 0)
        made += key(0)
    return made + key(0)


@pytest.mark.parametrize("integer", [4, 8])
@pytest.mark.parametrize("order", ["<", ">"])
def test_output2_files(tmp_path, order, integer):
    path = tmp_path / "beam.op2"
    path.write_bytes(op2_file({"A": A, "MGG": M, "KGG": K}, order, integer))
    found = read_op2(path, path.read_bytes())
    assert list(found) == ["A", "MGG", "KGG"]
    for name, expected in (("A", A), ("MGG", M), ("KGG", K)):
        np.testing.assert_array_equal(found[name].toarray(), expected)
    body = FlexibleBody.from_nastran(path, bulk=DATA / "grids.bdf", root=10, keep=[30], modes=4)
    np.testing.assert_allclose(body.frequencies, reference().frequencies, rtol=1e-12)


def test_damaged_output2_files_are_refused(tmp_path):
    path, whole = tmp_path / "beam.op2", op2_file({"KGG": K, "MGG": M})
    rng = np.random.default_rng(0)
    for cut in rng.integers(8, len(whole) - 4, 20):
        path.write_bytes(whole[:cut])
        with pytest.raises(ModelFileError):
            FlexibleBody.from_nastran(path, bulk=DATA / "grids.bdf", root=10, keep=[30], modes=4)


# ---------------------------------------------------------------------------------------------------------------- OP4

STORED = sorted(path.name for path in DATA.glob("*.op4"))


def test_there_are_stored_files():
    assert len(STORED) == 10


@pytest.mark.parametrize("name", STORED)
def test_stored_op4_files(name):
    """Written once by pyyeti 1.4.7: the matrices A, MGG and KGG; C is complex."""
    found = read_op4(DATA / name)
    assert list(found) == ["A", "MGG", "KGG", "C"]
    assert found["C"] is None
    tolerance = {"rtol": 1e-15} if "text" not in name else {"rtol": 1e-9}
    np.testing.assert_allclose(found["A"].toarray(), A, **tolerance)
    np.testing.assert_allclose(found["MGG"].toarray(), M, **tolerance)
    np.testing.assert_allclose(found["KGG"].toarray(), K, **tolerance)
    body = FlexibleBody.from_nastran(DATA / name, bulk=DATA / "grids.bdf", root=10, keep=[30], modes=4)
    np.testing.assert_allclose(body.frequencies, reference().frequencies, rtol=1e-7)
    np.testing.assert_allclose(body.node(30).position, [10.0, 0, 0], atol=1e-9)


@pytest.mark.parametrize("sparse_kind", ["dense", "bigmat", "nonbigmat"])
@pytest.mark.parametrize("binary", [True, False])
@pytest.mark.parametrize("endian", ["<", ">"])
def test_op4_against_pyyeti(tmp_path, sparse_kind, binary, endian):
    from pyyeti.nastran import op4

    rng = np.random.default_rng(5)
    fills = {(1, 1): 1.0, (30, 7): 0.3, (7, 30): 1.0, (5, 5): 0.0, (120, 3): 0.05}
    matrices = {
        f"m{k}": rng.standard_normal(shape) * (rng.random(shape) < fills[shape]) for k, shape in enumerate(fills)
    }
    path = tmp_path / "m.op4"
    op4.write(str(path), matrices, binary=binary, sparse=sparse_kind, endian=endian)
    found = read_op4(path)
    assert list(found) == [name.upper() for name in matrices]
    for name, expected in matrices.items():
        np.testing.assert_allclose(found[name.upper()].toarray(), expected, rtol=1e-15)


def test_op4_with_wide_integers(tmp_path):
    """A dense real matrix as 64-bit Nastran writes it: eight-byte integers and words."""
    path = tmp_path / "wide.op4"
    path.write_bytes(_wide([[1.0, 2.0], [3.0, 4.0]]))
    np.testing.assert_array_equal(read_op4(path)["WIDE"].toarray(), [[1, 2], [3, 4]])


def _wide(rows):
    def record(body):
        return struct.pack("<i", len(body)) + body + struct.pack("<i", len(body))

    content = record(struct.pack("<4q", 2, 2, 2, 2) + b"WIDE".ljust(16))
    for column in range(2):
        content += record(struct.pack("<3q2d", column + 1, 1, 2, *(row[column] for row in rows)))
    return content + record(struct.pack("<3qd", 3, 1, 1, 1.0))


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda b: b[: len(b) // 2], "ends inside"),
        (lambda b: b[:28] + b"\x07" + b[29:], "two lengths differ"),
        (lambda b: b[:4] + struct.pack("<i", 2**30) + b[8:], "impossible size"),
        (lambda b: b[:16] + struct.pack("<i", 9) + b[20:], "unknown type"),
        (lambda b: b[:32] + struct.pack("<i", 10**6) + b[36:], "ends inside a record"),
    ],
)
def test_broken_binary_op4(tmp_path, change, text):
    path = tmp_path / "broken.op4"
    path.write_bytes(change((DATA / "binary_dense.op4").read_bytes()))
    with pytest.raises(ModelFileError, match=text):
        read_op4(path)


HEAD = "       2       2       2       2A       1P,3E23.16\n"
END = "       3       1       1\n" + "1.0".rjust(23) + "\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEAD + "       1       1       x\n", "'       x'"),
        (HEAD + "       1       1       2\n" + "1.0".rjust(23) + "hello".rjust(23) + "\n" + END, "hello"),
        (HEAD + "       1       2       2\n" + "1.0".rjust(23) * 2 + "\n" + END, "exceeds matrix dimension"),
        (HEAD + "       1      -1       1\n" + "1.0".rjust(23) + "\n" + END, "can be read"),
        (HEAD + "       1       1       1\n" + "nan".rjust(23) + "\n" + END, "not finite"),
        (HEAD, "can be read"),
        (HEAD[:31] + "7" + HEAD[32:] + "       1       1       2\n" + "1.0".rjust(23) * 2 + "\n" + END, "unknown type"),
        (" 9999999" + HEAD[8:] + "10000000       1       1\n" + "1.0".rjust(23) + "\n", "impossible size"),
        ("hello, this is not a matrix at all\n", "hello"),
    ],
)
def test_broken_text_op4(tmp_path, text, message):
    path = tmp_path / "broken.op4"
    path.write_text(text)
    with pytest.raises(ModelFileError, match=message) as error:
        read_op4(path)
    assert error.value.file == str(path)


def test_op4_records_that_pyyeti_takes_on_trust(tmp_path):
    """An entry below the last row, or a column before the first, would be put elsewhere or nowhere."""
    good = _wide([[1.0, 2.0], [3.0, 4.0]])
    first = 4 + 48 + 4 + 4
    for at, value in ((first, 0), (first, -1), (first + 8, 2), (first + 8, 0), (first + 16, 3), (first + 16, -1)):
        path = tmp_path / "broken.op4"
        path.write_bytes(good[:at] + struct.pack("<q", value) + good[at + 8 :])
        with pytest.raises(ModelFileError, match=r"outside|can be read"):
            read_op4(path)


def test_large_op4_matrices_are_read_entry_by_entry(monkeypatch):
    from linkwise.flexible.files import nastran_output

    monkeypatch.setattr(nastran_output, "_LARGEST_DENSE", 1)
    np.testing.assert_array_equal(read_op4(DATA / "binary_dense.op4")["KGG"].toarray(), K)


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=400), st.integers(0, 300))
def test_op4_with_noise_never_fails_otherwise(tmp_path_factory, noise, at):
    path = tmp_path_factory.mktemp("noise") / "noise.op4"
    good = (DATA / "binary_nonbigmat.op4").read_bytes()
    path.write_bytes(good[:at] + noise + good[at + len(noise) :])
    with contextlib.suppress(ModelFileError):
        read_op4(path)


# --------------------------------------------------------------------------------------------------------------- DMIG


def test_stored_dmig_file():
    """GRID and DMIG cards written by pyyeti."""
    body = FlexibleBody.from_nastran(DATA / "beam.bdf", root=10, keep=[30], modes=4)
    np.testing.assert_allclose(body.frequencies, reference().frequencies, rtol=1e-6)


def test_dmig_against_pyyeti(tmp_path):
    import pandas
    from pyyeti.nastran import bulk

    index = pandas.MultiIndex.from_product([[3, 7, 12], [1, 2, 3, 4, 5, 6]])
    symmetric = np.random.default_rng(1).standard_normal((18, 18))
    symmetric = symmetric + symmetric.T
    square = np.random.default_rng(2).standard_normal((18, 18))
    path = tmp_path / "dmig.bdf"
    bulk.wtdmig(
        str(path), {"kaa": pandas.DataFrame(symmetric, index, index), "maa": pandas.DataFrame(square, index, index)}
    )
    found = read_bulk(path).matrices
    assert found["KAA"].form == 6
    assert found["MAA"].form == 1
    theirs = bulk.rddmig(str(path))
    row = {place: k for k, place in enumerate(index)}
    for name in ("KAA", "MAA"):
        ours = np.zeros((18, 18))
        for (i, j), value in found[name].entries.items():
            ours[row[i], row[j]] = value
            if name == "KAA":
                ours[row[j], row[i]] = value
        np.testing.assert_allclose(ours, theirs[name.lower()].to_numpy(), rtol=1e-12)


def test_card_formats_are_read_alike(tmp_path):
    small = "GRID    7               1.5     -2.5+1  3.D0\n"
    large = "GRID*   7                               1.5             -25.0\n*       3.0\n"
    free = "$ a comment\nGRID,7,,1.5,-25.,3.\n"
    comment = "GRID*   7                               1.5             -25.0\n$ z:\n\n*       3.0\n"
    narrower = "GRID*   7                               1.5             -25.0\n+       3.0\n"
    free_large = "GRID*,7,,1.5,-25.\n*,3.\n"
    named = "GRID*,7,,1.5,-25.,*A\n*A,3.\n"
    for text in (small, large, free, comment, narrower, free_large, named):
        path = tmp_path / "cards.bdf"
        path.write_text("BEGIN BULK\nCQUAD4  1 2 3\n+       9\n" + text + "ENDDATA\n")
        assert read_bulk(path).grids == {7: (1.5, -25.0, 3.0)}


def test_matrix_cards_go_on_over_lines(tmp_path):
    path = tmp_path / "cards.bdf"
    path.write_text("DMIG,KAA,0,6,2,0\nDMIG,KAA,1,1,,1,1,5.\n$ and\n,1,2,6.\nDMIG*,KAA,1,2,,*B\n*B,1,2,7.,\n")
    entries = read_bulk(path).matrices["KAA"].entries
    assert entries == {((1, 1), (1, 1)): 5.0, ((1, 2), (1, 1)): 6.0, ((1, 2), (1, 2)): 7.0}


@pytest.mark.parametrize(
    ("text", "message", "line"),
    [
        ("GRID,7,5,1.,2.,3.\n", "coordinate system of its own", 1),
        ("GRID,7,,1.,2.,3.,4\n", "displacements", 1),
        ("GRID,7,,1.,2.,3.\nGRID,7,,1.,2.,3.\n", "twice", 2),
        ("GRID,seven,,1.,2.,3.\n", "number of a GRID", 1),
        ("GRID,7,,1.,two,3.\n", "not a number", 1),
        ("DMIG,KAA,1,1,,1,1,5.\n", "before its header", 1),
        ("DMIG,KAA,0,6,3,0\n", "not real", 1),
        ("DMIG,KAA,0,6,2,0\nDMIG,KAA,1,9,,1,1,5.\n", "component is not possible", 2),
        ("DMIG,KAA,0,6,2,0\nDMIG,KAA,1,1,,1,1,5.\nDMIG,KAA,1,1,,1,1,5.\n", "twice", 3),
        ("DMIG,KAA,0,6,2,0\nDMIG,KAA,0,6,2,0\n", "begins twice", 2),
    ],
)
def test_broken_cards_name_the_line(tmp_path, text, message, line):
    path = tmp_path / "broken.bdf"
    path.write_text(text)
    with pytest.raises(ModelFileError, match=message) as error:
        read_bulk(path)
    assert error.value.line == line


def test_without_pyyeti_op4_names_the_extra_and_cards_are_read(monkeypatch):
    for name in ("pyyeti", "pyyeti.nastran", "pyyeti.nastran.op4"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtraError, match=r"linkwise\[fem\]"):
        FlexibleBody.from_nastran(DATA / "binary_dense.op4", bulk=DATA / "grids.bdf", root=10)
    assert read_bulk(DATA / "grids.bdf").grids.keys() == GRIDS.keys()


def test_nastran_arguments(tmp_path):
    with pytest.raises(LinkwiseError, match="bulk="):
        FlexibleBody.from_nastran(DATA / "binary_dense.op4", root=10)
    with pytest.raises(LinkwiseError, match="KGG"):
        FlexibleBody.from_nastran(DATA / "binary_dense.op4", root=10, bulk=DATA / "grids.bdf", stiffness="KHH")
    with pytest.raises(LinkwiseError, match="is complex"):
        FlexibleBody.from_nastran(DATA / "binary_dense.op4", root=10, bulk=DATA / "grids.bdf", stiffness="C")
    few = tmp_path / "few.bdf"
    few.write_text("GRID,10,,0.,0.,0.\nGRID,20,,5.,0.,0.\n")
    with pytest.raises(LinkwiseError, match="18 rows for 2 grids"):
        FlexibleBody.from_nastran(DATA / "binary_dense.op4", root=10, bulk=few)
    cards = (DATA / "beam.bdf").read_text()
    missing = tmp_path / "missing.bdf"
    missing.write_text(cards.replace("GRID*                 20", "GRID*                 21"))
    with pytest.raises(LinkwiseError, match="grid 20"):
        FlexibleBody.from_nastran(missing, root=10)
    nothing = tmp_path / "nothing.bdf"
    nothing.write_text("GRID,10,,0.,0.,0.\n")
    with pytest.raises(LinkwiseError, match="no stiffness matrix under a usual name"):
        FlexibleBody.from_nastran(nothing, root=10)
    with pytest.raises(ModelFileError, match="cannot read"):
        FlexibleBody.from_nastran(tmp_path / "absent.bdf", root=10)


# ------------------------------------------------------------------------------------------------------------- Abaqus


def mtx(matrix, numbers=(10, 20, 30), triangle=True):
    """As *MATRIX OUTPUT writes it: the lower triangle of a symmetric matrix."""
    lines = ["** written for a test"]
    for i in range(len(matrix)):
        for j in range(i + 1 if triangle else len(matrix)):
            if matrix[i, j]:
                lines.append(f"{numbers[i // 6]},{i % 6 + 1}, {numbers[j // 6]},{j % 6 + 1},  {matrix[i, j]:.16e}")
    return "\n".join(lines) + "\n"


@pytest.fixture
def abaqus(tmp_path):
    (tmp_path / "m.mtx").write_text(mtx(M))
    (tmp_path / "k.mtx").write_text(mtx(K, triangle=False))
    nodes = "".join(f"{number}, {x}, {y}, {z}\n" for number, (x, y, z) in GRIDS.items())
    (tmp_path / "job.inp").write_text("*HEADING\na beam\n*NODE, NSET=ALL\n" + nodes + "*ELEMENT, TYPE=B33\n1, 10, 20\n")
    return tmp_path


def test_abaqus_matrices(abaqus):
    body = FlexibleBody.from_abaqus(
        abaqus / "m.mtx", abaqus / "k.mtx", abaqus / "job.inp", root=10, keep={"tip": 30}, modes=4
    )
    np.testing.assert_allclose(body.frequencies, reference().frequencies, rtol=1e-9)
    found = read_mtx(abaqus / "m.mtx", abaqus / "k.mtx", GRIDS)
    np.testing.assert_allclose(found.M.toarray(), M, rtol=1e-15)
    np.testing.assert_allclose(found.K.toarray(), K, rtol=1e-15)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("10,1,10\n", "not a line of a matrix"),
        ("10,1,10,x,1.0\n", "integer"),
        ("10,1,10,1,one\n", "not a number"),
        ("10,1,10,1,nan\n", "not finite"),
        ("10,1,10,1,1e36\n", "support"),
        ("10,9,10,9,1.0\n", "not a displacement"),
        ("-3,1,10,1,1.0\n", "internal nodes"),
        ("10,1,10,1,1.0\n10,1,10,1,1.0\n", "twice"),
    ],
)
def test_broken_mtx_names_the_line(abaqus, line, message):
    (abaqus / "bad.mtx").write_text("**\n" + line)
    with pytest.raises(ModelFileError, match=message) as error:
        read_mtx(abaqus / "m.mtx", abaqus / "bad.mtx", GRIDS)
    assert error.value.line in (2, 3)


def test_abaqus_nodes_that_are_missing(abaqus):
    with pytest.raises(ModelFileError, match="no position"):
        read_mtx(abaqus / "m.mtx", abaqus / "k.mtx", {10: (0, 0, 0)})
    (abaqus / "empty.inp").write_text("*HEADING\n")
    with pytest.raises(ModelFileError, match="no \\*NODE"):
        read_nodes(abaqus / "empty.inp")


# ---------------------------------------------------------------------------------------------------------------- npz


def test_matrices_in_an_archive(tmp_path):
    path = tmp_path / "dense.npz"
    np.savez(path, M=M, K=K, nodes=NODES, numbers=[10, 20, 30])
    body = FlexibleBody.from_npz(path, root=10, keep=[30], modes=4)
    np.testing.assert_allclose(body.frequencies, reference().frequencies, rtol=1e-10)
    parts = {}
    for name, matrix in (("M", sparse.csr_array(M)), ("K", sparse.csr_array(K))):
        parts |= {f"{name}_data": matrix.data, f"{name}_indices": matrix.indices, f"{name}_indptr": matrix.indptr}
    path = tmp_path / "sparse.npz"
    np.savez(path, nodes=NODES, dofs=[(k // 6, k % 6 + 1) for k in range(18)], **parts)
    np.testing.assert_allclose(FlexibleBody.from_npz(path, root=0, modes=4).frequencies, body.frequencies, rtol=1e-10)


def test_a_body_saved_and_read_is_the_same(tmp_path):
    beam = FlexibleBody.beam(
        10.0, 2.8e7, (1.4e4, 1.5e4), 1e4, 1.2, elements=4, modes=2, damping=0.01, rotary_inertia=6e-4
    )
    beam.save(tmp_path / "beam.npz")
    again = FlexibleBody.from_npz(tmp_path / "beam.npz")
    for name in ("stiffness", "damping"):
        np.testing.assert_array_equal(getattr(again, name), getattr(beam, name))
    rng = np.random.default_rng(0)
    state = rng.standard_normal(beam.modes), rng.standard_normal(beam.modes), rng.standard_normal(6)
    assert again.kinetic_energy(*state) == beam.kinetic_energy(*state)
    assert [node.key for node in again.nodes] == [node.key for node in beam.nodes]
    np.testing.assert_array_equal(again.node("tip").Q, beam.node("tip").Q)
    assert again.stiffening
    with pytest.raises(LinkwiseError, match="takes no arguments"):
        FlexibleBody.from_npz(tmp_path / "beam.npz", root=0)


class Evil:
    def __reduce__(self):
        return (print, ("executed",))


@pytest.mark.parametrize(
    ("arrays", "text"),
    [
        ({"nodes": NODES, "M": M}, "no matrix K"),
        ({"M": M, "K": K}, "no array 'nodes'"),
        ({"nodes": NODES, "M": M, "K": np.array(["a"])}, "does not hold numbers"),
        ({"nodes": NODES, "M": M, "K": K * np.nan}, "not finite"),
        ({"nodes": NODES, "M": M, "K": K, "numbers": [1, 1, 2]}, "does not number"),
        ({"nodes": NODES, "M": M, "K": K, "dofs": [1, 2]}, "list of pairs"),
        ({"nodes": NODES, "M": M, "K_data": [1.0], "K_indices": [99], "K_indptr": [0, 1]}, "broken"),
        ({"nodes": NODES, "M": M, "K": np.array([Evil()], dtype=object)}, "not an archive of plain arrays"),
        ({"format": np.array("linkwise flexible body 99")}, "not known"),
        ({"format": np.array("linkwise flexible body 1")}, "stiffness"),
    ],
)
def test_broken_archives(tmp_path, capsys, arrays, text):
    path = tmp_path / "broken.npz"
    with path.open("wb") as stream:
        np.savez(stream, **{name: np.asarray(value) for name, value in arrays.items()}, allow_pickle=True)
    with pytest.raises(LinkwiseError, match=text):
        FlexibleBody.from_npz(path, root=0)
    assert "executed" not in capsys.readouterr().out


def test_files_that_are_no_archives(tmp_path):
    path = tmp_path / "no.npz"
    for content, text in ((b"", "empty"), (b"hello", "not an archive"), (b"PK\x03\x04" + b"\0" * 60, "not an archive")):
        path.write_bytes(content)
        with pytest.raises(ModelFileError, match=text):
            FlexibleBody.from_npz(path, root=0)
    buffer = io.BytesIO()
    np.savez(buffer, nodes=NODES, M=M, K=K)
    path.write_bytes(buffer.getvalue())
    with pytest.raises(LinkwiseError, match="needs a root"):
        FlexibleBody.from_npz(path)
    with pytest.raises(LinkwiseError, match="must be a string or a path"):
        FlexibleBody.from_npz(3, root=0)
