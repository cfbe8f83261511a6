//! What of one exec the next can reach: nothing.

use glovebox_backend::{Ending, KeptNative};

use crate::house::{Rooms, Yard, order, profile, shell};
use crate::kept::stays::{keep, run};

/// Pid 1, as the host knows it.
pub(crate) fn init_of(kept: &KeptNative) -> i32 {
    kept.pids()[1]
}

pub(crate) fn an_earlier_execs_directories_are_out_of_reach() {
    let yard = Yard::new();
    let profile = profile();
    let mut kept = keep(&yard, &profile);
    let first = Rooms::new(&yard.house, "first");
    // A descriptor that a survivor would hold, links, and everything a mount could be found by.
    let hold = "echo canary > canary; echo canary > ../artifacts/canary
        ln -s /workspace/work /tmp/work; ln -s /proc/self/cwd /tmp/cwd
        mkfifo /tmp/pipe; (exec 7< /workspace/artifacts; sleep 600) > /dev/null 2>&1 &
        (cd /workspace/work; sleep 600) > /dev/null 2>&1 &";
    let told = run(&mut kept, &first, &profile, &shell(hold)).unwrap();
    assert_eq!(told.ended.ending, Ending::Exited { code: 0 }, "{told:?}");
    // While nobody runs in it, its mounts are gone for the host as well.
    let mounts = std::fs::read_to_string(format!("/proc/{}/mountinfo", init_of(&kept))).unwrap();
    assert!(mounts.contains(" /proc "), "{mounts}");
    assert!(!mounts.contains("/workspace/"), "{mounts}");
    let second = Rooms::new(&yard.house, "second");
    let look = "cat /tmp/work/canary /tmp/cwd/canary; find / -name 'canary*' -not -path '/proc/*'
        ls -l /proc/*/fd /proc/*/cwd 2> /dev/null | grep first; grep -c ' /workspace/' /proc/self/mountinfo";
    let told = run(&mut kept, &second, &profile, &shell(look)).unwrap();
    assert_eq!(told.stdout, "3\n", "{told:?}");
    drop(kept);
    assert!(first.path("work").join("canary").exists());
}

pub(crate) fn its_places_cannot_be_exchanged_between_two_execs() {
    let yard = Yard::new();
    let profile = profile();
    let rooms = Rooms::new(&yard.house, "a");
    let mut kept = keep(&yard, &profile);
    let attack = "import os
for old, new in [('/workspace', '/tmp/w'), ('/workspace/artifacts', '/tmp/a')]:
    for act in (os.rename, os.link, os.symlink):
        try:
            act(old, new + act.__name__)
        except OSError as error:
            print(act.__name__, error.errno)
for path in ('/workspace/artifacts', '/workspace'):
    try:
        os.rmdir(path)
    except OSError as error:
        print('rmdir', error.errno)";
    let order = order(&["python3", "-c", attack], &[]);
    let told = run(&mut kept, &rooms, &profile, &order).unwrap();
    assert_eq!(told.ended.ending, Ending::Exited { code: 0 }, "{told:?}");
    assert_eq!(told.stdout.matches("rename").count(), 2, "{told:?}");
    assert_eq!(told.stdout.matches("rmdir").count(), 2, "{told:?}");
    let told = run(
        &mut kept,
        &rooms,
        &profile,
        &shell("echo x > ../artifacts/x"),
    )
    .unwrap();
    assert_eq!(told.ended.ending, Ending::Exited { code: 0 }, "{told:?}");
    assert!(rooms.path("artifacts").join("x").exists());
}
