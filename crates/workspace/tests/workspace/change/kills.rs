//! Killed at every moment of carrying changes over, and taken up again by somebody else.

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use glovebox_workspace::Dir;
use glovebox_workspace::change::{Held, ReadLimits, RecoveredChange};

use crate::change::ground::{Ground, applied};

const WORK: &str = "TEST_CHANGE_WORK";
const SHELF: &str = "TEST_CHANGE_SHELF";
const KILL_AT: &str = "GLOVEBOX_KILL_AT";

const BEFORE: &str = "mkdir -p d/e gone/deep; echo a > a; echo b > b; ln b twin; echo x > d/x
    echo y > d/e/y; echo z > gone/deep/z; ln -s a l; chmod 555 d/e; echo keep > keep";
const LINE: &str = "echo n > a; rm b; chmod 700 d; chmod 755 d/e; echo n > d/e/n; rm d/x
    mkdir -p n/k; echo k > n/k/k; ln n/k/k n/k2; chmod 500 n; rm -r gone; echo file > gone
    ln -sfn keep l; mkdir closed; chmod 0 closed";

/// The child of the tests below.
#[test]
#[ignore = "a part of the others"]
fn carry_over() {
    let dir = |name: &str| Dir::open_trusted(Path::new(&std::env::var_os(name).unwrap())).unwrap();
    let (lower, shelf) = (dir(WORK), dir(SHELF));
    let held = Held::open(&shelf, "one").unwrap();
    held.keep(&lower, ReadLimits::default()).unwrap();
}

/// Whether it was killed before it was done.
fn killed(work: PathBuf, shelf: PathBuf, moment: u32) -> bool {
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "change::kills::carry_over", "--ignored"])
        .env(WORK, work)
        .env(SHELF, shelf)
        .env(KILL_AT, moment.to_string())
        .output()
        .unwrap();
    let killed = child.status.signal() == Some(9);
    assert!(killed || child.status.success(), "{child:?}");
    killed
}

fn prepared() -> (Ground, Held, String, String) {
    prepared_in(Ground::new())
}

fn prepared_in(ground: Ground) -> (Ground, Held, String, String) {
    ground.sh(BEFORE);
    let before = ground.list();
    let held = ground.hold();
    let after = ground.changed_by(&held, LINE);
    (ground, held, before, after)
}

fn nothing_is_left(ground: &Ground) {
    assert!(!ground.path("held/one/stage").exists());
    assert_eq!(ground.sh("find . -name '.glovebox*'"), "");
}

#[test]
fn whoever_comes_next_finishes_it() {
    let mut moments = 0;
    let mut seen = [false; 2];
    for moment in 1.. {
        let (ground, held, before, after) = prepared();
        let was_killed = killed(ground.path("work"), ground.path("held"), moment);
        let recovered = held.recover(&ground.lower).unwrap();
        nothing_is_left(&ground);
        match &recovered {
            // Before the note was complete: as if nothing had happened.
            RecoveredChange::Nothing => assert_eq!(ground.list(), before, "at {moment}"),
            RecoveredChange::Completed => assert_eq!(ground.list(), after, "at {moment}"),
            RecoveredChange::RolledBack { .. } => panic!("at {moment}: {recovered:?}"),
        }
        seen[usize::from(recovered == RecoveredChange::Completed)] = true;
        // In any case it can still be kept, or be kept again.
        applied(&ground.keep(&held));
        assert_eq!(ground.list(), after, "at {moment}");
        nothing_is_left(&ground);
        if !was_killed {
            break;
        }
        moments += 1;
    }
    assert!(moments > 30, "{moments}");
    assert_eq!(seen, [true; 2]);
}

/// A workspace on another file system has the stage in itself, and nothing of it is left there.
#[test]
fn on_another_file_system_too() {
    let mut moment = 1;
    loop {
        let (ground, held, before, after) = prepared_in(Ground::apart());
        let was_killed = killed(ground.path("work"), ground.path("held"), moment);
        let recovered = held.recover(&ground.lower).unwrap();
        nothing_is_left(&ground);
        let expected = match recovered {
            RecoveredChange::Nothing => &before,
            RecoveredChange::Completed => &after,
            RecoveredChange::RolledBack { .. } => panic!("at {moment}: {recovered:?}"),
        };
        assert_eq!(ground.list(), *expected, "at {moment}");
        if !was_killed {
            break;
        }
        // Every third is enough: the moments are those of the other test.
        moment += 3;
    }
    assert!(moment > 20, "{moment}");
}

/// The first moment at which everything is staged and nothing done.
fn noted() -> u32 {
    let noted = |moment: &u32| {
        let (ground, ..) = prepared();
        assert!(killed(ground.path("work"), ground.path("held"), *moment));
        let note = std::fs::read_to_string(ground.path("held/one/intent"));
        note.is_ok_and(|note| note.contains("Applying"))
    };
    (1..).find(noted).unwrap()
}

/// And killed in the middle of finishing it, each time one step later.
#[test]
fn finishing_it_can_be_interrupted_too() {
    let noted = noted();
    let (ground, held, before, after) = prepared();
    assert!(killed(ground.path("work"), ground.path("held"), noted));
    assert_eq!(ground.list(), before);
    let mut moment = 1;
    while killed(ground.path("work"), ground.path("held"), moment) {
        moment += 1;
    }
    assert!(moment > 10, "{moment}");
    assert_eq!(
        held.recover(&ground.lower).unwrap(),
        RecoveredChange::Completed
    );
    assert_eq!(ground.list(), after);
    nothing_is_left(&ground);
}

/// Somebody writes to the workspace between the kill and the recovery: all of it is taken back.
#[test]
fn where_somebody_else_has_been_it_is_taken_back() {
    let mut taken_back = 0;
    for moment in noted().. {
        let (ground, held, before, after) = prepared();
        let was_killed = killed(ground.path("work"), ground.path("held"), moment);
        // One of the last that is put there: hardly ever done when it is killed.
        ground.sh("rm -rf n; echo theirs > n");
        let recovered = held.recover(&ground.lower).unwrap();
        nothing_is_left(&ground);
        let without = |list: &str| {
            let lines = list.lines().filter(|it| !it.starts_with("'./n"));
            lines.map(|it| format!("{it}\n")).collect::<String>()
        };
        match recovered {
            RecoveredChange::Nothing => assert_eq!(without(&ground.list()), without(&before)),
            RecoveredChange::Completed => {
                assert_eq!(without(&ground.list()), without(&after), "at {moment}");
            }
            RecoveredChange::RolledBack { paths } => {
                taken_back += 1;
                assert_eq!(paths.len(), 1);
                assert_eq!(paths[0].display(), "n");
                assert_eq!(without(&ground.list()), without(&before), "at {moment}");
            }
        }
        assert_eq!(ground.sh("cat n"), "theirs\n");
        if !was_killed {
            break;
        }
    }
    assert!(taken_back > 3, "{taken_back}");
}

/// Files that were put there before the kill, edited in place since: a file, and one in a new directory.
#[test]
fn what_somebody_edited_in_place_since_is_not_taken_back() {
    let mut in_the_middle = 0;
    for moment in 1.. {
        let ground = Ground::new();
        ground.sh("echo a > a; echo z > z");
        let held = ground.hold();
        ground.changed_by(&held, "echo n > a; mkdir m; echo m > m/x; echo n > z");
        let was_killed = killed(ground.path("work"), ground.path("held"), moment);
        let edited =
            ground.sh("for f in a m/x z; do [ -e $f ] && echo theirs >> $f && echo $f; done; true");
        let recovered = held.recover(&ground.lower).unwrap();
        nothing_is_left(&ground);
        for name in edited.lines() {
            let now = ground.sh(&format!("tail -n 1 {name}"));
            assert_eq!(now, "theirs\n", "{name} at {moment}: {recovered:?}");
        }
        let rolled_back = matches!(recovered, RecoveredChange::RolledBack { .. });
        in_the_middle += u32::from(rolled_back && edited.contains("m/x"));
        if !was_killed {
            break;
        }
    }
    assert!(in_the_middle > 0);
}
