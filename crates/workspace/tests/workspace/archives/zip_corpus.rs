//! The archive corpus for ZIP, row by row, with the rows about tar that mean the same there. Z025
//! is policy's: this crate knows no protected names, and unpacks them as files without set-id bits.

use glovebox_workspace::PathError;
use glovebox_workspace::archive::{Limit, Refusal, UnpackLimits};

use crate::archives::ground::{ground, tree};
use crate::archives::zip::{Item, Zip, sum};

#[test]
fn an_ordinary_archive_is_unpacked() {
    let ground = ground();
    let text = b"many words, many words, many words".repeat(100);
    let archive = Zip::of([
        Item::dir("d/"),
        Item::deflated("d/text", &text),
        Item::file("stored", "as it is").streamed(),
        Item::deflated("deflated", &text).streamed(),
        Item::link("d/link", "../stored"),
        Item::file("no/directory/named", ""),
    ]);
    let unpacked = ground.zip(&archive.bytes()).unwrap();
    assert_eq!((unpacked.entries, unpacked.files), (6, 4));
    assert_eq!(std::fs::read(ground.path("d/text")).unwrap(), text);
    assert_eq!(std::fs::read(ground.path("deflated")).unwrap(), text);
    assert_eq!(ground.text("d/link"), "as it is");
    assert_eq!(ground.text("no/directory/named"), "");
    let modified = std::fs::metadata(ground.path("stored")).unwrap().modified();
    let modified = modified.unwrap().duration_since(std::time::UNIX_EPOCH);
    assert_eq!(modified.unwrap().as_secs(), 1_577_836_800);
}

#[test]
fn an_empty_archive_is_one_too() {
    assert_eq!(ground().zip(&Zip::default().bytes()).unwrap().entries, 0);
}

#[test]
fn z001_z016_entries_that_climb_are_refused() {
    let ground = ground();
    for name in ["../evil", "a/../../evil", "a/../evil", "..", "a/.."] {
        let archive = Zip::of([Item::file(name, "evil")]);
        assert_eq!(
            ground.zip_refusal(&archive.bytes()),
            Refusal::Climbs,
            "{name}"
        );
    }
    for name in ["..\\evil", "a\\b", "C:\\evil", "\\\\host\\share"] {
        let archive = Zip::of([Item::file(name, "evil")]);
        let refusal = ground.zip_refusal(&archive.bytes());
        assert_eq!(refusal, Refusal::Backslash, "{name}");
    }
}

/// The control: what a simple program does with the same archive.
#[test]
fn z016_the_same_archive_escapes_from_a_simple_unpacker() {
    let ground = ground();
    let archive = Zip::of([Item::file("../../outside/evil", "evil")]).bytes();
    let mut archive = zip::ZipArchive::new(std::io::Cursor::new(archive)).unwrap();
    let mut entry = archive.by_index(0).unwrap();
    let name = entry.name().unwrap().into_owned();
    let mut file = std::fs::File::create(ground.inside().join(name)).unwrap();
    std::io::copy(&mut entry, &mut file).unwrap();
    assert!(
        std::path::Path::new(&ground.outside())
            .join("evil")
            .exists()
    );
}

#[test]
fn z002_an_absolute_entry_is_refused() {
    let ground = ground();
    let archive = Zip::of([Item::file(&format!("{}/evil", ground.outside()), "evil")]);
    let refusal = ground.zip_refusal(&archive.bytes());
    assert_eq!(refusal, Refusal::Path(PathError::Absolute));
    let nul = Zip::of([Item::file("a\0b", "evil")]);
    assert_eq!(
        ground.zip_refusal(&nul.bytes()),
        Refusal::Path(PathError::Nul)
    );
}

#[test]
fn z003_z004_z005_z021_links_that_lead_out_are_refused() {
    let ground = ground();
    let out = ground.outside();
    for target in [out.as_str(), "/etc/passwd", "..", "../..", "a/..", "./.."] {
        let archive = Zip::of([Item::link("x", target), Item::file("x/evil", "evil")]);
        let refusal = ground.zip_refusal(&archive.bytes());
        assert_eq!(refusal, Refusal::LinkLeaves, "{target}");
    }
    let chain = Zip::of([
        Item::link("a", "b"),
        Item::link("b", ".."),
        Item::file("a/evil", "evil"),
    ]);
    assert_eq!(ground.zip_refusal(&chain.bytes()), Refusal::LinkLeaves);
    let through = Zip::of([
        Item::dir("real/"),
        Item::link("x", "real"),
        Item::file("x/evil", "evil"),
    ]);
    assert_eq!(ground.zip_refusal(&through.bytes()), Refusal::ThroughLink);
    for text in ["", "a\0b", &"x".repeat(5000)] {
        let archive = Zip::of([Item::link("x", text)]);
        assert_eq!(ground.zip_refusal(&archive.bytes()), Refusal::LinkText);
    }
}

#[test]
fn z008_a_link_of_an_earlier_archive_is_not_written_through() {
    let ground = ground();
    std::os::unix::fs::symlink(ground.outside(), ground.path("x")).unwrap();
    let archive = Zip::of([Item::file("x/canary", "evil")]).bytes();
    let refused = ground.zip_straight(&archive).unwrap_err();
    assert_eq!(*refused.why(), Refusal::ThroughLink);
    ground.zip(&archive).unwrap_err();
    let canary = format!("{}/canary", ground.outside());
    std::os::unix::fs::symlink(&canary, ground.path("y")).unwrap();
    ground
        .zip(&Zip::of([Item::file("y", "new")]).bytes())
        .unwrap();
    assert_eq!(ground.text("y"), "new");
    assert!(!ground.path("y").is_symlink());
}

#[test]
fn z011_special_files_are_refused() {
    let ground = ground();
    for (mode, what) in [
        (0o010_666, "a FIFO"),
        (0o020_666, "a character device"),
        (0o060_666, "a block device"),
        (0o140_666, "a socket"),
    ] {
        let node = Item {
            attributes: mode << 16,
            ..Item::file("node", "")
        };
        let refusal = ground.zip_refusal(&Zip::of([node]).bytes());
        assert_eq!(refusal, Refusal::Special(what));
    }
}

#[test]
fn z012_set_id_bits_are_stripped() {
    let ground = ground();
    let suid = Item {
        attributes: 0o106_755 << 16,
        ..Item::file("suid", "x")
    };
    let sticky = Item {
        attributes: 0o047_777 << 16,
        ..Item::dir("sticky/")
    };
    ground.zip(&Zip::of([suid, sticky]).bytes()).unwrap();
    assert_eq!(ground.mode("suid"), 0o755);
    assert_eq!(ground.mode("sticky"), 0o777);
}

#[test]
fn z013_what_stands_in_front_and_what_stands_at_the_end_must_agree() {
    let ground = ground();
    let plain = || Item::file("f", "four");
    let disagree = |item: Item| {
        let other = Zip::of([item, Item::file("g", "")]);
        match ground.zip_refusal(&other.bytes()) {
            Refusal::Disagree(what) => what,
            other => panic!("{other:?}"),
        }
    };
    let mut item = plain();
    item.name.1 = b"g".to_vec();
    assert_eq!(disagree(item), "path");
    let mut item = plain();
    item.size.1 = 3;
    assert_eq!(disagree(item), "size");
    let mut item = plain();
    item.packed.1 = 0;
    assert_eq!(disagree(item), "size");
    let mut item = plain();
    item.sum.1 = 1;
    assert_eq!(disagree(item), "checksum");
    let mut item = plain();
    item.method.1 = 8;
    assert_eq!(disagree(item), "compression");
    let mut item = plain();
    item.flags.1 = 1 << 11;
    assert_eq!(disagree(item), "compression");
    // Sizes that follow must be the same a third time.
    let mut item = plain().streamed();
    item.behind[8] ^= 1;
    assert_eq!(disagree(item), "size");
    // A stored entry is as long as it is.
    let mut item = plain();
    item.size = (3, 3);
    assert_eq!(disagree(item), "size");
}

#[test]
fn z013_bytes_that_belong_to_nothing_are_refused() {
    let ground = ground();
    let hidden = Zip::of([Item::file("hidden", "evil")]).bytes();
    let mut archive = Zip::of([Item::file("f", "x")]);
    archive.gap = hidden[..hidden.len() - 22].to_vec();
    assert_eq!(ground.zip_refusal(&archive.bytes()), Refusal::Gap);
    // In front of it all.
    let bytes = [
        b"#!/bin/sh\n".to_vec(),
        Zip::of([Item::file("f", "x")]).bytes(),
    ]
    .concat();
    assert_eq!(ground.zip_refusal(&bytes), Refusal::Gap);
    // An archive within the comment of another: readers differ on which is meant.
    let mut archive = Zip::of([Item::file("f", "x")]);
    archive.comment = Zip::of([Item::file("f", "evil")]).bytes();
    let refusal = ground.zip_refusal(&archive.bytes());
    assert_eq!(refusal, Refusal::Disagree("directory"));
    let mut archive = Zip::of([Item::file("f", "x")]);
    archive.comment = b"just words".to_vec();
    ground.zip(&archive.bytes()).unwrap();
}

#[test]
fn z017_a_bomb_stops_at_the_ratio_and_at_the_sizes() {
    let ground = ground();
    let zeros = vec![0; 4 << 20];
    let archive = Zip::of([Item::deflated("bomb", &zeros)]).bytes();
    let limits = UnpackLimits {
        ratio_from_bytes: 1 << 20,
        ..UnpackLimits::FILES
    };
    let refusal = |limits| {
        ground
            .zip_within(&archive, limits)
            .unwrap_err()
            .why()
            .clone()
    };
    assert_eq!(refusal(limits), Refusal::Limit(Limit::Ratio(100)));
    let limits = UnpackLimits {
        total_bytes: 1 << 20,
        ..UnpackLimits::FILES
    };
    assert_eq!(refusal(limits), Refusal::Limit(Limit::TotalBytes(1 << 20)));
    let limits = UnpackLimits {
        file_bytes: 1 << 20,
        ..UnpackLimits::FILES
    };
    assert_eq!(refusal(limits), Refusal::Limit(Limit::FileBytes(1 << 20)));
    // One that says it is small.
    let mut liar = Item::deflated("bomb", &zeros);
    liar.size = (10, 10);
    let refusal = ground.zip_refusal(&Zip::of([liar]).bytes());
    assert_eq!(refusal, Refusal::Disagree("size"));
}

#[test]
fn z017_entries_that_share_their_bytes_are_refused() {
    let ground = ground();
    let first = Item::deflated("a", &[0; 10_000]);
    let second = Item {
        offset: Some(0),
        ..Item::deflated("a", &[0; 10_000])
    };
    let shared = Zip::of([first.clone(), second]);
    assert_eq!(ground.zip_refusal(&shared.bytes()), Refusal::Overlap);
    // One whose contents are the next one, head and all.
    let inner = Item::file("inner", "x");
    let inner_bytes = 30 + 5 + 1;
    let mut outer = Item::file("outer", "");
    outer.packed = (inner_bytes, inner_bytes);
    outer.size = outer.packed;
    let quoted = Zip::of([outer, inner]);
    assert_eq!(ground.zip_refusal(&quoted.bytes()), Refusal::Overlap);
    // One that reaches into the directory.
    let mut long = Item::file("long", "x");
    long.packed = (40, 40);
    long.size = (40, 40);
    assert_eq!(
        ground.zip_refusal(&Zip::of([long]).bytes()),
        Refusal::Overlap
    );
}

#[test]
fn z020_a_name_that_comes_twice_is_refused() {
    let ground = ground();
    let twice = |second: Item| Zip::of([Item::file("x", "1"), second]).bytes();
    for second in [
        Item::file("x", "2"),
        Item::link("x", "y"),
        Item::file("./x", "2"),
        Item::file(".//x", "2"),
        Item::dir("x/"),
    ] {
        assert_eq!(ground.zip_refusal(&twice(second)), Refusal::Duplicate);
    }
    // Two spellings of one letter are two names.
    let both = Zip::of([Item::file("\u{e9}", "1"), Item::file("e\u{301}", "2")]);
    ground.zip(&both.bytes()).unwrap();
    assert_eq!(tree(&ground.inside()).len(), 2);
}

#[test]
fn z023_what_cannot_be_read_is_refused() {
    let ground = ground();
    let with = |change: &dyn Fn(&mut Item)| {
        let mut item = Item::file("f", "four");
        change(&mut item);
        ground.zip_refusal(&Zip::of([item]).bytes())
    };
    for flag in [1, 1 << 6, 1 << 13] {
        assert_eq!(with(&|item| item.flags = (flag, flag)), Refusal::Encrypted);
    }
    for method in [1, 9, 12, 14, 93, 95, 99] {
        let refusal = with(&|item| item.method = (method, method));
        assert_eq!(refusal, Refusal::Method(method));
    }
    assert_eq!(with(&|item| item.sum = (1, 1)), Refusal::Compression);
    assert_eq!(with(&|item| item.data[0] ^= 1), Refusal::Compression);
    let broken = Item {
        method: (8, 8),
        ..Item::file("f", [0xff; 40])
    };
    let refusal = ground.zip_refusal(&Zip::of([broken]).bytes());
    assert_eq!(refusal, Refusal::Compression);
    // Bytes behind the end of the compressed stream.
    let mut trailing = Item::deflated("f", b"text");
    trailing.data.extend_from_slice(b"more");
    trailing.packed = (trailing.packed.0 + 4, trailing.packed.1 + 4);
    let refusal = ground.zip_refusal(&Zip::of([trailing]).bytes());
    assert_eq!(refusal, Refusal::Disagree("size"));
}

fn wide(fields: &[u64]) -> Vec<u8> {
    let bytes: Vec<u8> = fields
        .iter()
        .flat_map(|field| field.to_le_bytes())
        .collect();
    [
        1u16.to_le_bytes().to_vec(),
        (fields.len() as u64 * 8).to_le_bytes()[..2].to_vec(),
        bytes,
    ]
    .concat()
}

#[test]
fn z023_wide_sizes_are_believed_when_everybody_agrees() {
    let ground = ground();
    let with = |change: &dyn Fn(&mut Item)| {
        let mut item = Item::file("f", "four");
        item.size = (u32::MAX, u32::MAX);
        item.packed = (u32::MAX, u32::MAX);
        item.extra = (wide(&[4, 4]), wide(&[4, 4]));
        change(&mut item);
        Zip::of([item]).bytes()
    };
    ground.zip(&with(&|_| ())).unwrap();
    assert_eq!(ground.text("f"), "four");
    std::fs::remove_file(ground.path("f")).unwrap();
    let refusal = |change: &dyn Fn(&mut Item)| ground.zip_refusal(&with(change));
    assert_eq!(
        refusal(&|item| item.extra.1 = wide(&[3, 4])),
        Refusal::Disagree("size")
    );
    assert_eq!(refusal(&|item| item.extra.0 = vec![]), Refusal::Size);
    assert_eq!(refusal(&|item| item.extra.0 = wide(&[4])), Refusal::Header);
    assert_eq!(
        refusal(&|item| item.extra.0 = [wide(&[4, 4]), wide(&[4, 4])].concat()),
        Refusal::Disagree("size")
    );
    let huge = 1u64 << 62;
    assert_eq!(
        refusal(&|item| item.extra = (wide(&[huge, huge]), wide(&[huge, huge]))),
        Refusal::Overlap
    );
}

#[test]
fn z023_the_end_must_say_the_truth() {
    let ground = ground();
    let mut archive = Zip::of([Item::file("a", ""), Item::file("b", "")]);
    for count in [0, 1, 3, 65_535] {
        archive.count = Some(count);
        let refusal = ground.zip_refusal(&archive.bytes());
        assert_eq!(refusal, Refusal::Disagree("number of entries"), "{count}");
    }
    archive.count = None;
    let bytes = archive.bytes();
    for cut in [1, 10, 21, 22, 30, bytes.len() - 1, bytes.len()] {
        let refusal = ground.zip_refusal(&bytes[..bytes.len() - cut]);
        assert_eq!(refusal, Refusal::NotAZip, "{cut}");
    }
    let mut parts = bytes.clone();
    let at = parts.len() - 18;
    parts[at] = 1;
    assert_eq!(ground.zip_refusal(&parts), Refusal::Volumes);
}

/// The records that large archives have in front of their end: entries, bytes and offset of the
/// directory.
fn wide_end(entries: u64, bytes: u64, offset: u64) -> Vec<u8> {
    let mut out = b"PK\x06\x06".to_vec();
    out.extend_from_slice(&44u64.to_le_bytes());
    out.extend_from_slice(&[45, 3, 45, 0]);
    out.extend_from_slice(&[0; 8]);
    for field in [entries, entries, bytes, offset] {
        out.extend_from_slice(&field.to_le_bytes());
    }
    out.extend_from_slice(b"PK\x06\x07\0\0\0\0");
    out.extend_from_slice(&(offset + bytes).to_le_bytes());
    out.extend_from_slice(&1u32.to_le_bytes());
    out
}

#[test]
fn z023_a_wide_end_must_say_the_truth() {
    let ground = ground();
    let with = |entries, bytes, offset, count| {
        let mut archive = Zip::of([Item::file("f", "four")]);
        archive.records = wide_end(entries, bytes, offset);
        archive.count = count;
        archive.bytes()
    };
    // 30 and 46 bytes of heads, a name of one byte in each, and the contents.
    let (bytes, offset) = (47, 35);
    ground.zip(&with(1, bytes, offset, None)).unwrap();
    ground.zip(&with(1, bytes, offset, Some(u16::MAX))).unwrap();
    std::fs::remove_file(ground.path("f")).unwrap();
    let refusal = |bytes: Vec<u8>| ground.zip_refusal(&bytes);
    let lies = Refusal::Disagree("directory");
    assert_eq!(refusal(with(2, bytes, offset, None)), lies);
    let many = Refusal::Limit(Limit::Entries(UnpackLimits::FILES.entries));
    assert_eq!(refusal(with(u64::MAX, bytes, offset, Some(u16::MAX))), many);
    assert_eq!(refusal(with(1, bytes, offset - 1, None)), Refusal::Gap);
    assert_eq!(refusal(with(1, bytes + 1, offset, None)), Refusal::Gap);
    assert_eq!(refusal(with(1, bytes + 1, offset - 1, None)), lies);
}

#[test]
fn z024_entries_stop_at_the_cap_before_any_is_read() {
    let ground = ground();
    let items = (0..1001).map(|number| Item::file(&format!("f{number}"), ""));
    let limits = UnpackLimits {
        entries: 1000,
        ..UnpackLimits::FILES
    };
    let refused = ground
        .zip_within(&Zip::of(items).bytes(), limits)
        .unwrap_err();
    assert_eq!(*refused.why(), Refusal::Limit(Limit::Entries(1000)));
    assert_eq!(tree(&ground.inside()).len(), 0);
}

#[test]
fn z025_protected_names_are_plain_files_here() {
    let ground = ground();
    let names = [
        ".git/hooks/post-checkout",
        ".bashrc",
        ".ssh/authorized_keys",
    ];
    let items = names.map(|name| Item {
        attributes: 0o104_755 << 16,
        ..Item::file(name, "x")
    });
    ground.zip(&Zip::of(items).bytes()).unwrap();
    for name in names {
        assert_eq!(ground.mode(name), 0o755);
    }
}

#[test]
fn a_directory_must_be_one_by_name_and_by_attribute() {
    let ground = ground();
    let refusal = |item: Item| ground.zip_refusal(&Zip::of([item]).bytes());
    assert_eq!(
        refusal(Item {
            attributes: 0o100_644 << 16,
            ..Item::dir("d/")
        }),
        Refusal::Disagree("type")
    );
    assert_eq!(refusal(Item::dir("d")), Refusal::Disagree("type"));
    let full = Item {
        attributes: 0o040_755 << 16,
        ..Item::file("d/", "x")
    };
    assert_eq!(refusal(full), Refusal::ContentsWithoutFile);
    assert_eq!(sum(b""), 0);
}

#[test]
fn an_entry_from_another_system_gets_ordinary_modes() {
    let ground = ground();
    let dos = |item: Item, attributes| Item {
        made_by: 20,
        attributes,
        ..item
    };
    let archive = Zip::of([
        dos(Item::dir("d/"), 0x10),
        dos(Item::file("d/f", "x"), 0x20 | 0o120_777 << 16),
    ]);
    ground.zip(&archive.bytes()).unwrap();
    assert_eq!(ground.mode("d/f"), 0o644);
    assert_eq!(ground.text("d/f"), "x");
}
