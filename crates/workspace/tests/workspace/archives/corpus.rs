//! The archive corpus, row by row, as far as it is about tar. Z025 is policy's: this crate knows
//! no protected names.

use glovebox_workspace::PathError;
use glovebox_workspace::archive::{Limit, Purpose, Refusal, UnpackLimits};

use crate::archives::ground::{ground, tree};
use crate::archives::tar::{Head, Tar};

#[test]
fn z001_an_entry_that_climbs_is_refused() {
    let ground = ground();
    for name in ["../evil", "a/../../evil", "a/../evil", "..", "a/.."] {
        let archive = Tar::new().file(name, "evil").end();
        assert_eq!(ground.refusal(&archive), Refusal::Climbs, "{name}");
        let image = ground.unpack(&archive, Purpose::Image);
        assert_eq!(*image.unwrap_err().why(), Refusal::Climbs, "{name}");
    }
}

#[test]
fn z002_an_absolute_entry_is_refused_and_in_an_image_stays_inside() {
    let ground = ground();
    let target = format!("{}/evil", ground.outside());
    let archive = Tar::new().file(&target, "evil").end();
    assert_eq!(ground.refusal(&archive), Refusal::Path(PathError::Absolute));
    ground.unpack(&archive, Purpose::Image).unwrap();
    assert_eq!(ground.text(&format!("new{target}")), "evil");
}

#[test]
fn z003_a_link_to_outside_is_refused_and_never_written_through() {
    let ground = ground();
    let archive = Tar::new()
        .link("x", &ground.outside())
        .file("x/evil", "evil")
        .end();
    assert_eq!(ground.refusal(&archive), Refusal::LinkLeaves);
    // In an image the link may stay; nothing of it leads to the host.
    let image = ground.unpack(&archive, Purpose::Image);
    assert_eq!(*image.unwrap_err().why(), Refusal::DanglingLink);
}

/// The control: what a simple program does with the same archive.
#[test]
fn z003_the_same_archive_escapes_from_a_simple_unpacker() {
    let ground = ground();
    let outside = ground.outside();
    let archive = Tar::new().link("x", &outside).file("x/evil", "evil").end();
    for entry in tar::Archive::new(archive.as_slice()).entries().unwrap() {
        let mut entry = entry.unwrap();
        let path = ground.inside().join(entry.path().unwrap());
        match entry.link_name().unwrap() {
            Some(target) => std::os::unix::fs::symlink(target, path).unwrap(),
            None => drop(std::io::copy(
                &mut entry,
                &mut std::fs::File::create(path).unwrap(),
            )),
        }
    }
    assert!(std::path::Path::new(&outside).join("evil").exists());
}

#[test]
fn z004_a_link_above_the_top_is_refused() {
    let ground = ground();
    for target in ["..", "../..", "./..", "a/..", "a/../../b", "../inside"] {
        let archive = Tar::new().link("x", target).file("x/evil", "evil").end();
        assert_eq!(ground.refusal(&archive), Refusal::LinkLeaves, "{target}");
    }
}

#[test]
fn z005_a_chain_of_links_leads_nowhere() {
    let ground = ground();
    let archive = Tar::new()
        .link("a", "b")
        .link("b", "..")
        .file("a/evil", "evil")
        .end();
    assert_eq!(ground.refusal(&archive), Refusal::LinkLeaves);
    // Each link stays inside by its text, the two together do not.
    let archive = Tar::new()
        .dir("d/e/")
        .link("d/e/up", "../../top")
        .dir("top")
        .link("d/e/out", "up/../..")
        .end();
    assert_eq!(ground.refusal(&archive), Refusal::LinkLeaves);
}

#[test]
fn z006_a_hard_link_to_outside_is_refused() {
    let ground = ground();
    let canary = format!("{}/canary", ground.outside());
    let archive = |target: &str| Tar::new().hard("h", target).file("h", "evil").end();
    for target in [&canary, "../../../outside/canary", "d/../../x"] {
        let refusal = ground.refusal(&archive(target));
        assert_eq!(refusal, Refusal::HardLinkLeaves, "{target}");
    }
    let image = ground.unpack(&archive(&canary), Purpose::Image);
    assert_eq!(*image.unwrap_err().why(), Refusal::HardLinkMissing);
}

#[test]
fn z008_a_link_of_an_earlier_archive_is_not_written_through() {
    let ground = ground();
    // Planted by whoever worked there, so it may lead anywhere.
    std::os::unix::fs::symlink(ground.outside(), ground.path("x")).unwrap();
    let archive = Tar::new().file("x/canary", "evil").end();
    let refused = ground.over(&archive, Purpose::Files).unwrap_err();
    assert_eq!(*refused.why(), Refusal::ThroughLink);
    // A link to a file is replaced, what it leads to stays.
    let canary = format!("{}/canary", ground.outside());
    std::os::unix::fs::symlink(&canary, ground.path("y")).unwrap();
    let archive = Tar::new().file("y", "new").end();
    ground.over(&archive, Purpose::Files).unwrap();
    assert_eq!(ground.text("y"), "new");
    assert!(!ground.path("y").is_symlink());
}

#[test]
fn z008_a_hard_link_of_an_earlier_archive_is_not_written_through() {
    let ground = ground();
    std::fs::hard_link(format!("{}/canary", ground.outside()), ground.path("h")).unwrap();
    let archive = Tar::new().mode(b'0', "h", 0o777, "new").end();
    ground.over(&archive, Purpose::Files).unwrap();
    assert_eq!(ground.text("h"), "new");
}

#[test]
fn z011_special_files_are_refused_and_left_out_of_an_image() {
    let ground = ground();
    for (kind, what) in [
        (b'3', "a character device"),
        (b'4', "a block device"),
        (b'6', "a FIFO"),
    ] {
        let archive = Tar::new().mode(kind, "node", 0o666, "").file("f", "").end();
        assert_eq!(ground.refusal(&archive), Refusal::Special(what));
        let unpacked = ground.unpack(&archive, Purpose::Image).unwrap();
        assert_eq!((unpacked.skipped, unpacked.files), (1, 1));
        let names: Vec<_> = tree(&ground.path("new")).into_keys().collect();
        assert_eq!(names, [std::path::Path::new("f")]);
        std::fs::remove_dir_all(ground.path("new")).unwrap();
    }
}

#[test]
fn z012_set_id_bits_and_attributes_are_stripped() {
    let ground = ground();
    let archive = Tar::new()
        .pax(&[("SCHILY.xattr.security.capability", b"\x01\n\x02")])
        .mode(b'0', "suid", 0o6755, "x")
        .mode(b'5', "sgid/", 0o7777, "")
        .end();
    for purpose in [Purpose::Files, Purpose::Image] {
        ground.unpack(&archive, purpose).unwrap();
        assert_eq!(ground.mode("new/suid"), 0o755);
        let open = if purpose == Purpose::Files {
            0o777
        } else {
            0o755
        };
        assert_eq!(ground.mode("new/sgid"), open);
        let mut names = [0; 256];
        let listed = rustix::fs::listxattr(ground.path("new/suid"), &mut names).unwrap();
        assert_eq!(listed, 0, "it has attributes");
        std::fs::remove_dir_all(ground.path("new")).unwrap();
    }
}

#[test]
fn z013_two_sizes_for_one_entry_are_refused() {
    let ground = ground();
    let smuggled = Tar::new().file("smuggled-evil", "evil").end();
    let archive = Tar::new()
        .pax(&[("size", b"1024")])
        .file("outer.bin", "")
        .cut();
    let archive = [archive, smuggled].concat();
    assert_eq!(ground.refusal(&archive), Refusal::Disagree("size"));
    let same = Tar::new().pax(&[("size", b"4")]).file("f", "four").end();
    ground.unpack(&same, Purpose::Files).unwrap();
}

#[test]
fn z015_sizes_that_are_none_are_refused() {
    let ground = ground();
    let binary = |low: u64, high: [u8; 4]| {
        let mut field = [0; 12];
        field[..4].copy_from_slice(&high);
        field[4..].copy_from_slice(&low.to_be_bytes());
        field
    };
    for field in [
        [0xff; 12],
        binary(5, [0xff, 0xff, 0xff, 0xff]),
        // The low half alone looks harmless.
        binary(5, [0x80, 0, 0, 1]),
        binary(u64::MAX, [0x80, 0, 0, 0]),
        binary(i64::MAX as u64, [0x80, 0, 0, 0]),
        *b"-0000000001\0",
        *b"0000000008 \0",
        [0; 12],
    ] {
        let head = Head {
            size: Some(field),
            ..Head::new(b'0', b"neg")
        };
        let archive = Tar::new().raw(&head, b"").end();
        assert_eq!(ground.refusal(&archive), Refusal::Size, "{field:?}");
    }
}

#[test]
fn z015_a_large_size_is_refused_before_anything_is_read() {
    let ground = ground();
    let mut field = [0; 12];
    field[0] = 0x80;
    field[4..].copy_from_slice(&(1u64 << 62).to_be_bytes());
    let head = Head {
        size: Some(field),
        ..Head::new(b'0', b"huge")
    };
    let archive = Tar::new().raw(&head, b"").end();
    let cap = UnpackLimits::FILES.file_bytes;
    assert_eq!(
        ground.refusal(&archive),
        Refusal::Limit(Limit::FileBytes(cap))
    );
}

#[test]
fn z015_sparse_files_are_refused_in_both_dialects() {
    let ground = ground();
    let old = Tar::new().mode(b'S', "sparse", 0o644, "").end();
    assert_eq!(ground.refusal(&old), Refusal::Sparse);
    let realsize = b"1125899906842624".as_slice();
    let new = Tar::new()
        .pax(&[("GNU.sparse.realsize", realsize)])
        .file("sparse", "x")
        .end();
    assert_eq!(ground.refusal(&new), Refusal::Sparse);
}

#[test]
fn z024_a_million_entries_stop_at_the_cap() {
    let ground = ground();
    let mut archive = Tar::new();
    for number in 0..1001 {
        archive = archive.file(&format!("f{number}"), "");
    }
    let limits = UnpackLimits {
        entries: 1000,
        ..UnpackLimits::FILES
    };
    let refused = ground.unpack_within(&archive.end(), Purpose::Files, limits);
    let refused = refused.unwrap_err();
    assert_eq!(*refused.why(), Refusal::Limit(Limit::Entries(1000)));
    assert_eq!(refused.entry(), Some("f1000"));
}
