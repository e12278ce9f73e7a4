"""The names that scripts give to addLink and Mininet_wifi(link=...). They are names only: what they mean is net.py's part."""

from testbed.mn_wifi.arguments import refusing


class wmediumd:
    """Mininet_wifi(link=wmediumd): the medium with distance; here there is no other."""


class WirelessLink:
    """Mininet_wifi's own default: shaped links instead of a medium. Here the medium all the same."""


class adhoc:
    """addLink(sta, cls=adhoc, ...): the station's radio joins the ad hoc network."""


class mesh:
    """addLink(sta, cls=mesh, ...): IEEE 802.11s, which is mac80211's own."""


INFRASTRUCTURE = "belongs to networks with access points, which are not here; use stations and cls=adhoc"
NAMES = {name: INFRASTRUCTURE for name in ("master", "managed", "_4address", "HostapdConfig", "physicalMesh", "phyAP")}
NAMES |= {name: "is not modelled; use cls=adhoc" for name in ("ITSLink", "WifiDirectLink", "PhysicalWifiDirectLink")}
__getattr__ = refusing("mn_wifi.link", NAMES, "is not here; wmediumd, adhoc and mesh are")
