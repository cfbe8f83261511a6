//! Headers that two readers could understand differently.

use glovebox_workspace::archive::{Limit, Purpose, Refusal};

use crate::archives::ground::ground;
use crate::archives::tar::{Head, Tar};

fn long_name(tar: Tar, name: &[u8]) -> Tar {
    tar.raw(&Head::new(b'L', b"././@LongLink"), &[name, b"\0"].concat())
}

#[test]
fn long_names_are_checked_as_short_ones_are() {
    let ground = ground();
    let deep = "long/".repeat(40) + "name";
    let archive = long_name(Tar::new(), deep.as_bytes()).file("short", "x");
    ground.unpack(&archive.end(), Purpose::Files).unwrap();
    assert_eq!(ground.text(&format!("new/{deep}")), "x");
    std::fs::remove_dir_all(ground.path("new")).unwrap();
    let climbing = long_name(Tar::new(), b"../evil").file("harmless", "x");
    assert_eq!(ground.refusal(&climbing.end()), Refusal::Climbs);
    let climbing = Tar::new()
        .pax(&[("path", b"../evil")])
        .file("harmless", "x");
    assert_eq!(ground.refusal(&climbing.end()), Refusal::Climbs);
    let link = Head::new(b'K', b"././@LongLink");
    let link = Tar::new().raw(&link, b"../evil\0").link("l", "harmless");
    assert_eq!(ground.refusal(&link.end()), Refusal::LinkLeaves);
}

#[test]
fn two_names_for_one_entry_are_refused() {
    let ground = ground();
    let twice = long_name(long_name(Tar::new(), b"a"), b"b").file("c", "");
    assert_eq!(ground.refusal(&twice.end()), Refusal::Disagree("path"));
    let both = long_name(Tar::new().pax(&[("path", b"a")]), b"b").file("c", "");
    assert_eq!(ground.refusal(&both.end()), Refusal::Disagree("path"));
    let pax = Tar::new().pax(&[]).pax(&[]).file("c", "").end();
    assert_eq!(ground.refusal(&pax), Refusal::Extension);
    let agreeing = long_name(Tar::new().pax(&[("path", b"a")]), b"a").file("c", "");
    ground.unpack(&agreeing.end(), Purpose::Files).unwrap();
}

#[test]
fn a_global_header_may_comment_and_nothing_else() {
    let global = |records: &[u8]| {
        let head = Head::new(b'g', b"pax_global_header");
        Tar::new().raw(&head, records).file("f", "x").end()
    };
    let ground = ground();
    assert_eq!(
        ground.refusal(&global(b"13 path=evil\n")),
        Refusal::Extension
    );
    assert_eq!(
        ground.refusal(&global(b"12 size=100\n")),
        Refusal::Extension
    );
    ground
        .unpack(&global(b"16 comment=git1\n"), Purpose::Files)
        .unwrap();
}

#[test]
fn only_a_file_has_contents() {
    let ground = ground();
    for kind in [b'1', b'2', b'3', b'5', b'6'] {
        let head = Head {
            link: b"f",
            ..Head::new(kind, b"x")
        };
        let archive = Tar::new().file("f", "").raw(&head, b"hidden").end();
        assert_eq!(ground.refusal(&archive), Refusal::ContentsWithoutFile);
    }
}

#[test]
fn unknown_types_and_wrong_sums_are_refused() {
    let ground = ground();
    for kind in [b'D', b'M', b'N', b'V', b'A', b'8', 0xff] {
        let archive = Tar::new().raw(&Head::new(kind, b"x"), b"").end();
        assert_eq!(ground.refusal(&archive), Refusal::UnknownType(kind));
    }
    let mut archive = Tar::new().file("a", "").file("b", "").end();
    archive[512] = b'c';
    assert_eq!(ground.refusal(&archive), Refusal::Header);
}

#[test]
fn descriptions_without_an_entry_are_refused() {
    let ground = ground();
    let archive = Tar::new().pax(&[("path", b"a")]).end();
    assert_eq!(ground.refusal(&archive), Refusal::Truncated);
    let mut endless = Tar::new();
    for _ in 0..100 {
        endless = endless.raw(&Head::new(b'g', b"g"), b"");
    }
    assert_eq!(
        ground.refusal(&endless.file("f", "").end()),
        Refusal::Extension
    );
}

#[test]
fn an_extended_header_has_a_largest_size() {
    let ground = ground();
    let head = Head {
        size: Some(*b"00777777777\0"),
        ..Head::new(b'x', b"pax")
    };
    let archive = Tar::new().raw(&head, b"").end();
    let refusal = ground.refusal(&archive);
    assert!(
        matches!(refusal, Refusal::Limit(Limit::ExtensionBytes(_))),
        "{refusal:?}"
    );
}
