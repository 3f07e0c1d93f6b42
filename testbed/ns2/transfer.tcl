# SPDX-License-Identifier: GPL-2.0
# One SCTP transfer over disjoint paths in ns-2. usage: ns transfer.tcl DICT
# testbed/sctplab/ns2/ns2.py writes DICT from a run's spec and reads what comes out:
#   primary ID     the number of the primary destination's node
#   path ID S      the number of a path's far node, and its delay
#   r TIME ...     every packet with DATA that arrives at the receiver, with its TSN
#   time: ...      every change of the sender's error and timeout counters, when asked for
set run [lindex $argv 0]
proc get {key} { dict get $::run $key }

global defaultRNG
$defaultRNG seed [get seed]
set ns [new Simulator]
# A path has the losses of its own streams, also where it is the only one of several.
for {set i 0} {$i < [get streams]} {incr i} { new RNG }
set here [$ns node]
set there [$ns node]

# A direction of a path is one link: loss, then queue and rate, then delay, as in the laboratory.
proc direction {from to link} {
  global ns
  $ns simplex-link $from $to [dict get $link rate_mbit]Mb [dict get $link delay_ms]ms DropTail
  $ns queue-limit $from $to [dict get $link queue_pkts]
  set loss [new ErrorModel]
  set variable [new RandomVariable/Uniform]
  $variable use-rng [new RNG]
  $loss unit pkt
  $loss set rate_ [expr {[dict get $link loss_pct] / 100.0}]
  $loss ranvar $variable
  $loss drop-target [new Agent/Null]
  $ns lossmodel $loss $from $to
}

# Only arrivals: a full trace of a link is three times as long.
proc trace-arrivals {from to} {
  global ns
  set link [$ns link $from $to]
  set trace [$ns create-trace Recv stdout $from $to]
  $trace set show_sctphdr_ 1
  set ttl [$link set ttl_]
  $trace target [$ttl target]
  $ttl target $trace
}

set far {}
foreach path [get paths] {
  set a [$ns node]
  set b [$ns node]
  $ns multihome-add-interface $here $a
  $ns multihome-add-interface $there $b
  direction $a $b [dict get $path forward]
  direction $b $a [dict get $path reverse]
  trace-arrivals $a $b
  lappend far $b
  puts "path [$b id] [expr {[dict get $path forward delay_ms] / 1000.0}]"
  lappend arrivals [$ns monitor-queue $a $b ""]
}

set sender [new Agent/[get agent]]
set receiver [new Agent/[get receiver]]
$ns multihome-attach-agent $here $sender
$ns multihome-attach-agent $there $receiver
foreach end [list $sender $receiver] {
  dict for {name value} [get both] { $end set $name $value }
}
dict for {name value} [get sender] { $sender set $name $value }
if {[get counters]} {
  $sender attach stdout
  $sender trace errorCount_
  $sender trace timeoutCount_
  $sender trace frCount_
}
$ns connect $sender $receiver
$sender set-primary-destination [lindex $far 0]
puts "primary [[lindex $far 0] id]"

# Messages, since one large "send" is cut up by mtu_, which may count more than a message.
set ftp [new Application/FTP]
$ftp attach-agent $sender
proc feed {} {
  for {set left [get bytes]} {$left > 0} {incr left [expr {-[get message]}]} {
    $::ftp send [expr {min($left, [get message])}]
  }
}
$ns at 0 feed

# The module tells neither application of the end. Without data for three times RTO.max there is nothing left to send;
# heartbeats alone stay below the threshold.
set before 0
proc watch {} {
  global ns arrivals before
  set now 0
  foreach monitor $arrivals { set now [expr {$now + [$monitor set bdepartures_]}] }
  if {$now - $before < [get idle_bytes] || [$ns now] > [get limit_s]} { exit 0 }
  set before $now
  $ns at [expr {[$ns now] + [get idle_s]}] watch
}
$ns at [get idle_s] watch
$ns run
