"""A campaign's folder: held by one campaign at a time, and of one request."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from record.folder_lock import lock
from testbed.errors import UsageError

BATCHES = "batches"  # the folder of a campaign's rounds
SAME = ("experiments", "size", "scenarios")


@dataclass
class CampaignFolder:
    """The folder while its lock is held. Workers of this machine end their runs when it is free (testbed/workers)."""

    directory: Path
    descriptor: int

    @classmethod
    @contextmanager
    def claimed(cls, directory: Path) -> "Iterator[CampaignFolder]":
        """Hold the folder until the block ends. UsageError if another campaign does."""
        in_use = "another campaign is under way there; wait for it, or give another folder with --out"
        folder = cls(directory, lock(directory, in_use))
        try:
            yield folder
        finally:
            folder.release()

    def require_same(self, before: dict[str, Any], head: dict[str, Any]) -> None:
        """UsageError if the folder holds something else than an earlier part of this campaign. A campaign whose record is damaged
        goes on: each run is compared with its own scenario."""
        if not before and any(self.directory.iterdir()) and not (self.directory / BATCHES).is_dir():
            raise UsageError(f"{self.directory}: holds other files and no campaign; give another folder with --out")
        for key in SAME if before else ():
            if before.get(key, head[key]) != head[key]:
                raise UsageError(
                    f"{self.directory}: holds a campaign of other {key} ({before.get('resume')}); give another folder with --out"
                )

    def release(self) -> None:
        """Free the lock; a second call does nothing."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1
