//! Nobody that a program started outlives it.

use std::ops::RangeInclusive;
use std::time::Duration;

use glovebox_backend::Ending;
use glovebox_model::{Bytes, Count, LimitKind, Millis};

use crate::bench::{Bench, lives, pids};

/// A child and a grandchild that take no TERM, and their numbers in a file.
const STUBBORN: &str = "trap '' TERM HUP; \
    (echo $(exec sh -c 'echo $PPID') >>pids; (sleep 1000 & echo $! >>pids; wait) & wait) & \
    echo $$ >>pids; \
    while [ $(wc -l <pids) -lt 3 ]; do :; done; ";

#[test]
fn when_its_time_is_up_the_whole_group_goes() {
    // On a busy host it may not be ready before its time is up; it has more of it then.
    let mut attempts = [2, 8, 30].into_iter().map(|wall| {
        let mut bench = Bench::new();
        bench.profile.limits.wall_ms = Millis::secs(wall);
        let told = bench.shell(&format!("{STUBBORN} echo ready; wait; wait"));
        assert_eq!(told.ended.ending, Ending::TimedOut);
        assert_eq!(told.ended.limit_hit, Some(LimitKind::Wall));
        (bench, told)
    });
    let ready = attempts.find(|(_, told)| told.stdout == "ready\n");
    let (bench, _) = ready.expect("it was ready before its time was up");
    nobody_is_left(&bench, 3..=3);
}

#[test]
fn who_asks_for_its_end_ends_everybody() {
    let bench = Bench::new();
    // The program itself goes when it is asked to; its children have to be made to.
    let told = bench.canceled(&format!("{STUBBORN} trap - TERM; echo ready; wait; wait"));
    assert_eq!(told.ended.ending, Ending::Canceled);
    assert!(told.ended.duration < Duration::from_secs(40), "{told:?}");
    nobody_is_left(&bench, 3..=3);
}

#[test]
fn when_it_ends_by_itself_its_children_do_too() {
    let bench = Bench::new();
    let told = bench.shell(&format!("{STUBBORN} exit 3"));
    assert_eq!(told.ended.ending, Ending::Exited { code: 3 });
    nobody_is_left(&bench, 3..=3);
}

#[test]
fn who_leaves_for_a_session_of_its_own_is_found() {
    let bench = Bench::new();
    // Twice removed: its parent is gone, its session and group are its own.
    let told = bench.shell(
        "setsid sh -c 'trap \"\" TERM HUP; (sleep 1000 & echo $! >>pids) & wait; echo $$ >>pids; exec sleep 1001' \
         </dev/null >/dev/null 2>&1 & \
         while [ $(cat pids 2>/dev/null | wc -l) -lt 2 ]; do :; done",
    );
    assert_eq!(told.ended.ending, Ending::Exited { code: 0 });
    nobody_is_left(&bench, 2..=2);
}

/// Ends when everybody was looked at once more: whoever is found is given the limits of the run, so
/// one that has lowered its own sees it. One that was found before it did is followed by another.
const LOOKED_AT: &str = "until sh -c 'ulimit -Sn 99; for i in 1 2 3 4 5 6 7 8 9 10; do \
    [ $(ulimit -n) = 123 ] && exit 0; sleep 0.1; done; exit 1'; do :; done";

#[test]
fn who_also_drops_its_environment_is_found_while_its_parent_lives() {
    let bench = Bench::new();
    let told = bench.shell(&format!(
        "env -i setsid sh -c 'echo $$ >>pids; exec sleep 1000' </dev/null >/dev/null 2>&1 & \
         while [ $(cat pids 2>/dev/null | wc -l) -lt 1 ]; do :; done; {LOOKED_AT}"
    ));
    assert_eq!(told.ended.ending, Ending::Exited { code: 0 });
    nobody_is_left(&bench, 1..=1);
}

#[test]
fn who_keeps_a_stream_open_holds_nobody_up() {
    let bench = Bench::new();
    let told = bench.shell("setsid sleep 1000 & echo $! >pids; echo done");
    assert_eq!(told.stdout, "done\n");
    assert!(told.ended.duration < Duration::from_secs(30), "{told:?}");
    nobody_is_left(&bench, 1..=1);
}

#[test]
fn what_uses_too_much_is_ended_and_told() {
    let mut bench = Bench::new();
    bench.profile.limits.memory_bytes = Bytes::mib(64);
    // Nobody takes it from the one that holds it.
    let told =
        bench.shell("echo $$ >>pids; head -c 400000000 /dev/zero | tail -c 400000000 | sleep 1000");
    assert_eq!(told.ended.ending, Ending::LimitKilled, "{told:?}");
    assert_eq!(told.ended.limit_hit, Some(LimitKind::Memory));
    bench.profile.limits.memory_bytes = Bytes::mib(512);
    bench.profile.limits.cpu_ms = Millis::secs(1);
    let told = bench.shell("echo $$ >>pids; while :; do :; done");
    assert_eq!(told.ended.ending, Ending::LimitKilled, "{told:?}");
    assert_eq!(told.ended.limit_hit, Some(LimitKind::Cpu));
    assert!(told.ended.usage.cpu_ms >= 1000, "{told:?}");
    bench.profile.limits.cpu_ms = Millis::secs(30);
    bench.profile.limits.pids = Count(8);
    let told = bench.shell("echo $$ >>pids; for i in 1 2 3 4 5 6 7 8 9 10 11 12; do sleep 1000 & echo $! >>pids; done; wait");
    assert_eq!(told.ended.ending, Ending::LimitKilled, "{told:?}");
    assert_eq!(told.ended.limit_hit, Some(LimitKind::Pids));
    bench.profile.limits.pids = Count(64);
    bench.profile.limits.disk_bytes = Bytes::mib(4);
    let told = bench.shell("cat /dev/zero >large");
    assert!(told.ended.limit_hit == Some(LimitKind::Disk), "{told:?}");
    // Of the twelve it is ended as soon as somebody sees more than seven.
    nobody_is_left(&bench, 10..=15);
}

fn nobody_is_left(bench: &Bench, count: RangeInclusive<usize>) {
    let all = pids(&bench.work().join("pids"));
    assert!(count.contains(&all.len()), "{all:?}");
    let left: Vec<_> = all.iter().filter(|pid| lives(pid)).collect();
    assert!(left.is_empty(), "{left:?} of {all:?}");
}
