# What the ns-2.35 validation scenarios share: arguments, radio, stations, flows, counters.
#
# ns-2 is the yardstick here, so everything the answer depends on is written out and nothing rests on a
# default of the installed package: radio after Lucent's WaveLAN (two-ray ground, 914 MHz, 250 m / 550 m),
# MAC after 802.11-1999 clause 15 (DSSS) with ns-2's PLCP at 1 Mbit/s. The profile of the same constants
# is medium/radios/ns2-dsss-2m.toml. Tables: ns2_*.csv, made by `./manet validate --rerun-ns2`.
#
# A scenario is run as `ns <scenario>.tcl key=value ...` and prints one line `RESULT key=value ...`.

# Defaults; a scenario adds its own keys before it reads its arguments.
array set setting {
    seed 1  data_rate 2Mb  basic_rate 1Mb  plcp_rate 1.0e6
    rts_threshold 0  carrier_sense_w 1.559e-11  receive_w 3.652e-10  capture_ratio 10.0
    queue_packets 50  trace_file /dev/null  mac_trace 0
}

proc read_arguments {} {
    global setting argv
    foreach argument $argv {
        if {![regexp {^([a-z_0-9]+)=(.*)$} $argument -> key value]} {
            puts stderr "$argument: not of the form key=value"; exit 2
        }
        if {![info exists setting($key)]} {
            puts stderr "$key: unknown key (known: [lsort [array names setting]])"; exit 2
        }
        set setting($key) $value
    }
}

proc configure_radio {} {
    global setting
    # 802.11-1999 15.3.3 (DSSS): slot 20 us, SIFS 10 us, CW 31..1023, preamble 144 + header 48 bits.
    foreach {name value} [list \
            SlotTime_ 0.000020 SIFS_ 0.000010 CWMin_ 31 CWMax_ 1023 \
            PreambleLength_ 144 PLCPHeaderLength_ 48 PLCPDataRate_ $setting(plcp_rate) \
            ShortRetryLimit_ 7 LongRetryLimit_ 4 RTSThreshold_ $setting(rts_threshold) \
            dataRate_ $setting(data_rate) basicRate_ $setting(basic_rate)] {
        Mac/802_11 set $name $value
    }
    foreach {name value} [list \
            Pt_ 0.28183815 freq_ 914e+6 L_ 1.0 \
            RXThresh_ $setting(receive_w) CSThresh_ $setting(carrier_sense_w) CPThresh_ $setting(capture_ratio)] {
        Phy/WirelessPhy set $name $value
    }
    foreach {name value} {X_ 0 Y_ 0 Z_ 1.5 Gt_ 1.0 Gr_ 1.0} {
        Antenna/OmniAntenna set $name $value
    }
}

# Stations at the positions {x y} of the list; `routing` is DumbAgent (one hop) or DSDV (chains).
proc make_stations {positions routing width_m height_m} {
    global setting sim station
    ns-random $setting(seed)
    set sim [new Simulator]
    set setting(trace_channel) [open $setting(trace_file) w]
    $sim trace-all $setting(trace_channel)
    set field [new Topography]
    $field load_flatgrid $width_m $height_m
    create-god [llength $positions]
    set tracing [expr {$setting(mac_trace) ? "ON" : "OFF"}]
    $sim node-config -adhocRouting $routing -llType LL -macType Mac/802_11 \
        -phyType Phy/WirelessPhy -propType Propagation/TwoRayGround \
        -antType Antenna/OmniAntenna -channel [new Channel/WirelessChannel] \
        -ifqType Queue/DropTail/PriQueue -ifqLen $setting(queue_packets) -topoInstance $field \
        -agentTrace $tracing -macTrace $tracing -routerTrace OFF -movementTrace OFF
    set i 0
    foreach position $positions {
        set station($i) [$sim node]
        $station($i) random-motion 0
        $station($i) set X_ [lindex $position 0]
        $station($i) set Y_ [lindex $position 1]
        $station($i) set Z_ 0.0
        incr i
    }
}

# A string of hops+1 stations along the x axis.
proc string_of_stations {hops spacing_m} {
    set positions {}
    for {set i 0} {$i <= $hops} {incr i} {
        lappend positions [list [expr {$i * $spacing_m * 1.0}] 1.0]
    }
    return $positions
}

# Static shortest-path routes: DSDV converges with an update a second, and then falls silent, five
# seconds before the traffic. No route ever times out or is broken by the MAC.
proc prepare_static_routes {} {
    Agent/DSDV set perup_ 1
    Agent/DSDV set wst0_ 1
    Agent/DSDV set use_mac_ 0
    Agent/DSDV set min_update_periods_ 1000000
}
proc silence_routing_at {seconds hops} {
    global sim
    for {set i 0} {$i <= $hops} {incr i} {
        $sim at $seconds "silence_routing $i"
    }
}
proc silence_routing {i} {
    global station
    [$station($i) agent 255] set perup_ 1e9
}

# A UDP flow; returns {source agent, counting sink}.
proc make_udp {from to} {
    global sim station
    set source [new Agent/UDP]
    $source set packetSize_ 3000
    set sink [new Agent/LossMonitor]
    $sim attach-agent $station($from) $source
    $sim attach-agent $station($to) $sink
    $sim connect $source $sink
    return [list $source $sink]
}

proc make_cbr {source bytes} {
    set generator [new Application/Traffic/CBR]
    $generator set packetSize_ $bytes
    $generator set random_ 1
    $generator attach-agent $source
    return $generator
}

proc report {arguments} {
    puts "RESULT [join $arguments { }]"
    flush stdout
}
