//! One test for each shape.

use std::path::Path;

use glovebox_workspace::Existing;
use glovebox_workspace::archive::UnpackLimits;
use glovebox_workspace::files::{
    self, Condition, CopyLimits, DownloadLimits, Format, GlobOptions, GrepOptions, ListOptions,
    Needle, Occurrence, Parents, Placement, Range, Recursive, Source, WriteOptions,
};
use rustix::fs::{Mode, OFlags, RenameFlags, openat, renameat_with};

use crate::files::place::{CANARY, Place, place_in_memory, rel};
use crate::races::run::{Came, assert_race, directory_race, exchange, seems_inside};

fn is_real_dir(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|meta| meta.is_dir())
}

fn is_real_file(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|meta| meta.is_file())
}

fn swap(place: &Place) -> impl Fn() + Sync {
    || exchange(&place.dir, "dir", "link")
}

#[test]
fn r01_reading_in_a_directory_that_becomes_a_link() {
    let (place, real) = directory_race();
    real.write(&rel("canary"), b"inside", 0o644).unwrap();
    let named = place.inside.join("dir/canary");
    assert_race(
        &place,
        swap(&place),
        |n| {
            let range = match n % 2 {
                0 => Range::Whole,
                _ => Range::Last(5),
            };
            match files::read(&place.dir, &rel("dir/canary"), range, 1000) {
                Ok(contents) => Came::out_if(CANARY.ends_with(&contents.bytes)),
                Err(_) => Came::Nowhere,
            }
        },
        |_| seems_inside(&place, &named) && std::fs::read(&named).is_ok_and(|read| read == CANARY),
    );
}

#[test]
fn r02_writing_in_a_directory_that_becomes_a_link() {
    let (place, real) = directory_race();
    let (named, leaked) = (place.inside.join("dir/new"), place.outside.join("new"));
    let options = WriteOptions {
        parents: Parents::Make,
        ..WriteOptions::default()
    };
    assert_race(
        &place,
        swap(&place),
        |_| {
            let _ = files::write(&place.dir, &rel("dir/new"), &mut b"x".as_slice(), &options);
            let _ = real.remove_file(&rel("new"));
            Came::out_if(leaked.exists())
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
fn r03_listing_a_directory_that_becomes_a_link() {
    let (place, _real) = directory_race();
    let named = place.inside.join("dir");
    let options = ListOptions {
        depth: 3,
        ..ListOptions::default()
    };
    assert_race(
        &place,
        swap(&place),
        |n| {
            let under = rel("dir");
            let under = (n % 2 == 0).then_some(&under);
            let Ok(page) = files::list(&place.dir, under, &options) else {
                return Came::Nowhere;
            };
            let has = |name: &[u8]| {
                page.entries
                    .iter()
                    .any(|entry| entry.path.as_bytes().ends_with(name))
            };
            match (has(b"canary"), has(b"inner")) {
                (true, _) => Came::Out,
                (false, true) => Came::There,
                (false, false) => Came::Nowhere,
            }
        },
        |_| {
            is_real_dir(&named)
                && std::fs::read_dir(&named).is_ok_and(|mut dir| {
                    dir.any(|entry| entry.is_ok_and(|entry| entry.file_name() == "canary"))
                })
        },
    );
}

#[test]
fn r04_removing_in_a_directory_that_becomes_a_link() {
    let (place, real) = directory_race();
    let named = place.inside.join("dir/canary");
    let lost = || !place.outside.join("canary").exists();
    let refill = || {
        let _ = real.mkdir_all(&rel("canary/deep/er"), 0o755);
    };
    assert_race(
        &place,
        swap(&place),
        |_| {
            refill();
            let _ = files::remove(&place.dir, &rel("dir/canary"), Recursive::Yes);
            Came::out_if(lost())
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

#[test]
fn r05_moving_into_and_out_of_a_directory_that_becomes_a_link() {
    let (place, real) = directory_race();
    let leaked = place.outside.join("moved");
    let (from, to) = (place.inside.join("plain"), place.inside.join("dir/moved"));
    let refill = || {
        let _ = place.dir.write(&rel("plain"), b"x", 0o644);
    };
    let moves = |from: &str, to: &str| {
        let (from, to) = (rel(from), rel(to));
        let _ = files::rename(&place.dir, &from, &to, Existing::Replace, Parents::Make);
    };
    assert_race(
        &place,
        swap(&place),
        |_| {
            refill();
            moves("plain", "dir/moved");
            let _ = real.remove_file(&rel("moved"));
            moves("dir/canary", "taken");
            Came::out_if(leaked.exists() || place.inside.join("taken").exists())
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

#[test]
fn r06_copying_a_tree_with_a_directory_that_becomes_a_link() {
    let place = place_in_memory();
    place.file("t/dir/inner", b"inside");
    place.link(&place.outside, "t/link");
    let copies = ["copy/dir/canary", "copy/link/canary", "copy/canary"];
    let leaked = || {
        copies
            .iter()
            .any(|copy| std::fs::read(place.inside.join(copy)).is_ok_and(|c| c == CANARY))
    };
    let clean = || drop(place.dir.remove_all(&rel("copy")));
    let copy = |from: &str| {
        let (refuse, require) = (Existing::Refuse, Parents::Require);
        let limits = CopyLimits::default();
        files::copy(
            &place.dir,
            &rel(from),
            &rel("copy"),
            refuse,
            require,
            limits,
        )
    };
    // Links that are copied as links would lead the look at the copy out; they are not followed.
    let through_link = || {
        ["copy/dir", "copy/link"].iter().any(|path| {
            let path = place.inside.join(path);
            is_real_dir(&path) && path.join("canary").exists()
        })
    };
    assert_race(
        &place,
        || {
            let flags = RenameFlags::EXCHANGE;
            let _ = renameat_with(&place.dir, "t/dir", &place.dir, "t/link", flags);
        },
        |n| {
            let done = match n % 2 {
                0 => copy("t"),
                _ => copy("t/dir"),
            };

            let escaped = match n % 2 {
                0 => through_link(),
                _ => is_real_dir(&place.inside.join("copy")) && leaked(),
            };
            clean();
            match (escaped, done) {
                (true, _) => Came::Out,
                (false, Ok(_)) => Came::There,
                (false, Err(_)) => Came::Nowhere,
            }
        },
        |_| {
            let (from, to) = (place.inside.join("t/dir"), place.inside.join("copy"));
            let _ = std::fs::create_dir(&to);
            if is_real_dir(&from) {
                for entry in std::fs::read_dir(&from).into_iter().flatten().flatten() {
                    let _ = std::fs::copy(entry.path(), to.join(entry.file_name()));
                }
            }
            let escaped = leaked();
            clean();
            escaped
        },
    );
}

fn archive() -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for name in ["new", "deep/new"] {
        let mut header = tar::Header::new_gnu();
        header.set_mode(0o644);
        header.set_size(1);
        builder
            .append_data(&mut header, name, b"x".as_slice())
            .unwrap();
    }
    builder.into_inner().unwrap()
}

#[test]
fn r07_unpacking_into_a_directory_that_becomes_a_link() {
    let (place, real) = directory_race();
    let archive = archive();
    let (named, leaked) = (place.inside.join("dir"), place.outside.join("new"));
    let clean = || {
        for name in ["new", "deep"] {
            let _ = real.remove_all(&rel(name));
        }
    };
    assert_race(
        &place,
        swap(&place),
        |n| {
            let how = match n % 2 {
                0 => Placement::Whole,
                _ => Placement::Straight,
            };
            let mut bytes = archive.as_slice();
            let source = Source::Tar(&mut bytes);
            let limits = UnpackLimits::FILES;
            let under = rel("dir");
            let done = files::upload(&place.dir, Some(&under), source, how, Parents::Make, limits);

            clean();
            match (leaked.exists() || place.outside.join("deep").exists(), done) {
                (true, _) => Came::Out,
                (false, Ok(_)) => Came::There,
                (false, Err(_)) => Came::Nowhere,
            }
        },
        |_| {
            if seems_inside(&place, &named) {
                for entry in tar::Archive::new(archive.as_slice()).entries().unwrap() {
                    let mut entry = entry.unwrap();
                    let path = named.join(entry.path().unwrap());
                    if let Ok(mut file) = std::fs::File::create(path) {
                        let _ = std::io::copy(&mut entry, &mut file);
                    }
                }
            }
            clean();
            leaked.exists()
        },
    );
}

fn holds_canary(bytes: &[u8]) -> bool {
    memchr::memmem::find(bytes, CANARY).is_some()
}

#[test]
fn r08_packing_a_tree_with_a_directory_that_becomes_a_link() {
    let (place, real) = directory_race();
    real.write(&rel("canary"), b"inside", 0o644).unwrap();
    let named = place.inside.join("dir");
    assert_race(
        &place,
        swap(&place),
        |n| {
            let mut bytes = Vec::new();
            let under = rel("dir");
            let under = (n % 2 == 0).then_some(&under);
            let limits = DownloadLimits::default();
            let done = files::download(&place.dir, under, Format::Tar, limits, &mut bytes);
            match (holds_canary(&bytes), done) {
                (true, _) => Came::Out,
                (false, Ok(_)) => Came::There,
                (false, Err(_)) => Came::Nowhere,
            }
        },
        |_| {
            let mut builder = tar::Builder::new(Vec::new());
            if is_real_dir(&named) {
                let _ = builder.append_path_with_name(named.join("canary"), "canary");
            }
            holds_canary(&builder.into_inner().unwrap())
        },
    );
}

#[test]
fn r09_making_directories_in_a_directory_that_becomes_a_link() {
    let (place, real) = directory_race();
    let (named, leaked) = (place.inside.join("dir/a"), place.outside.join("a"));
    assert_race(
        &place,
        swap(&place),
        |_| {
            let _ = files::mkdir(&place.dir, &rel("dir/a/b/c"), Parents::Make);
            let _ = real.remove_all(&rel("a"));
            Came::out_if(leaked.exists())
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
fn r10_searching_text_in_a_directory_that_becomes_a_link() {
    let (place, real) = directory_race();
    real.write(&rel("canary"), b"canary inside", 0o644).unwrap();
    let named = place.inside.join("dir/canary");
    let needle = Needle::Literal("canary".to_owned());
    assert_race(
        &place,
        swap(&place),
        |n| {
            let under = rel("dir");
            let under = (n % 2 == 0).then_some(&under);
            let options = GrepOptions::default();
            let Ok(found) = files::grep(&place.dir, under, &needle, &options) else {
                return Came::Nowhere;
            };
            let out = |hit: &files::Found| hit.line.text.as_bytes() == CANARY;
            match (found.found.iter().any(out), found.found.is_empty()) {
                (true, _) => Came::Out,
                (false, false) => Came::There,
                (false, true) => Came::Nowhere,
            }
        },
        |_| {
            is_real_dir(named.parent().unwrap())
                && std::fs::read(&named).is_ok_and(|text| text == CANARY)
        },
    );
}

#[test]
fn r11_walking_a_tree_with_a_directory_that_becomes_a_link() {
    let (place, _real) = directory_race();
    let named = place.inside.join("dir");
    assert_race(
        &place,
        swap(&place),
        |_| {
            let options = GlobOptions::default();
            let Ok(found) = files::glob(&place.dir, None, "**", &options) else {
                return Came::Nowhere;
            };
            let has = |name: &[u8]| {
                found
                    .paths
                    .iter()
                    .any(|(path, _)| path.as_bytes().ends_with(name))
            };
            match (has(b"canary"), has(b"inner")) {
                (true, _) => Came::Out,
                (false, true) => Came::There,
                (false, false) => Came::Nowhere,
            }
        },
        |_| is_real_dir(&named) && named.join("canary").exists(),
    );
}

/// The file itself becomes a link, between the reading and the writing too.
#[test]
fn r12_putting_back_a_file_that_becomes_a_link() {
    let place = place_in_memory();
    place.file("file", b"host inside");
    let canary = place.outside.join("canary");
    place.link(&canary, "link");
    let named = place.inside.join("file");
    let changed = || std::fs::read(&canary).unwrap() != CANARY;
    let restore = || {
        let _ = std::os::unix::fs::symlink(&canary, place.inside.join("again"));
        let _ = std::fs::rename(place.inside.join("again"), place.inside.join("link"));
    };
    assert_race(
        &place,
        || {
            exchange(&place.dir, "file", "link");
            // Who wins replaces the link, so it is put back for the next attempt.
            restore();
        },
        |n| {
            let path = rel("file");
            match n % 3 {
                0 => {
                    let once = Occurrence::Once;
                    let _ = files::replace(&place.dir, &path, b"host", b"evil", once, None, 100);
                }
                1 => {
                    let condition = match files::stat(&place.dir, Some(&path)) {
                        Ok(stat) => Condition::Matches(stat.etag),
                        Err(_) => Condition::Always,
                    };
                    let options = WriteOptions {
                        condition,
                        ..WriteOptions::default()
                    };
                    let _ = files::write(&place.dir, &path, &mut b"evil".as_slice(), &options);
                }
                _ => {
                    let options = WriteOptions::default();
                    let text = b"host inside";
                    let _ = files::write(&place.dir, &path, &mut text.as_slice(), &options);
                }
            }
            let read = files::read(&place.dir, &path, Range::Whole, 100);
            Came::out_if(changed() || read.is_ok_and(|contents| contents.bytes == CANARY))
        },
        |_| {
            if is_real_file(&named) {
                let _ = std::fs::write(&named, b"evil");
            } else {
                let _ = std::fs::write(place.inside.join("plain"), b"x");
                let _ = std::fs::rename(place.inside.join("plain"), &named);
            }
            changed()
        },
    );
}

/// `..` from a directory that was moved up meanwhile leads above the start.
#[test]
fn r13_going_up_from_a_directory_that_is_moved_up() {
    let place = place_in_memory();
    place.file("a/b/inner", b"inside");
    place.file("canary", b"inside");
    // Beside the workspace, where two steps up from `b` lead once it lies at the top.
    let above = place.inside.parent().unwrap().join("canary");
    std::fs::write(&above, CANARY).unwrap();
    let move_it = || {
        let flags = RenameFlags::NOREPLACE;
        let _ = renameat_with(&place.dir, "a/b", &place.dir, "b", flags);
        let _ = renameat_with(&place.dir, "b", &place.dir, "a/b", flags);
    };
    let directory = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    assert_race(
        &place,
        move_it,
        |_| {
            let path = rel("a/b/../../canary");
            match files::read(&place.dir, &path, Range::Whole, 100) {
                Ok(contents) => Came::out_if(contents.bytes == CANARY),
                Err(_) => Came::Nowhere,
            }
        },
        |_| {
            // Part by part, counting that no `..` leads above the start.
            let walk = || -> rustix::io::Result<Vec<u8>> {
                let mut at = openat(&place.dir, "a", directory, Mode::empty())?;
                for part in ["b", "..", ".."] {
                    at = openat(&at, part, directory, Mode::empty())?;
                }
                let flags = OFlags::RDONLY | OFlags::CLOEXEC;
                let file = openat(&at, "canary", flags, Mode::empty())?;
                let mut text = vec![0; 100];
                let length = rustix::io::read(&file, &mut text)?;
                text.truncate(length);
                Ok(text)
            };
            walk().is_ok_and(|text| text == CANARY)
        },
    );
}
