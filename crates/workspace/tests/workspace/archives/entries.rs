//! What ordinary and odd entries become.

use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;

use glovebox_model::{Code, Stage};
use glovebox_workspace::archive::{Purpose, Refusal, UnpackLimits, unpack_new};
use glovebox_workspace::{PathError, RelPath};

use crate::archives::ground::{ground, tree};
use crate::archives::tar::{Head, Tar};

#[test]
fn files_directories_and_links_come_out_as_they_went_in() {
    let ground = ground();
    let archive = Tar::new()
        .dir("./")
        .dir("./d/")
        .mode(b'0', "./d/run", 0o755, "#!")
        .mode(b'0', "d/secret", 0o200, "s")
        .link("d/in", "../top")
        .file("top", "text")
        .hard("d/same", "top")
        .file("made/on/the/way", "x")
        .end();
    let unpacked = ground.unpack(&archive, Purpose::Files).unwrap();
    assert_eq!(
        (unpacked.entries, unpacked.files, unpacked.bytes),
        (8, 4, 8)
    );
    assert_eq!(ground.text("new/d/in"), "text");
    assert_eq!(ground.text("new/made/on/the/way"), "x");
    assert_eq!(ground.mode("new/d/run"), 0o755);
    assert_eq!(ground.mode("new"), 0o755);
    // Its owner can read it, or it could not be collected.
    assert_eq!(ground.mode("new/d/secret"), 0o600);
    let inode = |name| std::fs::metadata(ground.path(name)).unwrap().ino();
    assert_eq!(inode("new/d/same"), inode("new/top"));
    let modified = std::fs::metadata(ground.path("new/top")).unwrap().mtime();
    assert_eq!(modified, 0o14000000000);
}

#[test]
fn all_three_compressions_give_the_same() {
    let plain = Tar::new().file("f", "text").end();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut gzip, &plain).unwrap();
    let gzip = gzip.finish().unwrap();
    let mut zstd = zstd::Encoder::new(Vec::new(), 1).unwrap();
    zstd.include_checksum(true).unwrap();
    std::io::Write::write_all(&mut zstd, &plain).unwrap();
    let zstd = zstd.finish().unwrap();
    for archive in [plain, gzip.clone(), zstd.clone()] {
        let ground = ground();
        ground.unpack(&archive, Purpose::Files).unwrap();
        assert_eq!(ground.text("new/f"), "text");
    }
    let ground = ground();
    for (name, archive) in [("gzip", gzip), ("zstd", zstd)] {
        // Cut off, and with a changed byte.
        let cut = &archive[..archive.len() / 2];
        assert_eq!(ground.refusal(cut), Refusal::Compression, "{name}");
        let mut changed = archive.clone();
        changed[archive.len() / 2] ^= 0x55;
        let refusal = ground.refusal(&changed);
        assert!(
            matches!(
                refusal,
                Refusal::Compression | Refusal::Header | Refusal::NotAnArchive
            ),
            "{name}: {refusal:?}"
        );
    }
}

#[test]
fn what_is_no_archive_is_refused() {
    let ground = ground();
    let other = [0x42; 2000];
    for bytes in [
        b"".as_slice(),
        b"hello",
        &other,
        b"PK\x03\x04",
        b"BZh9",
        &[0xfd, b'7'],
    ] {
        assert_eq!(ground.refusal(bytes), Refusal::NotAnArchive, "{bytes:?}");
    }
}

#[test]
fn an_archive_without_its_end_was_cut_off() {
    let ground = ground();
    let archive = Tar::new().file("a", "text").file("b", "more").cut();
    assert_eq!(ground.refusal(&archive), Refusal::Truncated);
    for length in [600, 1023, 1025] {
        assert_eq!(ground.refusal(&archive[..length]), Refusal::Truncated);
    }
}

#[test]
fn a_second_entry_of_the_same_name_replaces_the_first() {
    let ground = ground();
    let archive = Tar::new()
        .file("f", "first")
        .hard("kept", "f")
        .file("f", "second")
        .link("l", "f")
        .file("l", "no link any more")
        .dir("d")
        .file("d", "a file now")
        .file("e", "")
        .dir("e")
        .file("e/f", "")
        .end();
    ground.unpack(&archive, Purpose::Files).unwrap();
    assert_eq!(ground.text("new/kept"), "first");
    assert_eq!(ground.text("new/f"), "second");
    assert_eq!(ground.text("new/l"), "no link any more");
    assert_eq!(ground.text("new/d"), "a file now");
}

#[test]
fn a_file_does_not_replace_a_directory_that_holds_something() {
    let ground = ground();
    let archive = Tar::new().file("d/f", "").file("d", "").end();
    assert_eq!(ground.refusal(&archive), Refusal::Occupied);
    ground.unpack(&archive, Purpose::Image).unwrap();
    assert!(ground.path("new/d").is_file());
}

#[test]
fn a_link_is_never_a_directory_for_other_entries() {
    let ground = ground();
    let through = Tar::new().dir("d").link("l", "d").file("l/f", "x");
    assert_eq!(ground.refusal(&through.clone().end()), Refusal::ThroughLink);
    let file = Tar::new().file("f", "").file("f/g", "").end();
    assert_eq!(ground.refusal(&file), Refusal::ParentNotADirectory);
    // In an image they are, as for every program that runs in it.
    ground.unpack(&through.end(), Purpose::Image).unwrap();
    assert_eq!(ground.text("new/d/f"), "x");
}

#[test]
fn links_of_an_image_are_followed_with_its_top_as_the_root() {
    let ground = ground();
    let archive = Tar::new()
        .dir("etc")
        .link("absolute", "/etc")
        .link("climbing", "../../../../etc")
        .file("absolute/a", "a")
        .file("climbing/b", "b")
        .hard("c", "climbing/b")
        .end();
    ground.unpack(&archive, Purpose::Image).unwrap();
    assert_eq!(ground.text("new/etc/a"), "a");
    assert_eq!(ground.text("new/etc/b"), "b");
    assert_eq!(ground.text("new/c"), "b");
}

#[test]
fn a_loop_of_links_is_refused() {
    let ground = ground();
    let archive = Tar::new().link("a", "b").link("b", "a").file("a/f", "");
    let refused = ground.unpack(&archive.end(), Purpose::Image);
    assert_eq!(*refused.unwrap_err().why(), Refusal::ThroughLink);
}

#[test]
fn hard_links_name_a_file_that_came_before() {
    let ground = ground();
    let cases = [
        (
            Tar::new().hard("h", "later").file("later", ""),
            Refusal::HardLinkMissing,
        ),
        (Tar::new().hard("h", "no/such"), Refusal::HardLinkMissing),
        (
            Tar::new().dir("d").hard("h", "d"),
            Refusal::HardLinkNotAFile,
        ),
        (Tar::new().hard("h", "."), Refusal::HardLinkNotAFile),
        (
            Tar::new().file("f", "").link("l", "f").hard("h", "l"),
            Refusal::HardLinkNotAFile,
        ),
        (
            Tar::new().file("d/f", "").link("l", "d").hard("h", "l/f"),
            Refusal::ThroughLink,
        ),
        (Tar::new().hard("h", ""), Refusal::HardLinkMissing),
    ];
    for (archive, refusal) in cases {
        assert_eq!(ground.refusal(&archive.end()), refusal);
    }
    // To itself: nothing happens to it.
    let itself = Tar::new().file("f", "text").hard("f", "f").end();
    ground.unpack(&itself, Purpose::Files).unwrap();
    assert_eq!(ground.text("new/f"), "text");
}

#[test]
fn a_relative_link_cannot_be_carried_to_another_depth() {
    let ground = ground();
    let archive = Tar::new()
        .link("a/b/up", "../..")
        .hard("up", "a/b/up")
        .end();
    assert_eq!(ground.refusal(&archive), Refusal::HardLinkNotAFile);
}

#[test]
fn names_of_any_bytes_are_kept() {
    let ground = ground();
    let name = b"caf\xe9 \n\x1b[31m";
    let archive = Tar::new().raw(&Head::new(b'0', name), b"x").end();
    ground.unpack(&archive, Purpose::Files).unwrap();
    let names: Vec<_> = tree(&ground.path("new")).into_keys().collect();
    assert_eq!(names[0].as_os_str().as_bytes(), name);
}

#[test]
fn names_that_are_none_are_refused() {
    let ground = ground();
    for (name, error) in [
        ("", PathError::Empty),
        (".", PathError::Itself),
        ("././", PathError::Itself),
    ] {
        let archive = Tar::new().file(name, "x").end();
        let refusal = ground.refusal(&archive);
        // An old archive's directory ends in a slash and has no contents.
        let expected = match name.ends_with('/') {
            true => Refusal::ContentsWithoutFile,
            false => Refusal::Path(error),
        };
        assert_eq!(refusal, expected, "{name:?}");
    }
    let nul = Tar::new().pax(&[("path", b"a\0b")]).file("f", "").end();
    assert_eq!(ground.refusal(&nul), Refusal::Path(PathError::Nul));
    for target in ["", "a\0b"] {
        let linked = Tar::new()
            .pax(&[("linkpath", target.as_bytes())])
            .link("l", "x")
            .end();
        assert_eq!(ground.refusal(&linked), Refusal::LinkText);
    }
}

#[test]
fn a_target_that_is_there_is_not_touched() {
    let ground = ground();
    std::fs::create_dir(ground.path("new")).unwrap();
    std::fs::write(ground.path("new/mine"), "mine").unwrap();
    let archive = Tar::new().file("f", "").end();
    let path = RelPath::new("new").unwrap();
    let limits = UnpackLimits::FILES;
    let refused = unpack_new(
        archive.as_slice(),
        &ground.dir,
        &path,
        Purpose::Files,
        limits,
    );
    assert_eq!(refused.unwrap_err().at(Stage::Open).code, Code::Conflict);
    let names: Vec<_> = tree(&ground.inside()).into_keys().collect();
    assert_eq!(names.len(), 2, "{names:?}");
}

#[test]
fn a_source_that_fails_leaves_nothing() {
    struct Failing;
    impl std::io::Read for Failing {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            Err(std::io::Error::other("the line is dead"))
        }
    }
    let ground = ground();
    let start = Tar::new().file("f", "text").cut();
    let source = std::io::Read::chain(start.as_slice(), Failing);
    let path = RelPath::new("new").unwrap();
    let refused = unpack_new(
        source,
        &ground.dir,
        &path,
        Purpose::Files,
        UnpackLimits::FILES,
    );
    let error = refused.unwrap_err().at(Stage::Open);
    assert!(error.message.contains("the line is dead"), "{error}");
    assert!(tree(&ground.inside()).is_empty());
}
