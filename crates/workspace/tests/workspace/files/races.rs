//! F049, F050, F052 and R19: somebody renames directories and links under us as fast as the kernel
//! can. Every shape runs beside a control that checks the path first and opens it by name after,
//! and the control must escape, or the race was no race.
//!
//! `GLOVEBOX_TEST_RACE_ATTEMPTS` sets the attempts for each shape.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::files::place::{CANARY, Place, place_in_memory, rel};
use glovebox_capture::Secrets;
use glovebox_model::{ExecId, ProjectId, Stream};
use glovebox_workspace::{Dir, Existing, Layout, RelPath};
use rustix::fs::{RenameFlags, renameat_with};

const CONTROL_ATTEMPTS: u64 = 1_000_000;

fn attempts() -> u64 {
    let set = std::env::var("GLOVEBOX_TEST_RACE_ATTEMPTS").ok();
    set.map_or(3000, |text| text.parse().expect("a number of attempts"))
}

/// Runs `attempt` while `disturb` runs in a loop on another thread; true means that it escaped.
fn race(
    limit: u64,
    disturb: impl Fn() + Sync,
    mut attempt: impl FnMut(u64) -> bool,
) -> Option<u64> {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                disturb();
            }
        });
        // Also when an attempt panics, or the other thread would be waited for without end.
        let _stop = StopOnDrop(&stop);
        (0..limit).find(|n| attempt(*n))
    })
}

struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn exchange(dir: &Dir, a: &str, b: &str) {
    renameat_with(dir, a, dir, b, RenameFlags::EXCHANGE).unwrap();
}

/// `dir` and `link` change places: one is real, the other leads out.
fn directory_race() -> (Place, Dir) {
    let place = place_in_memory();
    place.file("dir/canary", b"inside");
    place.link(&place.outside, "link");
    let real = place.dir.open_dir(&rel("dir")).unwrap();
    (place, real)
}

fn seems_inside(place: &Place, path: &Path) -> bool {
    path.canonicalize()
        .is_ok_and(|real| real.starts_with(&place.inside))
}

fn assert_race(
    place: &Place,
    disturb: impl Fn() + Sync,
    ours: impl FnMut(u64) -> bool,
    control: impl FnMut(u64) -> bool,
) {
    let escaped = race(attempts(), &disturb, ours);
    assert_eq!(escaped, None, "escaped");
    place.assert_outside_untouched();
    let control = race(CONTROL_ATTEMPTS, &disturb, control);
    assert!(
        control.is_some(),
        "the control never escaped: no race was run"
    );
}

#[test]
fn f049_reading_through_a_directory_that_becomes_a_link() {
    let (place, _real) = directory_race();
    let named = place.inside.join("dir/canary");
    let mut read = 0u64;
    assert_race(
        &place,
        || exchange(&place.dir, "dir", "link"),
        |_| match place.read("dir/canary") {
            Ok(bytes) => {
                read += 1;
                bytes == CANARY
            }
            Err(_) => false,
        },
        |_| seems_inside(&place, &named) && std::fs::read(&named).is_ok_and(|read| read == CANARY),
    );
    if read == 0 {
        // Who disturbs slept while the link stood there: on until one gets through.
        let disturb = || exchange(&place.dir, "dir", "link");
        let reached = race(CONTROL_ATTEMPTS, disturb, |_| {
            place.read("dir/canary").is_ok_and(|bytes| bytes != CANARY)
        });
        assert!(reached.is_some(), "some attempts must reach the real file");
    }
}

#[test]
fn f050_reading_a_file_that_becomes_a_link() {
    let place = place_in_memory();
    place.file("file", b"inside");
    place.link(place.outside.join("canary"), "link");
    let named = place.inside.join("file");
    assert_race(
        &place,
        || exchange(&place.dir, "file", "link"),
        |_| place.read("file").is_ok_and(|bytes| bytes == CANARY),
        |_| {
            let plain = std::fs::symlink_metadata(&named).is_ok_and(|meta| meta.is_file());
            plain && std::fs::read(&named).is_ok_and(|read| read == CANARY)
        },
    );
}

#[test]
fn r19_writing_into_a_directory_that_becomes_a_link() {
    let (place, real) = directory_race();
    let (named, leaked) = (place.inside.join("dir/new"), place.outside.join("new"));
    assert_race(
        &place,
        || exchange(&place.dir, "dir", "link"),
        |_| {
            let _ = place.dir.write(&rel("dir/new"), b"x", 0o644);
            let _ = real.remove_file(&rel("new"));
            let created = place.dir.create(&rel("dir/new"), 0o644).is_ok();
            created && real.remove_file(&rel("new")).is_err() || leaked.exists()
        },
        |_| {
            if seems_inside(&place, named.parent().unwrap()) {
                let _ = std::fs::write(&named, b"x");
            }
            leaked.exists()
        },
    );
}

#[test]
fn r19_writing_a_file_that_becomes_a_link() {
    let place = place_in_memory();
    place.file("file", b"inside");
    place.link(place.outside.join("canary"), "link");
    let named = place.inside.join("file");
    let canary = place.outside.join("canary");
    let changed = || std::fs::read(&canary).unwrap() != CANARY;
    assert_race(
        &place,
        || {
            // A write that wins replaces the link, so it is put back for the next attempt.
            let _ = renameat_with(
                &place.dir,
                "file",
                &place.dir,
                "link",
                RenameFlags::EXCHANGE,
            );
            let _ = std::os::unix::fs::symlink(&canary, place.inside.join("again"));
            let _ = std::fs::rename(place.inside.join("again"), place.inside.join("link"));
        },
        |_| {
            let _ = place.dir.write(&rel("file"), b"evil", 0o644);
            changed()
        },
        |_| {
            let plain = std::fs::symlink_metadata(&named).is_ok_and(|meta| meta.is_file());
            if plain {
                let _ = std::fs::write(&named, b"evil");
            } else {
                let _ = std::fs::remove_file(&named);
                let _ = std::fs::write(place.inside.join("plain"), b"x");
                let _ = std::fs::rename(place.inside.join("plain"), &named);
            }
            changed()
        },
    );
}

#[test]
fn r19_making_directories_in_a_directory_that_becomes_a_link() {
    let (place, real) = directory_race();
    let (named, leaked) = (place.inside.join("dir/a"), place.outside.join("a"));
    assert_race(
        &place,
        || exchange(&place.dir, "dir", "link"),
        |n| {
            let _ = match n % 2 {
                0 => place.dir.mkdir(&rel("dir/a"), 0o755),
                _ => place.dir.mkdir_all(&rel("dir/a/b"), 0o755).map(drop),
            };
            let _ = real.remove_all(&rel("a"));
            leaked.exists()
        },
        |_| {
            if seems_inside(&place, named.parent().unwrap()) {
                let _ = std::fs::create_dir_all(named.join("b"));
            }
            let _ = real.remove_all(&rel("a"));
            leaked.exists()
        },
    );
}

#[test]
fn r19_removing_a_tree_whose_directory_becomes_a_link() {
    let (place, real) = directory_race();
    let named = place.inside.join("dir/canary");
    let lost = || !place.outside.join("canary").exists();
    let refill = || {
        let _ = real.mkdir_all(&rel("canary/deep/er"), 0o755);
    };
    real.remove_file(&rel("canary")).unwrap();
    assert_race(
        &place,
        || exchange(&place.dir, "dir", "link"),
        |_| {
            refill();
            let _ = place.dir.remove_all(&rel("dir/canary"));
            lost()
        },
        |_| {
            refill();
            if seems_inside(&place, &named) && std::fs::remove_dir_all(&named).is_err() {
                let _ = std::fs::remove_file(&named);
            }
            lost()
        },
    );
}

/// Each a directory and a link that change places.
const PAIRS: usize = 2;

#[test]
fn r19_removing_a_tree_whose_inside_is_swapped_with_links() {
    let place = place_in_memory();
    let canary = place.outside.join("canary");
    let fill = || {
        for n in 0..PAIRS {
            let _ = place.dir.mkdir_all(&rel(&format!("t/dir{n}/deep")), 0o755);
            let _ =
                std::os::unix::fs::symlink(&place.outside, place.inside.join(format!("t/link{n}")));
            let _ = place
                .dir
                .write(&rel(&format!("t/dir{n}/canary")), b"x", 0o644);
        }
    };
    let naive = |tree: &Path| {
        for n in 0..PAIRS {
            let dir = tree.join(format!("dir{n}"));
            if std::fs::symlink_metadata(&dir).is_ok_and(|meta| meta.is_dir()) {
                let _ = std::fs::remove_file(dir.join("canary"));
            }
        }
    };
    assert_race(
        &place,
        || {
            for n in 0..PAIRS {
                let (dir, link) = (format!("t/dir{n}"), format!("t/link{n}"));
                let flags = RenameFlags::EXCHANGE;
                let _ = renameat_with(&place.dir, &*dir, &place.dir, &*link, flags);
            }
        },
        |_| {
            fill();
            let _ = place.dir.remove_all(&rel("t"));
            !canary.exists()
        },
        |_| {
            fill();
            naive(&place.inside.join("t"));
            !canary.exists()
        },
    );
}

#[test]
fn r19_renaming_into_a_directory_that_becomes_a_link() {
    let (place, real) = directory_race();
    let leaked = place.outside.join("moved");
    let (from, to) = (place.inside.join("plain"), place.inside.join("dir/moved"));
    let refill = || {
        let _ = place.dir.write(&rel("plain"), b"x", 0o644);
    };
    assert_race(
        &place,
        || exchange(&place.dir, "dir", "link"),
        |_| {
            refill();
            let _ = place
                .dir
                .rename(&rel("plain"), &rel("dir/moved"), Existing::Replace);
            let _ = real.remove_file(&rel("moved"));
            let _ = place
                .dir
                .rename(&rel("dir/canary"), &rel("taken"), Existing::Replace);
            let _ = real.write(&rel("canary"), b"inside", 0o644);
            leaked.exists() || place.read("taken").is_ok_and(|bytes| bytes == CANARY)
        },
        |_| {
            refill();
            if seems_inside(&place, to.parent().unwrap()) {
                let _ = std::fs::rename(&from, &to);
            }
            leaked.exists()
        },
    );
}

/// Larger than the cap of the collection: who takes it for an artifact would remove it.
const LARGE: usize = 4096;

#[test]
fn f052_collecting_artifacts_while_links_are_swapped() {
    let place = place_in_memory();
    let secret = place.outside.join("canary");
    let layout = Layout::open(Dir::open_trusted(&place.inside).unwrap()).unwrap();
    let project = layout.project(&"p".parse::<ProjectId>().unwrap()).unwrap();
    // Who disturbs takes no lock: it would hold up the one it is to race with.
    let now = AtomicU64::new(0);
    let disturb = || {
        let exec = ExecId::from_random(u128::from(now.load(Ordering::Relaxed)).to_be_bytes());
        let path = RelPath::new(format!("projects/p/artifacts/{exec}")).unwrap();
        if let Ok(dir) = place.dir.open_dir(&path) {
            for (a, b) in [
                ("dir", "link"),
                ("canary", "flink"),
                ("stdout.txt", "slink"),
            ] {
                let _ = renameat_with(&dir, a, &dir, b, RenameFlags::EXCHANGE);
            }
        }
    };
    let digest = {
        use sha2::Digest;
        let bytes = sha2::Sha256::digest(CANARY);
        bytes.iter().map(|b| format!("{b:02x}")).collect::<String>()
    };
    let fill = |dir: &Dir| {
        for path in ["dir/canary", "canary", "stdout.txt"] {
            if path.contains('/') {
                dir.mkdir(&rel("dir"), 0o755).unwrap();
            }
            dir.write(&rel(path), &[b'x'; 11], 0o644).unwrap();
        }
        dir.write(&rel("big"), &[0; LARGE], 0o644).unwrap();
        for (target, name) in [
            (&place.outside, "link"),
            (&secret, "flink"),
            (&secret, "slink"),
        ] {
            rustix::fs::symlinkat(target, dir, name).unwrap();
        }
    };
    let mut collected = 0u64;
    let ours = |n: u64| {
        let exec = ExecId::from_random(u128::from(n).to_be_bytes());
        let files = project.begin(&exec, &[]).unwrap();
        fill(files.artifacts());
        let mut stdout = files.sink(Stream::Stdout, 100).unwrap();
        stdout.push(b"ours");
        let (stdout, stderr) = (stdout.finish(), files.sink(Stream::Stderr, 100).unwrap());
        now.store(n, Ordering::Relaxed);
        let settled = files.settle(&stdout, &stderr.finish(), 64, &Secrets::none());
        now.store(u64::MAX, Ordering::Relaxed);
        let leaked = settled.as_ref().is_ok_and(|settled| {
            let list = settled.artifacts();
            list.iter().any(|artifact| artifact.hash == digest)
        });
        collected += u64::from(settled.is_ok());
        files.discard().unwrap();
        leaked || std::fs::read(&secret).ok().as_deref() != Some(CANARY)
    };
    let escaped = race(attempts(), disturb, ours);
    assert_eq!(escaped, None, "escaped");
    assert!(collected > 0, "some collections must succeed");

    let exec = ExecId::from_random(u128::from(u64::MAX).to_be_bytes());
    let files = project.begin(&exec, &[]).unwrap();
    fill(files.artifacts());
    let file = place.inside.join(files.path()).join("canary");
    let control = race(CONTROL_ATTEMPTS, disturb, |_| {
        let plain = std::fs::symlink_metadata(&file).is_ok_and(|meta| meta.is_file());
        plain && std::fs::read(&file).is_ok_and(|read| read == CANARY)
    });
    assert!(
        control.is_some(),
        "the control never escaped: no race was run"
    );
    place.assert_outside_untouched();
}
