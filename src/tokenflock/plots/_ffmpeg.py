"""Films through ffmpeg: H.264, and GIFs of one palette."""

from __future__ import annotations

import errno
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, cast

import numpy as np
from matplotlib.colors import to_rgba_array

from tokenflock.errors import UserError
from tokenflock.plots._scene import Scene

_QUALITY = 18  # of H.264: a smaller number is a larger file
_TABLE = 256  # colours of a GIF
_SPARE = 2**16  # bytes: what ffmpeg says of a disk with fewer has no place on it
_SAMPLES = 7  # pictures whose colours are looked at


def write_mp4(path: Path, scene: Scene, fps: float, progress: Callable[[float], None]) -> None:
    """Write a film as H.264, which every player knows."""
    target = f"-an -c:v libx264 -pix_fmt yuv420p -crf {_QUALITY} -preset fast".split()
    _encode(path, scene, fps, progress, [], [*target, "-movflags", "+faststart"])


def write_gif(path: Path, scene: Scene, fps: float, progress: Callable[[float], None]) -> None:
    """Write a film whose pictures all have the same colours, so that what stands still does not
    flicker; it begins again when it ends.
    """
    table = path.with_suffix(".png")
    _write_palette(table, scene)
    use = "[0:v][1:v]paletteuse=dither=none:diff_mode=rectangle"
    target = ["-lavfi", use, "-loop", "0", "-final_delay", str(round(100 / fps))]
    try:
        _encode(path, scene, fps, progress, ["-i", str(table)], target)
    finally:
        table.unlink(missing_ok=True)


def _encode(
    path: Path,
    scene: Scene,
    fps: float,
    progress: Callable[[float], None],
    more: Sequence[str],
    target: Sequence[str],
) -> None:
    """Pipe pictures into ffmpeg, which has its own session: Ctrl-C reaches us alone, and we end it.

    The session is asked for by an argument, not by a `preexec_fn`: that would run Python in a fork,
    which JAX warns about.
    """
    from imageio_ffmpeg import get_ffmpeg_exe

    width, height = scene.size
    source = f"-f rawvideo -pix_fmt rgba -s {width}x{height} -r {fps:g} -i -".split()
    command = [get_ffmpeg_exe(), "-y", "-loglevel", "error", *source, *more, *target, str(path)]
    with open(path.with_suffix(".log"), "w+b") as log:
        coder = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=log, stderr=log, start_new_session=True
        )
        pipe = cast(IO[bytes], coder.stdin)
        try:
            for picture in scene.pictures(progress):
                pipe.write(picture.tobytes())
            pipe.close()
            failed = coder.wait() != 0
        except BrokenPipeError:
            failed = True
        finally:
            if coder.poll() is None:
                coder.kill()
                coder.wait()
        if failed:
            log.seek(0)
            said = log.read().decode(errors="replace").strip()[-300:]
            if "No space left" in said or shutil.disk_usage(path.parent).free < _SPARE:
                raise OSError(errno.ENOSPC, said)
            raise UserError(f"ffmpeg could not write the film: {said or 'it gives no reason'}")


def _write_palette(path: Path, scene: Scene) -> None:
    """Few colours for a whole film: those of some of its pictures, and surely those of tokens,
    which are small in them.
    """
    from PIL import Image

    theme = scene.theme
    sure = to_rgba_array([theme.paper, theme.ink, *theme.palette, theme.neutral])[:, :3]
    shade = to_rgba_array(theme.ball[1])[0, :3]
    sure = np.concatenate([sure, (sure + sure[0]) / 2, (3 * sure + 7 * shade) / 10])
    sure = np.round(255 * sure).astype(np.uint8)
    count = _TABLE - 1 - len(sure)  # one is kept for what does not change
    looked_at = np.unique(np.linspace(0, len(scene.frames) - 1, _SAMPLES).round().astype(int))
    samples = np.concatenate([scene.picture(number)[..., :3] for number in looked_at])
    frequent = Image.fromarray(samples).quantize(count, dither=Image.Dither.NONE)
    found = np.array(frequent.getpalette() or [], np.uint8).reshape(-1, 3)[:count]
    colours = np.concatenate([sure, found])
    near = np.abs(colours.astype(int) - sure[0]).max(axis=1) <= 6  # would tint the paper
    colours[near] = sure[0]
    table = np.zeros((_TABLE, 4), np.uint8)
    table[:, :3], table[:, 3] = sure[0], 255
    table[: len(colours), :3] = colours
    table[-1, 3] = 0
    Image.fromarray(table.reshape(16, 16, 4)).save(path)
