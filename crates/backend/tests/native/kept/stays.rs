//! What is there after an exec.

use std::time::Instant;

use glovebox_backend::{Cancel, Ending, Kept, KeptNative, Order, Run};
use glovebox_model::{Code, LimitKind, Millis, Profile, Result};
use rustix::process::{Pid, Signal, kill_process};

use crate::house::{Both, Rooms, Told, Yard, order, profile, shell, soon, unbound};

pub(crate) fn keep(yard: &Yard, profile: &Profile) -> KeptNative {
    let spec = unbound(profile);
    let mut kept = yard.native().keep(&spec, &yard.house.state()).unwrap();
    kept.settle(soon()).unwrap();
    assert!(kept.is_alive());
    kept
}

pub(crate) fn run(
    kept: &mut KeptNative,
    rooms: &Rooms,
    profile: &Profile,
    order: &Order,
) -> Result<Told> {
    let (cancel, _canceler) = Cancel::new().unwrap();
    let mut both = Both::default();
    let ended = kept.run(
        rooms.room(),
        Run {
            order,
            profile,
            watched: &[],
            stdin: None,
            terminal: None,
            secrets: &[],
            sink: &mut both,
            cancel: &cancel,
            control: None,
        },
    );
    ended.map(|ended| both.told(ended))
}

fn close(kept: KeptNative) {
    drop(Box::new(kept).close());
}

pub(crate) fn files_of_its_own_stay_and_those_of_an_exec_do_not() {
    let yard = Yard::new();
    let profile = profile();
    let mut kept = keep(&yard, &profile);
    let rooms = [Rooms::new(&yard.house, "a"), Rooms::new(&yard.house, "b")];
    std::fs::write(rooms[0].path("inputs").join("only-a"), "").unwrap();
    let line = "echo 1 > /tmp/stays; echo 2 > ~/stays; echo 3 > ../artifacts/goes; echo 4 > goes";
    let mut first = shell(line);
    first.env.push((
        crate::house::text("HOME"),
        crate::house::text("/home/sandbox"),
    ));
    let told = run(&mut kept, &rooms[0], &profile, &first).unwrap();
    assert_eq!(told.ended.ending, Ending::Exited { code: 0 }, "{told:?}");
    let look =
        shell("cat /tmp/stays /home/sandbox/stays; find /workspace -type f; echo x > ../inputs/x");
    let told = run(&mut kept, &rooms[1], &profile, &look).unwrap();
    assert_eq!(told.stdout, "1\n2\n");
    assert!(told.stderr.contains("Read-only"), "{told:?}");
    let made = std::fs::read_to_string(rooms[0].path("artifacts").join("goes")).unwrap();
    assert_eq!(made, "3\n");
    assert_eq!(
        std::fs::read_dir(rooms[1].path("artifacts"))
            .unwrap()
            .count(),
        0
    );
    // And back: the first one's are there as they were left.
    let told = run(
        &mut kept,
        &rooms[0],
        &profile,
        &shell("cat goes; ls ../inputs"),
    )
    .unwrap();
    assert_eq!(told.stdout, "4\nonly-a\n");
    close(kept);
}

pub(crate) fn no_process_outlives_its_exec() {
    let yard = Yard::new();
    let profile = profile();
    let rooms = Rooms::new(&yard.house, "a");
    let mut kept = keep(&yard, &profile);
    let stray =
        "(setsid sh -c 'trap \"\" TERM HUP INT; while :; do sleep 600; done') > /dev/null 2>&1 &
        setsid nohup sleep 600 > /dev/null 2>&1 & echo up";
    for _ in 0..3 {
        let told = run(&mut kept, &rooms, &profile, &shell(stray)).unwrap();
        assert_eq!(told.stdout, "up\n");
        let look = shell("for pid in /proc/[0-9]*; do cat $pid/comm; done");
        let told = run(&mut kept, &rooms, &profile, &look).unwrap();
        // Pid 1 is hidden; the shell and what it runs are all there is.
        assert!(!told.stdout.contains("sleep"), "{told:?}");
        assert!(
            told.stdout.lines().all(|it| it == "sh" || it == "cat"),
            "{told:?}"
        );
    }
    close(kept);
}

pub(crate) fn a_fork_bomb_is_swept_and_leaves_it_usable() {
    let yard = Yard::new();
    let mut profile = profile();
    // Few enough that they run out of time, and not of memory.
    profile.limits.pids = glovebox_model::Count(60);
    let mut short = profile.clone();
    short.limits.wall_ms = Millis(700);
    let rooms = Rooms::new(&yard.house, "a");
    let mut kept = keep(&yard, &profile);
    let bomb = "import os, signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
while True:
    try:
        os.fork()
    except OSError:
        pass";
    for _ in 0..2 {
        let order = order(&["python3", "-c", bomb], &[]);
        let told = run(&mut kept, &rooms, &short, &order).unwrap();
        assert_eq!(told.ended.ending, Ending::TimedOut, "{told:?}");
        assert!(kept.is_alive());
        let calm = shell("echo calm; ls -d /proc/[0-9]* | wc -l");
        let told = run(&mut kept, &rooms, &profile, &calm).unwrap();
        let lines: Vec<&str> = told.stdout.lines().collect();
        assert_eq!(lines[0], "calm");
        assert!(lines[1].parse::<u32>().unwrap() <= 4, "{told:?}");
    }
    close(kept);
}

pub(crate) fn out_of_time_it_stays_usable() {
    let yard = Yard::new();
    let profile = profile();
    let mut short = profile.clone();
    short.limits.wall_ms = Millis(300);
    let rooms = Rooms::new(&yard.house, "a");
    let mut kept = keep(&yard, &profile);
    let stubborn = shell("trap '' TERM; echo up; while :; do sleep 600; done");
    let told = run(&mut kept, &rooms, &short, &stubborn).unwrap();
    assert_eq!(told.ended.ending, Ending::TimedOut);
    assert_eq!(told.ended.limit_hit, Some(LimitKind::Wall));
    assert!(kept.is_alive());
    let told = run(&mut kept, &rooms, &profile, &shell("echo on")).unwrap();
    assert_eq!(told.stdout, "on\n");
    close(kept);
}

pub(crate) fn canceled_it_stays_usable() {
    let yard = Yard::new();
    let profile = profile();
    let rooms = Rooms::new(&yard.house, "a");
    let mut kept = keep(&yard, &profile);
    let (cancel, canceler) = Cancel::new().unwrap();
    let mut both = Both::canceling(canceler);
    let ended = kept.run(
        rooms.room(),
        Run {
            order: &shell("echo up; exec sleep 600"),
            profile: &profile,
            watched: &[],
            stdin: None,
            terminal: None,
            secrets: &[],
            sink: &mut both,
            cancel: &cancel,
            control: None,
        },
    );
    assert_eq!(ended.unwrap().ending, Ending::Canceled);
    let told = run(&mut kept, &rooms, &profile, &shell("echo on")).unwrap();
    assert_eq!(told.stdout, "on\n");
    close(kept);
}

pub(crate) fn a_refused_command_leaves_it_usable() {
    let yard = Yard::new();
    let profile = profile();
    let rooms = Rooms::new(&yard.house, "a");
    let mut kept = keep(&yard, &profile);
    let missing = order(&["no-such-command"], &[]);
    let error = run(&mut kept, &rooms, &profile, &missing).unwrap_err();
    assert_eq!(error.code, Code::CommandNotFound);
    let mut nowhere = shell("echo ran");
    nowhere.cwd = crate::house::text("/nowhere");
    let error = run(&mut kept, &rooms, &profile, &nowhere).unwrap_err();
    assert_eq!(error.code, Code::CwdNotFound);
    let told = run(&mut kept, &rooms, &profile, &shell("echo on")).unwrap();
    assert_eq!(told.stdout, "on\n");
    close(kept);
}

pub(crate) fn one_that_died_is_noticed() {
    let yard = Yard::new();
    let profile = profile();
    let rooms = Rooms::new(&yard.house, "a");
    let mut kept = keep(&yard, &profile);
    // The only child of the keeper, which is the only one of ours that is not waiting.
    let init = crate::kept::apart::init_of(&kept);
    kill_process(Pid::from_raw(init).unwrap(), Signal::KILL).unwrap();
    let deadline = soon();
    while kept.is_alive() {
        assert!(Instant::now() < deadline);
        std::thread::yield_now();
    }
    let error = run(&mut kept, &rooms, &profile, &shell("echo ran")).unwrap_err();
    assert!(
        matches!(error.code, Code::Internal | Code::SetupFailed),
        "{error:?}"
    );
    close(kept);
}
