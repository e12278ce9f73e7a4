"""The names that scripts give to addLink and Mininet_wifi(link=...). They are only names; net.py gives them a meaning."""

from testbed.mn_wifi.arguments import refuse_others


class wmediumd:
    """Mininet_wifi(link=wmediumd): the medium with distance; the only kind here."""


class WirelessLink:
    """Mininet_wifi's own default: shaped links instead of a medium. Here it is the medium, too."""


class adhoc:
    """addLink(sta, cls=adhoc, ...): the station's radio joins the ad hoc network."""


class _4address:
    """addLink(ap1, ap2, cls=_4address): ap2 is a station of ap1 by a link of four addresses, and bridges it."""


class mesh:
    """addLink(sta, cls=mesh, ...): IEEE 802.11s, by mac80211 (hwsim radios only)."""


class ITSLink:
    """addLink(sta, cls=ITSLink, ...): outside the context of a BSS, IEEE 802.11p's mode, in the 5.9 GHz band."""


INFRASTRUCTURE = "is not supported; use addAccessPoint and addLink(sta, ap), or stations and cls=adhoc"
NAMES = {name: INFRASTRUCTURE for name in ("master", "managed", "HostapdConfig", "physicalMesh", "phyAP")}
NAMES |= {name: "is not modelled; use cls=adhoc" for name in ("WifiDirectLink", "PhysicalWifiDirectLink")}
__getattr__ = refuse_others("mn_wifi.link", NAMES, "is not supported; wmediumd, adhoc, mesh and ITSLink are")
