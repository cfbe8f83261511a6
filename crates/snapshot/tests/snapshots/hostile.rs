//! A restore over a tree that was prepared against it: nothing outside is touched, nothing blocks.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::ground::{Ground, look, make_fifo, noise};

/// A directory that nobody may touch, with something in it.
fn treasure(ground: &Ground) -> std::path::PathBuf {
    let outside = ground.space.join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("file"), "treasure").unwrap();
    fs::create_dir(outside.join("below")).unwrap();
    outside
}

fn base(ground: &Ground) {
    ground.write("dir/below/file", "inside");
    ground.write("dir/file", "inside");
    ground.write("top", noise(1, 100_000));
    symlink("top", ground.path("link")).unwrap();
    make_fifo(&ground.path("pipe"));
}

fn remove(path: &Path) {
    match fs::symlink_metadata(path).unwrap().is_dir() {
        true => fs::remove_dir_all(path).unwrap(),
        false => fs::remove_file(path).unwrap(),
    }
}

#[test]
fn whatever_stands_in_the_way_is_replaced_and_never_used() {
    let names = [
        "dir",
        "dir/below",
        "dir/below/file",
        "dir/file",
        "top",
        "link",
        "pipe",
    ];
    for name in names {
        for shape in [
            "link out",
            "link to a file out",
            "link inside",
            "fifo",
            "directory",
            "file",
        ] {
            let ground = Ground::new();
            base(&ground);
            let outside = treasure(&ground);
            let untouched = look(&outside);
            let before = look(&ground.work);
            let taken = ground.take();
            let path = ground.path(name);
            remove(&path);
            match shape {
                "link out" => symlink(&outside, &path).unwrap(),
                "link to a file out" => symlink(outside.join("file"), &path).unwrap(),
                "link inside" => symlink(".", &path).unwrap(),
                "fifo" => make_fifo(&path),
                "directory" => {
                    fs::create_dir_all(path.join("full/of")).unwrap();
                    fs::write(path.join("full/of/files"), "x").unwrap();
                }
                _ => fs::write(&path, "another").unwrap(),
            }
            ground.restore(&taken.snapshot.id);
            assert_eq!(look(&ground.work), before, "{name}: {shape}");
            assert_eq!(look(&outside), untouched, "{name}: {shape}");
        }
    }
}

#[test]
fn links_are_taken_as_links_and_fifos_are_not_opened() {
    let ground = Ground::new();
    let outside = treasure(&ground);
    symlink(&outside, ground.path("door")).unwrap();
    symlink("/proc/self/fd", ground.path("magic")).unwrap();
    make_fifo(&ground.path("pipe"));
    let taken = ground.take();
    assert_eq!(taken.bytes_read, 0);
    assert_eq!(taken.snapshot.counts.files, 0);
    let untouched = look(&outside);
    remove(&ground.path("door"));
    fs::create_dir(ground.path("door")).unwrap();
    fs::write(ground.path("door/file"), "mine").unwrap();
    ground.restore(&taken.snapshot.id);
    assert_eq!(fs::read_link(ground.path("door")).unwrap(), outside);
    assert_eq!(look(&outside), untouched);
}

#[test]
fn a_file_with_a_second_name_outside_is_replaced_and_not_written_through() {
    let ground = Ground::new();
    ground.write("a", "as it was");
    ground.settle();
    let taken = ground.take();
    let outside = ground.space.join("outside");
    fs::write(&outside, "not yours").unwrap();
    fs::remove_file(ground.path("a")).unwrap();
    fs::hard_link(&outside, ground.path("a")).unwrap();
    ground.restore(&taken.snapshot.id);
    assert_eq!(fs::read(ground.path("a")).unwrap(), b"as it was");
    assert_eq!(fs::read(&outside).unwrap(), b"not yours");
    // The same bytes with another owner's name on them do not become ours either.
    fs::write(&outside, "as it was").unwrap();
    let mode = fs::metadata(&outside).unwrap().permissions();
    fs::remove_file(ground.path("a")).unwrap();
    fs::hard_link(&outside, ground.path("a")).unwrap();
    ground.restore(&taken.snapshot.id);
    assert_eq!(fs::metadata(&outside).unwrap().permissions(), mode);
    use std::os::unix::fs::MetadataExt;
    assert_eq!(fs::metadata(&outside).unwrap().nlink(), 1);
}

#[test]
fn a_tree_too_deep_to_name_is_refused_and_can_still_be_undone() {
    use rustix::fs::{Mode, OFlags, mkdirat, openat};
    let ground = Ground::new();
    ground.write("keep", "1");
    let taken = ground.take();
    let name = "d".repeat(200);
    let mut at = rustix::fs::open(&ground.work, OFlags::RDONLY, Mode::empty()).unwrap();
    for _ in 0..60 {
        mkdirat(&at, &name, Mode::RWXU).unwrap();
        at = openat(&at, &name, OFlags::RDONLY, Mode::empty()).unwrap();
    }
    let error = ground.try_take(Default::default()).unwrap_err();
    assert!(error.message.contains("too deep"), "{error}");
    ground.restore(&taken.snapshot.id);
    assert_eq!(look(&ground.work).len(), 1);
}
