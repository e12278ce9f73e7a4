"""The modes of wmediumd that scripts name. Only `interference` has positions; this testbed's medium models it in full."""

from testbed.mn_wifi.arguments import refuse_others

interference = "interference"
snr = "snr"
error_prob = "error_prob"
spec_prob = "spec_prob"

__getattr__ = refuse_others("mn_wifi.wmediumdConnector", {}, "there is no wmediumd here; wmediumd_mode=interference is its place")
