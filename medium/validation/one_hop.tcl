# Saturated or loaded senders around one receiver: UDP, one hop, no routing.
#
# layout=circle: `senders` stations on a circle of `radius_m` around the receiver; all hear one another and
#   arrive with the same power, so no frame is ever captured (the case of Bianchi's model).
# layout=near-far: the first sender at `distance_a_m`, the others at `distance_c_m`, in as many directions: all hear one
#   another, and the receiver captures the first one's frames.
# layout=line:   A - B - C, receiver B in the middle, A at `distance_a_m`, C at `distance_c_m`. With
#   carrier_sense_w=3.652e-10 (250 m) A and C are hidden from each other.
# rts_threshold=0: every data frame behind RTS/CTS; 3000: none. capture_ratio=1e9: no capture.
source [file join [file dirname [info script]] common.tcl]
array set setting {
    layout circle  senders 2  radius_m 50  distance_a_m 200  distance_c_m 200
    ip_bytes 1500  offered_bps 2.4e6  start_s 4  warmup_s 1  measured_s 30
}
read_arguments
configure_radio

set positions [list {500.0 500.0}]
if {$setting(layout) eq "line"} {
    set setting(senders) 2
    lappend positions [list [expr {500.0 - $setting(distance_a_m)}] 500.0] \
                      [list [expr {500.0 + $setting(distance_c_m)}] 500.0]
} else {
    set step [expr {2.0 * acos(-1.0) / $setting(senders)}]
    for {set k 0} {$k < $setting(senders)} {incr k} {
        set from_m $setting(radius_m)
        if {$setting(layout) eq "near-far"} {
            set from_m [expr {$k == 0 ? $setting(distance_a_m) : $setting(distance_c_m)}]
        }
        lappend positions [list [expr {500.0 + $from_m * cos($step * $k)}] [expr {500.0 + $from_m * sin($step * $k)}]]
    }
}
make_stations $positions DumbAgent 1000 1000

for {set i 1} {$i <= $setting(senders)} {incr i} {
    lassign [make_udp $i 0] source sink($i)
    set generator [make_cbr $source $setting(ip_bytes)]
    $generator set rate_ $setting(offered_bps)
    # A first small packet each, far apart: ARP, which never expires in ns-2, is settled before it counts.
    $sim at [expr {0.1 * $i}] "$source send 100"
    $sim at [expr {$setting(start_s) + 0.001 * $i}] "$generator start"
}

proc count {when} {
    global counted sink setting
    for {set i 1} {$i <= $setting(senders)} {incr i} {
        set counted($when,$i) [$sink($i) set npkts_]
    }
}
proc finish {} {
    global counted setting
    count last
    set packets {}
    for {set i 1} {$i <= $setting(senders)} {incr i} {
        lappend packets [expr {int($counted(last,$i) - $counted(first,$i))}]
    }
    set total [expr [join $packets +]]
    report [list packets=$total per_sender=[join $packets :] \
        kbps=[format %.2f [expr {$total * $setting(ip_bytes) * 8 / double($setting(measured_s)) / 1000}]]]
    close $setting(trace_channel)
    exit 0
}
$sim at [expr {$setting(start_s) + $setting(warmup_s)}] "count first"
$sim at [expr {$setting(start_s) + $setting(warmup_s) + $setting(measured_s)}] finish
$sim run
