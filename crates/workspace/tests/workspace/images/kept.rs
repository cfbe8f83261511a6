//! What is kept, by whom, and what is left when somebody dies.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

use glovebox_model::Code;
use glovebox_workspace::RelPath;
use glovebox_workspace::image::{ImageFormat, ImageSource};

use crate::archives::tar::Tar;
use crate::images::made::{Oci, Packing, layers};
use crate::images::state::{name, open, state};

fn root(text: &str) -> Vec<u8> {
    Tar::new().file("bin/f", text).end()
}

#[test]
fn names_are_listed_moved_and_removed() {
    let state = state();
    let one = state.import("a", &root("one")).unwrap();
    let same = state.import("b", &root("one")).unwrap();
    assert_eq!(state.kept(), 1);
    let two = state.import("a", &root("two")).unwrap();
    assert_eq!(state.images.ls().unwrap(), [two.clone(), same.clone()]);
    assert_eq!(state.kept(), 2);
    let removed = state.images.rm(&name("b")).unwrap();
    assert_eq!(removed.digest, one.digest);
    assert!(removed.files_removed);
    assert_eq!(state.kept(), 1);
    state.import("c", &root("two")).unwrap();
    assert!(!state.images.rm(&name("c")).unwrap().files_removed);
    assert_eq!(state.text(&two, "bin/f"), "two");
    assert_eq!(
        state.images.rm(&name("b")).unwrap_err().code,
        Code::NotFound
    );
    assert_eq!(
        state.images.hold(&name("b")).unwrap_err().code,
        Code::NotFound
    );
    // As another process sees it.
    let again = open(&state.path.join("state")).unwrap();
    assert_eq!(again.ls().unwrap(), [two]);
}

#[test]
fn an_image_in_use_stays() {
    let state = state();
    state.import("a", &root("one")).unwrap();
    let held = state.images.hold(&name("a")).unwrap();
    let second = state.images.hold(&name("a")).unwrap();
    let path = RelPath::new("bin/f").unwrap();
    assert_eq!(held.rootfs().read(&path, 100).unwrap(), b"one");
    let other = open(&state.path.join("state")).unwrap();
    assert_eq!(other.rm(&name("a")).unwrap_err().code, Code::Busy);
    drop(held);
    assert_eq!(other.rm(&name("a")).unwrap_err().code, Code::Busy);
    assert_eq!(other.ls().unwrap().len(), 1);
    // Its name may go elsewhere; the files stay until nobody uses them.
    state.import("a", &root("two")).unwrap();
    assert_eq!(state.kept(), 2);
    assert_eq!(second.rootfs().read(&path, 100).unwrap(), b"one");
    drop(second);
    open(&state.path.join("state")).unwrap();
    assert_eq!(state.kept(), 1);
    other.rm(&name("a")).unwrap();
    assert_eq!(state.kept(), 0);
}

/// Copies what a process has on disk in the middle of an import: what is left when it dies, since
/// a copy has no owner who holds a lock.
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &target),
            false => drop(std::fs::copy(entry.path(), target).unwrap()),
        }
    }
}

#[test]
fn a_dead_import_is_swept_away_and_a_living_one_is_not() {
    let state = state();
    state.import("before", &root("before")).unwrap();
    let (mut ours, theirs) = UnixStream::pair().unwrap();
    let archive = Tar::new()
        .file("bin/first", "1")
        .file("bin/second", vec![b'x'; 200_000])
        .end();
    std::thread::scope(|scope| {
        let images = &state.images;
        let importing = scope.spawn(move || {
            let source = ImageSource::Archive(Box::new(theirs));
            images.import(source, &name("slow"), ImageFormat::Auto, &mut |_| ())
        });
        // More than is looked at in advance, so that the first file is there once this is taken.
        let (start, rest) = archive.split_at(150_000);
        ours.write_all(start).unwrap();
        let tmp = state.dir().join("tmp");
        let begun = || {
            let mut entries = std::fs::read_dir(&tmp).unwrap();
            entries.any(|entry| {
                entry
                    .unwrap()
                    .path()
                    .join("image/rootfs/bin/second")
                    .exists()
            })
        };
        while !begun() {
            assert!(!importing.is_finished(), "it ended too early");
            std::thread::yield_now();
        }
        let dead = state.path.join("dead");
        std::fs::create_dir(&dead).unwrap();
        copy(&state.dir(), &dead.join("images"));
        let dead_images = open(&dead).unwrap();
        assert_eq!(
            std::fs::read_dir(dead.join("images/tmp")).unwrap().count(),
            0
        );
        assert_eq!(dead_images.ls().unwrap().len(), 1);
        // Others come and go meanwhile.
        let other = open(&state.path.join("state")).unwrap();
        assert_eq!(std::fs::read_dir(&tmp).unwrap().count(), 1);
        let source = ImageSource::Archive(Box::new(std::io::Cursor::new(root("other"))));
        other
            .import(source, &name("other"), ImageFormat::Auto, &mut |_| ())
            .unwrap();
        ours.write_all(rest).unwrap();
        drop(ours);
        importing.join().unwrap().unwrap();
    });
    let names: Vec<String> = state
        .images
        .ls()
        .unwrap()
        .iter()
        .map(|it| it.name.to_string())
        .collect();
    assert_eq!(names, ["before", "other", "slow"]);
}

#[test]
fn an_image_that_got_its_place_and_no_name_is_removed() {
    let state = state();
    let record = state.import("a", &root("one")).unwrap();
    // Killed between the two steps.
    std::fs::remove_file(state.dir().join("names.json")).unwrap();
    let images = open(&state.path.join("state")).unwrap();
    assert!(images.ls().unwrap().is_empty());
    assert!(!state.rootfs(&record).exists());
}

#[test]
fn a_list_that_cannot_be_read_removes_nothing() {
    let state = state();
    let record = state.import("a", &root("one")).unwrap();
    let list = state.dir().join("names.json");
    for text in [
        "",
        "{",
        "{\"version\":2,\"images\":{}}",
        "{\"version\":1}",
        "[]",
    ] {
        std::fs::write(&list, text).unwrap();
        let error = open(&state.path.join("state")).unwrap_err();
        assert_eq!(error.code, Code::StoreUnavailable, "{text}");
        assert!(state.rootfs(&record).exists(), "{text}");
    }
}

#[test]
fn many_imports_at_once_all_arrive() {
    let state = state();
    let archive = Oci::new(&layers(), Packing::Gzip).archive();
    std::thread::scope(|scope| {
        for number in 0..8 {
            let (state, archive) = (&state, &archive);
            scope.spawn(move || {
                let images = open(&state.path.join("state")).unwrap();
                let own = root(&number.to_string());
                // Every second one is the same image.
                let bytes = if number % 2 == 0 { archive } else { &own };
                let source = ImageSource::Archive(Box::new(bytes.as_slice()));
                let as_name = name(&format!("image-{number}"));
                images
                    .import(source, &as_name, ImageFormat::Auto, &mut |_| ())
                    .unwrap();
                images.hold(&as_name).unwrap();
            });
        }
    });
    assert_eq!(state.images.ls().unwrap().len(), 8);
    assert_eq!(state.kept(), 5);
}

#[test]
fn whoever_opens_the_images_does_not_stumble_over_those_who_leave() {
    let state = state();
    let path = state.path.join("state");
    let over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for number in 0..3 {
            let (path, over) = (&path, &over);
            scope.spawn(move || {
                let images = open(path).unwrap();
                for round in 0..40 {
                    let bytes = root(&format!("{number}-{round}"));
                    let source = ImageSource::Archive(Box::new(bytes.as_slice()));
                    let as_name = name(&format!("image-{number}"));
                    images
                        .import(source, &as_name, ImageFormat::Auto, &mut |_| ())
                        .unwrap();
                }
                over.store(true, std::sync::atomic::Ordering::Relaxed);
            });
        }
        while !over.load(std::sync::atomic::Ordering::Relaxed) {
            open(&path).unwrap();
        }
    });
    assert_eq!(state.kept(), 3);
}

#[test]
fn a_source_that_fails_leaves_nothing() {
    let state = state();
    let archive = Oci::new(&layers(), Packing::Gzip).archive();
    for length in [0, 100, 600, archive.len() / 2, archive.len() - 1024] {
        let cut = archive[..length].to_vec();
        let source = ImageSource::Archive(Box::new(std::io::Cursor::new(cut).take(u64::MAX)));
        let imported = state
            .images
            .import(source, &name("cut"), ImageFormat::Auto, &mut |_| ());
        assert!(imported.is_err(), "{length}");
    }
    state.refusal(&archive[..archive.len() / 3]);
    // At the border of two entries, where only the missing end tells.
    state.refusal(&Tar::new().file("bin/f", "").cut());
    assert_eq!(state.kept(), 0);
}

/// Unmounts when dropped, also when the test fails.
struct SmallDisk<'p>(&'p Path);

impl Drop for SmallDisk<'_> {
    fn drop(&mut self) {
        let _ = rustix::mount::unmount(self.0, rustix::mount::UnmountFlags::DETACH);
    }
}

#[test]
fn a_full_disk_leaves_nothing_and_what_was_there() {
    use rustix::mount::{MountFlags, mount};
    let tmp = tempfile::tempdir().unwrap();
    let disk = tmp.path().join("disk");
    std::fs::create_dir(&disk).unwrap();
    let options = c"size=1m,mode=700";
    if mount(
        "glovebox-test",
        &disk,
        "tmpfs",
        MountFlags::empty(),
        options,
    )
    .is_err()
    {
        return; // Needs root.
    }
    let _disk = SmallDisk(&disk);
    let images = open(&disk).unwrap();
    let import = |as_name: &str, archive: Vec<u8>| {
        let source = ImageSource::Archive(Box::new(std::io::Cursor::new(archive)));
        images.import(source, &name(as_name), ImageFormat::Auto, &mut |_| ())
    };
    let small = import("small", root("small")).unwrap();
    let large = vec![b'x'; 2 << 20];
    let streamed = Tar::new().file("bin/large", &large).end();
    let copied = Tar::new().file("blobs/large", &large).end();
    for archive in [streamed, copied] {
        assert_eq!(import("large", archive).unwrap_err().code, Code::DiskFull);
        assert_eq!(
            std::fs::read_dir(disk.join("images/tmp")).unwrap().count(),
            0
        );
        assert_eq!(images.ls().unwrap(), std::slice::from_ref(&small));
    }
    import("again", root("again")).unwrap();
}
