# Stations that each send one broadcast a second, as they stand or move: what a frame costs by the number of stations.
#
# `positions_file` has a line `$node_(i) set X_ ..` for each station, and the movement as `setdest` lines; `stations` of them
# send `ip_bytes` to all, the first one after another within a second. No routing, no ACK: the work is carrier sense and reception.
source [file join [file dirname [info script]] common.tcl]
array set setting {
    stations 100  width_m 1000  ip_bytes 512  measured_s 20  positions_file /dev/null
}
read_arguments
configure_radio

set positions {}
for {set i 0} {$i < $setting(stations)} {incr i} {
    lappend positions [list 1.0 1.0]
}
make_stations $positions DumbAgent [expr {$setting(width_m) + 1}] [expr {$setting(width_m) + 1}]
upvar 0 station node_
set ns_ $sim
source $setting(positions_file)

for {set i 0} {$i < $setting(stations)} {incr i} {
    set sink($i) [new Agent/LossMonitor]
    $sim attach-agent $station($i) $sink($i)
    set source [new Agent/UDP]
    $source set packetSize_ 3000
    $sim attach-agent $station($i) $source
    $source set dst_addr_ -1
    $source set dst_port_ [$sink($i) port]
    set generator [make_cbr $source $setting(ip_bytes)]
    $generator set interval_ 1.0
    $sim at [expr {$i / double($setting(stations))}] "$generator start"
}

proc finish {} {
    global setting sink
    set packets 0
    foreach {_ one} [array get sink] {
        incr packets [expr {int([$one set npkts_])}]
    }
    report [list packets=$packets]
    exit 0
}
$sim at $setting(measured_s) finish
$sim run
