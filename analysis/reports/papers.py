"""The papers whose experiments the project repeats, by the code in front of an experiment's name."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Paper:
    """A paper; each of its experiments names its figures (`source`)."""

    code: str
    heading: str


PAPERS = (
    Paper("hv", "HV: TCP over mobile ad hoc networks"),
    Paper("be", "BE: TCP under bit errors"),
    Paper("rt", "RT: routing protocols and TCP variants"),
    Paper("im", "IM: TCP in Internet-connected MANETs"),
    Paper("wm", "WM: routing web and multimedia traffic"),
)
OTHER = Paper("other", "Other experiments")


def paper_of(experiment: str) -> Paper:
    """The paper of an experiment, by its name up to the first hyphen."""
    code = experiment.partition("-")[0]
    return next((paper for paper in PAPERS if paper.code == code), OTHER)
