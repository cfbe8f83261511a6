//! Any sequence of entries, over whatever the sequence before it left: nothing outside changes.

use glovebox_workspace::archive::Purpose;
use proptest::prelude::*;

use crate::archives::ground::{Ground, cases, ground, tree};
use crate::archives::tar::{Head, Tar};

#[derive(Debug, Clone)]
struct Made {
    kind: u8,
    name: String,
    target: String,
    contents: Vec<u8>,
    extended: bool,
}

/// Short, so that entries meet; the last ones lead out in every way that was thought of.
fn part() -> impl Strategy<Value = &'static str> {
    prop_oneof![
        8 => prop::sample::select(vec!["a", "b", "c", "d"]),
        3 => prop::sample::select(vec!["..", ".", "", ".wh.a", ".wh..wh..opq", ".wh...", "OUT"]),
    ]
}

fn path() -> impl Strategy<Value = String> {
    let start = prop_oneof![9 => Just(""), 1 => Just("/")];
    (start, prop::collection::vec(part(), 1..5))
        .prop_map(|(start, parts)| format!("{start}{}", parts.join("/")))
}

fn target() -> impl Strategy<Value = String> {
    let out = vec![
        "OUT",
        "OUT/canary",
        "..",
        "../..",
        "../../outside",
        "/",
        "a/../..",
    ];
    prop_oneof![3 => path(), 2 => prop::sample::select(out).prop_map(str::to_owned)]
}

fn made() -> impl Strategy<Value = Made> {
    let kind = prop::sample::select(b"0001225522367".to_vec());
    (
        kind,
        path(),
        target(),
        prop::collection::vec(any::<u8>(), 0..600),
        any::<bool>(),
    )
        .prop_map(|(kind, name, target, contents, extended)| Made {
            kind,
            name,
            target,
            contents,
            extended,
        })
}

fn archive(entries: &[Made], ground: &Ground) -> Vec<u8> {
    let mut tar = Tar::new();
    for entry in entries {
        let name = entry.name.replace("OUT", &ground.outside());
        let target = entry.target.replace("OUT", &ground.outside());
        let file = matches!(entry.kind, b'0' | b'7');
        let contents = if file { entry.contents.as_slice() } else { b"" };
        let fits = name.len() <= 100 && target.len() <= 100;
        let head = if entry.extended || !fits {
            tar = tar.pax(&[("path", name.as_bytes()), ("linkpath", target.as_bytes())]);
            Head::new(entry.kind, b"harmless")
        } else {
            Head {
                link: target.as_bytes(),
                ..Head::new(entry.kind, name.as_bytes())
            }
        };
        tar = tar.raw(&head, contents);
    }
    tar.end()
}

fn purpose() -> impl Strategy<Value = Purpose> {
    prop_oneof![Just(Purpose::Files), Just(Purpose::Image)]
}

/// Where every link that leads somewhere leads.
fn assert_links_stay(ground: &Ground) -> Result<(), TestCaseError> {
    for (path, (mode, ..)) in tree(&ground.inside()) {
        if mode & 0o170000 != 0o120000 {
            continue;
        }
        if let Ok(end) = ground.inside().join(&path).canonicalize() {
            prop_assert!(
                end.starts_with(ground.inside()),
                "{path:?} leads to {end:?}"
            );
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn nothing_outside_changes(
        archives in prop::collection::vec((purpose(), prop::collection::vec(made(), 1..12)), 1..4)
    ) {
        let ground = ground();
        for (purpose, entries) in &archives {
            // Looks at everything outside by itself.
            let _ = ground.over(&archive(entries, &ground), *purpose);
        }
    }

    #[test]
    fn no_link_of_an_archive_leads_out(entries in prop::collection::vec(made(), 1..12)) {
        let ground = ground();
        // Entry by entry, so that one refusal does not end it.
        for entry in &entries {
            let _ = ground.over(&archive(std::slice::from_ref(entry), &ground), Purpose::Files);
        }
        assert_links_stay(&ground)?;
    }

    #[test]
    fn damaged_archives_are_refused_or_harmless(
        entries in prop::collection::vec(made(), 1..6),
        hits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let ground = ground();
        let mut bytes = archive(&entries, &ground);
        for (at, byte) in hits {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let _ = ground.over(&bytes, Purpose::Files);
        let _ = ground.over(&bytes, Purpose::Image);
    }
}
