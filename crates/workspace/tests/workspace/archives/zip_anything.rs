//! Any ZIP, whole or damaged: nothing outside changes, no link leads out, nothing panics, and what
//! another reader cannot read is not unpacked either.

use std::io::{Cursor, Read};

use proptest::prelude::*;

use crate::archives::ground::{Ground, cases, ground, tree};
use crate::archives::zip::{Item, Zip};

fn name() -> impl Strategy<Value = String> {
    let part = prop::sample::select(vec!["a", "b", "c", "..", ".", "", "OUT", "x\\y"]);
    prop::collection::vec(part, 1..4).prop_map(|parts| parts.join("/"))
}

fn item() -> impl Strategy<Value = (u8, String, String, Vec<u8>)> {
    let contents = prop::collection::vec(any::<u8>(), 0..300);
    (0..5u8, name(), name(), contents)
}

fn built(items: &[(u8, String, String, Vec<u8>)], ground: &Ground) -> Vec<u8> {
    let out = |text: &str| text.replace("OUT", &ground.outside());
    Zip::of(items.iter().map(|(kind, name, target, contents)| {
        let name = out(name);
        match kind {
            0 => Item::file(&name, contents),
            1 => Item::deflated(&name, contents),
            2 => Item::link(&name, &out(target)),
            3 => Item::dir(&format!("{name}/")),
            _ => Item::deflated(&name, contents).streamed(),
        }
    }))
    .bytes()
}

fn assert_links_stay(ground: &Ground) -> Result<(), TestCaseError> {
    for (path, (mode, ..)) in tree(&ground.inside()) {
        if mode & 0o170_000 == 0o120_000
            && let Ok(end) = ground.inside().join(&path).canonicalize()
        {
            prop_assert!(end.starts_with(ground.inside()), "{path:?} to {end:?}");
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn nothing_outside_changes_and_no_link_leads_out(
        archives in prop::collection::vec(prop::collection::vec(item(), 1..8), 1..4)
    ) {
        let ground = ground();
        for items in &archives {
            let bytes = built(items, &ground);
            let _ = ground.zip_straight(&bytes);
            let _ = ground.zip(&bytes);
            for one in items {
                let _ = ground.zip_straight(&built(std::slice::from_ref(one), &ground));
            }
        }
        assert_links_stay(&ground)?;
    }

    #[test]
    fn damaged_archives_are_refused_or_harmless(
        items in prop::collection::vec(item(), 1..6),
        hits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let ground = ground();
        let mut bytes = built(&items, &ground);
        for (at, byte) in hits {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        let _ = ground.zip_straight(&bytes);
        assert_links_stay(&ground)?;
    }

    #[test]
    fn what_is_unpacked_is_what_another_reader_sees(
        contents in prop::collection::vec((any::<bool>(), prop::collection::vec(any::<u8>(), 0..300)), 1..6),
        hits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..3),
    ) {
        let ground = ground();
        let items = contents.iter().enumerate().map(|(number, (streamed, bytes))| {
            let item = Item::deflated(&format!("f{number}"), bytes);
            if *streamed { item.streamed() } else { item }
        });
        let mut bytes = Zip::of(items).bytes();
        for (at, byte) in hits {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if ground.zip(&bytes).is_err() {
            return Ok(());
        }
        let mut other = zip::ZipArchive::new(Cursor::new(&bytes)).unwrap();
        for number in 0..other.len() {
            let mut entry = other.by_index(number).unwrap();
            if !entry.is_file() {
                continue;
            }
            let mut seen = Vec::new();
            entry.read_to_end(&mut seen).unwrap();
            let path = ground.inside().join(entry.name().unwrap().as_ref());
            prop_assert_eq!(std::fs::read(path).unwrap(), seen);
        }
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let ground = ground();
        let _ = ground.zip_straight(&bytes);
        let _ = ground.zip_straight(&[b"PK\x03\x04".as_slice(), &bytes].concat());
    }
}
