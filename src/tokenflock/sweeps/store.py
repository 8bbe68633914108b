"""A store: the results of a grid of cells in one folder, which zarr and xarray read by themselves.

    DIR/zarr.json            what there is, the recipe of it, and how the grid is cut into blocks
    DIR/NAME/c/0/3/0         a chunk of an array: one for each block
    DIR/.tokenflock/blocks   the log: a line for each block that is done, with a checksum

A block is done once the log says so, which is when all its chunks are on the disk. One process
writes; it holds a lock that dies with it. A store that somebody sent is data: what is in it is
looked at before it is believed, and no link in it is followed.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tokenflock import __version__
from tokenflock.engines.memory import require_memory
from tokenflock.errors import UserError
from tokenflock.files import made_folder, put
from tokenflock.locks import alone
from tokenflock.sweeps.arrays import DESCRIPTION, LARGEST, MOST_AXES, ZarrArray, group, read_group
from tokenflock.sweeps.cut import Cut
from tokenflock.sweeps.log import ERROR, NEW, Log, Standing
from tokenflock.sweeps.own import OddFile, inside
from tokenflock.sweeps.unfinished import Unfinished

FORMAT = 1
HOME = ".tokenflock"  # the folder in the store that is ours
TRIES = 5  # to get the lock
DONE = "done"  # the array that says which cells are there
AXES = "axes"  # the checksum of all axes; "" where they are to be written anew
Values = dict[str, np.ndarray]


@dataclass(frozen=True)
class Form:
    """What the arrays of a store are: axes and notes of each, coordinates, and notes on all."""

    variables: Mapping[str, tuple[tuple[str, ...], Mapping[str, Any]]]
    coords: Mapping[str, tuple[tuple[str, ...], np.ndarray, Mapping[str, Any]]]
    attrs: Mapping[str, Any]


class Store:
    """The results of a sweep on disk. Used as a context it keeps other processes away.

    `mark` tells the sweep that it belongs to; another one is refused.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.log = Log(self.path / HOME / "blocks")
        self.unfinished = Unfinished(self.path / HOME / "unfinished.npz")
        self.attrs: dict[str, Any] = {}
        self.arrays: dict[str, ZarrArray] = {}
        self.cut = Cut((), (), ())
        self.progress = Standing.nothing(1)
        self.lock = ExitStack()

    # ----------------------------------------------------------------------------------------------
    # opening

    def __enter__(self) -> Store:
        self._refuse_foreign()
        self._refuse_links()
        made_folder(self.path)
        for left in reversed(range(TRIES)):
            try:
                self.lock.enter_context(alone(self.path, "adding to this run"))
                break
            except UserError:
                if not left:
                    raise
                time.sleep(0.1)  # somebody may only look whether it is held
        return self

    def __exit__(self, *_: Any) -> None:
        self.log.close()
        self.lock.close()

    @property
    def exists(self) -> bool:
        """Whether there is a store here."""
        return (self.path / DESCRIPTION).exists()

    @property
    def repeats(self) -> int:
        """How many repeats a batch of a cell has."""
        count = self.attrs.get("tokenflock", {}).get("repeats", 1)
        return count if type(count) is int and 0 < count < 2**53 else 1

    def begin(
        self, mark: str, cut: Cut, attrs: Mapping[str, Any], notes: Mapping[str, Any] | None = None
    ) -> None:
        """Go on with the sweep of this mark, or begin it, cut into these blocks."""
        cut.check()
        self._refuse_links()
        made_folder(self.path / HOME)
        if not self.exists:
            head = {"format": FORMAT, "mark": mark, "dims": list(cut.dims)}
            head |= {"shape": list(cut.shape), "chunk": list(cut.chunk), **(notes or {})}
            self.attrs, self.cut, self.arrays = dict(attrs) | {"tokenflock": head}, cut, {}
            self.log.path.unlink(missing_ok=True)
            self._describe()
        self.look()
        if self.attrs["tokenflock"]["mark"] != mark:
            raise UserError(
                f"{self.path} holds the beginning of another run; delete it, or choose another"
                " output"
            )
        (self.path / HOME / NEW).unlink(missing_ok=True)
        self.log.open()
        self._refuse_gaps()

    def look(self, mend: bool = False) -> Store:
        """Read what is there, without touching it."""
        self._refuse_links()
        if not self.exists:
            raise UserError(f"{self.path} is no store of a sweep; make one with: tokenflock sweep")
        self.attrs, self.arrays = read_group(self.path)
        self.cut = _cut(self.path, self.attrs.get("tokenflock"))
        self._refuse_strange()
        self.progress = self.log.read(len(self.cut), mend)
        return self

    def _refuse_foreign(self) -> None:
        """Refuse what is no folder, or one that holds other things."""
        if not self.path.exists():
            if not self.path.parent.resolve().is_dir():
                folder = self.path.parent
                raise UserError(f"the folder {folder} does not exist; make it: mkdir -p {folder}")
            return
        if not self.path.is_dir():
            raise UserError(
                f"{self.path} is a file and not the beginning of a run; delete it, or choose"
                " another output"
            )
        if not self.exists and any(path.name != HOME for path in self.path.iterdir()):
            raise UserError(
                f"{self.path} is a folder that holds other things, and not the beginning of a run;"
                " choose another output"
            )

    def _refuse_links(self) -> None:
        """Refuse links, pipes and devices where a file or a folder of ours should be. Those of
        chunks are seen when they are read or written: there may be millions.
        """
        inside(self.path, DESCRIPTION)
        if inside(self.path, HOME, folder=True) is not None:
            for name in ("blocks", "unfinished.npz", "log.txt", NEW):
                inside(self.path, f"{HOME}/{name}")

    def _refuse_strange(self) -> None:
        """Refuse arrays that do not go together with the grid or with each other."""
        odd = _odd(self.cut, self.arrays)
        if odd is not None:
            raise UserError(f"{self.path} is damaged: its array {odd!r} does not fit the others")
        for name, array in self.arrays.items():
            inside(self.path, f"{name}/{DESCRIPTION}")
            inside(self.path, f"{name}/c", folder=bool(array.shape))

    # ----------------------------------------------------------------------------------------------
    # writing

    def prepare(self, form: Form, sample: Values) -> None:
        """Describe the arrays, once the first block says of what shape they are."""
        arrays, lead = {}, self.cut
        for name, (dims, attrs) in form.variables.items():
            rest = sample[name].shape[1:]
            arrays[name] = ZarrArray(
                name,
                dims,
                (*lead.shape, *rest),
                (*lead.chunk, *rest),
                str(sample[name].dtype),
                attrs,
            )
        notes = {"long_name": "whether a cell is computed"}
        arrays[DONE] = ZarrArray(DONE, lead.dims, lead.shape, lead.chunk, "bool", notes)
        for name, (dims, values, attrs) in form.coords.items():
            numbers = np.asarray(values)
            if numbers.dtype.kind not in "biuf":
                raise UserError(f"the axis {name!r} must have numbers, to be kept in {self.path}")
            sizes = numbers.shape
            arrays[name] = ZarrArray(name, dims, sizes, sizes, str(numbers.dtype), attrs)
        if (odd := _odd(lead, arrays)) is not None:
            self.unfinished.doubt()  # what came from a file may be of another kind
            raise UserError(f"{odd} has shape {arrays[odd].shape}, which does not fit its axes")
        for name, (_, values, _) in form.coords.items():
            self._write(arrays[name].file(()), arrays[name].packed(np.asarray(values)))
        self.attrs |= form.attrs
        self.arrays = arrays
        self.attrs["tokenflock"] = self.attrs["tokenflock"] | {AXES: self._axes_sum()}
        self._describe()

    def put(self, block: int, values: Values, seconds: float) -> None:
        """Write a block: name -> (cells, ...), the cells in the order of `Cut.cells`."""
        sizes = tuple(map(len, self.cut.ranges(block)))
        cells = {**values, DONE: np.ones(self.cut.size(block), bool)}
        place, digest = self.cut.place(block), hashlib.blake2b(digest_size=8)
        for name in self.of_blocks():
            array = self.arrays[name]
            rest = array.shape[len(sizes) :]
            came = cells[name].shape[1:] if name in cells else None
            if came != rest:
                self.unfinished.doubt()  # what came from a file may be of another kind
                raise UserError(
                    f"{name} has shape {came} here and {rest} elsewhere: a sweep"
                    " needs one shape; sweep what changes it in a sweep of its own"
                )
            data = array.packed(cells[name].reshape((*sizes, *rest)))
            digest.update(data)
            self._write(array.file(place), data)
        total = int.from_bytes(digest.digest(), "little")
        self.log.add("done", block, total, round(seconds, 4))
        self.progress.take(["done", block, total, seconds])

    def fail(self, block: int, error: str) -> None:
        """Note why a block could not be computed."""
        entry = ["failed", block, " ".join(error.split())[:ERROR]]
        self.log.add(*entry)
        self.progress.take(entry)

    def note(self, facts: Mapping[str, Any]) -> None:
        """Note who works on it, with what."""
        self.log.add("run", dict(facts))

    def remove(self) -> None:
        """The result is safe elsewhere: the folder has done its work."""
        shutil.rmtree(self.path, ignore_errors=True)

    def of_blocks(self) -> list[str]:
        """The arrays that have a chunk for each block; the one that says what is done is last."""
        return _of_blocks(self.cut, self.arrays)

    def _write(self, name: str, data: bytes) -> None:
        path, new = self.path / name, self.path / HOME / NEW
        if inside(self.path, name) is None:
            path.parent.mkdir(parents=True, exist_ok=True)
        new.unlink(missing_ok=True)  # it may be a link
        put(path, data, new)

    def _describe(self) -> None:
        """Write what there is: of each array, then of all."""
        text = group(self.attrs, self.arrays).encode()
        if len(text) > LARGEST:
            raise UserError(
                f"the description of {self.path} would have {len(text):,} bytes, and at most"
                f" {LARGEST:,} are read; write fewer values in over"
            )
        for name, array in self.arrays.items():
            self._write(f"{name}/{DESCRIPTION}", json.dumps(array.describe()).encode())
        self._write(DESCRIPTION, text)

    # ----------------------------------------------------------------------------------------------
    # checking

    @property
    def prepared(self) -> bool:
        """Whether the arrays are described."""
        return DONE in self.arrays

    @property
    def lacks_form(self) -> bool:
        """Whether arrays and axes are to be written with the next block."""
        return not self.prepared or self.attrs["tokenflock"].get(AXES) == ""

    def axes_damaged(self) -> bool:
        """Whether the axes are not what was written. Stores of version 0.1 have no checksum."""
        head = self.attrs["tokenflock"]
        return self.prepared and AXES in head and head[AXES] != self._axes_sum()

    def require_axes(self) -> None:
        """Raise if the axes are not what was written."""
        if self.axes_damaged():
            raise UserError(
                f"an axis of {self.path} is damaged; forget it with: tokenflock sweep --repair"
                f" {self.path}, and run it once more"
            )

    def bytes_on_disk(self) -> float:
        """Bytes of the chunks that are there."""
        places = [self.cut.place(block) for block in np.flatnonzero(self.progress.done).tolist()]
        names = self.of_blocks() if self.prepared else []
        files = {self.arrays[name].file(place) for name in names for place in places}
        files |= {array.file(()) for name, array in self.arrays.items() if name not in names}
        return float(sum(about.st_size for name in files if (about := inside(self.path, name))))

    def damaged(self, blocks: Sequence[int] | np.ndarray | None = None) -> list[int]:
        """The blocks whose chunks are not what was written, read in full."""
        largest = max((array.chunk_bytes for array in self.arrays.values()), default=0)
        require_memory(float(largest), f"a block of {self.path}", "take a machine that has more")
        done = np.flatnonzero(self.progress.done) if blocks is None else blocks
        return [int(block) for block in done if self.chunks(int(block)) is None]

    def mend(self, damaged: Sequence[int]) -> None:
        """Forget blocks, which are then computed again; a damaged log and lost descriptions of
        arrays are written anew. Axes are written with the next block.
        """
        for block in damaged:
            self.progress.done[block] = False
        if self.axes_damaged():
            self.attrs["tokenflock"] = self.attrs["tokenflock"] | {AXES: ""}
        self.log.rewrite(self.progress)
        self._describe()

    def chunks(self, block: int) -> dict[str, np.ndarray] | None:
        """Name -> chunk of a block; None where they are not what was written."""
        place, digest = self.cut.place(block), hashlib.blake2b(digest_size=8)
        chunks = {}
        for name in self.of_blocks():
            try:
                chunks[name] = self.arrays[name].read(self.path, place)
            except OddFile:
                raise
            except (OSError, UserError):
                return None
            digest.update(chunks[name].data)
        same = int.from_bytes(digest.digest(), "little") == self.progress.sums[block]
        return chunks if same else None

    def _axes_sum(self) -> str:
        """A checksum of all arrays that are not of blocks."""
        digest = hashlib.blake2b(digest_size=8)
        for name in sorted(set(self.arrays) - set(self.of_blocks())):
            try:
                digest.update(self.arrays[name].read(self.path, ()).data)
            except OddFile:
                raise
            except (OSError, UserError):
                digest.update(b"cannot be read")
        return digest.hexdigest()

    def _refuse_gaps(self) -> None:
        """Refuse a store from which chunks were taken."""
        names = self.of_blocks() if self.prepared else []
        for block in np.flatnonzero(self.progress.done).tolist():
            place = self.cut.place(block)
            for array in (self.arrays[name] for name in names):
                about = inside(self.path, array.file(place))
                if about is None or about.st_size != array.chunk_bytes:
                    path = self.path / array.file(place)
                    raise UserError(
                        f"{path} is missing or damaged; find such blocks and compute them again"
                        f" with: tokenflock sweep --repair {self.path}"
                    )
        if self.progress.done.any() and not names:
            raise UserError(f"{self.path}/zarr.json is damaged; delete {self.path} and begin again")


def _of_blocks(cut: Cut, arrays: Mapping[str, ZarrArray]) -> list[str]:
    """The arrays that have a chunk for each block; the one that says what is done is last."""
    mine = [name for name, array in arrays.items() if array.dims[: len(cut.dims)] == cut.dims]
    coords = {dim for array in arrays.values() for dim in array.dims}
    return [name for name in mine if name not in coords and name != DONE] + [DONE]


def _odd(cut: Cut, arrays: Mapping[str, ZarrArray]) -> str | None:
    """The first array that goes not together with the grid or with those before it, if any.

    Those of blocks are cut as the grid is; all others are axes, each in one piece.
    """
    blocks, sizes = set(_of_blocks(cut, arrays)), dict(zip(cut.dims, cut.shape))
    if arrays and (DONE not in arrays or arrays[DONE].dtype != "bool"):
        return DONE
    for name, array in arrays.items():
        lead = len(cut.dims) if name in blocks else 0
        fine = array.dims[:lead] == cut.dims if name in blocks else array.dims == (name,)
        fine = fine and array.chunk == (*cut.chunk[:lead], *array.shape[lead:])
        pairs = zip(array.dims, array.shape)
        if not fine or any(sizes.setdefault(dim, size) != size for dim, size in pairs):
            return name
    return None


def _cut(path: Path, head: Any) -> Cut:
    """How the grid of a store is cut, or why that cannot be told."""
    if not isinstance(head, dict):
        raise UserError(f"{path} is no store of a sweep of tokenflock")
    if head.get("format") != FORMAT:
        raise UserError(
            f"{path} has format {head.get('format')!r:.40} of stores, and this tokenflock"
            f" ({__version__}) knows format {FORMAT}; open it with the version that made it"
        )
    parts: list[Any] = [head.get(name) for name in ("dims", "shape", "chunk")]
    fine = all(isinstance(part, list) for part in parts) and isinstance(head.get("mark"), str)
    fine = fine and len({len(part) for part in parts}) == 1
    dims, shape, chunk = (tuple(part) for part in parts) if fine else ((), (0,), (0,))
    fine = fine and all(isinstance(dim, str) for dim in dims)
    fine = fine and all(type(size) is int and 0 < size < 2**40 for size in (*shape, *chunk))
    cut = Cut(dims, shape, chunk)
    if not fine or not cut.sound or len(dims) > MOST_AXES:
        raise UserError(f"{path} is damaged: its grid makes no sense")
    return cut
