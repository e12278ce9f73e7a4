# Scripted losses in ns-2.35: ns ns2.tcl AGENT INDEX,INDEX,... SEGMENTS BUGFIX
#
# AGENT: TCP (Tahoe), TCP/Reno, TCP/Newreno, TCP/Sack1. INDEX: the packets that are lost, counted from 0 as they enter
# the link (remake_ns2.py knows which sending of which segment that is). BUGFIX: ns-2's bugFix_, no second fast
# retransmit before all that was out at the first is acknowledged. Prints the trace of the link at the sender's end,
# and the sender's cwnd_ and ssthresh_.
#
# Defaults of ns-2.35 but for: a window that never bounds; one segment first, and no SYN in place of segment 0, as in
# 1996; a least RTO so long that no timer fires while ACKs arrive (Linux here: 660 ms).

set agent [lindex $argv 0]
set losses [split [lindex $argv 1] ,]
set segments [lindex $argv 2]

Agent/TCP set bugFix_ [lindex $argv 3]
Agent/TCP set window_ 64
Agent/TCP set windowInit_ 1
Agent/TCP set syn_ false
Agent/TCP set delay_growth_ false
Agent/TCP set minrto_ 0.66
Agent/TCP set packetSize_ 1460

set ns [new Simulator]
set a [$ns node]
set b [$ns node]
$ns simplex-link $a $b 1Gb 30ms DropTail
$ns simplex-link $b $a 1Gb 30ms DropTail
$ns queue-limit $a $b 1000
$ns trace-queue $a $b stdout
$ns trace-queue $b $a stdout

set sender [new Agent/$agent]
if {$agent eq "TCP/Sack1"} { set sink [new Agent/TCPSink/Sack1] } else { set sink [new Agent/TCPSink] }
$ns attach-agent $a $sender
$ns attach-agent $b $sink
$ns connect $sender $sink

set errors [new ErrorModel/List]
$errors droplist $losses
$errors drop-target [new Agent/Null]
$ns lossmodel $errors $a $b

$sender attach stdout
$sender trace cwnd_
$sender trace ssthresh_
set source [new Application/FTP]
$source attach-agent $sender
$ns at 1.0 "$source send [expr {$segments * 1460}]"
$ns at 20.0 "exit 0"
$ns run
