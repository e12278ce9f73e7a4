# One TCP connection over a string of `hops` hops with static routes: the reference of the testbed's main
# experiment (hv-fig1). `tcp` is a class below Agent/TCP (Newreno, Reno, Vegas, Sack1) or Tahoe; `window` in
# segments; `segment_bytes` payload; headers=0: no 40 bytes of TCP/IP header, as in the ns-2 of 1998.
# What is counted is payload acknowledged to the sender.
source [file join [file dirname [info script]] common.tcl]
array set setting {
    hops 5  spacing_m 200  tcp Newreno  window 8  segment_bytes 1460  delayed_acks 0  headers 1
    start_s 60  warmup_s 10  measured_s 100
}
read_arguments
configure_radio
if {!$setting(headers)} { Agent/TCP set useHeaders_ false }
prepare_static_routes
make_stations [string_of_stations $setting(hops) $setting(spacing_m)] DSDV \
    [expr {$setting(hops) * $setting(spacing_m) + 10}] 100
silence_routing_at [expr {$setting(start_s) - 5.0}] $setting(hops)

set class [expr {$setting(tcp) eq "Tahoe" ? "Agent/TCP" : "Agent/TCP/$setting(tcp)"}]
set sender [new $class]
set class [expr {$setting(tcp) eq "Sack1" ? "Agent/TCPSink/Sack1" : "Agent/TCPSink"}]
if {$setting(delayed_acks)} { append class /DelAck }
set receiver [new $class]
$sender set packetSize_ $setting(segment_bytes)
$sender set window_ $setting(window)
$sim attach-agent $station(0) $sender
$sim attach-agent $station($setting(hops)) $receiver
$sim connect $sender $receiver
set bulk [new Application/FTP]
$bulk attach-agent $sender
$sim at $setting(start_s) "$bulk start"

proc snapshot {} {
    global sender
    return [list [$sender set ack_] [$sender set nrexmitpack_] [$sender set nrexmit_]]
}
proc count_first {} { global first; set first [snapshot] }
proc finish {} {
    global first setting
    set difference {}
    foreach now [snapshot] before $first { lappend difference [expr {int($now - $before)}] }
    lassign $difference segments retransmitted timeouts
    report [list segments=$segments retransmitted=$retransmitted timeouts=$timeouts \
        kbps=[format %.2f [expr {$segments * $setting(segment_bytes) * 8 / double($setting(measured_s)) / 1000}]]]
    exit 0
}
$sim at [expr {$setting(start_s) + $setting(warmup_s)}] count_first
$sim at [expr {$setting(start_s) + $setting(warmup_s) + $setting(measured_s)}] finish
$sim run
