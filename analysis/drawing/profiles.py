"""The profile of a movement pattern, after Holland and Vaidya (1999), figures 5(a) and 10(a).

The length of the shortest path between a flow's two ends over time, from the movement alone; shaded where there is no path.
Ticks at the top: the path itself changes (another one of the same length, too). The instants are exact, not sampled.
"""

from pathlib import Path

from matplotlib.axes import Axes

from analysis.drawing import shared, style
from mobility.connectivity import Profile

HEIGHT_IN = 2.1


def draw_profile(profile: Profile, path: Path, title: str, note: str = "") -> list[Path]:
    """Draw into `path` (its suffix is ignored: PNG and PDF); returns the files written."""
    with style.page(path.parent, path.stem, HEIGHT_IN) as ((axes,), written):
        add_profile(axes, profile)
        axes.set_title(title, loc="left", pad=9)
        axes.set_xlabel("time (s)")
        if note:
            shared.write_note(axes, note)
    return written


def add_profile(axes: Axes, profile: Profile) -> None:
    """Draw the profile on the axes of a larger figure."""
    steps = profile.steps()
    longest = max([hops for _, _, hops in steps], default=0)
    for begin_s, end_s, hops in steps:
        if hops:
            axes.plot([begin_s, end_s], [hops, hops], color=style.BLUE, solid_capstyle="butt", linewidth=1.6)
        else:
            axes.axvspan(begin_s, end_s, color="#dddddd", linewidth=0, zorder=0)
    for (begin_s, _, hops), (_, _, before) in zip(steps[1:], steps, strict=False):
        if hops and before:
            axes.plot([begin_s, begin_s], [before, hops], color=style.BLUE, linewidth=0.6)
    top = axes.get_xaxis_transform()
    axes.vlines(profile.path_changes_s(), 1.01, 1.06, transform=top, color=style.BLACK, linewidth=0.6, clip_on=False)
    axes.set_xlim(profile.times_s[0], profile.times_s[-1])
    axes.set_ylim(0, max(longest, 1) + 0.5)
    shared.label_ticks(axes.yaxis, range(1, max(longest, 1) + 1))
    axes.set_ylabel(f"hops {profile.source} to {profile.target}")
