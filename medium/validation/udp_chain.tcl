# UDP at a constant mean rate over a string of `hops` hops with static routes.
# offered_bps counts IP packets of 1500 bytes; gaps are uniform within +-50 % (CBR's random_).
source [file join [file dirname [info script]] common.tcl]
array set setting { hops 5  spacing_m 200  offered_bps 5e5  start_s 60  warmup_s 5  measured_s 40 }
read_arguments
configure_radio
prepare_static_routes
make_stations [string_of_stations $setting(hops) $setting(spacing_m)] DSDV \
    [expr {$setting(hops) * $setting(spacing_m) + 10}] 100
silence_routing_at [expr {$setting(start_s) - 5.0}] $setting(hops)

lassign [make_udp 0 $setting(hops)] source sink
set generator [make_cbr $source 1480]   ;# ns-2's DSDV adds a second IP header: 1500 bytes on the air
$generator set interval_ [expr {1500 * 8.0 / $setting(offered_bps)}]
$sim at $setting(start_s) "$generator start"

set first 0
proc count_first {} { global first sink; set first [$sink set npkts_] }
proc finish {} {
    global first sink setting
    set packets [expr {int([$sink set npkts_] - $first)}]
    report [list packets=$packets \
        kbps=[format %.2f [expr {$packets * 1500 * 8 / double($setting(measured_s)) / 1000}]]]
    exit 0
}
$sim at [expr {$setting(start_s) + $setting(warmup_s)}] count_first
$sim at [expr {$setting(start_s) + $setting(warmup_s) + $setting(measured_s)}] finish
$sim run
